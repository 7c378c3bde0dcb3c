// Command kvreport makes documents of results, compares results, and works with traces and machines.
//
//	main.go       the table of commands; help/ has a text for each
//	frame.go      Main; Call: flags anywhere on the line, help, output, exit codes
//	output.go     output files, which are written completely or not at all
//	documents.go  json, csv, html, xlsx: all results as one file
//	compare.go    turns, gate
//	ranks.go      aggregate, submission: results directories
//	traces.go     curve, convert, device: recorded traffic, and models of drives
//	trace.go      trace: the block requests of processes and devices
//	fio.go        fio: jobs of the traces in results and in bpftrace texts
//	machine.go    discover, datasize, dedup
//
// The packages of the commands know no flags and no exit codes, so that other packages and tests can
// use them without a process. A command defines its flags on a Call and returns the function that runs
// it. The exit code is 0 for success, 1 if the answer is no (the gate fails, the memory does not
// suffice), 2 for wrong usage and I/O errors, and 3 if the results do not suffice for an answer (gate,
// turns).
//
// Each error is one line on standard error that begins with the command's name. An error about an input
// names its file. Output files are written under a temporary name and renamed, so that an old file
// stays until the new one is complete.
//
// Flags may be anywhere on the line. A single - is standard input. After -- everything is an argument.
// help COMMAND, or -h, prints the help to standard output. An empty command line prints it to standard
// error, with exit code 2.
//
// The scripts in testdata/script run whole commands. Packages test their own decisions.
// trace_privileged_linux_test.go traces real processes; it needs root, fio and a loop device.
package main
