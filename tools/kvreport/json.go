package main

import (
	"io"

	"kvbench/tools/load"
)

// jsonCommand archives: one file instead of a directory, which every other command reads.
var jsonCommand = Command{
	Name:  "json",
	Args:  "IN… [-o FILE]",
	Short: "all results as one JSON document",
	Run:   runJSON,
}

// runJSON streams nothing: a document is whole or absent.
func runJSON(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flags("json")
	out := fs.String("o", "", "file to write; without it standard output")
	in, err := parse(fs, args)
	if err != nil {
		return fail(stderr, "json", err)
	}
	records, all, err := load.All(in, load.Options{Stdin: stdin, Warn: warner(stderr, "json")})
	if err != nil {
		return fail(stderr, "json", err)
	}
	// The document is written when everything was read: a broken input leaves no half of it.
	write := func(w io.Writer) error { return load.WriteDocument(w, records, all.Units) }
	// A document on standard output is for the next program.
	if *out == "" || *out == load.Stdin {
		err = write(stdout)
	} else {
		err = writeFile(*out, write)
	}
	if err != nil {
		return fail(stderr, "json", err)
	}
	return Done
}
