package params

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/group/launchers"
)

// Inputs are what Resolve needs in addition to the flags. Only Base is required.
type Inputs struct {
	// Bench is the benchmark to resolve for; the zero Bench stands for none: division defaults
	// only.
	Bench Bench
	// Base is the absolute directory in which the command was typed: relative paths of flags,
	// environment and file mean it.
	Base string
	// Env looks up a variable, as os.LookupEnv does; nil is an empty environment. An empty variable
	// counts as not set.
	Env func(string) (string, bool)
	// Agent is what a coordinator says of a rank that it has started, nil for others; then no
	// launcher is asked.
	Agent *launchers.Place
	// BenchTime and Count are -test.benchtime and -test.count as they were typed, "" when they
	// were not.
	BenchTime, Count string
	// Stamp names the default results directory by the process's start and id, so that all of its
	// benchmarks share one, or their trials could not be found together.
	Stamp string
	// CheckCacheDir refuses a directory in which the suite must not work, before anything is made;
	// nil admits any.
	CheckCacheDir func(dir string) error
}

// env is a variable's text, empty when it is not set.
func (in *Inputs) env(name string) string {
	if in.Env == nil {
		return ""
	}
	if text, ok := in.Env(name); ok {
		return text
	}
	return ""
}

// resolver is one resolution in progress.
type resolver struct {
	given map[string][]string
	point map[string]string // of the sweep, nil for the values that hold at none
	in    Inputs
	file  *configFile
	suite [FromLauncher + 1]map[string]setting // FromBenchmark to FromLauncher, by parameter or key
	v     *Values
	bad   Violations
}

// set fills one layer of the suite. Where names its source.
func (r *resolver) set(kind OriginKind, where string, texts map[string]string) {
	r.suite[kind] = make(map[string]setting, len(texts))
	for name, text := range texts {
		r.suite[kind][name] = setting{text, Origin{kind, where}}
	}
}

// decide takes the strongest layer, if there is any. A text that cannot be read is reported and the
// next layer is taken, so that checks of other parameters against this one still make sense.
func (r *resolver) decide(p *parameter) {
	for _, p.given = range r.layers(p) {
		err := p.value.Set(p.given.text)
		// A shell makes an empty value of a variable that is not set: to take the default instead,
		// such as the temporary directory, is not what the user meant.
		empty := err == nil && p.given.text == "" && p.given.origin.byUser() && !p.has(profileKey)
		switch {
		case empty:
			r.bad = append(r.bad, fmt.Sprintf("-%s: is empty (%s): give a value, or leave it out",
				p.name, p.given.origin))
		case err == nil:
			return
		default:
			r.violate(p, p.given, err.Error())
		}
		p.refused, p.given = true, setting{}
	}
}

// layers lists what was given for a parameter, strongest first: one text of each layer, but of
// sweeps all. The division's default is always there, and for a key of the profile never.
func (r *resolver) layers(p *parameter) (list []setting) {
	add := func(kind OriginKind, where string, texts ...string) {
		for _, text := range texts {
			list = append(list, setting{text, Origin{kind, where}})
		}
	}
	if text, ok := r.point[p.name]; ok {
		add(FromSweep, "", text)
	}
	if typed := r.given[p.name]; p.has(many) && len(typed) > 0 {
		add(FromFlag, "", strings.Join(typed, ","))
	} else {
		add(FromFlag, "", typed...)
	}
	switch text := r.in.env(EnvName(p.name)); {
	case text == "" || p.has(goFlag, action, profileKey):
	case p.name == "sweep":
		// Commas separate values, and semicolons are awkward in a shell: spaces do too.
		add(FromEnvironment, EnvName(p.name), strings.FieldsFunc(text, func(r rune) bool {
			return r == ';' || r == ' '
		})...)
	default:
		add(FromEnvironment, EnvName(p.name), text)
	}
	for _, variable := range r.foreign(p.name) {
		add(FromEnvironment, variable, r.in.env(variable))
	}
	if p.has(profileKey) {
		list = append(list, r.file.values[p.name]...)
	} else {
		list = append(list, r.file.values[sectionParameters+"."+p.name]...)
	}
	if _, ok := r.suite[FromLauncher][p.name]; ok {
		list = slices.DeleteFunc(list, func(s setting) bool { return s.text == "auto" })
	}
	for kind := FromLauncher; kind >= FromBenchmark; kind-- {
		if s, ok := r.suite[kind][p.name]; ok {
			list = append(list, s)
		}
	}
	if text, why := r.ofObjects(p.name); text != "" {
		add(FromDefault, why, text)
	}
	switch d := cmp.Or(r.v.Division, Quick); { // none while the division itself is being decided
	case p.has(profileKey):
	case p.uniform():
		add(FromDefault, "", p.def[d])
	default:
		add(FromDivision, string(d), p.def[d])
	}
	return list
}

// violate reports what was given for a parameter; required completes "must be …".
func (r *resolver) violate(p *parameter, given setting, required string) {
	name := "-" + p.name
	if p.has(profileKey) {
		name = p.name
	}
	r.bad = append(r.bad, violation(name, given, required))
}

// refuse reports the value in force.
func (r *resolver) refuse(name, required string) {
	p := r.v.row(name)
	r.violate(p, setting{p.value.String(), p.given.origin}, required)
}

// want refuses the value in force of a parameter unless it is right.
func (r *resolver) want(right bool, name, required string) {
	if !right && !r.v.row(name).refused {
		r.refuse(name, required)
	}
}
