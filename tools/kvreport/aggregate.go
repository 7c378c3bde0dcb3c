package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"kvbench/tools/aggregate"
	"kvbench/tools/load"
)

// aggregateCommand sums over the clients of a run. A partial or invalid summary is written all the
// same, because what is there may be all that there will be; the exit code says it.
var aggregateCommand = Command{
	Name:  "aggregate",
	Args:  "DIR [-o FILE]",
	Short: "one summary over the ranks and trials of a results directory",
	Run:   runAggregate,
}

// runAggregate writes beside the results, under the name by which MLPerf Storage's tools look for
// a summary, unless -o names another place.
func runAggregate(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := flags("aggregate")
	out := fs.String("o", "", "")
	dirs, err := parse(fs, args)
	// Two directories are two runs, which are never summed.
	if err == nil && len(dirs) != 1 {
		err = errors.New("one results directory is needed, for example: kvreport aggregate " +
			"kvbench-results/20260908-120000-4711")
	}
	if err != nil {
		return fail(stderr, "aggregate", err)
	}
	t, err := load.ReadTree(dirs[0])
	if err != nil {
		return fail(stderr, "aggregate", err)
	}
	s, err := aggregate.Aggregate(t)
	if err != nil {
		return fail(stderr, "aggregate", err)
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(stderr, "kvreport aggregate: %s\n", w)
	}
	path := *out
	if path == "" {
		path = filepath.Join(dirs[0], s.FileName())
	}
	// The text is for people who look at a terminal: a pipe gets the document alone.
	if path == "-" {
		err = s.WriteJSON(stdout)
	} else if err = writeFile(path, s.WriteJSON); err == nil {
		err = s.WriteText(stdout, path)
	}
	switch {
	case err != nil:
		return fail(stderr, "aggregate", err)
	case !s.Good():
		return No
	}
	return Done
}
