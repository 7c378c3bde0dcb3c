package benchmarks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"kvbench/kvbench/params"
	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/kvbench/version"
	"kvbench/tiers/workdir"
)

// header prints the Unit lines and the file configuration: only what is the
// same for the whole process and makes numbers incomparable, because benchstat
// makes two tables of two files in which any of these lines differs. Host,
// device, filesystem and time stand in the JSON.
func (s *session) header(plans []*params.Values) error {
	var b strings.Builder
	fmt.Fprintf(&b, "kvbench-format: %s\n", result.LineFormat)
	if len(plans) > 0 {
		v := plans[0]
		fmt.Fprintf(&b, "division: %s\n", v.Division)
		// A sweep of the seed stands in the names.
		if !slices.ContainsFunc(plans, func(p *params.Values) bool { return p.Seed != v.Seed }) {
			fmt.Fprintf(&b, "seed: %d\n", v.Seed)
		}
		// A rate of four clients is no rate of one: such outputs are never one table.
		if v.Ranks > 1 {
			fmt.Fprintf(&b, "ranks: %d\n", v.Ranks)
		}
		if n := v.Notice(); n != "" {
			fmt.Fprintf(&b, "notice: %s\n", n)
		}
		if v.Simulated() {
			fmt.Fprintf(&b, "simulated: true\n")
		}
		for _, p := range common(plans) {
			fmt.Fprintf(&b, "%s: %s\n", p.Name, p.Value)
		}
	}
	// Each Unit line must come before the first value with it: benchstat reads in one pass. At
	// a terminal 45 lines before the first number hide it, and benchstat reads no terminal.
	for _, u := range result.Directed() {
		if !term.IsTerminal(int(os.Stdout.Fd())) {
			fmt.Fprintf(&b, "Unit %s better=%s\n", u.Name, u.Better)
		}
	}
	// For the person who waits, not for benchstat, which would keep such lines apart.
	if need := params.ClosedNeeds(plans); need != "" {
		fmt.Fprintln(os.Stderr, "kvbench:", need)
	}
	if why := noImage(plans, version.Current()); why != "" {
		fmt.Fprintln(os.Stderr, "kvbench:", why)
	}
	_, err := os.Stdout.WriteString(b.String())
	return err
}

// noImage warns before hours of measuring for a submission, which has an image of the code that was
// measured.
func noImage(plans []*params.Values, revision string) string {
	closed := slices.ContainsFunc(plans, func(v *params.Values) bool {
		return v.Division == params.Closed && v.Bench.Option > 0
	})
	if !closed || revision != version.Unknown {
		return ""
	}
	return "this binary does not know its revision, so that kvreport submission can make no code " +
		"image; " + version.Remedy
}

// common are the overrides that hold for all benchmarks of the process. What a
// sweep changes stands in the benchmark's name instead.
func common(plans []*params.Values) []result.Parameter {
	// Only what holds for all: benchstat takes such a line for every result that follows. What
	// nobody hears would make two tables of the same numbers.
	list := slices.DeleteFunc(plans[0].Overrides(), func(p result.Parameter) bool {
		return !slices.ContainsFunc(plans, func(v *params.Values) bool { return v.Hears(p.Name) })
	})
	for _, v := range plans[1:] {
		theirs := v.Overrides()
		list = slices.DeleteFunc(list, func(p result.Parameter) bool {
			return !slices.ContainsFunc(theirs,
				func(q result.Parameter) bool { return q.Name == p.Name && q.Value == p.Value })
		})
	}
	return list
}

// epilogue goes to standard error when the last benchmark is over: while one
// runs, a stray line would break its result line, because the go command merges
// the two streams.
func (s *session) epilogue() {
	// The warnings, verdicts and rates of every trial stand here; what they share stands once.
	results := s.unwritten.untold(s.results)
	full := wholes(results)
	for i, r := range results {
		fmt.Fprintln(os.Stderr)
		write := report.WriteShort
		if full[i] {
			write = report.WriteSummary
		}
		if err := write(os.Stderr, r); err != nil {
			return
		}
	}
	if slices.Contains(full, false) {
		fmt.Fprint(os.Stderr, "\nThe first complete trial of each benchmark is told in full; all "+
			"of the others is in the summary.txt beside their results.\n")
	}
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(os.Stderr, "\n%s\n  %s\n", title, strings.Join(lines, "\n  "))
		}
	}
	// Without these lines a reader picks one of the trials. benchstat shows their spread, but not
	// what limited them.
	list("trials of each benchmark, the median with the least and the most",
		report.Trials(s.results))
	// With what was measured before an interruption, too; a reader who is gone reads nothing more.
	if err := s.rank(); err != nil {
		fmt.Fprintf(os.Stderr, "\nthe ranking could not be written: %v\n", err)
	}
	// No colon behind the first word: readers of the merged streams would take it for
	// configuration.
	// Of several clients: what MLPerf's tools look for, when the last result has come.
	if err := s.clients.Summarize(os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "\nthe summary of the run could not be made, because %v\n", err)
	}
	list("failed benchmarks", slices.Compact(s.failures))
	list("skipped benchmarks", s.skipped)
	if s.quick && len(s.results) > 0 {
		list("THESE NUMBERS DESCRIBE NO STORAGE", []string{
			"-cache-dir was given and -division was not. The quick division is small models and",
			"windows of seconds, made to show that everything works. Add -division open -benchtime",
			"60s, or -division closed for MLPerf's parameters; -division quick says that it is",
			"meant.",
		})
	}
	list("set, and ignored by this run", s.unheard)
}

