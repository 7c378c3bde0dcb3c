package params

import (
	"fmt"
	"strings"
)

// OriginKind is the layer that a value came from; a larger one wins over a smaller one.
type OriginKind uint8

// The layers, weakest first.
const (
	FromDefault   OriginKind = iota // the same in every division
	FromDivision                    // Where: the division
	FromBenchmark                   // Where: the benchmark's name
	// Where: the launcher's environment variable (rank, ranks, local-ranks)
	FromLauncher
	FromFile        // Where: file:line
	FromEnvironment // Where: the variable
	FromFlag        // Where: empty, or the go command's flag
	FromSweep       // Where: empty
)

// Origin says where a value came from.
type Origin struct {
	Kind  OriginKind
	Where string
}

func (o Origin) String() string {
	switch o.Kind {
	case FromDivision:
		return "division " + o.Where
	case FromBenchmark:
		return "benchmark " + o.Where
	case FromLauncher, FromEnvironment:
		return "environment " + o.Where
	case FromFile:
		return o.Where
	case FromFlag:
		return "flag"
	case FromSweep:
		return "sweep"
	}
	return "default"
}

// byUser tells whether a person set the value, as opposed to the suite or the launcher. Only what a
// person set can be an override: refused in the closed division, and told in the output's lines.
func (o Origin) byUser() bool { return o.Kind >= FromFile }

// setting is a value as text and the layer that gave it.
type setting struct {
	text   string
	origin Origin
}

// Violation is one parameter that cannot be used. All of a run are told together: who fixes one and
// starts again should not meet the next.
type Violation struct {
	// flag name with its dash, or dotted YAML key; empty when the file as a whole is wrong
	Name     string
	Required string // what would be right
	Given    string // what was given
	Origin   Origin
	Text     string // the whole message when the form "name: must be …, given …" does not fit
}

// Error says parameter, required and given value in one line.
func (v Violation) Error() string {
	if v.Text != "" {
		return v.Text
	}
	given := v.Given
	if given == "" {
		given = `""`
	}
	return fmt.Sprintf("%s: must be %s, given %s (%s)", v.Name, v.Required, given, v.Origin)
}

// Violations are all problems of one resolution, in the order of the table. It is the error that
// Resolve returns.
type Violations []Violation

// Error lists one problem per line.
func (vs Violations) Error() string {
	lines := make([]string, len(vs))
	for i, v := range vs {
		lines[i] = v.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a single Violation.
func (vs Violations) Unwrap() []error {
	errs := make([]error, len(vs))
	for i, v := range vs {
		errs[i] = v
	}
	return errs
}

// Merge appends those of more that vs does not say yet: several benchmarks and swept combinations
// stumble over the same flag.
func (vs Violations) Merge(more Violations) Violations {
	// By text: origin and value are part of it.
	said := make(map[string]bool, len(vs))
	for _, v := range vs {
		said[v.Error()] = true
	}
	for _, v := range more {
		if text := v.Error(); !said[text] {
			said[text] = true
			vs = append(vs, v)
		}
	}
	return vs
}
