package merge

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/result"
)

// File is one result file in a results directory.
type File struct {
	Path   string // relative to the directory, with slashes
	Group  string // the option's number, or the benchmark's name
	Trial  int
	Rank   int
	Result *result.Result
	Python bool          // from the Python benchmark, without status, parameters and environment
	Keys   result.Python // the result with the Python benchmark's keys

	settings map[string]string // of SettingsOf, and the model
}

// Complete reports whether the numbers of the trial may be used.
func (f File) Complete() bool { return f.Python || f.Result.Status == result.StatusComplete }

// Sibling returns the path pattern of the file of another trial and rank of the group.
func (f File) Sibling(trial, rank int) string {
	dir := f.Group
	if m := Layout.FindStringSubmatchIndex(f.Path); m != nil {
		dir = f.Path[:m[3]]
	}
	return fmt.Sprintf("%s/trial_%d/rank_%d/kvcache_results_*.json", dir, trial, rank)
}

// Tree has the result files of a results directory, sorted by group, trial and rank. Merged results
// are left out, because the ranks' results are there.
type Tree struct {
	Dir      string
	Files    []File   // by group, trial, rank
	Warnings []string // what was left out, and why
}

// Layout matches <option_O or benchmark>/trial_<T>/rank_<N>/kvcache_results_<timestamp>.json.
var Layout = regexp.MustCompile(
	`(?:^|/)([^/]+)/trial_(\d+)/rank_(\d+)/(kvcache_results_[^/]*\.json)$`)

// ReadTree reads every result file below dir. A file that cannot be read is an error. Two results
// of one trial and rank with the same settings are an error if they are in different directories
// and not copies. If they are in one directory, ReadTree takes the newer result, with a warning.
func ReadTree(dir string) (*Tree, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file; name the results directory (-results-dir)", dir)
	}
	t := &Tree{Dir: dir}
	// Names have a timestamp, so the newest file of a directory comes last.
	err := JSONFiles(dir, "kvcache_results_", func(path string) error {
		f, err := t.read(path)
		if err == nil && f.Result.MergedRanks == nil {
			err = t.add(f)
		}
		return err
	})
	if err == nil && len(t.Files) == 0 {
		err = fmt.Errorf("%s: no result file (kvcache_results_*.json) in it or below", dir)
	}
	slices.SortFunc(t.Files, compareFiles)
	t.split()
	slices.SortFunc(t.Files, compareFiles)
	return t, err
}

// compareFiles orders files by group, trial and rank, which identify a result in a run.
func compareFiles(a, b File) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), a.Trial-b.Trial, a.Rank-b.Rank)
}

// read reads one result file. Group, trial and rank are in a kvbench result. For a Python result
// they come from the path.
func (t *Tree) read(path string) (File, error) {
	rel, _ := filepath.Rel(t.Dir, path) // cannot fail: path is below Dir
	f := File{Path: filepath.ToSlash(rel)}
	data, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if f.Result, f.Python, err = Parse(path, data); err != nil {
		return f, fmt.Errorf("%w; nothing in %s was used: repair, move or remove this file", err,
			t.Dir)
	}
	// Users rename directories, so trial and rank of a kvbench result come from the file.
	if !f.Python {
		f.Group, f.Trial, f.Rank = groupOf(f.Result), f.Result.Trial, f.Result.Rank
		f.Keys = f.Result.Python()
	} else {
		m := Layout.FindStringSubmatch(f.Path)
		if m == nil {
			return f, fmt.Errorf("%s: a result of the Python benchmark must stand in "+
				"<option>/trial_<T>/rank_<N>/: it does not say itself which it is", path)
		}
		f.Group = strings.TrimPrefix(m[1], "option_")
		f.Trial, _ = strconv.Atoi(m[2])
		f.Rank, _ = strconv.Atoi(m[3])
		if f.Keys, err = result.ParsePython(data); err != nil {
			return f, Located(path, data, err)
		}
		f.Result = &result.Result{Trial: f.Trial, Rank: f.Rank}
	}
	if f.settings = SettingsOf(f.Result, f.Python); f.Result.Model.Key != "" {
		f.settings["model"] = f.Result.Model.Key // models differ in bytes per token
	}
	// Function option loops over all trials and ranks up to the largest, so reject absurd numbers.
	if f.Trial < 0 || f.Rank < 0 || max(f.Rank, f.Result.Ranks) > mostRanks ||
		max(f.Trial, f.Result.Count) > mostTrials {
		return f, fmt.Errorf("%s: trial %d of %d, rank %d of %d cannot be", path, f.Trial,
			f.Result.Count, f.Rank, f.Result.Ranks)
	}
	return f, nil
}

