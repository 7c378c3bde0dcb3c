package params

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/group"
)

// OriginKind is the layer that a value came from; a larger one wins over a smaller one.
type OriginKind uint8

// The layers, weakest first.
const (
	FromDefault     OriginKind = iota // Where: empty, or why it is another one than usual
	FromDivision                      // Where: the division
	FromBenchmark                     // Where: the benchmark's name
	FromProfile                       // Where: the profile
	FromEngine                        // Where: the engine
	FromLayout                        // Where: the engine's layout
	FromLauncher                      // Where: its environment variable (rank, ranks, local-ranks)
	FromScenario                      // Where: file:line, or the built-in scenario
	FromFile                          // Where: file:line
	FromEnvironment                   // Where: the variable
	FromFlag                          // Where: empty
	FromSweep                         // Where: empty
)

// Origin says where a value came from.
type Origin struct {
	kind  OriginKind // of no use outside: see Values.Changed
	Where string
}

// originTexts stand before Where.
var originTexts = [...]string{FromDefault: "default", FromDivision: "division ",
	FromBenchmark: "benchmark ", FromProfile: "profile ", FromEngine: "engine ",
	FromLayout: "layout ", FromLauncher: "environment ", FromScenario: "", FromFile: "",
	FromEnvironment: "environment ", FromFlag: "flag", FromSweep: "sweep"}

func (o Origin) String() string { return originTexts[o.kind] + o.Where }

// byUser reports whether the user set the value, as opposed to the suite or the launcher. Only what
// the user set can be an override: refused in the closed division, and reported in the output.
func (o Origin) byUser() bool { return o.kind >= FromScenario }

// setting is a value as text and the layer that gave it.
type setting struct {
	text   string
	origin Origin
}

// violation returns a message with the name of a flag (with its dash) or of a dotted YAML key, the given
// value and the required value.
func violation(name string, given setting, required string) string {
	verb := "given"
	if given.origin.kind < FromLauncher { // the suite's own
		verb = "and is"
	}
	return fmt.Sprintf("%s: must be %s, %s %s (%s)", name, required, verb,
		cmp.Or(given.text, `""`), given.origin)
}

// Violations are all problems of one resolution, in the order of the table. It is the error that
// Resolve returns: all problems of a run are reported together.
type Violations []string

// Error lists one problem per line.
func (vs Violations) Error() string { return strings.Join(vs, "\n") }

// About reports whether one of them is about one of these parameters.
func (vs Violations) About(names ...string) bool {
	return slices.ContainsFunc(vs, func(v string) bool {
		flag, _, _ := strings.Cut(v, ":")
		return slices.Contains(names, strings.TrimPrefix(flag, "-"))
	})
}

// Except returns the violations about parameters that others does not mention. If a refused value was
// replaced by a default, a message about that default would be confusing.
func (vs Violations) Except(others Violations) Violations {
	return slices.DeleteFunc(vs, func(v string) bool {
		flag, _, _ := strings.Cut(v, ":")
		return others.About(strings.TrimPrefix(flag, "-"))
	})
}

// Merge appends the violations of more that vs does not have: several benchmarks and swept combinations
// stumble over the same flag.
func (vs Violations) Merge(more Violations) Violations {
	for _, v := range more {
		if !slices.Contains(vs, v) {
			vs = append(vs, v)
		}
	}
	return vs
}

// Inputs are what Resolve needs in addition to the flags. Only Base is required.
type Inputs struct {
	// Bench is the benchmark to resolve for; the zero Bench stands for none: division defaults
	// only.
	Bench Bench
	// Job is the job of a scenario that runs the benchmark, nil for none.
	Job *Job
	// Scenarios has the built-in scenarios, each a file NAME.yaml in its directory.
	Scenarios embed.FS
	// Base is the absolute directory in which the command was typed: relative paths of flags,
	// environment and file mean it.
	Base string
	// Env returns the text of a variable, as os.Getenv does: "" if it is not set. nil is an empty
	// environment.
	Env func(string) string
	// Agent is the place of a rank that a coordinator has started, nil for others; then no launcher
	// is looked for.
	Agent *group.Launched
	// BenchTime and Count are -test.benchtime and -test.count as they were typed, "" when they
	// were not.
	BenchTime, Count string
	// Stamp names the default results directory by the process's start and id, so that all of its
	// benchmarks share one, or their trials could not be found together.
	Stamp string
	// Machine is what the word auto takes sizes from; nil: no parameter takes that word.
	Machine *Machine
	// CheckCacheDir refuses a directory in which the suite must not work, before anything is made;
	// nil admits any.
	CheckCacheDir func(dir string) error
}

// resolver is one resolution in progress.
type resolver struct {
	in     Inputs
	v      *Values
	layers [FromSweep + 1]map[string][]setting // by name; of -sweep one text each
	bad    Violations
}

