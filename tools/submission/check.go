package submission

import (
	"cmp"
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
	Rule   string   // its number, "" for a remark and for a check of kvbench
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
	return strings.TrimPrefix(strings.Join(groups, ", ")+": ", ": ") + d.What +
		strings.TrimSuffix(" (rule "+d.Rule+")", " (rule )") + strings.TrimSuffix(" ("+where+")", " ()")
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

	rule string // whose check runs
}

// Of returns the number of deviations from a rule.
func (c *Check) Of(rule string) (n int) {
	for _, d := range c.Deviations {
		if d.Rule == rule {
			n++
		}
	}
	return n
}

// add adds a deviation, or adds the group and the place to the deviation with the same text.
func (c *Check) add(group, where, format string, args ...any) *Finding {
	d := entry(&c.Deviations, fmt.Sprintf(format, args...), where)
	d.Rule = c.rule
	if group != "" && !slices.Contains(d.Groups, group) {
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

// complete adds the results that are missing or not complete.
func (c *Check) complete(t *merge.Tree, s *merge.Summary) {
	for _, group := range t.Groups() {
		o := s.Options[group]
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
	}
}

// stored checks that an option used the storage: at least one rank has an entry in its tier at the end. A
// single rank without one is a remark.
func (c *Check) stored(t *merge.Tree, s *merge.Summary) {
	for _, group := range t.Groups() {
		empty, complete := s.Options[group].CPUTierRanks, 0
		for _, f := range t.Of(group) {
			if f.Complete() {
				complete++
			}
		}
		for _, f := range t.Of(group) {
			if !slices.Contains(empty, f.Path) {
				continue
			}
			what := "served from memory: nothing of the rank is in the storage tier (storage_entries 0)"
			if read, written := f.Result.StorageTraffic(); read.Bytes+written.Bytes > 0 {
				what = "the storage tier is probably too small: it was used, but held no entry at the end of the " +
					"window (storage_entries 0); raise -storage-capacity-gb"
			}
			if len(empty) < complete {
				entry(&c.Remarks, what, f.Path)
			} else {
				c.add(group, f.Path, "%s", what)
			}
		}
	}
}

// spread checks that each option has as many ranks as the others, and each host.
func (c *Check) spread(t *merge.Tree, s *merge.Summary) {
	for _, group := range t.Groups() {
		if n := s.Options[group].RankCount; n != s.TotalRanks {
			c.add(group, directory(group), "ranks: must be as many in each option, there are %d of %d", n, s.TotalRanks)
		}
	}
	if s.PartialFailure || s.HostCount == nil || *s.NPerNode**s.HostCount == s.TotalRanks {
		return // missing ranks have a deviation of their own
	}
	ranks, counts := map[string][]int{}, []string{}
	for _, f := range t.Files {
		if host := f.Result.Environment.Hostname; !slices.Contains(ranks[host], f.Rank) {
			ranks[host] = append(ranks[host], f.Rank)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(ranks)) {
		counts = append(counts, fmt.Sprintf("%d on %s", len(ranks[host]), cmp.Or(host, "an unknown host")))
	}
	c.add("", "", "ranks: each host must have as many, there are %s", strings.Join(counts, ", "))
}

// pauseBetween is the time between two options that ran one after the other.
type pauseBetween struct {
	before, after int    // options
	path          string // of the first result of the option after the pause
	length        time.Duration
}

// pauses returns the pauses between options in the order of time. A run records the pause that it makes.
// Without a record it is what lies between the last window of an option and the first of the next, less
// the pauses of both trials (-settle). Only rank 0 counts, because one host's clock gives all times.
func pauses(t *merge.Tree) (list []pauseBetween) {
	type span struct {
		option      int
		first, last merge.File
		from, to    time.Time
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
			s = &span{option, f, f, from, to}
			byOption[option] = s
		}
		if from.Before(s.from) {
			s.from, s.first = from, f
		}
		if to.After(s.to) {
			s.to, s.last = to, f
		}
	}
	spans := slices.SortedFunc(maps.Values(byOption),
		func(a, b *span) int { return a.from.Compare(b.from) })
	for i := 1; i < len(spans); i++ {
		a, b := spans[i-1], spans[i]
		length := b.from.Sub(a.to) - time.Duration(a.last.Result.SettleNS+b.first.Result.SettleNS)
		if made := b.first.Result.OptionPauseNS; made != nil {
			length = time.Duration(*made)
		}
		list = append(list, pauseBetween{a.option, b.option, b.first.Path, length})
	}
	return list
}

// options checks that the tree has the three MLPerf options.
func (c *Check) options(t *merge.Tree, _ *merge.Summary) {
	for _, bench := range params.Benchmarks() {
		// Only the three options are required.
		ran := bench.Option == 0 || slices.ContainsFunc(t.Files, func(f merge.File) bool {
			return f.Result.Option != nil && *f.Result.Option == bench.Option
		})
		if !ran {
			group := strconv.Itoa(bench.Option)
			c.add(group, directory(group), "every option must be run: there is no result of %s", bench.Name)
		}
	}
}

// sequence checks the number of trials and the pause before the second and third option.
func (c *Check) sequence(t *merge.Tree, s *merge.Summary) {
	for _, group := range t.Groups() {
		// More trials are a deviation too: the best three of six trials would have a better mean.
		if n := s.Options[group].TrialCount; n != closedTrials {
			c.add(group, directory(group), "trials: must be %d, there are %d", closedTrials, n)
		}
	}
	for _, p := range pauses(t) {
		if p.length < params.OptionPause && !c.Rehearsal {
			c.add(strconv.Itoa(p.after), p.path, "%v must lie between two options, without the pauses of their "+
				"trials; behind option %d there are %v: run all of them with one command", params.OptionPause,
				p.before, max(0, p.length).Round(time.Second/10))
		}
	}
}

// rehearsed reports whether a result comes from a rehearsal.
func rehearsed(f merge.File) bool { return f.Result.Notice == result.RehearsalNotice }

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

// pairs calls f with each two results of a group, and the group. An option has some tens of results.
func pairs(t *merge.Tree, f func(group string, a, b merge.File)) {
	for _, group := range t.Groups() {
		files := t.Of(group)
		for i, a := range files {
			for _, b := range files[:i] {
				f(group, a, b)
			}
		}
	}
}

// directories finds ranks of one trial that used one directory.
func (c *Check) directories(t *merge.Tree, _ *merge.Summary) {
	pairs(t, func(group string, a, b merge.File) {
		if a.Trial == b.Trial && sameDirectory(a.Result, b.Result) {
			c.add(group, b.Path, "two ranks share the directory %s", a.Result.IO.CacheDir)
			c.add(group, a.Path, "two ranks share the directory %s", a.Result.IO.CacheDir)
		}
	})
}

// own finds trials that wrote the same content, and rehearsals among other results.
func (c *Check) own(t *merge.Tree, _ *merge.Summary) {
	pairs(t, func(group string, a, b merge.File) {
		if a.Result.Nonce != "" && a.Result.Nonce == b.Result.Nonce && a.Rank == b.Rank {
			c.add(group, a.Path, "the content of an earlier trial is written again: both "+
				"have the nonce %s", a.Result.Nonce)
		}
	})
	for _, f := range t.Files {
		if c.Rehearsal && !rehearsed(f) {
			c.add(f.Group, f.Path, "rehearsal: this result is not from one, but others are; do not mix them")
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
