package main

import (
	"errors"
	"io"

	"kvbench/tools/aggregate"
	"kvbench/tools/command"
)

var aggregateCommand = command.Command{
	Name:  "aggregate",
	Args:  "DIR [-o FILE]",
	Short: "one summary over the ranks and trials of a results directory",
	Run:   runAggregate,
}

func runAggregate(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := command.Flags("aggregate")
	out := fs.String("o", "", "")
	dirs, err := command.Parse(fs, args)
	if err == nil && len(dirs) != 1 {
		err = errors.New("one results directory is needed, for example: kvreport aggregate kvbench-results/20260908-120000-4711")
	}
	if err != nil {
		return command.Fail(stderr, "aggregate", err)
	}
	good, err := aggregate.Run(dirs[0], *out, stdout, stderr)
	if err != nil {
		return command.Fail(stderr, "aggregate", err)
	}
	if !good {
		return command.No
	}
	return command.Done
}
