package report

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// known returns the complete trials that have a unit of the benchmark line, and its values.
func known(trials []*result.Result, unit string) (having []*result.Result, values []float64) {
	for _, r := range trials {
		for _, m := range r.Metrics() {
			if m.Unit == unit && r.Status == result.StatusComplete {
				having, values = append(having, r), append(values, m.Value)
			}
		}
	}
	return having, values
}

// Typical is the trial that stands for several of one benchmark in all documents: of the complete
// ones the first whose headline is nearest to their median, since a mean of several shows stalls
// that none of them had. Without a headline it is the first complete one, or the first. It is nil of
// none.
func Typical(trials []*result.Result) *result.Result {
	for _, unit := range []string{"read-B/s", "write-B/s", "ns/op"} {
		having, values := known(trials, unit)
		if median, ok := units.Median(values); ok {
			nearest := 0
			for i, v := range values {
				if math.Abs(v-median) < math.Abs(values[nearest]-median) {
					nearest = i
				}
			}
			return having[nearest]
		}
	}
	for _, r := range trials {
		if r.Status == result.StatusComplete {
			return r
		}
	}
	for _, r := range trials {
		return r
	}
	return nil
}

// trialUnits are the headline values of a trial, and latencyUnits those of a trial in one direction.
var (
	trialUnits = []string{"io/s", "read-B/s", "write-B/s", "freed-B/s", "removals/s", "knee-bytes",
		"found-tok/s", "peak-B/s", "sustained-users", "hit-ratio"}
	latencyUnits = []string{"read-io-p99-ns", "write-io-p99-ns"}
)

// TrialLine is a trial in one line for a terminal: its headline values, and what limited it. Its name is as
// wide as the longest name of the run.
func TrialLine(r *result.Result, width int) string {
	parts := []string{fmt.Sprintf("%-*s", width, r.Name)}
	if r.Count > 1 {
		parts = append(parts, fmt.Sprintf("trial %d of %d", r.Trial+1, r.Count))
	}
	list := trialUnits
	if read, write := r.StorageTraffic(); read.Bytes == 0 || write.Bytes == 0 {
		list = slices.Concat(trialUnits, latencyUnits)
	}
	if r.IO.Mode == result.IOMemory && r.CompletionUnit != result.UnitOperation {
		list = []string{"req/s", "tok/s", "e2e-p95-ns", "hit-ratio"}
	}
	values := map[string]float64{}
	for _, m := range r.Metrics() {
		values[m.Unit] = m.Value
	}
	for _, unit := range list {
		if v, ok := values[unit]; ok {
			parts = append(parts, headline(unit, v))
		}
	}
	state := cmp.Or(r.Harness.Verdict.Kind, "no verdict")
	if m := r.Simulation; m != nil {
		state = "simulated"
		if m.SustainedUsers != nil {
			state += fmt.Sprintf(", sustains %d of %d users", *m.SustainedUsers, r.Workload.Users)
		}
	}
	if r.Status != result.StatusComplete {
		state = fmt.Sprintf("%s: %s", strings.ToUpper(r.Status), cmp.Or(r.Error, "ended by "+r.EndedBy))
	}
	if n := len(r.Warnings); n > 0 {
		state += ", " + units.Plural(n, "warning")
	}
	return strings.Join(append(parts, state), "   ")
}

// headline names a value: read 1.17 GiB/s, read p99 8.40 ms, 9100 io/s. The lines of all trials have rates in one
// unit.
func headline(unit string, v float64) string {
	text := units.OfLine(unit, units.GiB)(v)
	if name := metricOf(unit); name != unit {
		return name + " " + text
	}
	return text
}

// metricOf names a unit of the benchmark line in the words of a person: read, read p99, io/s.
func metricOf(unit string) string {
	for _, end := range []string{"-B/s", "-ns", "-bytes", "-ratio"} {
		if name, ok := strings.CutSuffix(unit, end); ok {
			return strings.ReplaceAll(name, "-io-", " ")
		}
	}
	return unit
}

// numbers matches a number with its unit: warnings that differ only in numbers are of one kind.
var numbers = regexp.MustCompile(`[0-9][0-9.,]*( ([KMGT]i)?B\b| [mµn]?s\b)?`)

// Warnings returns the kinds of warnings and of late calls, each once, with the number of trials that have
// it.
func Warnings(results []*result.Result) []string {
	var trials [][]string
	for _, r := range results {
		texts := slices.Clone(r.Warnings)
		if late := stalls(r).Lines; len(late) > 0 {
			texts = append(texts, late[0].Text)
		}
		trials = append(trials, texts)
	}
	return Kinds(trials)
}

// Kinds returns the first text of each kind, with the number of trials that have the kind, if there are several
// trials. Texts that differ only in numbers are of one kind.
func Kinds(trials [][]string) (list []string) {
	having := map[string]int{} // trials by kind
	var kinds []string
	for _, texts := range trials {
		seen := map[string]bool{}
		for _, text := range texts {
			kind := numbers.ReplaceAllString(text, "#")
			if having[kind] == 0 {
				kinds, list = append(kinds, kind), append(list, text)
			}
			if !seen[kind] {
				having[kind]++
			}
			seen[kind] = true
		}
	}
	if len(trials) == 1 {
		return list
	}
	for i, kind := range kinds {
		list[i] = fmt.Sprintf("%d of %s: %s", having[kind], units.Plural(len(trials), "trial"), list[i])
	}
	return list
}
