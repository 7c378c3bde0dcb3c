package main

import (
	"errors"
	"io"

	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// writeDocument is the body of a command "kvreport NAME IN… -o FILE" that turns all results into
// one file: it reads everything, warns of bad lines and of what is missing on stderr, and writes
// the file whole or not at all. It returns the exit code. A bad line in one of many inputs must
// not cost the page; an input that cannot be read must, because nobody would miss it there.
func writeDocument(name string, args []string, stdin io.Reader, stderr io.Writer,
	write func(io.Writer, []*load.Record, *stats.Table) error,
	missing func([]*load.Record) []string,
) int {
	fs := flags(name)
	path := fs.String("o", "", "file to write")
	in, err := parse(fs, args)
	// A page on standard output would fill the terminal of whoever forgot -o.
	if err == nil && *path == "" {
		err = errors.New("no output; give -o FILE")
	}
	if err != nil {
		return fail(stderr, name, err)
	}
	warn := warner(stderr, name)
	records, out, err := load.All(in, load.Options{Stdin: stdin, Warn: warn})
	if err != nil {
		return fail(stderr, name, err)
	}
	// What a document lacks is said twice: here, and in it.
	for _, n := range missing(records) {
		warn(errors.New(n))
	}
	// The comparison is built while the file is open: an error leaves the old file.
	put := func(w io.Writer) error { return write(w, records, stats.Build(records, out.Units)) }
	if err := writeFile(*path, put); err != nil {
		return fail(stderr, name, err)
	}
	return Done
}
