package load

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
)

// identity tells a measurement from another: of a copy it is the same. Empty for what does not
// tell enough of itself.
func (rec *Record) identity() string {
	r := rec.Result
	if r == nil || r.Nonce == "" || r.StartTime == "" {
		return ""
	}
	return fmt.Sprintln(rec.Source, rec.Name, r.Nonce, r.StartTime, r.Trial, r.Rank)
}

// fold makes one record of the ranks of each trial of the argument that was read.
func (r *reader) fold() error {
	trials, err := trialsOf(r.held)
	r.held = nil
	for _, rec := range trials {
		if err == nil {
			err = r.each(rec)
		}
	}
	return err
}

// trialsOf makes one record of the ranks of each trial, in the order in which their first ranks
// stand. Ranks are of one trial when run, name, number and what was asked for are the same; should
// there be several of that kind, then those that follow each other in time until a rank comes
// again. A trial of which a rank is missing has no values, and its result says who.
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
			for n < len(group) && !seen[group[n].Result.Rank] {
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
	settings := asked(rec.Result, false)
	key := []string{rec.Source, rec.Package(), rec.Name, fmt.Sprint(rec.Result.Trial)}
	for _, name := range InOrder(settings) {
		key = append(key, name+"="+settings[name])
	}
	return strings.Join(key, "\n")
}

// Package is the one that the line's configuration names, empty where nobody does.
func (rec *Record) Package() string {
	for _, line := range rec.Config {
		if line.Key == "pkg" {
			return line.Value
		}
	}
	return ""
}

// began is when the window opened, the zero time where nobody says.
func began(r *result.Result) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, r.StartTime)
	return at
}

// joined is the record of a trial: its result is the fold of the ranks', and its values are those
// of the line that one client would have printed.
func joined(ranks []*Record) (*Record, error) {
	slices.SortFunc(ranks, func(a, b *Record) int { return a.Result.Rank - b.Result.Rank })
	first := ranks[0]
	rec := &Record{Source: first.Source, File: first.File, Line: first.Line, Name: first.Name,
		Iters: first.Iters, Config: first.Config, Ranks: ranks}
	var results []*result.Result
	var paths []string
	for _, rank := range ranks {
		results, paths = append(results, rank.Result), append(paths, cmp.Or(rank.Path, rank.File))
	}
	rec.Path = strings.Join(paths, ", ")
	var err error
	if rec.Result, err = merge.Fold(results); err == nil {
		rec.Raw, err = json.Marshal(rec.Result)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rec.Path, err)
	}
	rec.Values = fileValues(rec)
	return rec, nil
}
