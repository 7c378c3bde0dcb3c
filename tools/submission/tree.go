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

// models lists the models in the tree, in the order of their groups.
func models(t *load.Tree) []string {
	var list []string
	for _, f := range t.Files {
		if m := f.Result.Model.Key; !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}

// runDir is where the results of a model stand, below the organisation.
func (s *Submission) runDir(model string, sum *aggregate.Summary) string {
	return filepath.Join("results", s.System, "kv_cache", model, "run", sum.Stamp())
}

// build makes the tree of an organisation. Nothing outside of top is touched.
func (s *Submission) build(top string, sum *aggregate.Summary) error {
	for _, model := range models(s.tree) {
		err := s.run(filepath.Join(top, s.runDir(model, sum)), model, sum.FileName())
		if err != nil {
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
func (s *Submission) run(dir, model, summaryName string) error {
	part := &load.Tree{Dir: s.tree.Dir, Warnings: s.tree.Warnings}
	for _, f := range s.tree.Files {
		if f.Result.Model.Key != model {
			continue
		}
		part.Files = append(part.Files, f)
		from := filepath.Join(s.tree.Dir, filepath.FromSlash(f.Path))
		to := filepath.Join(dir, place(f))
		if err := copyFile(from, to); err != nil {
			return err
		}
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
	sum, err := aggregate.Aggregate(part)
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
		put(filepath.Join(dir, summaryName), sum.WriteJSON),
		put(filepath.Join(dir, "check.md"), func(w io.Writer) error {
			return writeCheck(w, s.Division, s.check.of(part.Groups()), sum)
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

// records reads a run's directory for the workbook and the page.
func (s *Submission) records(dir string) ([]*load.Record, *stats.Table, error) {
	records, units, err := load.All([]string{dir}, load.Options{})
	if err != nil {
		return nil, nil, err
	}
	for _, rec := range records {
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
