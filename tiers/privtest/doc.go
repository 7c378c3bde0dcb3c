// Package privtest lets tests use what only root can make: a filesystem of its own on a loop
// device, a device with a speed limit, a device of known latencies.
//
//	privtest.go        Need and Root: skip, or fail where a skip must not happen
//	loop_linux.go      LoopFS: an ext4 on a loop device over memory
//	slow_linux.go      under LoopFS with Times: a disk of those, served over FUSE by a process
//	hang_linux.go      a device or a directory that stops to answer, or to take writes
//	dir_linux.go       FuseDir: a directory that can do that for some operations alone
//	throttle_linux.go  ThrottleLoop: a cgroup whose processes are slow on one device
//	ahead_linux.go     Ahead: the processor before all others
//	reclaim_linux.go   removes what killed tests have left
//
// A test that cannot have it skips and says why; where KVTEST_REQUIRE_PRIVILEGED=1 is set (a CI
// machine that is known to offer it) the same skip is a failure, so that a broken helper cannot
// hide tests that never run.
//
// Everything made here is removed at the end of the test. What a killed test binary left is removed
// by the next one.
package privtest
