package params

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvbench/kvbench/units"
)

// points lists the points of a sweep, one value for each swept parameter, the last axis changing
// fastest. The list is short (maxCombinations): each axis multiplies it.
func points(axes []Axis) []map[string]string {
	list := []map[string]string{{}}
	for _, axis := range axes {
		var longer []map[string]string
		for _, point := range list {
			for _, value := range axis.Values {
				next := maps.Clone(point)
				next[axis.Key] = value
				longer = append(longer, next)
			}
		}
		list = longer
	}
	return list
}

// pointName is the sub-benchmark's name: key=value joined by /. A slash inside a value would look
// like another level of sub-benchmarks and becomes an underscore.
func pointName(axes []Axis, point map[string]string) string {
	parts := make([]string, len(axes))
	for i, a := range axes {
		parts[i] = a.Key + "=" + strings.ReplaceAll(point[a.Key], "/", "_")
	}
	return strings.Join(parts, "/")
}

// maxCombinations keeps a typing mistake from becoming a week of benchmarks.
const maxCombinations = 1000

// sweep takes all sweeps of the strongest layer that has any.
func (r *resolver) sweep(p *parameter) {
	all := r.layers(p)
	p.given = all[0]
	// The last is the default, which is none.
	given := slices.DeleteFunc(all[:len(all)-1],
		func(s setting) bool { return s.origin.Kind != p.given.origin.Kind })
	texts := make([]string, len(given))
	for i, s := range given {
		texts[i] = s.text
	}
	// Recorded as it was typed: the axes are in the names of the sub-benchmarks.
	r.v.sweep = strings.Join(texts, " ")
	r.v.Sweep = r.axes(p, given)
	for _, a := range r.v.Sweep {
		if typed := r.given[a.Key]; len(typed) > 0 {
			last, required := typed[len(typed)-1], "absent where -sweep gives "+a.Key+" its values"
			if p.given.origin.Kind == FromBenchmark { // which a user has not typed
				required = fmt.Sprintf("absent: %[1]s runs with every %[2]s; choose one with "+
					"-bench %[1]s/%[2]s=%[3]s", r.in.Bench.Name, a.Key, last)
			}
			r.violate(find(a.Key), setting{last, Origin{Kind: FromFlag}}, required)
		}
	}
}

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
			sweepable := slices.DeleteFunc(slices.Clone(rows),
				func(p parameter) bool { return p.has(unswept) })
			hint := units.Suggestion(key, names(sweepable))
			if other := Instead[key]; other != "" {
				hint = ": " + other
			}
			bad("a sweep of a parameter (%q is unknown%s)", key, hint)
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
			if err == nil && x.String() == "" {
				err = errors.New("a value")
			}
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
		if len(axis.Values) > 0 { // else there is no point, and what is wrong has been told
			axes = append(axes, axis)
		}
	}
	return axes
}
