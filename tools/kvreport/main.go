// Command kvreport turns what the benchmarks printed or wrote into documents and decisions.
package main

import (
	"os"

	"kvbench/tools/command"
	"kvbench/tools/datasize"
	"kvbench/tools/dedup"
	"kvbench/tools/device"
	"kvbench/tools/discover"
	"kvbench/tools/fiojob"
	"kvbench/tools/submission"
	"kvbench/tools/trace"
)

// commands in the order of the help.
var commands = []command.Command{
	jsonCommand,
	xlsxCommand,
	htmlCommand,
	fiojob.Fio,
	gateCommand,
	aggregateCommand,
	submission.Command,
	discover.Command,
	datasize.Datasize,
	device.Device,
	dedup.Command,
	trace.Command,
}

func main() {
	os.Exit(command.Main("kvreport", commands, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
