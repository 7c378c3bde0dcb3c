// Command kvreport turns what the benchmarks printed or wrote into documents and decisions.
//
//	main.go       the table of commands; help/: what each says of itself
//	frame.go      finding the command, help, flags in any place, exit codes
//	output.go     output files that are whole or absent
//	documents.go  what html and xlsx have in common
//	json.go, xlsx.go, html.go, fio.go, gate.go, aggregate.go, submission.go,
//	discover.go, datasize.go, device.go, dedup.go, trace.go
//	              a file per command: its flags, the call of its package, the exit code
//
// The packages behind the commands know neither flags nor exit codes.
package main
