// Package e2e holds the tests of the benchmarks as a user meets them: a compiled binary, started as
// a process of its own.
//
// One binary is built per run of these tests, without the race detector (bench_test.go, which also
// has the helpers that start it and look at what it left). Each file then asks one question of it:
//
//	output, select, loads, traces, simulate   what is printed and recorded; benchstat reads it
//	commandline, params         what is refused, and how; which value wins
//	paths, user, quota          where relative paths lead, who may run it, on how many cores
//	signals, parent, terminal   how a run ends, and what is shown meanwhile
//	hang, hang_late             what still works when the storage does not answer
//	clients                     several clients: one line, one tree, one that dies
//	safety, disk                that nothing is touched which is not the run's
//	readme                      that README.md says what the code does
//
// All of them but readme skip under -short, and where there is no go command. Tests that start
// processes of their own run in parallel unless they change something of this process.
package e2e
