package params

import (
	"maps"
	"slices"
	"strings"

	"kvbench/kvbench/units"
)

// Axis is one -sweep: a parameter and the values that it takes, canonical texts in the given order.
type Axis struct {
	Key    string
	Values []string
}

// points lists the points of a sweep, one value for each swept parameter, the last axis changing
// fastest.
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
// like another level of sub-benchmarks and becomes an underscore, or more of them where that is another
// value's name.
func pointName(axes []Axis, point map[string]string) string {
	parts := make([]string, len(axes))
	for i, a := range axes {
		parts[i] = a.Key + "=" + namesOf(a.Values)[slices.Index(a.Values, point[a.Key])]
	}
	return strings.Join(parts, "/")
}

func namesOf(values []string) (names []string) {
	for _, value := range values {
		name := strings.ReplaceAll(value, "/", "_")
		for under := "__"; name != value && (slices.Contains(values, name) || slices.Contains(names, name)); under += "_" {
			name = strings.ReplaceAll(value, "/", under)
		}
		names = append(names, name)
	}
	return names
}

// sweep reads the sweeps of the strongest layer that has any.
func (r *resolver) sweep(p *parameter) {
	origin := r.v.Origin(p.name)
	r.v.Sweep = r.axes(p, r.v.given[p.name])
	if origin.kind == FromScenario {
		r.v.Sweep = slices.DeleteFunc(r.v.Sweep, func(a Axis) bool { // one value replaces the sweep
			return slices.ContainsFunc(r.layers[FromFile:FromSweep],
				func(layer map[string][]setting) bool { return layer[a.Key] != nil })
		})
	}
	for _, a := range r.v.Sweep {
		if typed := r.layers[FromFlag][a.Key]; len(typed) > 0 {
			last := typed[len(typed)-1]
			r.violate(find(a.Key), last, "absent where a sweep gives its values; -bench */%s=%s selects one",
				a.Key, last.text)
		}
	}
}

// axes reads key=a,b,c of each axis, with a comma before the next key. Values become canonical here, so that 04
// and 4 are the same point and names of sub-benchmarks do not depend on spelling.
func (r *resolver) axes(sweep *parameter, given setting) (axes []Axis) {
	if given.text == "" {
		return nil
	}
	cut := func(text string) (key, list string) {
		key, list, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "-"), "=")
		return key, list
	}
	var texts []string
	for text := range strings.SplitSeq(given.text, ",") {
		key, _ := cut(text)
		if last := len(texts) - 1; last >= 0 && find(key) == nil { // a value of the same axis
			texts[last] += "," + text
		} else {
			texts = append(texts, text)
		}
	}
	for _, text := range texts {
		key, list := cut(text)
		p, s := find(key), setting{text, given.origin}
		switch {
		case key == "" || list == "":
			r.violate(sweep, s, "key=a,b,c")
			continue
		case p == nil:
			hint := units.Suggestion(key, names(table))
			if other := Instead[key]; other != "" {
				hint = ": " + other
			}
			r.violate(sweep, s, "a sweep of a parameter (%q is unknown%s)", key, hint)
			continue
		case p.has(unswept, whole):
			r.violate(sweep, s, "a sweep of another parameter (%s cannot be swept)", key)
			continue
		case slices.ContainsFunc(axes, func(a Axis) bool { return a.Key == key }):
			r.violate(sweep, s, "one sweep per parameter (%s is swept twice)", key)
			continue
		}
		axis := Axis{Key: key}
		for text := range strings.SplitSeq(list, ",") {
			word := strings.TrimSpace(text)
			value, err := r.canonical(p, r.ofMachine(p, setting{text: word}).text)
			if p.has(sized) && strings.HasPrefix(word, "auto") { // a name does not depend on the machine
				value = word
			}
			switch {
			case err != nil:
				r.violate(sweep, s, "a sweep of values that %s can take (%q must be %v)", key, text, err)
			case value == "":
				r.violate(sweep, s, "a sweep of values that %s can take (%q must be a value)", key, text)
			case slices.Contains(axis.Values, value):
				r.violate(sweep, s, "a sweep of different values (%s is there twice)", value)
			default:
				axis.Values = append(axis.Values, value)
			}
		}
		if len(axis.Values) > 0 { // else there is no point, and its violation is reported
			axes = append(axes, axis)
		}
	}
	return axes
}
