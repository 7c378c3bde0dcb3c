package params

import (
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/units"
)

// Axis is one -sweep: a parameter and the values that it takes, canonical texts in the given order.
type Axis struct {
	Key    string
	Values []string
}

// Combination is one point of the sweep, one value per axis. The zero Combination is that of a run
// without a sweep.
type Combination []Assignment

// Assignment gives one parameter one value.
type Assignment struct{ Key, Value string }

// Name is the sub-benchmark's name: key=value joined by /, and empty without a sweep. A slash
// inside a value would look like another level of sub-benchmarks and becomes an underscore.
func (c Combination) Name() string {
	parts := make([]string, len(c))
	for i, a := range c {
		parts[i] = a.Key + "=" + strings.ReplaceAll(a.Value, "/", "_")
	}
	return strings.Join(parts, "/")
}

func (c Combination) find(key string) (string, bool) {
	for _, a := range c {
		if a.Key == key {
			return a.Value, true
		}
	}
	return "", false
}

// Combinations lists the points of the sweep, the last axis changing fastest. Without a sweep there
// is one, empty.
func (v *Values) Combinations() []Combination {
	list := []Combination{nil}
	// The list is short (maxCombinations): each axis multiplies it.
	for _, axis := range v.Sweep {
		longer := make([]Combination, 0, len(list)*len(axis.Values))
		for _, c := range list {
			for _, value := range axis.Values {
				longer = append(longer, append(c[:len(c):len(c)], Assignment{axis.Key, value}))
			}
		}
		list = longer
	}
	return list
}

// maxCombinations keeps a typing mistake from becoming a week of benchmarks.
const maxCombinations = 1000

// axes reads all -sweep texts. Values become canonical here, so that 04 and 4 are the same point
// and names of sub-benchmarks do not depend on spelling.
func (r *resolver) axes(sweep *parameter, given []setting) (axes []Axis) {
	total := 1
	for _, s := range given {
		bad := func(required string, args ...any) {
			r.violate(sweep, s, fmt.Sprintf(required, args...))
		}
		key, list, _ := strings.Cut(s.text, "=")
		key = strings.TrimPrefix(strings.TrimSpace(key), "-")
		p := find(key)
		switch {
		case key == "" || list == "":
			bad("key=a,b,c")
			continue
		case p == nil:
			bad("a sweep of a parameter (%q is unknown%s)", key, units.Suggestion(key, sweepable()))
			continue
		case p.has(unswept):
			bad("a sweep of another parameter (%s cannot be swept)", key)
			continue
		case slices.ContainsFunc(axes, func(a Axis) bool { return a.Key == key }):
			bad("one sweep per parameter (%s is swept twice)", key)
			continue
		}
		axis := Axis{Key: key}
		for text := range strings.SplitSeq(list, ",") {
			x := newValues(r.in.Base).row(key).value
			err := x.Set(strings.TrimSpace(text))
			switch {
			case err != nil:
				bad("a sweep of values that %s can take (%q must be %v)", key, text, err)
			case slices.Contains(axis.Values, x.String()):
				bad("a sweep of different values (%s is there twice)", x)
			default:
				axis.Values = append(axis.Values, x.String())
			}
		}
		// Checked while they are read: the product could overflow, and a list of texts is cheap to
		// type.
		if total *= max(1, len(axis.Values)); total > maxCombinations {
			bad("at most %d combinations in all sweeps together", maxCombinations)
			return nil
		}
		axes = append(axes, axis)
	}
	return axes
}

// sweepable are the names to hint at.
func sweepable() []string {
	var names []string
	for _, p := range rows {
		if !p.has(unswept) {
			names = append(names, p.name)
		}
	}
	return names
}
