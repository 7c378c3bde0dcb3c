package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Entry is what a commit's trials of a benchmark measured on a machine. Values are in the tidied
// units of package stats, seconds and bytes, in the order of the trials.
type Entry struct {
	Commit    string               `json:"commit"`
	Date      string               `json:"date,omitempty"` // when the first trial began, RFC 3339
	Machine   string               `json:"machine"`
	Benchmark string               `json:"benchmark"`
	Settings  map[string]string    `json:"settings,omitempty"`
	Better    map[string]int       `json:"better,omitempty"` // by unit: +1 more, -1 less
	Values    map[string][]float64 `json:"values"`
}

// longestLine of a file: a benchmark of a thousand trials has some hundred KiB.
const longestLine = 16 << 20

// Read reads a file of entries, which people may have merged: empty lines are passed over, and
// anything else that is no entry ends the reading, because a trend with a hole in it looks like one
// without. The error names the line.
func Read(r io.Reader, name string) (list []Entry, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if e.Commit == "" || e.Machine == "" || e.Benchmark == "" {
			return nil, fmt.Errorf("%s:%d: an entry has a commit, a machine and a benchmark", name,
				n)
		}
		list = append(list, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// ReadFile reads the entries of a file, none where there is no file yet.
func ReadFile(path string) ([]Entry, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path)
}

// Entries are those of the results of one commit. The machine is what the results say unless it is
// named; results of several have no name that would be theirs.
func Entries(commit, machine string, in []string, o load.Options) ([]Entry, error) {
	o.Trials, o.Formats = true, &load.Formats{}
	records, units, err := load.All(in, o)
	if err != nil {
		return nil, err
	}
	date, hosts := "", map[string]bool{}
	for _, rec := range records {
		rec.Source = commit // all of them are of one run
		if r := rec.Result; r != nil {
			hosts[r.Environment.Hostname] = true
			if date == "" || r.StartTime != "" && r.StartTime < date {
				date = r.StartTime
			}
		}
	}
	if delete(hosts, ""); machine == "" && len(hosts) == 1 {
		machine = slices.Collect(maps.Keys(hosts))[0]
	}
	if machine == "" {
		return nil, fmt.Errorf("the results name %d machines: give -machine NAME", len(hosts))
	}
	var list []Entry
	// With the settings beside it a benchmark needs no name that tells them: which of them differ
	// depends on what else was run that day, and the series must not end for that.
	for _, b := range stats.Build(records, units).Benchmarks {
		e := Entry{Commit: commit, Date: date, Machine: machine, Benchmark: b.Plain,
			Settings: b.Settings[0].Texts(), Better: map[string]int{},
			Values: map[string][]float64{}}
		for _, m := range b.Metrics {
			e.Values[m.Unit] = m.Cells[0].Values
			if m.Better != 0 {
				e.Better[m.Unit] = m.Better
			}
		}
		if len(e.Values) > 0 {
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("no trial with numbers in the input")
	}
	return list, nil
}

// Add appends entries to a file. What the file has already of a commit, a machine and a benchmark
// is not added again: two runs of one commit would be taken for two commits.
func Add(path string, list []Entry) error {
	have, err := ReadFile(path)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, e := range list {
		if slices.ContainsFunc(have, func(h Entry) bool {
			return h.Commit == e.Commit && sameSeries(h, e)
		}) {
			return fmt.Errorf("%s has %s of commit %s on %s already", path, e.Benchmark, e.Commit,
				e.Machine)
		}
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		out.Write(append(line, '\n'))
	}
	// Not renamed into place, as other files: a history is appended to, and its other lines are not
	// touched, so that a merge sees new lines alone.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(out.Bytes())
	return errors.Join(err, f.Close())
}
