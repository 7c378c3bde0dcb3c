package params

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// OriginKind is the layer that a value came from; a larger one wins over a smaller one.
type OriginKind uint8

// The layers, weakest first.
const (
	FromDefault     OriginKind = iota // the same in every division
	FromDivision                      // Where: the division
	FromBenchmark                     // Where: the benchmark's name
	FromEngine                        // Where: the engine
	FromLayout                        // Where: the engine's layout
	FromProfile                       // Where: the profile
	FromLauncher                      // Where: its environment variable (rank, ranks, local-ranks)
	FromFile                          // Where: file:line
	FromEnvironment                   // Where: the variable
	FromFlag                          // Where: empty
	FromSweep                         // Where: empty
)

// Origin says where a value came from.
type Origin struct {
	Kind  OriginKind
	Where string
}

// originTexts stand before where a value came from.
var originTexts = [...]string{FromDefault: "default", FromDivision: "division ",
	FromBenchmark: "benchmark ", FromProfile: "profile ", FromEngine: "engine ",
	FromLayout: "layout ", FromLauncher: "environment ", FromFile: "",
	FromEnvironment: "environment ", FromFlag: "flag", FromSweep: "sweep"}

func (o Origin) String() string { return originTexts[o.Kind] + o.Where }

// byUser tells whether a person set the value, as opposed to the suite or the launcher. Only what a
// person set can be an override: refused in the closed division, and told in the output's lines.
func (o Origin) byUser() bool { return o.Kind >= FromFile }

// setting is a value as text and the layer that gave it.
type setting struct {
	text   string
	origin Origin
}

// violation says what was given for a flag, named with its dash, or a dotted YAML key, and what
// would be right.
func violation(name string, given setting, required string) string {
	verb := "given"
	if given.origin.Kind < FromLauncher { // nobody said so
		verb = "and is"
	}
	return fmt.Sprintf("%s: must be %s, %s %s (%s)", name, required, verb,
		cmp.Or(given.text, `""`), given.origin)
}

// Violations are all problems of one resolution, in the order of the table. It is the error that
// Resolve returns. All of a run are told together: who fixes one and starts again should not meet
// the next.
type Violations []string

// Error lists one problem per line.
func (vs Violations) Error() string { return strings.Join(vs, "\n") }

// About tells whether one of them is about one of these parameters.
func (vs Violations) About(names ...string) bool {
	return slices.ContainsFunc(vs, func(v string) bool {
		flag, _, _ := strings.Cut(v, ":")
		return slices.Contains(names, strings.TrimPrefix(flag, "-"))
	})
}

// Besides leaves those of parameters of which others speak already: what is said of a default that
// took the place of what was typed would only confuse.
func (vs Violations) Besides(others Violations) Violations {
	return slices.DeleteFunc(vs, func(v string) bool {
		flag, _, _ := strings.Cut(v, ":")
		return others.About(strings.TrimPrefix(flag, "-"))
	})
}

// Merge appends those of more that vs does not say yet: several benchmarks and swept combinations
// stumble over the same flag.
func (vs Violations) Merge(more Violations) Violations {
	for _, v := range more {
		if !slices.Contains(vs, v) {
			vs = append(vs, v)
		}
	}
	return vs
}
