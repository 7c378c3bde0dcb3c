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
	"kvbench/kvbench/result/python"
)

// identity is equal for a measurement and its copies, and different otherwise. It is empty for a
// record without a nonce or start time.
func (rec *Record) identity() string {
	r := rec.Result
	if r == nil || r.Nonce == "" || r.StartTime == "" {
		return ""
	}
	return fmt.Sprintln(rec.Source, rec.Name, r.Nonce, r.StartTime, r.Trial, r.Rank,
		r.MergedRanks)
}

// together is equal for the ranks of a trial that were started together and for their merged
// result: they share the nonce of their contents.
func (rec *Record) together() string {
	return fmt.Sprintln(rec.Result.Nonce, rec.Result.Name, rec.Result.Trial)
}

// isRank reports whether a record is of one of several clients. Our results contain it. For the
// Python benchmark the directory decides; its launcher also puts a single client into such a
// directory.
func (rec *Record) isRank() bool {
	if rec.Python {
		return merge.Layout.MatchString(filepath.ToSlash(rec.Path))
	}
	return rec.Result != nil && rec.Result.Ranks > 1 && rec.Result.MergedRanks == nil
}

// fold merges the ranks of each trial in the current argument into one record. It skips ranks whose
// run has written their merged result already.
func (r *reader) fold() error {
	trials, err := pythonTrials(r.held)
	if err == nil {
		ours := slices.DeleteFunc(r.held,
			func(rec *Record) bool { return rec.Python || r.merged[rec.together()] })
		var more []*Record
		more, err = trialsOf(ours)
		trials = append(trials, more...)
	}
	r.held = nil
	for _, rec := range trials {
		if err == nil {
			err = r.each(rec)
		}
	}
	return err
}

// trialsOf merges the ranks of each trial into one record, in the order of their first ranks. Ranks
// belong to one trial when run, name, trial number and settings are equal. If there are several
// such trials, ranks that follow each other in time belong together until a rank number repeats. A
// trial that lacks a rank has no values, and its result names the rank.
func trialsOf(records []*Record) (trials []*Record, err error) {
	groups := map[string][]*Record{}
	for _, rec := range records {
		key := rec.trialKey()
		groups[key] = append(groups[key], rec)
	}
	for _, rec := range records {
		group := groups[rec.trialKey()]
		delete(groups, rec.trialKey()) // with its first rank it is done
		slices.SortStableFunc(group, func(a, b *Record) int {
			return cmp.Or(began(a.Result).Compare(began(b.Result)), a.Result.Rank-b.Result.Rank)
		})
		for len(group) > 0 {
			n, seen := 0, map[int]bool{}
			for n < len(group) && !seen[group[n].Result.Rank] &&
				group[0].Result.OneTrial(group[n].Result) {
				seen[group[n].Result.Rank] = true
				n++
			}
			trial, err := joined(group[:n])
			if err != nil {
				return nil, err
			}
			trials, group = append(trials, trial), group[n:]
		}
	}
	return trials, nil
}

// trialKey is the same for the ranks of a trial.
func (rec *Record) trialKey() string {
	asked := merge.SettingsOf(rec.Result, false)
	key := []string{rec.Source, rec.Package(), rec.Name, fmt.Sprint(rec.Result.Trial)}
	for _, name := range merge.InOrder(asked) {
		key = append(key, name+"="+asked[name])
	}
	return strings.Join(key, "\n")
}

// Package is the Go package in the line's configuration, empty where there is none.
func (rec *Record) Package() string {
	for _, line := range rec.Config {
		if line.Key == "pkg" {
			return line.Value
		}
	}
	return ""
}

// began is when the window opened, the zero time where that is unknown.
func began(r *result.Result) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, r.StartTime)
	return at
}

// pythonTrials merges the ranks of each trial of the Python benchmark into one record. No file
// contains the number of ranks: it is the largest that any trial of the same option has.
func pythonTrials(records []*Record) (trials []*Record, err error) {
	type place struct{ source, option, trial string }
	ranks, most := map[place][]*Record{}, map[place]int{}
	var order []place
	for _, rec := range records {
		if !rec.Python {
			continue
		}
		path := filepath.ToSlash(rec.Path)
		m := merge.Layout.FindStringSubmatchIndex(path)
		at := place{rec.Source, path[:m[3]], path[m[4]:m[5]]}
		if ranks[at] == nil {
			order = append(order, at)
		}
		ranks[at] = append(ranks[at], rec)
		at.trial = ""
		rank, _ := strconv.Atoi(path[m[6]:m[7]])
		most[at] = max(most[at], rank+1)
	}
	for _, at := range order {
		list := ranks[at]
		at.trial = ""
		if len(list) == 1 && most[at] == 1 {
			trials = append(trials, list[0]) // one client; the record keeps its path
			continue
		}
		trial, err := joinedPython(list, most[at])
		if err != nil {
			return nil, err
		}
		trials = append(trials, trial)
	}
	return trials, nil
}

// joinedPython is the record of a trial of the Python benchmark with so many ranks.
func joinedPython(ranks []*Record, n int) (*Record, error) {
	number := func(rec *Record) int {
		rank, _ := strconv.Atoi(merge.Layout.FindStringSubmatch(filepath.ToSlash(rec.Path))[3])
		return rank
	}
	slices.SortFunc(ranks, func(a, b *Record) int { return number(a) - number(b) })
	var results []*python.Result
	have := &result.Result{Ranks: n}
	for _, rec := range ranks {
		r, err := python.Parse(rec.Raw)
		if err != nil {
			return nil, merge.Located(rec.Path, rec.Raw, err)
		}
		if slices.Contains(have.MergedRanks, number(rec)) {
			return nil, fmt.Errorf("%s: two results of rank %d", rec.Path, number(rec))
		}
		results, have.MergedRanks = append(results, r), append(have.MergedRanks, number(rec))
	}
	rec := newTrial(ranks)
	var err error
	if rec.Raw, err = json.Marshal(merge.Python(results)); err != nil {
		return nil, fmt.Errorf("%s: %w", rec.Path, err)
	}
	rec.Python = true
	if rec.Missing = merge.Lacks(have); rec.Missing == "" {
		rec.Values = fileValues(rec)
	}
	return rec, nil
}

// newTrial is the record of a trial without its values.
func newTrial(ranks []*Record) *Record {
	first := ranks[0]
	rec := &Record{Source: first.Source, File: first.File, Line: first.Line, Name: first.Name,
		Iters: first.Iters, Config: first.Config, Ranks: ranks}
	var paths []string
	for _, rank := range ranks {
		paths = append(paths, cmp.Or(rank.Path, rank.File))
	}
	rec.Path = strings.Join(paths, ", ")
	return rec
}

// joined is the record of a trial: its result is merged from the ranks', and its values are those
// of the line that one client would have printed.
func joined(ranks []*Record) (*Record, error) {
	slices.SortFunc(ranks, func(a, b *Record) int { return a.Result.Rank - b.Result.Rank })
	rec := newTrial(ranks)
	var results []*result.Result
	for _, rank := range ranks {
		results = append(results, rank.Result)
	}
	var err error
	if rec.Result, err = merge.Ranks(results, nil); err == nil {
		rec.Raw, err = json.Marshal(rec.Result)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rec.Path, err)
	}
	rec.Values = fileValues(rec)
	return rec, nil
}
