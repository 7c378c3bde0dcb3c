// Command kvreport turns what the benchmarks printed or wrote into documents and decisions.
package main

import (
	"embed"
	"os"
	"strings"

	"kvbench/tools/command"
	"kvbench/tools/dedup"
	"kvbench/tools/discover"
	"kvbench/tools/sizing"
	"kvbench/tools/trace"
)

// help has a text for each command: what it does and how it decides, and lines that can be typed.
//
//go:embed help
var help embed.FS

// commands in the order of the help.
var commands = explained(
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
)

func explained(list ...command.Command) []command.Command {
	for i, c := range list {
		if text, err := help.ReadFile("help/" + c.Name + ".txt"); err == nil {
			list[i].Long, list[i].Example, _ = strings.Cut(string(text), "\nExample:\n")
		}
	}
	return list
}

func main() {
	os.Exit(command.Main("kvreport", commands, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
