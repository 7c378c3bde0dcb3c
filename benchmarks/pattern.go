package benchmarks

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kvbench/kvbench/units"
)

// pattern is a -bench or a -skip as the testing package reads it: alternatives, each of elements
// that match a name between its slashes.
type pattern []alternative

// alternative is one of them.
type alternative struct {
	text     string // as it was typed
	elements []*regexp.Regexp
}

// readPattern reads the text of a flag; an empty one has no alternatives.
func readPattern(flag, text string) (p pattern, err error) {
	if text == "" {
		return nil, nil
	}
	for _, part := range splitPattern(text, '|') {
		a := alternative{text: part}
		for _, element := range splitPattern(part, '/') {
			re, err := regexp.Compile(element)
			if err != nil {
				return nil, fmt.Errorf("%s %q: %w", flag, text, err)
			}
			a.elements = append(a.elements, re)
		}
		p = append(p, a)
	}
	return p, nil
}

// deep reports whether it selects sub-benchmarks.
func (a alternative) deep() bool { return len(a.elements) > 1 }

// matches reports whether it matches the elements of a name, and whether it has more than these:
// what it means then lies below.
func (a alternative) matches(name ...string) (matches, below bool) {
	for n, re := range a.elements[:min(len(name), len(a.elements))] {
		if !re.MatchString(name[n]) {
			return false, false
		}
	}
	return true, len(a.elements) > len(name)
}

// selects reports whether an alternative matches a name, and adds those that do to served. Of leaves
// an alternative that goes on below the name matches nothing.
func (p pattern) selects(served map[string]bool, leaf bool, name ...string) (takes bool) {
	for _, a := range p {
		if matches, below := a.matches(name...); matches && !(leaf && below) {
			takes, served[a.text] = true, true
		}
	}
	return takes
}

// skips reports whether the pattern, one of -skip, takes a name out, or what lies above it.
func (p pattern) skips(name ...string) bool { return p.selects(map[string]bool{}, true, name...) }

// swept has the elements where they are in the names of a sweep, whose keys stand before the
// benchmark's own: with -sweep io-depth=1,2 there is StorageCeiling/io-depth=1/op=read, which
// StorageCeiling/op=read means. An alternative with an element whose key cannot be told, such as
// .*, stays as it was typed.
func (p pattern) swept(keys []string) pattern {
	p = slices.Clone(p)
	for n, a := range p {
		byKey, own, known := make([]*regexp.Regexp, len(keys)), []*regexp.Regexp(nil), a.deep()
		for _, e := range a.elements[1:] {
			key := elementKey.FindStringSubmatch(e.String())
			i := slices.IndexFunc(keys,
				func(name string) bool { return key != nil && name == key[1] })
			switch {
			case key == nil || i >= 0 && byKey[i] != nil: // or said twice
				known = false
			case i < 0:
				own = append(own, e)
			default:
				byKey[i] = e
			}
		}
		if !known {
			continue
		}
		// Elements that were not typed match anything; behind the last typed one none is needed.
		all := append(byKey, own...)
		for all[len(all)-1] == nil {
			all = all[:len(all)-1]
		}
		for i, e := range all {
			all[i] = cmp.Or(e, anything)
		}
		p[n].elements = append(a.elements[:1:1], all...)
	}
	return p
}

var anything = regexp.MustCompile(".")

// elementKey is what an element of a pattern begins with, be it anchored or grouped.
var elementKey = regexp.MustCompile(`^\^?\(?(?:\?:)?([a-z][a-z0-9-]*)=`)

// splitPattern cuts s at sep where it stands outside brackets and parentheses, as the testing
// package cuts a pattern: (a/b|c) is one element.
func splitPattern(s string, sep byte) []string {
	var parts []string
	depth, square, from := 0, 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '[':
			square++
		case c == ']' && square > 0:
			square--
		case c == '(' && square == 0:
			depth++
		case c == ')' && square == 0 && depth > 0:
			depth--
		case c == sep && depth == 0 && square == 0:
			parts = append(parts, s[from:i])
			from = i + 1
		}
	}
	return append(parts, s[from:])
}

// nothingSelected is the error of an alternative of -bench that selects none of a few names, the
// nearest first.
func nothingSelected(selection, what string, names []string) error {
	word := strings.Trim(selection, "^$()")
	word = strings.TrimPrefix(word, "Benchmark")
	distance := func(name string) int {
		_, d := units.Nearest(word, []string{name})
		return d
	}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return distance(a) - distance(b) })
	const most = 20
	more := ""
	if n := len(names) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("-bench %s selects no %s; there are, the nearest first, %s%s", selection,
		what, strings.Join(names[:min(most, len(names))], ", "), more)
}
