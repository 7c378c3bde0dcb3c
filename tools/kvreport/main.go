// Command kvreport turns what the benchmarks printed or wrote into documents and decisions.
package main

import (
	"os"

	"kvbench/tools/command"
	"kvbench/tools/export"
	"kvbench/tools/page"
	"kvbench/tools/workbook"
)

// commands in the order of the help.
var commands = []command.Command{
	export.Command,
	page.Command,
	workbook.Command,
}

func main() {
	os.Exit(command.Main("kvreport", commands, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
