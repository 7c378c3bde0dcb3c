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
	"regexp"
	"slices"
	"strings"

	"kvbench/kvbench/merge/summary"
	"kvbench/kvbench/merge/tree"
	"kvbench/kvbench/result"
	"kvbench/tools/discover"
	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view/html"
	"kvbench/tools/view/xlsx"
)

// Submission is what to build, from what, and where.
type Submission struct {
	Dir, Out             string                       // results directory, the tree's place
	Organisation, System string                       // names of directories in the tree
	Division             string                       // closed or open: the top of the tree
	Hardware             map[string]discover.Hardware // of the clients, by host name; may lack any

	tree  *tree.Tree
	check *Check
}

// Notice stands on every page of a submission.
const Notice = result.ClosedNotice

// plainName is what may name an organisation or a system: it becomes a directory.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Validate tells what is wrong with the parameters.
func (s *Submission) Validate() error {
	// One at a time: each is a slip of the keyboard, and nothing has been read yet.
	switch {
	case s.Out == "":
		return errors.New("no output; give -o OUT")
	case s.Division != result.DivisionClosed && s.Division != result.DivisionOpen:
		return fmt.Errorf("-division: must be closed or open, given %q", s.Division)
	}
	for _, given := range [][2]string{{"organisation", s.Organisation}, {"system", s.System}} {
		if !plainName.MatchString(given[1]) {
			return fmt.Errorf("-%s: must be a name of letters, digits, dot, dash and underscore"+
				" (it becomes a directory), given %q", given[0], given[1])
		}
	}
	return nil
}

// Run checks the results and builds the tree. It is not built (false) in the closed division when
// something deviates: what, is given to say line by line.
func (s *Submission) Run(stdout io.Writer, say func(string)) (built bool, err error) {
	if err := s.read(); err != nil {
		return false, err
	}
	sum := summary.Aggregate(s.tree)
	s.check = checkClosed(s.tree, sum)
	// In the open division deviations are allowed, and the page lists them.
	deviations := s.check.Deviations
	if s.Division == result.DivisionClosed && len(deviations) > 0 {
		for _, d := range deviations {
			say(d.String())
		}
		say(fmt.Sprintf("%d deviation(s) from the closed division, nothing was built; -division"+
			" open builds %s/open", len(deviations), s.Out))
		return false, nil
	}
	runs := s.runs(sum)
	if err := s.publish(runs); err != nil {
		return false, err
	}
	top := filepath.Join(s.Out, s.Division, s.Organisation)
	for _, r := range runs {
		fmt.Fprintf(stdout, "run:         %s\n", filepath.Join(top, r.dir))
	}
	verdict := "nothing deviates"
	if len(deviations) > 0 {
		verdict = fmt.Sprintf("%d deviation(s), listed in check.md", len(deviations))
	}
	_, err = fmt.Fprintf(stdout, "description: %s (fill in what says %s)\nclosed:      %s\n%s\n",
		filepath.Join(top, "systems", s.System+".yaml"), unknown, verdict, Notice)
	return true, err
}

// read loads the results and keeps those of KV-cache workloads.
func (s *Submission) read() error {
	t, err := tree.Read(s.Dir)
	if err != nil {
		return err
	}
	// Results of plain I/O lie in the same directory when the ceiling was measured before the
	// options; they are left out with a word. The others would be a mistake to submit.
	kept := t.Files[:0]
	for _, f := range t.Files {
		path := filepath.Join(s.Dir, f.Path)
		switch {
		case f.Python:
			return fmt.Errorf("%s is a result of the Python benchmark: its own tools submit it",
				path)
		case f.Result.Simulation != nil:
			return fmt.Errorf("%s is simulated: no storage had a part in it, so there is nothing "+
				"to submit; name a directory of measured results", path)
		case f.Result.Model.Key == "" || f.Result.CompletionUnit == result.UnitOperation:
			t.Warnings = append(t.Warnings,
				fmt.Sprintf("%s: left out, %s is no KV-cache workload", f.Path, f.Group))
		default:
			kept = append(kept, f)
		}
	}
	if t.Files = kept; len(kept) == 0 {
		return fmt.Errorf("%s: no result of a KV-cache workload in it", s.Dir)
	}
	s.tree = t
	return nil
}

// publish builds the tree beside its place and moves it there when it is whole: with a broken
// input or a full disk nothing is left. What stands at the place already is somebody's, and stays.
func (s *Submission) publish(runs []run) error {
	if entries, err := os.ReadDir(s.Out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty, and nothing is added to a tree or replaced in it:"+
			" name another directory, or remove that one", s.Out)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Beside its place, because a rename must not cross filesystems.
	stage, err := os.MkdirTemp(filepath.Dir(filepath.Clean(s.Out)), ".submission-*")
	if err != nil {
		return fmt.Errorf("build the submission beside %s: %w", s.Out, err)
	}
	defer os.RemoveAll(stage)
	fresh := filepath.Join(stage, "new")
	top := filepath.Join(fresh, s.Division, s.Organisation)
	for _, r := range runs {
		if err := s.run(filepath.Join(top, r.dir), &r); err != nil {
			return err
		}
	}
	err = put(filepath.Join(top, "systems", s.System+".yaml"), func(w io.Writer) error {
		return writeSystem(w, s.System, nodes(s.tree.Files, s.Hardware))
	})
	if err != nil {
		return err
	}
	return os.Rename(fresh, s.Out) // over an empty directory, too
}

// run is the results of one model: MLPerf Storage keeps models apart, each with a summary.
type run struct {
	tree.Tree
	dir     string // below the organisation
	summary string // the name of its summary
}

// runs divides the results by their models, in the order of their groups. All of them began with
// the same start.
func (s *Submission) runs(all *summary.Summary) []run {
	var list []run
	for _, f := range s.tree.Files {
		dir := filepath.Join("results", s.System, "kv_cache", f.Result.Model.Key, "run",
			all.Stamp())
		i := slices.IndexFunc(list, func(r run) bool { return r.dir == dir })
		if i < 0 {
			i = len(list)
			tree := tree.Tree{Dir: s.Dir, Warnings: s.tree.Warnings}
			list = append(list, run{tree, dir, all.FileName()})
		}
		list[i].Files = append(list[i].Files, f)
	}
	return list
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
	sum := summary.Aggregate(&r.Tree)
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
func place(f tree.File) string {
	group := strings.NewReplacer("/", "_", " [", "_", "]", "", " ", "_").Replace(f.Group)
	return filepath.Join(named(group, "_"), fmt.Sprintf("trial_%d/rank_%d", f.Trial, f.Rank),
		filepath.Base(f.Path))
}

// records reads a run's directory for the workbook and the page, with paths that a reviewer finds
// in the tree: where the results were measured means nothing to him.
func (s *Submission) records(dir string) ([]*load.Record, *stats.Table, error) {
	records, units, err := load.All([]string{dir}, load.Options{Trials: true})
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
