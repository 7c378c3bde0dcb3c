package ranking

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"kvbench/kvbench/contrast"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// alpha is the chance that any of the differences called shown is none.
const alpha = 0.05

// Ranking is the rows that were measured on one trace and one directory, the best first.
type Ranking struct {
	Where  string // the rest of the sweep, "" without one
	Rows   []*Row
	Trials [2]int // that rows have, the fewest and the most
	Needed int    // with which every pair could be shown to differ
	TooFew bool   // no pair could have been shown to differ, with so few trials
	Same   int    // rounds whose order is that of the rows
	Rounds int    // in which every row has a trial
	notes  []string
}

// Row is an engine or a layout with all of its trials that came to their end.
type Row struct {
	Name        string // engine=vllm
	Found       contrast.Side
	Median      float64
	First, Last int    // the places that its trials leave open, from 1
	Ahead       int    // rounds in which it was better than the next row
	Failed      int    // trials without numbers
	above       []*Row // that are shown to be better
	facts       facts
	byTrial     map[int]float64
	results     []*result.Result
}

// Turn names the turn of a trial. Rounds go through the rows in one order and in the next one back,
// which together is a turn: what drifts evenly within it is in no comparison.
func Turn(trial int) string { return fmt.Sprint(trial / 2) }

// Rank makes the rankings of a run's results, of which those of other benchmarks are passed over:
// one for each point of what else was swept.
func Rank(results []*result.Result) (list []*Ranking) {
	at := map[string]*Ranking{}
	for _, r := range results {
		if r.Benchmark != result.BenchmarkEngines {
			continue
		}
		name, where := subject(r.Name)
		k := at[where]
		if k == nil {
			k = &Ranking{Where: where}
			at[where], list = k, append(list, k)
		}
		// In the order in which they ran first, which rows of the same value keep.
		i := slices.IndexFunc(k.Rows, func(row *Row) bool { return row.Name == name })
		if i < 0 {
			i = len(k.Rows)
			k.Rows = append(k.Rows, &Row{Name: name, byTrial: map[int]float64{}})
		}
		k.Rows[i].add(r)
	}
	for _, k := range list {
		k.order()
	}
	return slices.DeleteFunc(list, func(k *Ranking) bool { return len(k.Rows) < 2 })
}

// subject splits a name: Engines/engine=vllm/num-users=8 is engine=vllm at num-users=8.
func subject(name string) (ranked, where string) {
	var own, others []string
	for part := range strings.SplitSeq(strings.TrimPrefix(name, result.BenchmarkEngines+"/"), "/") {
		if strings.HasPrefix(part, "engine=") || strings.HasPrefix(part, "layout=") {
			own = append(own, part)
		} else {
			others = append(others, part)
		}
	}
	return strings.Join(own, " "), strings.Join(others, " ")
}

// add takes in a trial.
func (row *Row) add(r *result.Result) {
	v := r.FoundTokensPerSecond()
	if r.Status != result.StatusComplete || v == nil {
		row.Failed++
		return
	}
	row.Found.Add(*v, Turn(r.Trial))
	row.byTrial[r.Trial] = *v
	row.results = append(row.results, r)
}

// order sorts the rows, and finds out what of it is shown. A row without a trial that ended has no
// place, but what is said of it is said before it goes.
func (k *Ranking) order() {
	for _, row := range k.Rows {
		row.Median, _ = units.Median(row.Found.Values)
		row.facts = factsOf(row.results)
	}
	k.note()
	k.Rows = slices.DeleteFunc(k.Rows, func(row *Row) bool { return len(row.results) == 0 })
	if len(k.Rows) < 2 {
		return
	}
	// Medians: one trial that met a disk's own business moves none of them far.
	slices.SortStableFunc(k.Rows, func(a, b *Row) int { return cmp.Compare(b.Median, a.Median) })
	k.places()
	k.rounds()
}

// places compares every pair of rows. Which of two is tested for being worse was not known before
// they were measured, so that the p value counts twice; and so does what it could have been at
// best. Holm's correction is over all pairs, those that nobody asks about, too: whoever reads the
// table picks the pair that stands out, after the fact.
func (k *Ranking) places() {
	var all contrast.Together
	type pair struct{ better, worse *Row }
	var pairs []pair
	for i, a := range k.Rows {
		a.First, a.Last = 1, len(k.Rows)
		for _, b := range k.Rows[i+1:] {
			c := contrast.New(a.Found, b.Found)
			worse, better := c.P(1, 0), c.P(-1, 0) // that b is
			all.Add(min(1, 2*min(worse, better)), min(1, 2*c.Least()))
			if worse <= better {
				pairs = append(pairs, pair{a, b})
			} else {
				pairs = append(pairs, pair{b, a})
			}
		}
	}
	adjusted, few := all.Correct(alpha)
	k.TooFew = !slices.Contains(few, false)
	for i, p := range adjusted {
		if p < alpha { // one more is above the worse row, and below the better
			pairs[i].better.Last--
			pairs[i].worse.First++
			pairs[i].worse.above = append(pairs[i].worse.above, pairs[i].better)
		}
	}
	k.Needed = contrast.Needed(2*len(pairs), alpha, true)
}

// rounds counts in how many of them the order was that of the rows. It is a description: five rows
// in the same order in each of three rounds are no accident, but which neighbours may change places
// it does not tell.
func (k *Ranking) rounds() {
	k.Trials = [2]int{math.MaxInt, 0}
	for _, row := range k.Rows {
		n := len(row.results)
		k.Trials = [2]int{min(k.Trials[0], n), max(k.Trials[1], n)}
	}
	// Of the trials that the first row has, which no other can be without in a round that counts.
	// A round counts where every row has a trial of it: an interrupted run has one that has not.
	for trial := range k.Rows[0].byTrial {
		if slices.ContainsFunc(k.Rows, func(row *Row) bool {
			_, has := row.byTrial[trial]
			return !has
		}) {
			continue
		}
		k.Rounds++
		same := true
		for i, row := range k.Rows[:len(k.Rows)-1] {
			if row.byTrial[trial] > k.Rows[i+1].byTrial[trial] {
				row.Ahead++
			} else {
				same = false
			}
		}
		if same {
			k.Same++
		}
	}
}
