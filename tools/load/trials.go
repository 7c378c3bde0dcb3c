package load

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
)

// identity returns a text that is equal for a result and its copies only. A line whose result file cannot
// be read has the path that it names. It is "" without a nonce, a start time or a path.
func (rec *Record) identity() string {
	r := rec.Result
	if r == nil && rec.Named != "" {
		return fmt.Sprintln(rec.Source, rec.Name, rec.Named)
	}
	if r == nil || r.Nonce == "" || r.StartTime == "" {
		return ""
	}
	return fmt.Sprintln(rec.Source, rec.Name, r.Nonce, r.StartTime, r.Trial, r.Rank,
		r.MergedRanks)
}

// together returns a text that is equal for the ranks of a coordinated trial and for their merged
// result: they have the same nonce.
func (rec *Record) together() string {
	return fmt.Sprintln(rec.Result.Nonce, rec.Result.Name, rec.Result.Trial)
}

// member returns the trial of a rank, as a text that is equal for all its ranks, and the rank. ok is
// false for a trial with one client and for a merged record. A kvbench result has trial and rank. For
// the Python benchmark they are in the path, also for a single client.
func (rec *Record) member() (trial string, rank int, ok bool) {
	if rec.Python {
		m := merge.Layout.FindStringSubmatch(filepath.ToSlash(rec.Path))
		if m == nil {
			return "", 0, false
		}
		rank, _ = strconv.Atoi(m[3])
		return rec.Source + "\n" + filepath.Dir(filepath.Dir(rec.Path)), rank, true
	}
	r := rec.Result
	if r == nil || r.Ranks <= 1 || r.MergedRanks != nil {
		return "", 0, false
	}
	settings := merge.SettingsOf(r, false)
	key := []string{rec.Source, rec.Package(), rec.Name, fmt.Sprint(r.Trial)}
	for _, name := range merge.InOrder(settings) {
		key = append(key, name+"="+settings[name])
	}
	return strings.Join(key, "\n"), r.Rank, true
}

// fold merges the ranks of each trial in the argument into one record, in the order of their first
// ranks. Ranks belong to one trial if run, name, trial number and settings are equal. If several such
// trials exist, ranks that follow each other in time belong together, until a rank number repeats. A
// trial without all ranks has no values, and its result names the missing rank. Ranks with a merged
// result of their run are dropped.
func (r *reader) fold() error {
	held := slices.DeleteFunc(r.held, func(rec *Record) bool {
		return !rec.Python && r.merged[rec.together()]
	})
	r.held = nil
	first, ranks := map[string]int{}, map[string]int{}
	for i, rec := range held {
		if _, known := first[rec.trial]; !known {
			first[rec.trial] = i
		}
		// No Python result has the number of ranks. It is the largest rank + 1 of all trials in the
		// option's directory.
		option := filepath.Dir(rec.trial)
		ranks[option] = max(ranks[option], rec.rank+1)
	}
	slices.SortStableFunc(held, func(a, b *Record) int {
		return cmp.Or(first[a.trial]-first[b.trial], a.began().Compare(b.began()), a.rank-b.rank)
	})
	for len(held) > 0 {
		n := 1
		for n < len(held) && held[n].trial == held[0].trial && (held[0].Python ||
			!slices.ContainsFunc(held[:n], func(a *Record) bool { return a.rank == held[n].rank }) &&
				held[0].Result.OneTrial(held[n].Result)) {
			n++
		}
		rec, err := joined(held[:n:n], ranks[filepath.Dir(held[0].trial)])
		if err != nil {
			return err
		}
		r.list, held = append(r.list, rec), held[n:]
	}
	return nil
}

// Package returns the Go package in the line's configuration, "" if there is none.
func (rec *Record) Package() string { return rec.configured("pkg") }

// configured returns the value of a configuration line, "" if there is none.
func (rec *Record) configured(key string) string {
	i := slices.IndexFunc(rec.Config, func(s Setting) bool { return s.Key == key })
	if i < 0 {
		return ""
	}
	return rec.Config[i].Value
}

// began returns the start of the window, the zero time if unknown.
func (rec *Record) began() (at time.Time) {
	if rec.Result != nil {
		at, _ = time.Parse(time.RFC3339Nano, rec.Result.StartTime)
	}
	return at
}

// joined merges the ranks of a trial into one record. Its values are the values of the benchmark line
// that one client would print. n is the number of ranks that a Python trial should have.
func joined(ranks []*Record, n int) (*Record, error) {
	first := ranks[0]
	if first.Python && n == 1 && len(ranks) == 1 {
		return first, nil // a single client has a rank directory, too
	}
	slices.SortFunc(ranks, func(a, b *Record) int { return a.rank - b.rank })
	rec := &Record{Source: first.Source, File: first.File, Line: first.Line, Name: first.Name,
		Iters: first.Iters, Config: first.Config, Ranks: ranks, Python: first.Python}
	var paths []string
	for _, rank := range ranks {
		paths = append(paths, cmp.Or(rank.Path, rank.File))
	}
	rec.Path = strings.Join(paths, ", ")
	var whole any
	var err error
	if rec.Python {
		whole, err = rec.mergePython(n)
	} else {
		var results []*result.Result
		for _, rank := range ranks {
			results = append(results, rank.Result)
		}
		rec.Result = merge.Ranks(results, nil)
		whole = rec.Result
	}
	if err != nil {
		return nil, err
	}
	if rec.Raw, err = json.Marshal(whole); err == nil && rec.Missing == "" {
		rec.Values = fileValues(rec)
	}
	return rec, err
}

// mergePython merges the results of n ranks of the Python benchmark.
func (rec *Record) mergePython(n int) (any, error) {
	var results []result.Python
	have := &result.Result{Ranks: n}
	for _, rank := range rec.Ranks {
		r, err := result.ParsePython(rank.Raw)
		if err != nil {
			return nil, merge.Located(rank.Path, rank.Raw, err)
		}
		if slices.Contains(have.MergedRanks, rank.rank) {
			return nil, fmt.Errorf("%s: two results of rank %d", rank.Path, rank.rank)
		}
		results, have.MergedRanks = append(results, r), append(have.MergedRanks, rank.rank)
	}
	rec.Missing = merge.Lacks(have)
	return result.SumPython(results), nil
}