// wholes says of each result whether its whole summary is told: of the trials of one benchmark, the
// first that is complete, else the first. Twenty of eighty lines each nobody reads.
func wholes(results []*result.Result) []bool {
	full, of := make([]bool, len(results)), map[string]int{}
	for i, r := range results {
		at, known := of[r.Name]
		if !known || r.Status == result.StatusComplete &&
			results[at].Status != result.StatusComplete {
			if known {
				full[at] = false
			}
			full[i], of[r.Name] = true, i
		}
	}
	return full
}

// left is what lies in the cache directory when the process ends, "" if nothing does. The words
// have no colon behind the first one, for readers of the merged streams.
func (s *session) left() string {
	n := s.removal.Left()
	if n.Known && n.Files == 0 {
		n.Dirs = nil
	}
	// In one line: a person removes it, or starts the run again, for all of them.
	others := s.leftByOthers()
	n.Dirs = append(n.Dirs, others.Dirs...)
	n.Files, n.Bytes = n.Files+others.Files, n.Bytes+others.Bytes
	files, also, most := "files", ", which the next run there removes, as does rm -r", ""
	for _, dir := range n.Dirs {
		also += " " + word(dir)
	}
	if n.Others > 0 {
		also = ", which the next run there removes; it leaves " + units.Plural(n.Others, "other file") + " there"
	}
	if dir := strings.Join(n.Dirs, ""); strings.Contains(dir, "://") {
		// One that is being written counts, and what a deletion in flight has not reported yet.
		files, most = "objects", "at most "
		also = "/, which aws s3 rm --recursive removes (--endpoint-url names a store that is not AWS)"
	}
	what := fmt.Sprintf("%s%d %s (%.2f GiB)", most, n.Files, files, float64(n.Bytes)/(1<<30))
	switch {
	case len(n.Dirs) == 0:
		return ""
	case !n.Known:
		what = files
	}
	return fmt.Sprintf("left behind %s in %s%s", what, strings.Join(n.Dirs, ", "), also)
}

// leftByOthers is what the other ranks on this host left: they print it into their logs, and a
// killed one nowhere. It does not wait for a disk that does not answer.
func (s *session) leftByOthers() workdir.Remains {
	ranks := s.clients.OthersHere()
	if len(ranks) == 0 || s.first.KeepFiles || s.first.OnObjects() {
		return workdir.Remains{}
	}
	// This host cannot look at ranks on other hosts: their directories may have the same names.
	left, _ := soon(func() (left workdir.Remains, err error) {
		for _, dir := range cacheDirs(s.first) {
			for _, rank := range ranks {
				n := workdir.Left(workdir.Options{CacheDir: dir, Rank: rank})
				if n.Files > 0 {
					left.Dirs = append(left.Dirs, filepath.Join(dir, fmt.Sprint("rank_", rank)))
					left.Files, left.Bytes = left.Files+n.Files, left.Bytes+n.Bytes
				}
			}
		}
		return left, nil
	})
	return left
}

// word is a path as a shell takes it for one word: the command is to remove nothing else.
func word(path string) string {
	if path != "" && strings.Trim(path, wordLetters) == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

const wordLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:,@"

// lastWords says what is left when a second signal ends the process in the middle of something:
// the line of the benchmark under way is broken anyhow. A reader that does not read, or a terminal
// that was stopped, does not hold it up.
func (s *session) lastWords() {
	briefly(func() {
		none := s.unwritten.none()
		s.unwritten.tell("another signal came before it was written")
		// What is being written under another name would stay there.
		if path, _ := saving.Load().(string); path != "" {
			dir, name := filepath.Split(path)
			parts, _ := filepath.Glob(filepath.Join(dir, "."+name+"*"))
			for _, part := range parts {
				_ = os.Remove(part)
			}
		}
		for _, what := range []string{none, s.left()} {
			if what != "" {
				fmt.Fprint(os.Stderr, "\n", what, "\n")
			}
		}
	})
}