// Limits of plausible numbers.
const (
	mostRanks  = 10_000
	mostTrials = 1_000
)

// groupOf returns the option's number for a run of the option itself, else the full name of the
// benchmark.
func groupOf(r *result.Result) string {
	name := cmp.Or(r.Name, r.Benchmark)
	if r.Option != nil && name == r.Benchmark {
		return strconv.Itoa(*r.Option)
	}
	return name
}

// add adds a file. If there is a file of the same trial, rank and settings, add keeps one of both
// or returns an error; see ReadTree.
func (t *Tree) add(f File) error {
	i := slices.IndexFunc(t.Files, func(have File) bool {
		return compareFiles(have, f) == 0 && len(differences(have.settings, f.settings)) == 0
	})
	if i < 0 {
		t.Files = append(t.Files, f)
		return nil
	}
	have := t.Files[i]
	switch {
	case !f.Python && have.Result.Nonce == f.Result.Nonce &&
		have.Result.StartTime == f.Result.StartTime:
		return nil // a copy, such as -artifacts makes
	case filepath.Dir(have.Path) == filepath.Dir(f.Path):
		t.Warnings = append(t.Warnings,
			fmt.Sprintf("%s: left out, %s of the same trial and rank is newer", have.Path,
				filepath.Base(f.Path)))
		t.Files[i] = f
		return nil
	}
	return fmt.Errorf("%s and %s are both trial %d of rank %d of %s: give each run a results "+
		"directory of its own, and each client its own -rank",
		filepath.Join(t.Dir, have.Path), filepath.Join(t.Dir, f.Path), f.Trial, f.Rank, f.Group)
}

// split divides each group by the settings that differ within it. It appends these settings to the
// names of the new groups.
func (t *Tree) split() {
	first, differ := map[[2]string]string{}, map[string]map[string]bool{} // by group
	for _, f := range t.Files {
		for name, v := range f.settings {
			at := [2]string{f.Group, name}
			if have, ok := first[at]; !ok {
				first[at] = v
			} else if have != v {
				if differ[f.Group] == nil {
					differ[f.Group] = map[string]bool{}
				}
				differ[f.Group][name] = true
			}
		}
	}
	for i := range t.Files {
		f := &t.Files[i]
		var parts []string
		for _, name := range InOrder(differ[f.Group]) {
			if v := f.settings[name]; v != "" {
				parts = append(parts, name+"="+v)
			}
		}
		f.Group += Bracketed(parts)
	}
}

// differences returns the names of the settings that both files have, with different values.
func differences(a, b map[string]string) (names []string) {
	for name, v := range a {
		if other, ok := b[name]; ok && other != v {
			names = append(names, name)
		}
	}
	return names
}

// Groups returns the names of the groups in order.
func (t *Tree) Groups() (list []string) {
	for _, f := range t.Files {
		list = append(list, f.Group)
	}
	return slices.Compact(list)
}

// Of returns the files of a group.
func (t *Tree) Of(group string) []File {
	return slices.DeleteFunc(slices.Clone(t.Files), func(f File) bool { return f.Group != group })
}
