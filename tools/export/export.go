// Package export is kvreport json: everything that was read as one JSON document, which kvreport reads again.
package export

import (
	"fmt"
	"io"

	"kvbench/tools/command"
	"kvbench/tools/input"
)

const name = "json"

// Command is kvreport json.
var Command = command.Command{
	Name:  name,
	Args:  "IN… [-o FILE]",
	Short: "all results as one JSON document",
	Long: `
Reads benchmark output, go test -json, result files, result directories and results of the Python benchmark, in any
mixture, and writes one JSON document to standard output or to FILE. Values stand in the units of the benchmark line. The
result file that a line names is embedded as it stands, where it exists; result_missing says why where it does not.
kvreport reads the document again wherever it reads anything: archive one file instead of a directory.`,
	Example: `
go test ./benchmarks -run '^$' -bench StorageCeiling -count 6 > a.txt
go tool kvreport json a.txt -o a.json
go tool kvreport json a.txt | jq -r '.results[] | [.name, (.values[] | select(.unit == "read-B/s") | .value)] | @tsv'
go test ./benchmarks -run '^$' -bench Tier | go tool kvreport json -`,
	Run: run,
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := command.Flags(name)
	out := fs.String("o", "", "file to write; without it standard output")
	in, err := command.Parse(fs, args)
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	warn := func(err error) { fmt.Fprintf(stderr, "kvreport json: %v\n", err) }
	var records []*input.Record
	all, err := input.Each(in, input.Options{Stdin: stdin, Warn: warn}, func(rec *input.Record) error {
		records = append(records, rec)
		return nil
	})
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	write := func(w io.Writer) error { return input.WriteDocument(w, records, all.Units) }
	if *out == "" || *out == input.Stdin {
		err = write(stdout)
	} else {
		err = command.WriteFile(*out, write)
	}
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	return command.Done
}
