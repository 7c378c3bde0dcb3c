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

// identity distinguishes measurements: of a copy it is the same. Empty where the result does not
// have enough of it.
func (rec *Record) identity() string {
	r := rec.Result
	if r == nil || r.Nonce == "" || r.StartTime == "" {
		return ""
	}
	return fmt.Sprintln(rec.Source, rec.Name, r.Nonce, r.StartTime, r.Trial, r.Rank,
		r.MergedRanks)
}

// together is the same for the ranks of a trial that were started together and for what became of
// them, and nothing else has it: they agreed about the nonce of their contents.
func (rec *Record) together() string {
	return fmt.Sprintln(rec.Result.Nonce, rec.Result.Name, rec.Result.Trial)
}

// isRank reports whether a record is of one of several clients. Our results contain it; the Python
// benchmark's launcher puts them into such directories, also one that is alone.
func (rec *Record) isRank() bool {
	if rec.Python {
		return merge.Layout.MatchString(filepath.ToSlash(rec.Path))
	}
	return rec.Result != nil && rec.Result.Ranks > 1 && rec.Result.MergedRanks == nil
}

// fold makes one record of the ranks of each trial of the argument that was read. Ranks of which
// one merged result exists already, as a run that starts them writes it, are that result's.
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

// Package is the one that the line's configuration names, empty where it names none.
func (rec *Record) Package() string {
	for _, line := range rec.Config {
		if line.Key == "pkg" {
			return line.Value
		}
	}
	return ""
}

// began is when the window opened, the zero time where it is unknown.
func began(r *result.Result) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, r.StartTime)
	return at
}

// pythonTrials makes one record of the ranks of each trial of the Python benchmark. How many there
// were to be no file says: as many as the trial of its option with most of them has.
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
			trials = append(trials, list[0]) // one client, that says where it is
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
