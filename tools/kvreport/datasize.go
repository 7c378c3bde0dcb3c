package main

import (
	"errors"
	"fmt"
	"io"

	"kvbench/tools/sizing"
)

// datasizeCommand answers a question about a run that does not exist yet, so that its arguments
// are the run's.
var datasizeCommand = Command{
	Name:  "datasize",
	Args:  "[-bench NAME] [any parameter of the benchmarks] [-write-gbps N] [-json]",
	Short: "memory and disk that a run will need",
	Run:   runDatasize,
}

// runDatasize lets the user's arguments stand behind the defaults, so that they win.
func runDatasize(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := flags("datasize")
	q := sizing.NewQuestion(fs)
	asJSON := fs.Bool("json", false, "")
	rest, err := parse(fs, append(sizing.Defaults(), args...))
	if err != nil {
		return fail(stderr, "datasize", err)
	}
	// Answered before anything is printed: needs that are wrong are worse than none.
	answer, err := q.Answer(rest)
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) { // every mistake in the parameters has a line of its own
		for _, err := range several.Unwrap() {
			fmt.Fprintf(stderr, "kvreport datasize: %v\n", err)
		}
		return Usage
	}
	if err == nil {
		write := answer.WriteText
		if *asJSON {
			write = answer.WriteJSON
		}
		err = write(stdout)
	}
	switch {
	case err != nil:
		return fail(stderr, "datasize", err)
	// A no is an answer, and written in full.
	case !answer.Fits():
		return No
	}
	return Done
}
