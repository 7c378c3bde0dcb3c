package benchmarks

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbench/kvbench/params"
	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers/workdir"
)

// header prints benchstat's Unit lines and the file configuration. benchstat puts the results of two files
// into separate tables if one of these lines differs. So header prints only what is the same for the
// whole process and makes numbers incomparable. Host, device, filesystem and time are in the JSON.
func (s *session) header() error {
	var b strings.Builder
	fmt.Fprintf(&b, "kvbench-format: %s\n", result.LineFormat)
	v := s.points[0]
	fmt.Fprintf(&b, "division: %s\n", v.Division)
	// If the seed is swept, the names contain it.
	if !slices.ContainsFunc(s.points, func(p *params.Values) bool { return p.Seed != v.Seed }) {
		fmt.Fprintf(&b, "seed: %d\n", v.Seed)
	}
	// Results of different numbers of ranks must not be in one table.
	if v.Ranks > 1 {
		fmt.Fprintf(&b, "ranks: %d\n", v.Ranks)
	}
	if n := v.Notice(); n != "" {
		fmt.Fprintf(&b, "notice: %s\n", n)
	}
	if v.Simulated() {
		fmt.Fprintf(&b, "simulated: true\n")
	}
	for _, p := range common(s.points) {
		fmt.Fprintf(&b, "%s: %s\n", p.Name, p.Value)
	}
	if text := ofJobs(s.points); text != "" {
		fmt.Fprintf(&b, "jobs: %s\n", text)
	}
	// Each Unit line must come before the first value with it: benchstat reads in one pass.
	for _, u := range result.Directed() {
		fmt.Fprintf(&b, "Unit %s better=%s\n", u.Name, u.Better)
	}
	// On standard error: benchstat would make separate tables of results with and without such a line.
	if why := noImage(s.points, result.Version()); why != "" {
		fmt.Fprintln(os.Stderr, "kvbench:", why)
	}
	if s.terminal != nil { // which benchstat does not read
		b.Reset()
		if n := v.Notice(); n != "" {
			fmt.Fprintln(&b, n)
		}
	}
	_, err := os.Stdout.WriteString(b.String())
	return err
}

// noImage returns a warning if kvreport submission could not make the code image, which contains the
// code that was measured. The user gets it before hours of measuring.
func noImage(plans []*params.Values, revision string) string {
	closed := slices.ContainsFunc(plans, func(v *params.Values) bool {
		return v.Division == params.Closed && v.Bench.Option > 0
	})
	if !closed || revision != result.UnknownVersion {
		return ""
	}
	return "this binary does not know its revision, so that kvreport submission can make no code " +
		"image; " + result.VersionRemedy
}

// common returns the overrides of any benchmark that have one value in all benchmarks of the process. The
// names of the benchmarks contain swept parameters.
func common(plans []*params.Values) (list []result.Parameter) {
	// benchstat applies such a line to every result that follows, so it must hold for all benchmarks. An
	// override that no benchmark uses is left out: it would make two tables of the same numbers.
	for _, v := range plans {
		for _, p := range v.Overrides() {
			known := slices.ContainsFunc(list, func(q result.Parameter) bool { return q.Name == p.Name })
			used := slices.ContainsFunc(plans, func(o *params.Values) bool { return o.Applies(p.Name) })
			differs := slices.ContainsFunc(plans, func(o *params.Values) bool { return o.Text(p.Name) != v.Text(p.Name) })
			if used && !known && !differs {
				list = append(list, p)
			}
		}
	}
	return list
}

// ofJobs returns what the jobs of a scenario set and what is not common to all lines, such as "deep
// io-depth=32; Knee io=buffered". Outputs of other parameters differ in it: benchstat must not average them.
func ofJobs(plans []*params.Values) string {
	shared := common(plans)
	var jobs []string
	for _, v := range plans {
		text := ""
		for _, p := range v.Overrides() {
			if v.ByScenario(p.Name) && v.Applies(p.Name) &&
				!slices.ContainsFunc(shared, func(q result.Parameter) bool { return q.Name == p.Name }) {
				text += fmt.Sprintf(" %s=%v", p.Name, p.Value)
			}
		}
		job := cmp.Or(v.Job.Name, v.Job.Bench) + text
		if text != "" && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	return strings.Join(jobs, "; ")
}

// epilogue prints to standard error after the last benchmark. The go command merges the two streams, so a
// stray line during a benchmark would break the benchmark's result line. No line has a colon after its first
// word: readers of the merged streams would take it for configuration.
func (s *session) epilogue() {
	long := s.points[0].Summary == "long"
	if long {
		for _, r := range s.typical() {
			if summary, err := report.Summary(r); err == nil {
				fmt.Fprint(os.Stderr, "\n", summary)
			}
		}
	}
	for r, why := range s.unwritten {
		printUnsaved(r, why.Error())
	}
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(os.Stderr, "\n%s\n  %s\n", title, strings.Join(lines, "\n  "))
		}
	}
	table, rest := report.Scenarios(s.results)
	if table != "" {
		fmt.Fprint(os.Stderr, "\n", table)
	}
	if len(rest) > 0 {
		fmt.Fprint(os.Stderr, "\n", report.Quote(rest).Alone())
	}
	// With several ranks, write the summary that MLPerf's tools read, after the last result.
	if err := s.clients.summarize(os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "\nthe summary of the run could not be made, because %v\n", err)
	}
	for _, r := range s.typical() {
		if !long {
			list("trace of "+cmp.Or(r.Name, r.Benchmark), report.Trace(r))
		}
		list("recording of "+cmp.Or(r.Name, r.Benchmark), report.Recording(r))
	}
	list("warnings", report.Warnings(s.results))
	if s.ctx.Err() != nil {
		list("not begun when the run was ended", s.notBegun())
	}
	list("skipped benchmarks", s.skipped)
	list("set, and ignored by this run", s.ignored)
	if len(s.results) > len(s.unwritten) {
		list("results", []string{s.points[0].ResultsDir + " has a summary.txt for each trial, which " +
			"-summary long prints"})
	}
}

