// Package report is what the commands have in common that turn all results into one file: page and workbook.
package report

import (
	"errors"
	"fmt"
	"io"

	"kvbench/tools/command"
	"kvbench/tools/compare"
	"kvbench/tools/input"
)

// Maker turns records and their comparison into a file's content. The notes say what it lacks for want of result files.
type Maker func(records []*input.Record, t *compare.Table) (write func(io.Writer) error, notes []string)

// Run is the body of a command "kvreport name IN… -o FILE": it reads everything, warns of bad lines and of what is missing
// on stderr, and writes the file whole or not at all. It returns the exit code.
func Run(name string, args []string, stdin io.Reader, stderr io.Writer, maker Maker) int {
	fs := command.Flags(name)
	path := fs.String("o", "", "file to write")
	in, err := command.Parse(fs, args)
	if err == nil && *path == "" {
		err = errors.New("no output; give -o FILE")
	}
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	var records []*input.Record
	warn := func(what any) { fmt.Fprintf(stderr, "kvreport %s: %v\n", name, what) }
	out, err := input.Each(in, input.Options{Stdin: stdin, Warn: func(err error) { warn(err) }},
		func(rec *input.Record) error { records = append(records, rec); return nil })
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	write, notes := maker(records, compare.Build(records, out.Units))
	for _, n := range notes {
		warn(n)
	}
	if err := command.WriteFile(*path, write); err != nil {
		return command.Fail(stderr, name, err)
	}
	return command.Done
}
