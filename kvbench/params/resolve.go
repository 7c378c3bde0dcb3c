package params

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Inputs are what Resolve needs to know beside the flags. Only Base is required.
type Inputs struct {
	// Bench is the benchmark to resolve for; the zero Bench stands for none: division defaults
	// only.
	Bench Bench
	// Combination is one point of the sweep (see Values.Combinations); empty for the base values.
	Combination Combination
	// Base is the absolute directory in which the command was typed: relative paths of flags,
	// environment and file mean it.
	Base string
	// Env looks up a variable, as os.LookupEnv does; nil is an empty environment. An empty variable
	// counts as not set.
	Env func(string) (string, bool)
	// BenchTime is -test.benchtime as it was typed, "" when it was not; Count is -test.count, 0
	// when it was not typed.
	BenchTime string
	Count     int
	// Start and PID name the default results directory; give the process's own, so that all
	// benchmarks share one.
	Start time.Time
	PID   int
	// CheckCacheDir refuses a directory in which the suite must not work, before anything is made;
	// nil admits any.
	CheckCacheDir func(dir string) error
}

// Resolve decides every parameter and checks them all. The error is of type Violations and holds
// every problem at once. The values are returned in any case, with defaults where something was
// wrong, so that -help-parameters can be answered: they must not be run when the error is not nil.
// With a sweep every combination is checked too.
func (s *Set) Resolve(in Inputs) (*Values, error) {
	v, bad := s.resolve(in)
	// A sweep may lead where no single value is wrong: each point is resolved as it will run.
	if len(in.Combination) == 0 && len(v.Sweep) > 0 {
		for _, c := range v.Combinations() {
			in.Combination = c
			_, more := s.resolve(in)
			bad = bad.Merge(more)
		}
	}
	if len(bad) > 0 {
		return v, bad
	}
	return v, nil
}

func (s *Set) resolve(in Inputs) (*Values, Violations) {
	if in.Env == nil {
		in.Env = func(string) (string, bool) { return "", false }
	}
	if in.CheckCacheDir == nil {
		in.CheckCacheDir = func(string) error { return nil }
	}
	r := &resolver{set: s, in: in, file: &configFile{}, v: newValues(in.Base),
		refused: make(map[string]bool)}
	r.v.Bench = in.Bench
	r.run()
	return r.v, r.bad
}

// resolver is one resolution under way.
type resolver struct {
	set     *Set
	in      Inputs
	file    *configFile
	bench   map[string]string // the benchmark's settings in this division
	v       *Values
	bad     Violations
	refused map[string]bool // parameters that hold a default because what was given is wrong
}

func (r *resolver) run() {
	// The YAML file comes before anything else, because it may hold the division.
	if r.decide("config"); r.v.ConfigFile != "" {
		r.file = readConfig(r.v.ConfigFile)
	}
	if r.decide("division"); r.v.ConfigFile != "" && r.v.Division == Closed {
		// The file's contents do not matter any more: messages about them would only hide this one.
		r.refuse("config", "absent: the closed division takes no configuration file")
		r.file = &configFile{}
	}
	// From here on the division is known, and with it defaults and the benchmark's size.
	r.bad = append(r.bad, r.file.bad...)
	r.bench = r.in.Bench.settings(r.v.Division)
	for _, p := range r.v.rows {
		switch p.name {
		case "config", "division":
		case "sweep":
			r.sweep()
		default:
			r.decide(p.name)
		}
	}
	// What parameters mean together; each step may rely on those before it.
	r.profile()
	r.model()
	r.place()
	r.results()
	r.check()
	r.closed()
}

// decide takes the strongest layer. A text that cannot be read is reported and the next layer is
// taken, so that checks of other parameters against this one still make sense.
func (r *resolver) decide(name string) {
	p := r.v.row(name)
	for _, s := range r.layers(p) {
		if err := p.value.Set(s.text); err != nil {
			r.refused[name] = true
			r.violate(name, s, err.Error())
			continue
		}
		r.v.origins[name] = s.origin
		return
	}
}

