package main

import (
	"fmt"
	"io"

	"kvbench/tools/load"
)

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
	warn := func(err error) { fmt.Fprintf(stderr, "kvreport json: %v\n", err) }
	var records []*load.Record
	all, err := load.Each(in, load.Options{Stdin: stdin, Warn: warn},
		func(rec *load.Record) error {
			records = append(records, rec)
			return nil
		})
	if err != nil {
		return fail(stderr, "json", err)
	}
	write := func(w io.Writer) error { return load.WriteDocument(w, records, all.Units) }
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
