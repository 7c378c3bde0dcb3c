// Command kvreport turns what the benchmarks printed or wrote into documents and decisions.
//
//	main.go       the table of commands; help/: a text for each
//	frame.go      Main, and Call: flags anywhere on the line, help, answers, exit codes
//	output.go     output files that are whole or absent
//	documents.go  json, csv, html, xlsx: all results as one file
//	compare.go    turns, gate
//	ranks.go      aggregate, submission: results directories
//	traces.go     curve, convert, trace, fio, device: recorded traffic, and models of drives
//	machine.go    discover, datasize, dedup
//	models.go     models
//
// The packages behind the commands know neither flags nor exit codes, so that other packages and
// tests can use them without a process. A command defines its flags on a Call and returns the
// function that runs it. The exit code is 0 for success, 1 for success with the answer no (the gate
// does not pass, the memory does not fit), 2 for wrong usage and for input or output that fails,
// and 3 when the results are not sufficient for an answer (gate, turns).
//
// Every error is one line on standard error that begins with the command's name, and every line of
// a bad input is named with its file. Output files are written next to their place and renamed: an
// old report stays until the new one is whole.
//
// Flags may stand anywhere on the line, a lone - is standard input, and after -- everything is an
// argument. help COMMAND, or -h in any place, prints the help to standard output and is no error;
// an empty command line prints it as an error.
//
// The scripts in testdata/script run commands as a user types them; what the commands decide is
// tested in their packages. trace_privileged_linux_test.go watches real processes and
// needs root, fio and a loop device.
package main
