package main

import (
	"embed"
	"os"
	"strings"
)

// help has a text for each command: what it does and how it decides, and lines that can be typed.
//
//go:embed help
var help embed.FS

// commands in the order of the help. Those that read results come first, in the order in which
// people meet them; those that look at machines and files follow.
var commands = explained(
	jsonCommand,
	xlsxCommand,
	htmlCommand,
	fioCommand,
	gateCommand,
	aggregateCommand,
	submissionCommand,
	discoverCommand,
	datasizeCommand,
	deviceCommand,
	dedupCommand,
	traceCommand,
)

// explained puts the texts into the table: what a command does and how it decides, up to the line
// "Example:", then lines that can be typed as they stand.
func explained(list ...Command) []Command {
	for i, c := range list {
		// A command without a text fails TestCommandsTeach.
		if text, err := help.ReadFile("help/" + c.Name + ".txt"); err == nil {
			list[i].Long, list[i].Example, _ = strings.Cut(string(text), "\nExample:\n")
		}
	}
	return list
}

func main() {
	os.Exit(Main("kvreport", commands, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
