package submission

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
	"kvbench/tools/discover"
)

// Submission has the parameters of one submission.
type Submission struct {
	Dir, Out             string                       // results directory, and where to build the tree
	Organisation, System string                       // each is a directory name in the tree
	Division             string                       // closed or open: the top directory of the tree
	Hardware             map[string]discover.Hardware // by host name; hosts may be missing
	// The git repository of kvbench that has the measured commit. "" means the working directory, which
	// need not be a repository.
	Code    string
	Checker string // version of MLPerf Storage's checker: of a layout, "" for the first

	now    func() time.Time // the time that the code image records
	layout layout
	image  string // algorithm and hash of the code image, "" without an image
	tree   *merge.Tree
	check  *Check
}

// defaultCode is the working directory of the command.
const defaultCode = "."

// plainName matches the name of an organisation or a system, which becomes a directory name.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Validate returns the first mistake in the parameters, and sets defaults.
func (s *Submission) Validate() error {
	s.Code = cmp.Or(s.Code, defaultCode)
	if s.now == nil {
		s.now = time.Now
	}
	i := slices.IndexFunc(layouts, func(l layout) bool { return l.checker == cmp.Or(s.Checker, layouts[0].checker) })
	// Report one mistake at a time: nothing has been read yet.
	switch {
	case s.Out == "":
		return errors.New("no output; give -o OUT")
	case s.Division != result.DivisionClosed && s.Division != result.DivisionOpen:
		return fmt.Errorf("-division: must be closed or open, given %q", s.Division)
	case i < 0:
		var names []string
		for _, l := range layouts {
			names = append(names, l.checker)
		}
		return fmt.Errorf("-checker: must be one of %s, given %q", strings.Join(names, ", "), s.Checker)
	}
	s.layout = layouts[i]
	for _, given := range [][2]string{{"organisation", s.Organisation}, {"system", s.System}} {
		if !plainName.MatchString(given[1]) {
			return fmt.Errorf("-%s: must be a name of letters, digits, dot, dash and underscore"+
				" (it becomes a directory), given %q", given[0], given[1])
		}
	}
	return nil
}

// Run checks the results and builds the tree. If it finds a deviation in the closed division, or a
// missing result in any division, it builds nothing, returns false and passes each finding to say.
func (s *Submission) Run(stdout io.Writer, say func(string)) (built bool, err error) {
	if err := s.read(); err != nil {
		return false, err
	}
	sum := merge.Aggregate(s.tree)
	s.check = checkClosed(s.tree, sum)
	// The open division allows deviations; check.md lists them.
	deviations := s.check.Deviations
	// No division allows missing results. A published tree of mlcommons/storage lacked 45 rank files,
	// and its rates were the sums over the remaining ranks.
	missing := slices.DeleteFunc(slices.Clone(deviations), func(d Finding) bool {
		return !d.Missing
	})
	refused, why := deviations, fmt.Sprintf("%d deviation(s) from the closed division, nothing "+
		"was built; -division open builds %s", len(deviations), filepath.Join(s.Out, s.top(result.DivisionOpen)))
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
	s.Division = s.top(s.Division)
	// From here on an error is an I/O error, not a mistake in the results.
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
		verdict += fmt.Sprintf("; this is a REHEARSAL and must not be submitted.\n%13sThe same command without "+
			"-rehearse measures; with -dry-run it shows how long that takes", "")
	}
	systems := filepath.Join(top, "systems", s.System)
	_, err = fmt.Fprintf(stdout, "run:         %s\ncode:        %s\n"+
		"description: %s.yaml (fill in what says %s)\n"+
		"to do:       %s.pdf, the system in words and pictures: the rules want one\n"+
		"closed:      %s\n%s\n", filepath.Join(top, s.runAt(sum)), code, systems, unknown,
		systems, verdict, sum.Notice)
	return true, err
}

// rehearsal is the name of the top directory of a rehearsal. Rule 2.1.2 knows only closed and open, so
// no checker accepts the tree.
const rehearsal = "rehearsal"

// top returns the tree's top directory. Short windows make a rehearsal in both divisions.
func (s *Submission) top(division string) string {
	if s.check.Rehearsal {
		return rehearsal
	}
	return division
}

// runAt returns the run's path below the organisation. All options are one run. The path has the model
// of the first option, as mlpstorage's path has, although the third option has another model.
func (s *Submission) runAt(sum *merge.Summary) string {
	return path.Join("results", s.System, "kv_cache", s.model(), "run", sum.Stamp())
}

