package history

import (
	"maps"
	"math"
	"slices"
	"strings"

	"kvbench/kvbench/merge/settings"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Point is a commit in a series.
type Point struct {
	Commit string
	Date   string
	Median float64
	Trials []float64
}

// Change is a commit from which on a series has another level.
type Change struct {
	At    int     // the first point of the new level
	Ratio float64 // by which the level rose, a share of that before
	P     float64 // of Pettitt's test, for this part of the series alone
}

// Series is one metric of a benchmark on one machine over commits.
type Series struct {
	Machine, Benchmark, Unit string
	Better                   int
	Points                   []Point
	Changes                  []Change // in the order of the commits
	of                       Entry    // with the settings of all of its entries
}

// sameSeries tells whether two entries are of one series: what only one of them tells of its
// settings is no difference.
func sameSeries(a, b Entry) bool {
	if a.Machine != b.Machine || a.Benchmark != b.Benchmark {
		return false
	}
	for name, v := range a.Settings {
		if w, known := b.Settings[name]; known && !load.Alike(name, v, w) {
			return false
		}
	}
	return true
}

// Arrange makes series of entries: of the headline of each benchmark, and of the units that are
// named, and finds their changes at a level that they share.
func Arrange(list []Entry, more []string, alpha float64) (all []*Series) {
	for _, e := range list {
		for _, unit := range unitsOf(e, more) {
			i := slices.IndexFunc(all, func(s *Series) bool {
				return s.Unit == unit && sameSeries(s.of, e)
			})
			if i < 0 {
				i = len(all)
				of := e
				of.Settings = map[string]string{}
				all = append(all, &Series{Machine: e.Machine, Benchmark: e.Benchmark, Unit: unit,
					Better: e.Better[unit], of: of})
			}
			maps.Copy(all[i].of.Settings, e.Settings)
			median, _ := units.Median(e.Values[unit])
			all[i].Points = append(all[i].Points,
				Point{e.Commit, e.Date, median, e.Values[unit]})
		}
	}
	for _, s := range all {
		s.search(0, len(s.Points), alpha/float64(len(all)))
		slices.SortFunc(s.Changes, func(a, b Change) int { return a.At - b.At })
	}
	return all
}

// unitsOf are the headline of an entry, and what is named and there.
func unitsOf(e Entry, more []string) (list []string) {
	for _, unit := range stats.Headlines {
		if len(e.Values[unit]) > 0 {
			list = append(list, unit)
			break
		}
	}
	for _, unit := range more {
		if len(e.Values[unit]) > 0 && !slices.Contains(list, unit) {
			list = append(list, unit)
		}
	}
	return list
}

// Name is the series' for people, with the settings in which it differs from others of its
// benchmark.
func (s *Series) Name(all []*Series) string {
	var parts []string
	for _, name := range settings.InOrder(s.of.Settings) {
		if slices.ContainsFunc(all, func(o *Series) bool {
			v, known := o.of.Settings[name]
			return o.Benchmark == s.Benchmark && known &&
				!load.Alike(name, v, s.of.Settings[name])
		}) {
			parts = append(parts, name+"="+s.of.Settings[name])
		}
	}
	return strings.TrimPrefix(s.Benchmark, "Benchmark") + settings.Told(parts)
}

// search finds the changes between two points of the series.
func (s *Series) search(from, to int, level float64) {
	var values []float64
	for _, p := range s.Points[from:to] {
		values = append(values, p.Median)
	}
	at, p := pettitt(values)
	if p >= level {
		return
	}
	// Medians of both parts, as single commits may be outliers; the parts are searched with the
	// same level: a second change is no better proven than the first.
	before, _ := units.Median(values[:at])
	after, _ := units.Median(values[at:])
	s.Changes = append(s.Changes, Change{from + at, (after - before) / math.Abs(before), p})
	s.search(from, from+at, level)
	s.search(from+at, to, level)
}

// pettitt is where values most likely change, the index of the first behind it, and the probability
// of as large a difference without a change, by the bound 2·exp(-6K²/(T³+T²)): K is the largest of
// the sums over a split of how many pairs across it rise less how many fall.
func pettitt(v []float64) (at int, p float64) {
	largest := 0.0
	for split := 1; split < len(v); split++ {
		u := 0.0
		for _, a := range v[:split] {
			for _, b := range v[split:] {
				switch {
				case b > a:
					u++
				case b < a:
					u--
				}
			}
		}
		if math.Abs(u) > largest {
			largest, at = math.Abs(u), split
		}
	}
	n := float64(len(v))
	return at, min(1, 2*math.Exp(-6*largest*largest/(n*n*n+n*n)))
}
