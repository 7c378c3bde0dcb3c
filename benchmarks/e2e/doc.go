// Package e2e holds the tests of the benchmarks as a user meets them: a compiled binary, started as
// a process of its own.
//
// One binary is built per run of these tests, without the race detector (bench_test.go, which also
// has the helpers that start it and look at what it left). Files and their subjects:
//
//	output, select, loads, traces, simulate   what is printed and recorded; benchstat reads it
//	commandline, params         what is refused, and how; which value wins
//	paths, user, quota          where relative paths lead, who may run it, on how many cores
//	signals, parent, terminal   how a run ends, and what is shown meanwhile
//	hang, directories           what still works when storage or a directory hangs
//	clients, launchers          several clients: one line, one tree, one that dies
//	safety, disk                files of a user stay as they are; disks that are full or hang
//	readme                      that README.md says what the code does
//
// All of them but readme skip under -short, and where there is no go command. Tests that start
// processes of their own run in parallel, unless they change something of this process, or measure
// (KVTEST_TIMES=1).
package e2e
