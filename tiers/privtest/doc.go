// Package privtest lets tests use what only root can make: a filesystem of its own on a loop
// device, a device with a speed limit, a device of known latencies.
//
//	privtest.go        Need and Root: skip, or fail where a skip must not happen
//	loop_linux.go      LoopFS: an ext4 on a loop device over memory
//	fuse_linux.go      FuseDir, and the file of a LoopFS with Times: a process that serves them over
//	                   FUSE, with times and with operations that wait
//	hang_linux.go      a device or a directory that stops to answer, or to take writes
//	throttle_linux.go  ThrottleLoop: a cgroup whose processes are slow on one device
//	reclaim_linux.go   removes what killed tests have left
//
// A test that cannot have it skips and says why; where KVTEST_REQUIRE_PRIVILEGED=1 is set (a CI
// machine that is known to offer it) the same skip is a failure, so that a broken helper cannot
// hide tests that never run.
//
// Everything made here is removed at the end of the test. What a killed test binary left is removed
// by the next one.
package privtest
