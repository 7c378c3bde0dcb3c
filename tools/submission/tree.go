package submission

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/tools/aggregate"
	"kvbench/tools/discover"
	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view/html"
)

// plan is a submission to be built.
type plan struct {
	dir, out             string
	organisation, system string
	division             string // closed or open: the top of the tree
	tree                 *load.Tree
	check                *Check
	hardware             map[string]discover.Hardware
}

// plainName is what may name an organisation or a system: it becomes a directory.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// models lists the models in the tree, in the order of their groups.
func models(t *load.Tree) []string {
	var list []string
	seen := make(map[string]bool)
	for _, f := range t.Files {
		if m := f.Result.Model.Key; m != "" && !seen[m] {
			seen[m] = true
			list = append(list, m)
		}
	}
	return list
}

// build makes the whole tree below stage. Nothing outside stage is touched.
func (p *plan) build(stage string) error {
	whole, err := aggregate.Aggregate(p.tree)
	if err != nil {
		return err
	}
	top := filepath.Join(stage, p.division, p.organisation)
	for _, model := range models(p.tree) {
		run := filepath.Join(top, "results", p.system, "kv_cache", model, "run", whole.Stamp())
		if err := p.run(run, model, whole.FileName()); err != nil {
			return err
		}
	}
	return put(filepath.Join(top, "systems", p.system+".yaml"), func(w io.Writer) error {
		return writeSystem(w, p.system, nodes(p.tree.Files, p.hardware))
	})
}

// put writes a file of the stage, with its directory. The tree is moved when it is whole, so that no single file has to be.
func put(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Close()
}

// run fills the directory of one model's run.
func (p *plan) run(dir, model, summaryName string) error {
	part := &load.Tree{Dir: p.tree.Dir, Warnings: p.tree.Warnings}
	for _, f := range p.tree.Files {
		if f.Result.Model.Key == model {
			part.Files = append(part.Files, f)
		}
	}
	for _, f := range part.Files {
		from, to := filepath.Join(p.tree.Dir, filepath.FromSlash(f.Path)), filepath.Join(dir, place(f))
		if err := copyFile(from, to); err != nil {
			return err
		}
		summary := filepath.Join(filepath.Dir(from), "summary.txt")
		if err := copyFile(summary, filepath.Join(filepath.Dir(to), "summary.txt")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := p.reports(dir); err != nil {
		return err
	}
	s, err := aggregate.Aggregate(part)
	if err != nil {
		return err
	}
	s.Notice = result.ClosedNotice
	if err := put(filepath.Join(dir, summaryName), s.WriteJSON); err != nil {
		return err
	}
	c := p.check.of(part)
	return put(filepath.Join(dir, "check.md"), func(w io.Writer) error { return writeCheck(w, p.division, c, s) })
}

// of is the part of a check that concerns some groups.
func (c *Check) of(t *load.Tree) *Check {
	part := &Check{Remarks: c.Remarks}
	mine := make(map[string]bool)
	for _, g := range t.Groups() {
		mine[g] = true
	}
	for _, d := range c.Deviations {
		if mine[d.Group] {
			part.Deviations = append(part.Deviations, d)
		}
	}
	return part
}

// place is where a result stands in the tree: as a run writes it, whatever directory it came from.
func place(f load.File) string {
	group := strings.ReplaceAll(f.Group, "/", "_")
	if strings.Trim(group, "0123456789") == "" {
		group = "option_" + group
	}
	return filepath.Join(group, fmt.Sprintf("trial_%d", f.Trial), fmt.Sprintf("rank_%d", f.Rank), filepath.Base(f.Path))
}

// reports makes the workbook and the page of a run's directory.
func (p *plan) reports(dir string) error {
	var records []*load.Record
	out, err := load.Each([]string{dir}, load.Options{}, func(rec *load.Record) error {
		for _, path := range []*string{&rec.File, &rec.Path} {
			if rel, err := filepath.Rel(dir, *path); err == nil && *path != "" {
				*path = filepath.ToSlash(rel)
			}
		}
		rec.Source = p.system
		records = append(records, rec)
		return announce(rec)
	})
	if err != nil {
		return err
	}
	table := stats.Build(records, out.Units)
	if err := put(filepath.Join(dir, "report.xlsx"), func(w io.Writer) error { return writeWorkbook(w, records, table) }); err != nil {
		return err
	}
	return put(filepath.Join(dir, "report.html"), func(w io.Writer) error { return html.Write(w, records, table) })
}

// announce puts the notice into the reports of results that do not have it: those of the open division.
func announce(rec *load.Record) error {
	if rec.Result == nil || rec.Result.Notice != "" {
		return nil
	}
	rec.Result.Notice = result.ClosedNotice
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(rec.Raw, &keys); err != nil {
		return err
	}
	keys["notice"], _ = json.Marshal(result.ClosedNotice)
	raw, err := json.Marshal(keys)
	rec.Raw = raw
	return err
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return put(to, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}
