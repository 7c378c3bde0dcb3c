// Package fiojob is kvreport fio: a fio job for each traced result, which puts
// the same block load on another device.
package fiojob

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"kvbench/tools/command"
	"kvbench/tools/input"
)

const name = "fio"

// Command is kvreport fio.
var Command = command.Command{
	Name:  name,
	Args:  "IN… [-o FILE|DIR]",
	Short: "one fio job per traced result, which makes the same load elsewhere",
	Long: `
Distils the block trace of each result that was run with -enable-latency-tracing into a fio job: request sizes and their
shares, the mix of reads and writes, the mean queue depth, and pauses where there were any. The job names no file and no size:
give them to fio. One job goes to standard output or to FILE; several go into DIR, which is made, one file per result. Results
without a trace are named on standard error; none with one is an error.`,
	Example: `
go test ./benchmarks -run '^$' -bench MaxStorageStress -enable-latency-tracing > results.txt
go tool kvreport fio results.txt -o job.fio
fio job.fio --filename=/mnt/other/testfile --size=20G`,
	Run: run,
}

// job is the text for one result.
type job struct{ file, text string }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := command.Flags(name)
	out := fs.String("o", "", "file, or directory for several jobs; without it standard output")
	in, err := command.Parse(fs, args)
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	jobs, err := distil(in, stdin, stderr)
	if err == nil {
		err = write(jobs, *out, stdout)
	}
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	return command.Done
}

func distil(in []string, stdin io.Reader, stderr io.Writer) ([]job, error) {
	var jobs []job
	seen := map[string]int{}
	results := 0
	warn := func(err error) { fmt.Fprintf(stderr, "kvreport fio: %v\n", err) }
	_, err := input.Each(in, input.Options{Stdin: stdin, Warn: warn}, func(rec *input.Record) error {
		if rec.Result == nil {
			return nil
		}
		results++
		text, err := rec.Result.FioJob()
		if err != nil {
			where := rec.File
			if rec.Line > 0 {
				where = fmt.Sprintf("%s:%d", where, rec.Line)
			}
			warn(fmt.Errorf("%s: %w", where, err))
			return nil
		}
		base := strings.NewReplacer("/", "_", "=", "-", " ", "_").Replace(rec.Name)
		seen[base]++
		if n := seen[base]; n > 1 {
			base = fmt.Sprintf("%s-%d", base, n)
		}
		jobs = append(jobs, job{base + ".fio", text})
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case results == 0:
		return nil, errors.New("the input names no result file: a job needs the block trace in it (is the results directory still there?)")
	case len(jobs) == 0:
		return nil, errors.New("none of the results has a block trace to distil: run the benchmark with -enable-latency-tracing")
	}
	return jobs, nil
}

// write puts one job where out says, or several into the directory out.
func write(jobs []job, out string, stdout io.Writer) error {
	info, err := os.Stat(out)
	isDir := out != "" && (strings.HasSuffix(out, string(filepath.Separator)) || (err == nil && info.IsDir()))
	switch {
	case len(jobs) == 1 && !isDir:
		put := func(w io.Writer) error { _, err := io.WriteString(w, jobs[0].text); return err }
		if out == "" || out == input.Stdin {
			return put(stdout)
		}
		return command.WriteFile(out, put)
	case out == "" || out == input.Stdin:
		return fmt.Errorf("%d results were traced: give a directory with -o, each becomes a file of its own", len(jobs))
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return fmt.Errorf("making the directory for %d jobs: %w", len(jobs), err)
	}
	for _, j := range jobs {
		put := func(w io.Writer) error { _, err := io.WriteString(w, j.text); return err }
		if err := command.WriteFile(filepath.Join(out, j.file), put); err != nil {
			return err
		}
	}
	return nil
}