// layers lists what was given for a parameter, strongest first. The division's default is always
// there.
func (r *resolver) layers(p *parameter) []setting {
	var list []setting
	add := func(text string, ok bool, kind OriginKind, where string) {
		if ok {
			list = append(list, setting{text, Origin{kind, where}})
		}
	}
	switch {
	// Go's own flags have no other layer: the testing package reads them before us.
	case p.name == "benchtime":
		add(r.in.BenchTime, r.in.BenchTime != "", FromFlag, "")
	case p.name == "count":
		add(strconv.Itoa(r.in.Count), r.in.Count != 0, FromFlag, "")
	default:
		text, ok := r.in.Combination.find(p.name)
		add(text, ok, FromSweep, "")
		// Of a repeated flag the last counts, as everywhere in Go.
		texts := r.set.given[p.name]
		add(strings.Join(texts[max(0, len(texts)-1):], ""), len(texts) > 0, FromFlag, "")
		text, ok = r.environment(p)
		add(text, ok, FromEnvironment, EnvName(p.name))
		if s, ok := r.file.parameters[p.name]; ok {
			list = append(list, s)
		}
		text, ok = r.bench[p.name]
		add(text, ok, FromBenchmark, r.in.Bench.Name)
	}
	return append(list, r.fallback(p))
}

// environment is a parameter's variable; an empty one counts as not set.
func (r *resolver) environment(p *parameter) (text string, ok bool) {
	if p.has(action) {
		return "", false
	}
	text, ok = r.in.Env(EnvName(p.name))
	return text, ok && text != ""
}

// fallback is the division's default.
func (r *resolver) fallback(p *parameter) setting {
	d := cmp.Or(r.v.Division, Quick) // none while the division itself is being decided
	origin := Origin{Kind: FromDefault}
	if !p.uniform() {
		origin = Origin{FromDivision, string(d)}
	}
	return setting{p.def[d.index()], origin}
}

// sweep takes all sweeps of the strongest layer that has any.
func (r *resolver) sweep() {
	p := r.v.row("sweep")
	texts := r.file.sweeps
	if text, ok := r.environment(p); ok {
		texts = nil
		for _, one := range splitSweeps(text) {
			texts = append(texts, setting{one, Origin{FromEnvironment, EnvName(p.name)}})
		}
	}
	if given := r.set.given[p.name]; len(given) > 0 {
		texts = nil
		for _, text := range given {
			texts = append(texts, setting{text, Origin{Kind: FromFlag}})
		}
	}
	r.v.Sweep = parseSweep(texts, r.in.Base,
		func(s setting, required string) { r.violate(p.name, s, required) })
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = t.text
		r.v.origins[p.name] = t.origin
	}
	// Recorded as it was typed: the axes are in the names of the sub-benchmarks.
	r.v.sweep = strings.Join(all, " ")
}

// violate reports what was given for a parameter; required completes "must be …".
func (r *resolver) violate(name string, given setting, required string) {
	r.bad = append(r.bad, Violation{Name: "-" + name, Required: required, Given: given.text,
		Origin: given.origin})
}

// refuse reports the value in force.
func (r *resolver) refuse(name, required string) {
	r.violate(name, setting{r.v.Text(name), r.v.Origin(name)}, required)
}

// results fills in the default results directory.
func (r *resolver) results() {
	// One directory for all benchmarks of a process, or their trials could not be found together.
	if r.v.ResultsDir != "" {
		return
	}
	stamp := "<time>-<pid>"
	if !r.in.Start.IsZero() {
		stamp = fmt.Sprintf("%s-%d", r.in.Start.Format("20060102-150405"), r.in.PID)
	}
	r.v.ResultsDir = filepath.Join(r.in.Base, "kvbench-results", stamp)
}
