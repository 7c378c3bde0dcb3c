// Command kvreport turns what the benchmarks printed or wrote into documents and decisions.
package main

import (
	"os"

	"kvbench/tools/command"
	"kvbench/tools/dedup"
	"kvbench/tools/discover"
	"kvbench/tools/sizing"
	"kvbench/tools/trace"
)

// commands in the order of the help.
var commands = []command.Command{
	jsonCommand,
	xlsxCommand,
	htmlCommand,
	trace.Fio,
	gateCommand,
	aggregateCommand,
	submissionCommand,
	discover.Command,
	sizing.Datasize,
	sizing.Device,
	dedup.Command,
	trace.Command,
}

func main() {
	os.Exit(command.Main("kvreport", commands, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
