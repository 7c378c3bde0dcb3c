package submission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbench/tools/aggregate"
	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view/html"
	"kvbench/tools/view/xlsx"
)

// run is the results of one model: MLPerf Storage keeps models apart, each with a summary.
type run struct {
	load.Tree
	dir     string // below the organisation
	summary string // the name of its summary
}

// runs divides the results by their models, in the order of their groups. All of them began with
// the same start.
func (s *Submission) runs(all *aggregate.Summary) []run {
	var list []run
	for _, f := range s.tree.Files {
		dir := filepath.Join("results", s.System, "kv_cache", f.Result.Model.Key, "run",
			all.Stamp())
		i := slices.IndexFunc(list, func(r run) bool { return r.dir == dir })
		if i < 0 {
			i = len(list)
			tree := load.Tree{Dir: s.Dir, Warnings: s.tree.Warnings}
			list = append(list, run{tree, dir, all.FileName()})
		}
		list[i].Files = append(list[i].Files, f)
	}
	return list
}

// build makes the tree of an organisation. Nothing outside of top is touched.
func (s *Submission) build(top string, runs []run) error {
	for _, r := range runs {
		if err := s.run(filepath.Join(top, r.dir), &r); err != nil {
			return err
		}
	}
	return put(filepath.Join(top, "systems", s.System+".yaml"), func(w io.Writer) error {
		return writeSystem(w, s.System, nodes(s.tree.Files, s.Hardware))
	})
}

// put writes a file of the stage, with its directory. The tree is moved when it is whole, so that
// no single file has to be.
func put(path string, write func(io.Writer) error) error {
	// In memory first: the largest of them, the workbook, is built there anyway.
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// copyFile copies a file byte by byte: a reviewer can compare it with what the run left.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return put(to, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// run fills the directory of one model's run.
func (s *Submission) run(dir string, r *run) error {
	for _, f := range r.Files {
		from, to := filepath.Join(s.Dir, filepath.FromSlash(f.Path)), filepath.Join(dir, place(f))
		if err := copyFile(from, to); err != nil {
			return err
		}
		// The summary that a person reads, where the run left one beside the result.
		err := copyFile(filepath.Join(filepath.Dir(from), "summary.txt"),
			filepath.Join(filepath.Dir(to), "summary.txt"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// The reports are made of the copies, so that the paths in them are those of the tree.
	records, table, err := s.records(dir)
	if err != nil {
		return err
	}
	sum, err := aggregate.Aggregate(&r.Tree)
	if err != nil {
		return err
	}
	sum.Notice = Notice
	return errors.Join(
		put(filepath.Join(dir, "report.xlsx"), func(w io.Writer) error {
			return xlsx.Write(w, records, table)
		}),
		put(filepath.Join(dir, "report.html"), func(w io.Writer) error {
			return html.Write(w, records, table)
		}),
		put(filepath.Join(dir, r.summary), sum.WriteJSON),
		put(filepath.Join(dir, "check.md"), func(w io.Writer) error {
			return writeCheck(w, s.Division, s.check.of(r.Groups()), sum)
		}),
	)
}

// place is where a result stands in the tree: as a run writes it, whatever directory it came from.
func place(f load.File) string {
	group := strings.ReplaceAll(f.Group, "/", "_")
	if isOption(group) {
		group = "option_" + group
	}
	return filepath.Join(group, fmt.Sprintf("trial_%d", f.Trial), fmt.Sprintf("rank_%d", f.Rank),
		filepath.Base(f.Path))
}

// records reads a run's directory for the workbook and the page, with paths that a reviewer finds
// in the tree: where the results were measured means nothing to him.
func (s *Submission) records(dir string) ([]*load.Record, *stats.Table, error) {
	records, units, err := load.All([]string{dir}, load.Options{})
	if err != nil {
		return nil, nil, err
	}
	for _, rec := range records {
		// File is where the record stands, Path what it names; both lie in the stage.
		for _, path := range []*string{&rec.File, &rec.Path} {
			if rel, err := filepath.Rel(dir, *path); err == nil && *path != "" {
				*path = filepath.ToSlash(rel)
			}
		}
		// One source for all of them: the system under test, not the files they stand in.
		rec.Source = s.System
		if err := announce(rec); err != nil {
			return nil, nil, err
		}
	}
	return records, stats.Build(records, units), nil
}

// announce puts the notice into the reports of results that lack it: those of the open division.
func announce(rec *load.Record) error {
	if rec.Result == nil || rec.Result.Notice != "" {
		return nil
	}
	// Both forms of the record are read: columns by the raw keys, pages by the struct.
	// Unmarshalling only the top level keeps whatever a newer version wrote below it.
	rec.Result.Notice = Notice
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(rec.Raw, &keys); err != nil {
		return err
	}
	keys["notice"], _ = json.Marshal(Notice)
	raw, err := json.Marshal(keys)
	rec.Raw = raw
	return err
}