// model returns the directory name of the first option's model. If -model read a file, the name is the
// file's name, or the name of the directory of a config.json.
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
	// The directory may have results of plain I/O, because the drive's ceiling is measured before the
	// options. They are left out with a warning. Any other result is an error.
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

// publish builds the tree in a temporary directory next to Out and renames it when it is complete, so
// an error leaves nothing behind. It refuses a directory Out that is not empty. code is where the code
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
	out := &output{files: map[string][]byte{}}
	code = s.build(out, sum)
	if out.err != nil {
		return "", out.err
	}
	// In the same directory as Out, because a rename must not cross filesystems.
	stage, err := os.MkdirTemp(filepath.Dir(filepath.Clean(s.Out)), ".submission-*")
	if err != nil {
		return "", fmt.Errorf("build the submission next to %s: %w", s.Out, err)
	}
	defer os.RemoveAll(stage)
	fresh := filepath.Join(stage, "new")
	for name, data := range out.files {
		file := filepath.Join(fresh, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return "", err
		}
	}
	// os.Rename does not replace a directory, not even an empty one, as rename(2) does.
	if err := os.Remove(s.Out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return code, os.Rename(fresh, s.Out)
}

// output has the files of the tree by slash-separated path, and the errors in making them.
type output struct {
	files map[string][]byte
	err   error
}

// add adds a file, or the reason why there is none.
func (o *output) add(name string, data []byte, err error) {
	if err != nil {
		o.err = errors.Join(o.err, fmt.Errorf("make %s: %w", name, err))
	}
	o.files[name] = data
}

// write adds a file with what write writes.
func (o *output) write(name string, write func(io.Writer) error) {
	var b bytes.Buffer
	err := write(&b)
	o.add(name, b.Bytes(), err)
}

// copy adds a file without changes, so that a reviewer can compare it with the original. The file may be
// missing.
func (o *output) copy(name, from string) {
	if data, err := os.ReadFile(from); !errors.Is(err, fs.ErrNotExist) {
		o.add(name, data, err)
	}
}

// build makes the files of the tree. It returns where the code image is.
func (s *Submission) build(out *output, sum *merge.Summary) (code string) {
	code = s.addCode(out)
	top := path.Join(s.Division, s.Organisation)
	// The checker accepts only .yaml, .pdf and .md in systems.
	out.write(path.Join(top, "systems", s.System+".yaml"), func(w io.Writer) error {
		return writeSystem(w, s.System, nodes(s.tree.Files, s.Hardware), s.layout.keys)
	})
	out.write(path.Join(top, "systems/README.md"), func(w io.Writer) error {
		return todoTemplate.Execute(w, map[string]any{"Notice": result.ClosedNotice, "System": s.System,
			"Unknown": unknown})
	})
	run := path.Join(top, s.runAt(sum))
	for _, f := range s.tree.Files {
		to := path.Join(run, place(f))
		// EncodePython puts the keys of the Python benchmark first, which MLPerf Storage's tools read.
		data, err := f.Result.EncodePython()
		out.add(to, data, err)
		out.copy(path.Join(path.Dir(to), "summary.txt"), s.summary(f))
	}
	if sum.Notice != result.RehearsalNotice {
		sum.Notice = result.ClosedNotice
	}
	if s.image != "" {
		out.add(path.Join(run, ".mlps-code-image"), []byte(s.image), nil)
	}
	out.write(path.Join(run, merge.SummaryFile), sum.WriteJSON)
	logs := s.addLogs(out, run, sum)
	out.write(path.Join(run, fmt.Sprintf("kv_cache_%s_metadata.json", sum.Stamp())),
		func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ") // as mlpstorage does
			return e.Encode(s.metadata(run, sum, logs))
		})
	out.write(path.Join(run, "check.md"), func(w io.Writer) error {
		return checkTemplate.Execute(w, map[string]any{"Notice": sum.Notice, "Division": s.Division,
			"Check": s.check, "Summary": sum, "Rules": rules, "Read": rulesRead})
	})
	return code
}

// summary returns the path of the lines that a rank printed at the end of a trial. The file may be missing.
func (s *Submission) summary(f merge.File) string {
	return filepath.Join(s.Dir, filepath.FromSlash(path.Dir(f.Path)), "summary.txt")
}

// place returns a result's path below the run's directory, as in kvbench's own results directory.
func place(f merge.File) string {
	return path.Join(directory(f.Group), fmt.Sprintf("trial_%d/rank_%d", f.Trial, f.Rank),
		path.Base(f.Path))
}

// directory returns the name of the directory of a group's results.
func directory(group string) string {
	return strings.NewReplacer("/", "_", " [", "_", "]", "", " ", "_").Replace(named(group, "_"))
}
