package submission

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/params"
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
	// a git repository of kvbench with the measured commit; "" is the working directory, which need
	// not be one
	Code string

	now   func() time.Time // of the code image
	image string           // its algorithm and hash, "" without one
	tree  *merge.Tree
	check *Check
}

// defaultCode is the working directory, where go tool kvreport is typed.
const defaultCode = "."

// plainName matches the name of an organisation or a system: it becomes a directory.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Validate returns the mistakes in the parameters, and fills in what was left out.
func (s *Submission) Validate() error {
	s.Code = cmp.Or(s.Code, defaultCode)
	if s.now == nil {
		s.now = time.Now
	}
	// One at a time: these are typing errors, and nothing has been read yet.
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

// Run checks the results and builds the tree. In the closed division a deviation prevents it
// (false), and say gets the deviations line by line.
func (s *Submission) Run(stdout io.Writer, say func(string)) (built bool, err error) {
	if err := s.read(); err != nil {
		return false, err
	}
	sum := merge.Aggregate(s.tree)
	s.check = checkClosed(s.tree, sum)
	// In the open division deviations are allowed, and the page lists them.
	deviations := s.check.Deviations
	// No division allows missing results: a published tree of mlcommons/storage lacked 45 rank
	// files, and its rates were sums over the others.
	missing := slices.DeleteFunc(slices.Clone(deviations), func(d Finding) bool {
		return !d.Missing
	})
	refused, why := deviations, fmt.Sprintf("%d deviation(s) from the closed division, nothing "+
		"was built; -division open builds %s/open", len(deviations), s.Out)
	if s.Division == result.DivisionOpen {
		refused = missing
	}
	if len(missing) > 0 {
		why = "results are missing, nothing was built: sums over the ranks that are left are " +
			"those of another system; run the options again"
	}
	if len(refused) > 0 {
		for _, d := range refused {
			say(d.String())
		}
		say(why)
		return false, nil
	}
	// In any division short windows make a rehearsal.
	if s.check.Rehearsal {
		s.Division = rehearsal
	}
	// From here on the disk may fail, not the results.
	code, err := s.publish(sum)
	if err != nil {
		return false, err
	}
	top := filepath.Join(s.Out, s.Division, s.Organisation)
	verdict := "nothing deviates"
	if len(deviations) > 0 {
		verdict = fmt.Sprintf("%d deviation(s), listed in check.md", len(deviations))
	}
	if s.check.Rehearsal {
		verdict += "; " + realRun()
	}
	systems := filepath.Join(top, "systems", s.System)
	_, err = fmt.Fprintf(stdout, "run:         %s\ncode:        %s\n"+
		"description: %s.yaml (fill in what says %s)\n"+
		"to do:       %s.pdf, the system in words and pictures: the rules want one\n"+
		"closed:      %s\n%s\n", filepath.Join(top, s.runAt(sum)), code, systems, unknown,
		systems, verdict, sum.Notice)
	return true, err
}

// rehearsal takes the place of the division: rule 2.1.2 knows closed and open alone, so no checker
// takes the tree for a submission.
const rehearsal = "rehearsal"

// realRun explains what a rehearsal is, and what the real run needs.
func realRun() string {
	return fmt.Sprintf("this is a REHEARSAL and must not be submitted.\n%13sWithout -rehearse %s",
		"", params.ClosedNeeds(slices.Collect(maps.Values(closedValues()))))
}

// runAt is the run's directory below the organisation. All options are one run there, though the
// third has a model of its own: the path has the first one's, as mlpstorage's does.
func (s *Submission) runAt(sum *merge.Summary) string {
	return filepath.Join("results", s.System, "kv_cache", s.model(), "run", sum.Stamp())
}

// model is the first option's model as the name of a directory. A model that -model read from a file is
// named after the file, and one from a config.json after the directory of that file.
func (s *Submission) model() string {
	key := s.tree.Files[0].Result.Model.Key
	name := strings.TrimSuffix(filepath.Base(key), ".json")
	if dir := filepath.Base(filepath.Dir(key)); name == "config" && plainName.MatchString(dir) {
		return dir
	}
	return name
}

// read loads the results and keeps those of KV-cache workloads.
func (s *Submission) read() error {
	t, err := merge.ReadTree(s.Dir)
	if err != nil {
		return err
	}
	// The directory also has results of plain I/O when the ceiling was measured before the options;
	// they are left out with a message. Other results would be a mistake to submit.
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

// publish builds the tree next to its final path and renames it when it is complete: after a broken
// input or a full disk nothing is left. Files that exist at the path stay. code says where the code
// image is.
func (s *Submission) publish(sum *merge.Summary) (code string, err error) {
	if entries, err := os.ReadDir(s.Out); err == nil && len(entries) > 0 {
		return "", fmt.Errorf("%s is not empty, and nothing is added to a tree or replaced in it:"+
			" name another directory, or remove that one", s.Out)
	} else if errors.Is(err, syscall.ENOTDIR) {
		return "", fmt.Errorf("-o: %w; name a new or an empty directory", err)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	// In the same directory, because a rename must not cross filesystems.
	stage, err := os.MkdirTemp(filepath.Dir(filepath.Clean(s.Out)), ".submission-*")
	if err != nil {
		return "", fmt.Errorf("build the submission next to %s: %w", s.Out, err)
	}
	defer os.RemoveAll(stage)
	fresh := filepath.Join(stage, "new")
	top := filepath.Join(fresh, s.Division, s.Organisation)
	if code, err = s.writeCode(fresh); err != nil {
		return "", err
	}
	if err := s.run(filepath.Join(top, s.runAt(sum)), sum); err != nil {
		return "", err
	}
	// The checker takes nothing there but .yaml, .pdf and .md.
	systems := filepath.Join(top, "systems")
	err = put(filepath.Join(systems, s.System+".yaml"), func(w io.Writer) error {
		return writeSystem(w, s.System, nodes(s.tree.Files, s.Hardware))
	})
	if err == nil {
		err = put(filepath.Join(systems, "README.md"), func(w io.Writer) error {
			return todoTemplate.Execute(w, map[string]any{"Notice": result.ClosedNotice, "System": s.System,
				"Unknown": unknown})
		})
	}
	if err != nil {
		return "", err
	}
	// Go renames over no directory, not even an empty one as rename(2) does.
	if err := os.Remove(s.Out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return code, os.Rename(fresh, s.Out)
}

// put writes a file of the stage, with its directory. Files need no rename of their own, because
// the complete tree is renamed.
func put(path string, write func(io.Writer) error) error {
	// In memory first: the largest of them, the workbook, is built there anyway.
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return putBytes(path, b.Bytes())
}

// copyFile copies a file byte by byte: a reviewer can compare it with the run's file.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return putBytes(to, data)
}

// putBytes writes a file of the stage, with its directory.
func putBytes(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// run fills the directory of the run.
func (s *Submission) run(dir string, sum *merge.Summary) error {
	for _, f := range s.tree.Files {
		from, to := filepath.Join(s.Dir, filepath.FromSlash(f.Path)), filepath.Join(dir, place(f))
		// The keys of the Python benchmark, which the tools of MLPerf Storage read, come first.
		data, err := f.Result.EncodePython()
		if err == nil {
			err = putBytes(to, data)
		}
		if err != nil {
			return err
		}
		// The summary for people, if the run left one next to the result.
		err = copyFile(filepath.Join(filepath.Dir(from), "summary.txt"),
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
	// The path below the tree's top: the temporary directory is meaningless.
	at := filepath.Join(s.Division, s.Organisation, s.runAt(sum))
	if sum.Notice != result.RehearsalNotice {
		sum.Notice = result.ClosedNotice
	}
	logs, err := s.logs(dir, sum)
	if err != nil {
		return err
	}
	if s.image != "" {
		if err := putBytes(filepath.Join(dir, ".mlps-code-image"), []byte(s.image)); err != nil {
			return err
		}
	}
	return errors.Join(
		put(filepath.Join(dir, "report.xlsx"), func(w io.Writer) error {
			return xlsx.Write(w, records, table)
		}),
		put(filepath.Join(dir, "report.html"), func(w io.Writer) error {
			return html.Write(w, records, table)
		}),
		put(filepath.Join(dir, merge.SummaryFile), sum.WriteJSON),
		put(filepath.Join(dir, fmt.Sprintf("kv_cache_%s_metadata.json", sum.Stamp())),
			func(w io.Writer) error {
				e := json.NewEncoder(w)
				e.SetIndent("", "  ") // as mlpstorage does
				return e.Encode(s.metadata(filepath.ToSlash(at), sum, logs))
			}),
		put(filepath.Join(dir, "check.md"), func(w io.Writer) error {
			return writeCheck(w, s.Division, s.check, sum)
		}),
	)
}

// place is a result's path in the tree: like in a run's own directory, whatever directory it came
// from.
func place(f merge.File) string {
	return filepath.Join(directory(f.Group), fmt.Sprintf("trial_%d/rank_%d", f.Trial, f.Rank),
		filepath.Base(f.Path))
}

// directory is the directory of a group's results.
func directory(group string) string {
	return strings.NewReplacer("/", "_", " [", "_", "]", "", " ", "_").Replace(named(group, "_"))
}

// records reads a run's directory for the workbook and the page, with paths in the tree: the paths
// of the measuring machine mean nothing to a reviewer.
func (s *Submission) records(dir string) ([]*load.Record, *stats.Table, error) {
	records, units, err := load.All([]string{dir}, load.Options{Trials: true})
	if err != nil {
		return nil, nil, err
	}
	for _, rec := range records {
		// File is the record's own path or those of all ranks, Path the named result file; all are in
		// the stage.
		for _, path := range []*string{&rec.File, &rec.Path} {
			*path = filepath.ToSlash(strings.ReplaceAll(*path, dir+string(filepath.Separator), ""))
		}
		// One source for all of them: the system under test, not the files.
		rec.Source = s.System
		if err := announce(rec); err != nil {
			return nil, nil, err
		}
	}
	return records, stats.Build(records, units), nil
}

// announce adds the notice to the reports of results that lack it: those of the open division.
func announce(rec *load.Record) error {
	if rec.Result == nil || rec.Result.Notice != "" {
		return nil
	}
	// Both forms of the record are read: columns by the raw keys, pages by the struct.
	rec.Result.Notice = result.ClosedNotice
	var err error
	rec.Raw, err = json.Marshal(rec.Result)
	return err
}
