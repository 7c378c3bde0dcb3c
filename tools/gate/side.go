package gate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"

	"kvbench/tools/comparable"
)

// Side is all results of one side of the comparison.
type Side struct {
	Name    string // as in messages: old or new
	benches map[string]*bench
	order   []string // names as first met
	units   benchfmt.UnitMetadataMap
	Notes   []string // what was left out, and why

	keep   func(unit string) bool // of the metrics, nil = all
	labels []string               // of all metrics, kept or not, as first met
	shared map[*comparable.Setting]definitions
}

// bench is one benchmark: its samples by unit, and what defines them.
type bench struct {
	pkg, name string
	metrics   []metric // in the order of the line
	defs      definitions
	conflicts []Mismatch           // between its own results
	last      []comparable.Setting // of the result before: nearly always the next one's too
	own       bool                 // defs are not shared with other benchmarks
}

// metric is one unit of a benchmark.
type metric struct {
	unit, label string // tidied, as written
	values      []float64
}

// of finds a metric by its tidied unit, nil when the benchmark has none.
func (b *bench) of(unit string) *metric {
	for i := range b.metrics {
		if b.metrics[i].unit == unit {
			return &b.metrics[i]
		}
	}
	return nil
}

// values are the samples of a unit; a benchmark that is not there has none.
func (b *bench) values(unit string) []float64 {
	if b == nil {
		return nil
	}
	if m := b.of(unit); m != nil {
		return m.values
	}
	return nil
}

// NewSide makes an empty side.
func NewSide(name string) *Side {
	return &Side{Name: name, benches: make(map[string]*bench)}
}

// Add adds one result: its metrics, and the settings that define them.
func (s *Side) Add(pkg, name string, values []benchfmt.Value, config []comparable.Setting) {
	id := pkg + "\x00" + name
	b := s.benches[id]
	if b == nil {
		b = &bench{pkg: pkg, name: name}
		s.benches[id] = b
		s.order = append(s.order, id)
	}
	for _, m := range values {
		label := m.OrigUnit
		if label == "" {
			label = m.Unit
		}
		if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			s.note(fmt.Sprintf("%s %s: %s is %v and was left out", s.Name, name, label, m.Value))
			continue
		}
		if !slices.Contains(s.labels, label) {
			s.labels = append(s.labels, label)
		}
		if s.keep != nil && !s.keep(m.Unit) {
			continue
		}
		have := b.of(m.Unit)
		if have == nil {
			b.metrics = append(b.metrics, metric{unit: m.Unit, label: label})
			have = &b.metrics[len(b.metrics)-1]
		}
		have.values = append(have.values, m.Value)
	}
	s.define(b, config)
}

// note keeps each line once.
func (s *Side) note(line string) {
	if !slices.Contains(s.Notes, line) {
		s.Notes = append(s.Notes, line)
	}
}

// Empty tells whether there is nothing to compare.
func (s *Side) Empty() bool { return len(s.order) == 0 }

// index finds the side's benchmarks by the name under which both sides are compared.
func (s *Side) index(key func(pkg, name string) string) (map[string]*bench, []string) {
	found := make(map[string]*bench)
	var order []string
	for _, id := range s.order {
		b := s.benches[id]
		k := key(b.pkg, b.name)
		if found[k] == nil {
			order = append(order, k)
		}
		found[k] = b
	}
	return found, order
}

// keys returns the function that names benchmarks for the comparison. The package is left out where each side has only
// one, and the number of processors (-8) where no benchmark differs from another in nothing else: two machines, or a
// package that moved, are compared all the same.
func keys(sides ...*Side) func(pkg, name string) string {
	onePackage, oneCPU := true, true
	for _, s := range sides {
		var pkgs []string
		names := make(map[string]string)
		for _, id := range s.order {
			b := s.benches[id]
			if !slices.Contains(pkgs, b.pkg) {
				pkgs = append(pkgs, b.pkg)
			}
			base := b.pkg + "\x00" + withoutCPU(b.name)
			if other, taken := names[base]; taken && other != b.name {
				oneCPU = false
			}
			names[base] = b.name
		}
		onePackage = onePackage && len(pkgs) <= 1
	}
	return func(pkg, name string) string {
		if oneCPU {
			name = withoutCPU(name)
		}
		if !onePackage && pkg != "" {
			name = pkg + "." + name
		}
		return name
	}
}

// withoutCPU cuts the -8 that the testing package appends.
func withoutCPU(name string) string {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return name
	}
	if n, err := strconv.Atoi(name[i+1:]); err != nil || n < 1 || name[i+1] == '+' {
		return name
	}
	return name[:i]
}
