// Package privtest has helpers for tests that need root: a filesystem on a loop device, a device with a
// speed limit, a device with known latencies.
//
//	privtest.go        Need and Root: skip, or fail where a skip must not happen
//	loop_linux.go      LoopFS: a filesystem on a loop device over memory
//	fuse_linux.go      FuseDir, and the file of a LoopFS with Times: a process that serves them over
//	                   FUSE
//	hang_linux.go      a device or a directory that completes nothing, or no writes
//	throttle_linux.go  ThrottleLoop: a cgroup whose processes are slow on one device
//	reclaim_linux.go   removes the mounts and devices of killed tests
//
// A test without these conditions is skipped with a reason. With KVTEST_REQUIRE_PRIVILEGED=1 (on a CI
// machine that has them) the skip is a failure, so that a broken helper cannot hide tests that never run.
//
// Everything is removed at the end of the test. The next test binary removes the remains of a killed one.
package privtest
