// Package export is kvreport json: everything that was read as one JSON document, which kvreport reads again.
package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
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
	out := outputFlag(fs)
	in, err := command.Parse(fs, args)
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	write := func(w io.Writer) error {
		return Write(w, in, input.Options{Stdin: stdin, Warn: func(err error) { fmt.Fprintf(stderr, "kvreport json: %v\n", err) }})
	}
	if *out == "" || *out == input.Stdin {
		b := bufio.NewWriterSize(stdout, 1<<16)
		if err = write(b); err == nil {
			err = b.Flush()
		}
	} else {
		err = command.WriteFile(*out, write)
	}
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	return command.Done
}

func outputFlag(fs *flag.FlagSet) *string {
	return fs.String("o", "", "file to write; without it standard output")
}

// Write streams all records of the inputs to w. Nothing reaches w before the first record is read.
func Write(w io.Writer, args []string, o input.Options) error {
	var line bytes.Buffer
	encode := func(v any) error {
		line.Reset()
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			return err
		}
		_, err := w.Write(bytes.TrimRight(line.Bytes(), "\n"))
		return err
	}
	first := true
	out, err := input.Each(args, o, func(rec *input.Record) error {
		lead := ",\n"
		if first {
			lead = fmt.Sprintf("{%q: %q, \"results\": [\n", input.DocumentKey, input.DocumentSchema)
		}
		first = false
		if _, err := io.WriteString(w, lead); err != nil {
			return err
		}
		if err := encode(input.NewEntry(rec)); err != nil {
			return fmt.Errorf("%s:%d: encode %s: %w", rec.File, rec.Line, rec.Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	units := map[string]map[string]string{}
	for k, u := range out.Units {
		if units[u.OrigUnit] == nil {
			units[u.OrigUnit] = map[string]string{}
		}
		units[u.OrigUnit][k.Key] = u.Value
	}
	if _, err := io.WriteString(w, "\n],\n\"units\": "); err != nil {
		return err
	}
	if err := encode(units); err != nil {
		return err
	}
	_, err = io.WriteString(w, "}\n")
	return err
}