// resolver has the layers that need no other parameter: flags, environment and the point of a sweep.
func (s *Set) resolver(in Inputs, point map[string]string) *resolver {
	if in.Env == nil {
		in.Env = func(string) string { return "" }
	}
	r := &resolver{in: in, v: newValues(in.Base)}
	r.v.Bench, r.v.Job, r.v.scenarios = in.Bench, in.Job, in.Scenarios
	if in.Job != nil {
		r.layers[FromScenario] = in.Job.values
	}
	r.set(FromSweep, "", point)
	// Go's own flags count as typed ones; they have no other layer.
	r.set(FromFlag, "", map[string]string{"benchtime": in.BenchTime, "count": in.Count})
	for _, p := range table {
		typed, env := s.given[p.name], in.Env(EnvName(p.name))
		switch {
		case p.has(many) && len(typed) > 0:
			typed = []string{strings.Join(typed, ",")}
		case p.has(goFlag, action):
			env = ""
		}
		r.add(FromFlag, "", p.name, typed...)
		if p.name == "sweep" { // semicolons and spaces may separate several
			env = strings.Join(strings.FieldsFunc(env, func(r rune) bool { return r == ';' || r == ' ' }), ",")
		}
		if env != "" {
			r.add(FromEnvironment, EnvName(p.name), p.name, env)
		}
	}
	return r
}

func (r *resolver) add(kind OriginKind, where, name string, texts ...string) {
	if r.layers[kind] == nil {
		r.layers[kind] = make(map[string][]setting)
	}
	for _, text := range texts {
		r.layers[kind][name] = append(r.layers[kind][name], setting{text, Origin{kind, where}})
	}
}

// set fills one layer; where is its source. An empty text is none.
func (r *resolver) set(kind OriginKind, where string, texts map[string]string) {
	r.layers[kind] = nil
	for name, text := range texts {
		if text != "" {
			r.add(kind, where, name, text)
		}
	}
}

// settings are the texts for a parameter, strongest first. The division's default is always the
// last; a key has none.
func (r *resolver) settings(p *parameter) (list []setting) {
	for _, layer := range slices.Backward(r.layers[:]) {
		list = append(list, layer[p.name]...)
	}
	for _, layer := range r.layers[:FromScenario] {
		if layer[p.name] != nil && !p.has(sized) { // which is what auto means
			list = slices.DeleteFunc(list, func(s setting) bool { return s.text == "auto" && s.origin.byUser() })
		}
	}
	origin, d := Origin{}, cmp.Or(r.v.Division, Quick) // none while the division itself is decided
	if !p.uniform() {
		origin = Origin{FromDivision, string(d)}
	}
	if !p.key() {
		list = append(list, setting{p.def[d], origin})
	}
	return list
}

// decide takes the strongest setting, if there is any. A text that cannot be read is reported and
// the next layer is taken, so that checks of other parameters against this one still make sense.
func (r *resolver) decide(p *parameter) {
	list := r.settings(p)
	for _, s := range list {
		s = r.ofMachine(p, s)
		var err error
		switch {
		case s.text != "":
			err = p.set(r.v, r.v.base, s.text)
		// A shell makes an empty value of a variable that is not set: to take the default instead,
		// such as the temporary directory, is not what the user meant.
		case s.origin.byUser():
			r.bad = append(r.bad, fmt.Sprintf("%s: is empty (%s): give a value, or leave it out",
				p.label(), s.origin))
			r.v.refused[p.name] = true
			continue
		}
		if err == nil {
			r.v.given[p.name] = s
			if s.origin.byUser() {
				usual, _ := r.canonical(p, r.usual(list))
				r.v.changed[p.name] = p.field == "" || p.text(r.v) != usual
			}
			return
		}
		r.violate(p, s, err.Error())
		r.v.refused[p.name] = true
	}
}

// usual returns the text that applies without the user, "" for a key without one.
func (r *resolver) usual(list []setting) string {
	i := slices.IndexFunc(list, func(s setting) bool { return !s.origin.byUser() })
	if i < 0 {
		return ""
	}
	return list[i].text
}

// canonical returns the usual spelling of a text for a parameter, and why the text is refused.
func (r *resolver) canonical(p *parameter, text string) (string, error) {
	v := newValues(r.in.Base)
	err := p.set(v, v.base, text)
	return p.text(v), err
}

// violate reports what was given for a parameter; required completes "must be …".
func (r *resolver) violate(p *parameter, given setting, required string, args ...any) {
	if len(args) > 0 {
		required = fmt.Sprintf(required, args...)
	}
	r.bad = append(r.bad, violation(p.label(), given, required))
}

// refuse reports the value in force.
func (r *resolver) refuse(name, required string, args ...any) {
	p := byName[name]
	r.violate(p, setting{r.v.text(p), r.v.Origin(name)}, required, args...)
}

// want refuses the value in force of a parameter unless right is true. It does nothing if the parameter
// was refused before, because the value in force is then a default that the user did not give.
func (r *resolver) want(right bool, name, required string, args ...any) {
	if !right && !r.v.refused[name] {
		r.refuse(name, required, args...)
	}
}