// typical returns the typical trial of each benchmark.
func (s *session) typical() (list []*result.Result) {
	trials := map[string][]*result.Result{}
	for _, r := range s.results {
		trials[r.Name] = append(trials[r.Name], r)
	}
	for _, r := range s.results {
		if r == report.Typical(trials[r.Name]) && s.unwritten[r] == nil {
			list = append(list, r)
		}
	}
	return list
}

// left describes in one line what is in the cache directory when the process ends, "" if nothing is. One line
// covers all ranks of this host: the user removes their files together, or starts the run again.
func (s *session) left() string {
	n := s.removal.Remaining()
	others := s.leftByOthers()
	n.Dirs = append(n.Dirs, others.Dirs...)
	n.Files, n.Bytes = n.Files+others.Files, n.Bytes+others.Bytes
	if len(n.Dirs) == 0 {
		return ""
	}
	file, also, most := "file", ", which the next run there removes, as does rm -r", ""
	for _, dir := range n.Dirs {
		also += " " + word(dir)
	}
	if n.Others > 0 {
		also = ", which the next run there removes; it leaves " +
			units.Plural(n.Others, "other file") + " there"
	}
	if strings.Contains(n.Dirs[0], "://") {
		// The count includes objects that are being written or deleted.
		file, most = "object", "at most "
		also = "/, which aws s3 rm --recursive removes (--endpoint-url names a store that is not AWS)"
	}
	what := file + "s"
	if n.Known {
		what = fmt.Sprintf("%s%s (%s)", most, units.Plural(n.Files, file), units.Bytes.Text(n.Bytes))
	}
	return fmt.Sprintf("left behind %s in %s%s", what, strings.Join(n.Dirs, ", "), also)
}

// leftByOthers returns the files that the other ranks on this host left behind. Those ranks report them in
// their own logs only, and a killed rank nowhere. leftByOthers waits at most patience for a disk that
// does not answer.
func (s *session) leftByOthers() (left workdir.Remains) {
	ranks := s.clients.othersHere()
	if len(ranks) == 0 || s.points[0].KeepFiles {
		return left
	}
	// Ranks on other hosts have directories of the same names, which this host cannot look at.
	var found workdir.Remains
	if within(patience, func() {
		for _, dir := range sharedDirs(s.points) {
			for _, rank := range ranks {
				n := workdir.Reclaimable(workdir.Options{CacheDir: dir, Rank: rank})
				if n.Files > 0 {
					found.Dirs = append(found.Dirs, filepath.Join(dir, fmt.Sprint("rank_", rank)))
					found.Files, found.Bytes = found.Files+n.Files, found.Bytes+n.Bytes
				}
			}
		}
	}) {
		return found
	}
	return left
}

// word quotes a path for a shell, so that the rm command in the last line removes nothing else.
func word(path string) string {
	if path != "" && strings.Trim(path, wordLetters) == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

const wordLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:,@"

// lastWords reports which files are left when a second signal ends the process. The line of the current
// benchmark is broken by then in any case. lastWords does not wait long for a reader that does not read, or
// for a stopped terminal.
func (s *session) lastWords() {
	within(promptly, func() {
		if r := s.unsaved.Swap(nil); r != nil {
			printUnsaved(r, "another signal came before it was written")
		}
		if s.running.Load() {
			fmt.Fprint(os.Stderr, "\nno result of this trial was written, because another signal "+
				"came\n")
		}
		if what := s.left(); what != "" {
			fmt.Fprint(os.Stderr, "\n", what, "\n")
		}
	})
}
