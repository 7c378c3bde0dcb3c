package gate

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Read makes a table of both sides, whose trials may differ in the settings that are to be ignored.
// Bad lines go to warn, the rest is read.
func Read(old, new []string, ignore []string, stdin io.Reader, warn func(error),
) (*stats.Table, error) {
	c := stats.Collection{Ignore: ignore}
	o := load.Options{Stdin: stdin, Warn: warn, Trials: true,
		Formats: &load.Formats{}} // of both sides
	var notes []string
	units := benchfmt.UnitMetadataMap{}
	for _, side := range []struct {
		name string
		in   []string
	}{{"old", old}, {"new", new}} {
		usable := false
		more, err := load.Each(side.in, o,
			func(rec *load.Record) error {
				// A crashed trial is no sample. It is told, since a candidate that crashes now and
				// then is not as good as one that does not.
				if len(rec.Values) == 0 {
					why := "no values on its line"
					if rec.Result != nil {
						why = load.Fate(rec.Result)
					}
					note := fmt.Sprintf("%s %s: a trial without numbers was left out (%s)",
						side.name, rec.Name, why)
					if !slices.Contains(notes, note) {
						notes = append(notes, note)
					}
					return nil
				}
				usable = true
				c.Add(side.name, rec)
				return nil
			})
		if err != nil {
			return nil, err
		}
		// An empty side would pass every gate.
		if !usable {
			return nil, errors.New(strings.Join(append([]string{side.name +
				" holds no usable benchmark result"}, notes...), "; "))
		}
		// Both sides are read with the directions of both: a result file has no Unit lines.
		maps.Copy(more, units) // what the old side says of a unit stands
		units = more
	}
	t := c.Table(units)
	t.Notes = append(notes, t.Notes...)
	return t, nil
}
