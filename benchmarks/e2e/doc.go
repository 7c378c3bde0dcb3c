// Package e2e tests the benchmarks as a user runs them: a compiled binary, started as its own process.
//
// The tests build one binary per run, without the race detector (bench_test.go, which also has the
// helpers that start the binary and look at the files that it left). Files and their subjects:
//
//	output, loads               what is printed and recorded; benchstat reads it
//	script                      testdata/script: what users type, what they get, what is refused
//	user                        who may run it, on how many cores, in how much memory
//	signals, parent, terminal   how a run ends in every stage, and what is shown meanwhile
//	hang, disk                  what still works when storage or a directory hangs, or a disk is full
//	clients, launchers          several clients: one line, one tree, a submission, one that dies
//	checkpoint                  checkpoints of one and of several ranks
//	objects, gateway            object stores that fail, and one that verifies signatures
//	identities, formulas        the numbers of every result that these tests leave: testdata/identities.txt, views.txt
//	safety, roots               files of a user stay as they are, and nothing of a run stays
//	readme                      that README.md says what the code does
//
// All tests but readme skip under -short, and if there is no go command. Tests that start processes run
// in parallel, unless they change something of the test process, or measure (KVTEST_TIMES=1).
package e2e
