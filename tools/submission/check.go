package submission

import (
	_ "embed"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Finding is a deviation from the rules of the closed division, or a remark.
type Finding struct {
	Groups []string // options or benchmarks that have this finding
	What   string   // "-num-users: must be 200, given 100"
	Where  []string // result files, or the paths where they should be
	// A result is missing, so the totals do not cover all ranks. Neither division accepts that.
	Missing bool
}

// String returns the finding on one line, with up to three of its places. A missing result is listed
// with all its places, because the submitter has to find each file.
func (d Finding) String() string {
	var groups []string
	for _, g := range d.Groups {
		groups = append(groups, named(g, " "))
	}
	where := strings.Join(d.Where, ", ")
	if n := len(d.Where) - 3; n > 0 && !d.Missing {
		where = fmt.Sprintf("%s and %d more", strings.Join(d.Where[:3], ", "), n)
	}
	return strings.TrimPrefix(strings.Join(groups, ", ")+": ", ": ") +
		strings.TrimSuffix(d.What+" ("+where+")", " ()")
}

// named returns a group's name: "option" and the number, or the benchmark's name.
func named(group, between string) string {
	if number, _, _ := strings.Cut(group, " ["); strings.Trim(number, "0123456789") == "" {
		return "option" + between + group
	}
	return group
}

// Check is the outcome of the closed-division check.
type Check struct {
	Deviations []Finding
	Remarks    []Finding // facts for the reviewer that break no rule
	Rehearsal  bool      // a result has the short windows of -rehearse: the tree must not be submitted
}

// add adds a deviation, or adds the group and the place to the deviation with the same text.
func (c *Check) add(group, where, format string, args ...any) *Finding {
	d := entry(&c.Deviations, fmt.Sprintf(format, args...), where)
	if !slices.Contains(d.Groups, group) {
		d.Groups = append(d.Groups, group)
	}
	return d
}

// entry adds a place to the finding with this text. It appends the finding if the text is new.
func entry(list *[]Finding, what, where string) *Finding {
	i := slices.IndexFunc(*list, func(d Finding) bool { return d.What == what })
	if i < 0 {
		i = len(*list)
		*list = append(*list, Finding{What: what})
	}
	d := &(*list)[i]
	if where != "" && !slices.Contains(d.Where, where) {
		d.Where = append(d.Where, where)
	}
	return d
}

//go:embed check.md.tmpl
var checkText string

// checkTemplate makes check.md: the summary, the deviations and the remarks.
var checkTemplate = template.Must(template.New("check").
	Funcs(template.FuncMap{"number": merge.Number}).Parse(checkText))

// closedTrials is the number of trials of an option in the closed division.
const closedTrials = 3

// checkClosed checks all results against the rules of the closed division.
func checkClosed(t *merge.Tree, s *merge.Summary) *Check {
	c := &Check{Rehearsal: slices.ContainsFunc(t.Files, rehearsed)}
	for _, group := range t.Groups() {
		files := t.Of(group)
		for _, f := range files {
			c.result(f)
		}
		c.shared(group, files)
		c.option(group, files, s.Options[group])
	}
	c.options(t)
	c.remarks(t)
	return c
}

// option checks the results of all ranks and trials of one option together.
func (c *Check) option(group string, files []merge.File, o *merge.Option) {
	// MissingFiles has the ranks that failed and the ranks that left no file.
	for _, missing := range o.MissingFiles {
		if why := o.Failed[missing]; why != "" {
			c.add(group, missing, "every trial of every rank must be complete: %s",
				why).Missing = true
		} else {
			c.add(group, missing, "every trial of every rank must have a result: %s × %s are "+
				"expected", units.Plural(o.RankCount, "rank"), units.Plural(o.TrialCount,
				"trial")).Missing = true
		}
	}
	// More trials are a deviation too: the best three of six trials would have a better mean.
	if o.TrialCount != closedTrials {
		c.add(group, directory(group), "trials: must be %d, there are %d", closedTrials,
			o.TrialCount)
	}
	// Rule 6.3.4.4 forbids an option whose ranks were all served from memory. Check every rank: the sum
	// over the ranks hides a single one.
	for _, f := range files {
		if !f.Complete() || f.Keys.Number("summary.cache_stats.storage_entries") != 0 {
			continue
		}
		// MLPerf's tools count both cases as served from memory.
		if slices.Contains(o.CPUTierRanks, f.Path) {
			c.add(group, f.Path, "served from memory: nothing of the rank is in the storage tier "+
				"(storage_entries 0)")
		} else {
			c.add(group, f.Path, "the storage tier is probably too small: it was used, but held "+
				"no entry at the end of the window (storage_entries 0); raise -storage-capacity-gb")
		}
	}
	if !o.Valid && !o.PartialFailure {
		c.add(group, directory(group), "the option is invalid: %s", o.Invalid)
	}
}

// pauseBetween is the time between two options that ran one after the other.
type pauseBetween struct {
	before, after int    // options
	path          string // of the first result of the option after the pause
	length        time.Duration
}

// pauses returns the pauses between options in the order of time. A pause lasts from the end of the
// last window of an option to the start of the first window of the next. Only rank 0 counts, because
// one host's clock gives all times.
func pauses(t *merge.Tree) (list []pauseBetween) {
	type span struct {
		option   int
		path     string
		from, to time.Time
	}
	byOption := map[int]*span{}
	for _, f := range t.Files {
		from, to, ok := window(f.Result)
		if !ok || f.Rank != 0 || f.Result.Option == nil {
			continue
		}
		option := *f.Result.Option
		s := byOption[option]
		if s == nil {
			s = &span{option, f.Path, from, to}
			byOption[option] = s
		}
		if from.Before(s.from) {
			s.from, s.path = from, f.Path
		}
		if to.After(s.to) {
			s.to = to
		}
	}
	spans := slices.SortedFunc(maps.Values(byOption),
		func(a, b *span) int { return a.from.Compare(b.from) })
	for i := 1; i < len(spans); i++ {
		a, b := spans[i-1], spans[i]
		list = append(list, pauseBetween{a.option, b.option, b.path, b.from.Sub(a.to)})
	}
	return list
}

// options checks that the tree has the three MLPerf options, with a pause before the second and third.
func (c *Check) options(t *merge.Tree) {
	for _, bench := range params.Benchmarks() {
		// Only the three options are required.
		ran := bench.Option == 0 || slices.ContainsFunc(t.Files, func(f merge.File) bool {
			return f.Result.Option != nil && *f.Result.Option == bench.Option
		})
		if !ran {
			group := strconv.Itoa(bench.Option)
			c.add(group, directory(group), "every option must be run (rule 6.3.1.1): there is no "+
				"result of %s", bench.Name)
		}
	}
	for _, p := range pauses(t) {
		// The set-up of a run counts as pause. So this check finds options that ran as separate commands
		// without a pause. It does not accept a pause that is too short.
		if p.length < params.OptionPause && !c.Rehearsal {
			c.add(strconv.Itoa(p.after), p.path, "%v must lie between two options (rule 6.3.2.1), "+
				"behind option %d there are %v: run all of them with one command",
				params.OptionPause,
				p.before, p.length.Round(time.Second/10))
		}
	}
}

// rehearsed reports whether a result comes from a rehearsal.
func rehearsed(f merge.File) bool { return f.Result.Notice == result.RehearsalNotice }

// result checks one result: each rule is a condition and the text of its violation.
func (c *Check) result(f merge.File) {
	r := f.Result
	must := func(holds bool, format string, args ...any) {
		if !holds {
			c.add(f.Group, f.Path, format, args...)
		}
	}
	must(!c.Rehearsal || rehearsed(f), "rehearsal: this result is not from one, but others are; "+
		"do not mix them")
	must(r.Division == result.DivisionClosed, "division: must be closed, given %s", r.Division)
	required := closedValues()[r.Benchmark]
	must(required != nil, "benchmark: must be one of the MLPerf options, given %s", r.Benchmark)
	if required == nil {
		return
	}
	must(len(r.Parameters) > 0, "parameters: the result has none on record")
	for _, what := range required.Recorded(r.Parameters) {
		must(false, "%s", what)
	}
	for _, d := range r.DiffersFromClosed {
		// Differences that no parameter shows: the population, the storage, keys of a configuration
		// file.
		must(d.Name != "population" && d.Name != "storage" && !strings.Contains(d.Name, "."),
			"%s: must be %v, given %v", d.Name, d.Closed, d.Value)
	}
	// The parameters are what the user asked for. These fields are what the run did.
	must(r.IO.Mode == "buffered", "I/O: must have been buffered, was %s", r.IO.Mode)
	must(r.IO.WriteDevice == result.WriteDeviceFlush,
		"write-device: must be %s, was %s", result.WriteDeviceFlush, r.IO.WriteDevice)
	must(r.Workload.DecodeReads == "batched",
		"decode-reads: must be batched, was %s", r.Workload.DecodeReads)
	must(r.Seed == uint64(required.Seed)+uint64(r.Rank),
		"seed: must be %d + rank, was %d for rank %d", required.Seed, r.Seed, r.Rank)
	if !f.Complete() {
		return
	}
	// The last operation may end after the deadline: allow one second.
	took, want := time.Duration(r.WindowNS), required.Window.Length
	must(c.Rehearsal || took >= want && took <= want+time.Second,
		"window: must be %v, was %v", want, took.Round(time.Millisecond))
	must(r.EndedBy == result.EndedByDeadline,
		"window: must end by its deadline, ended by %s", r.EndedBy)
}

// closedValues returns the values of the closed division by the option's name.
var closedValues = sync.OnceValue(func() map[string]*params.Values {
	all := map[string]*params.Values{}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	set := params.Register(fs)
	_ = fs.Parse([]string{"-division=closed"}) // the flag exists and accepts this value
	for _, b := range params.Benchmarks() {
		if b.Option > 0 {
			all[b.Name], _ = set.Resolve(params.Inputs{Bench: b, Base: "/"})
		}
	}
	return all
})

// shared finds ranks of one trial that used one directory, and trials that wrote the same content.
func (c *Check) shared(group string, files []merge.File) {
	// Compare each pair once. An option has some tens of results.
	for i, a := range files {
		for _, b := range files[:i] {
			if a.Trial == b.Trial && sameDirectory(a.Result, b.Result) {
				c.add(group, b.Path, "two ranks share the directory %s", a.Result.IO.CacheDir)
				c.add(group, a.Path, "two ranks share the directory %s", a.Result.IO.CacheDir)
			}
			if a.Result.Nonce != "" && a.Result.Nonce == b.Result.Nonce && a.Rank == b.Rank {
				c.add(group, a.Path, "the content of an earlier trial is written again: both "+
					"have the nonce %s", a.Result.Nonce)
			}
		}
	}
}

// sameDirectory reports whether two results used one directory: the same path on one host, or the
// same path on one network filesystem.
func sameDirectory(a, b *result.Result) bool {
	if a.IO.CacheDir == "" || a.IO.CacheDir != b.IO.CacheDir {
		return false
	}
	one, other := a.Environment, b.Environment
	source := one.Filesystem.Source
	remote := strings.Contains(source, ":") || strings.HasPrefix(source, "//")
	return one.Hostname == other.Hostname || remote && source == other.Filesystem.Source
}

// remarks collects facts for the reviewer that no rule forbids.
func (c *Check) remarks(t *merge.Tree) {
	// Only the authors know whether two versions measure the same, so this is no deviation.
	versions := make(map[string]bool)
	for _, f := range t.Files {
		versions[f.Result.Environment.Version] = true
		if w := f.Result.DeviceCounters.ServedFromCache; w != nil && *w {
			entry(&c.Remarks, "the device read only a part of what the application read; the rest "+
				"came from a cache", f.Path)
		}
		for _, w := range f.Result.Warnings {
			entry(&c.Remarks, w, f.Path)
		}
	}
	if len(versions) > 1 {
		entry(&c.Remarks, fmt.Sprintf("the results come from %d versions of kvbench",
			len(versions)), "")
	}
	for _, w := range t.Warnings {
		entry(&c.Remarks, w, "")
	}
}
