package gate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"kvbench/kvbench/merge"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Read reads both sides into a table. ignore are settings in which trials may differ. warn gets bad
// lines; the rest is read.
func Read(old, new []string, ignore []string, stdin io.Reader, warn func(error),
) (*stats.Table, error) {
	var lost error // a failed trial of an unknown benchmark
	o := load.Options{Stdin: stdin, Trials: true,
		Warn: func(err error) {
			if errors.Is(err, load.ErrLost) {
				lost = fmt.Errorf("%w; restore that file, or remove the line that names it", err)
			} else if warn != nil {
				warn(err)
			}
		}}
	var all []*load.Record
	var lacking [2]int   // trials without a readable result file, by side
	var reason [2]string // of the first such trial, by side
	units := benchfmt.UnitMetadataMap{}
	for i, in := range [2][]string{old, new} {
		o.Run = Sides[i] // the runs of the table are the sides
		records, more, err := load.All(in, o)
		if err = cmp.Or(err, lost); err != nil {
			return nil, err
		}
		usable, failures := false, []string{Sides[i] + " holds no usable benchmark result"}
		for _, rec := range records {
			if rec.LacksFile() {
				lacking[i]++
				reason[i] = cmp.Or(reason[i], rec.Missing)
			}
			usable = usable || len(rec.Values) > 0
			base, _ := load.SplitProcs(rec.Name)
			if text := base + ": " + rec.Failure(); !slices.Contains(failures, text) {
				failures = append(failures, text)
			}
		}
		// A gate with an empty side would pass.
		if !usable {
			return nil, errors.New(strings.Join(failures, "; "))
		}
		all = append(all, records...)
		// Both sides share the directions of units: a result file has no Unit lines.
		maps.Copy(more, units) // the old side's directions win
		units = more
	}
	t := stats.Gather(all, units, ignore...)
	for side, n := range lacking {
		unknown := slices.DeleteFunc(slices.Clone(merge.FromFiles), func(name string) bool {
			return !slices.ContainsFunc(t.Benchmarks, func(b *stats.Benchmark) bool {
				return b.Settings[side] != nil && len(b.Settings[side].Of(name)) == 0
			})
		})
		if n == 0 || len(unknown) == 0 {
			continue
		}
		// A setting that one side does not know is no difference.
		note := fmt.Sprintf("%d trials of %s have no readable result file (%s): their %s are "+
			"unknown and were not compared", n, t.Runs[side],
			cmp.Or(reason[side], "the text names none"), strings.Join(unknown, ", "))
		t.Notes = append(t.Notes, note)
		// The text names its result files, but they are missing: the user can restore them.
		if reason[side] != "" && warn != nil {
			warn(errors.New(note))
		}
	}
	return t, nil
}

// refusals returns the settings in which the sides of a benchmark differ, with advice. It compares
// benchmarks of the same plain name, of which one has only the old side and the other only the new side.
func refusals(all []*stats.Benchmark, ignore []string) (lines []string) {
	type reason struct{ name, old, new string }
	var order []reason
	benches := map[reason][]string{}
	for _, a := range all {
		for _, b := range all {
			if a.Plain != b.Plain || a.Settings[newSide] != nil || b.Settings[oldSide] != nil {
				continue
			}
			for _, d := range load.Differences(a.Settings[oldSide], b.Settings[newSide], ignore) {
				why := reason{d.Name, d.Old[0], d.New[0]}
				if benches[why] == nil {
					order = append(order, why)
				}
				if !slices.Contains(benches[why], a.Plain) {
					benches[why] = append(benches[why], a.Plain)
				}
			}
		}
	}
	for _, why := range order {
		where := benches[why][0]
		if len(benches[why]) > 1 {
			where += " and others"
		}
		advice := "such numbers mean different things; measure both sides alike"
		if !merge.Defines(why.name) {
			advice = "measure both sides alike, or give -ignore " + why.name +
				" if that is what you compare"
		}
		lines = append(lines, fmt.Sprintf("refused: %s differs (%s against %s in %s): %s",
			why.name, why.old, why.new, where, advice))
	}
	return lines
}
