package benchmarks

import (
	"slices"
	"strings"
	"testing"
)

// sub runs a sub-benchmark, if -bench selects it, and remembers its name: see unmatched.
func (s *session) sub(b *testing.B, name string, f func(*testing.B)) {
	full := b.Name() + "/" + name
	if !slices.Contains(s.offered, full) {
		s.offered = append(s.offered, full)
	}
	b.Run(name, func(b *testing.B) {
		s.ran[full] = true
		f(b)
	})
}

// unmatched lists the sub-benchmarks of functions of which -bench selects none: those that have no sub-benchmark that ran.
func (s *session) unmatched() (names []string) {
	for _, name := range s.offered {
		top, _, _ := strings.Cut(name, "/")
		if !slices.ContainsFunc(s.offered, func(other string) bool { return s.ran[other] && strings.HasPrefix(other, top+"/") && s.leaf(other) }) && s.leaf(name) {
			names = append(names, name)
		}
	}
	return names
}

// leaf tells whether nothing is known to lie below a sub-benchmark.
func (s *session) leaf(name string) bool {
	return !slices.ContainsFunc(s.offered, func(other string) bool { return strings.HasPrefix(other, name+"/") })
}
