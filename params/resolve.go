package params

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// Inputs are what Resolve needs to know beside the flags. Only Base is required.
type Inputs struct {
	// Bench is the benchmark to resolve for; the zero Bench stands for none: division defaults only.
	Bench Bench
	// Combination is one point of the sweep (see Values.Combinations); empty for the base values.
	Combination Combination
	// Base is the absolute directory in which the command was typed: relative paths of flags, environment and file mean it.
	Base string
	// Env looks up a variable, as os.LookupEnv does; nil is an empty environment. An empty variable counts as not set.
	Env func(string) (string, bool)
	// BenchTime is -test.benchtime as it was typed, "" when it was not; Count is -test.count, 0 when it was not typed.
	BenchTime string
	Count     int
	// Start and PID name the default results directory; give the process's own, so that all benchmarks share one.
	Start time.Time
	PID   int
	// CheckCacheDir refuses a directory in which the suite must not work, before anything is made; nil admits any.
	CheckCacheDir func(dir string) error
}

// Resolve decides every parameter and checks them all. The error is of type Violations and holds every problem at once. The
// values are returned in any case, with defaults where something was wrong, so that -help-parameters can be answered: they
// must not be run when the error is not nil. With a sweep every combination is checked too.
func (s *Set) Resolve(in Inputs) (*Values, error) {
	v, bad := s.resolve(in)
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
	r := &resolver{set: s, in: in, file: &configFile{},
		v: &Values{Bench: in.Bench, texts: make(map[string]setting, len(table))}}
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
	r.refused = make(map[string]bool)
	r.loadFile()
	r.decide(byName["division"])
	if r.v.ConfigFile != "" && r.v.Division == Closed {
		// The file's contents do not matter any more: messages about them would only hide this one.
		r.violate(byName["config"], setting{r.v.ConfigFile, r.v.Origin("config")}, "absent: the closed division takes no configuration file")
		r.file = &configFile{}
	}
	r.bad = append(r.bad, r.file.bad...)
	r.bench = r.in.Bench.settings(r.v.Division)
	for i := range table {
		if p := &table[i]; p.name != "division" && p.name != "config" {
			r.decide(p)
		}
	}
	r.profile()
	r.model()
	r.place()
	r.results()
	r.check()
	r.closed()
}

// loadFile finds the YAML file before anything else, because it may hold the division.
func (r *resolver) loadFile() {
	p := byName["config"]
	r.decide(p)
	if r.v.ConfigFile != "" {
		r.file = readConfig(r.v.ConfigFile)
	}
}

// layers lists what was given for a parameter, strongest first. The division's default is always there.
func (r *resolver) layers(p *parameter) []setting {
	var list []setting
	if p.goFlag {
		return append(list, r.goFlag(p)...)
	}
	if text, ok := r.in.Combination.find(p.name); ok {
		list = append(list, setting{text, Origin{Kind: FromSweep}})
	}
	if texts := r.set.given[p.name]; len(texts) > 0 {
		list = append(list, setting{texts[len(texts)-1], Origin{Kind: FromFlag}})
	}
	if !p.action {
		if text, ok := r.in.Env(EnvName(p.name)); ok && text != "" {
			list = append(list, setting{text, Origin{FromEnvironment, EnvName(p.name)}})
		}
	}
	if s, ok := r.file.parameters[p.name]; ok {
		list = append(list, s)
	}
	if text, ok := r.bench[p.name]; ok {
		list = append(list, setting{text, Origin{FromBenchmark, r.in.Bench.Name}})
	}
	return append(list, r.fallback(p))
}

// goFlag lists the layers of a parameter that belongs to the testing package.
func (r *resolver) goFlag(p *parameter) []setting {
	list := []setting{r.fallback(p)}
	given := r.in.BenchTime
	if p.name == "count" && r.in.Count != 0 {
		given = strconv.Itoa(r.in.Count)
	} else if p.name == "count" {
		given = ""
	}
	if given != "" {
		list = slices.Insert(list, 0, setting{given, Origin{Kind: FromFlag}})
	}
	return list
}

// fallback is the division's default.
func (r *resolver) fallback(p *parameter) setting {
	d := r.v.Division
	if d == "" {
		d = Quick // while the division itself is being decided
	}
	origin := Origin{Kind: FromDefault}
	if p.def != same(p.def[0]) {
		origin = Origin{FromDivision, string(d)}
	}
	return setting{p.def[d.index()], origin}
}

// decide takes the strongest layer. A text that cannot be read is reported and the next layer is taken, so that checks of
// other parameters against this one still make sense.
func (r *resolver) decide(p *parameter) {
	if p.kind == kindSweep {
		r.sweep(p)
		return
	}
	for _, s := range r.layers(p) {
		v, err := p.parse(s.text, r.in.Base)
		if err != nil {
			r.refused[p.name] = true
			r.violate(p, s, err.Error())
			continue
		}
		p.store(v, r.v)
		r.v.texts[p.name] = setting{v.text, s.origin}
		return
	}
}

// sweep takes all sweeps of the strongest layer that has any.
func (r *resolver) sweep(p *parameter) {
	var texts []setting
	for _, text := range r.set.given[p.name] {
		texts = append(texts, setting{text, Origin{Kind: FromFlag}})
	}
	if text, ok := r.in.Env(EnvName(p.name)); ok && text != "" && len(texts) == 0 {
		for _, one := range splitSweeps(text) {
			texts = append(texts, setting{one, Origin{FromEnvironment, EnvName(p.name)}})
		}
	}
	if len(texts) == 0 {
		texts = r.file.sweeps
	}
	r.v.Sweep = parseSweep(texts, r.in.Base, func(s setting, required string) { r.violate(p, s, required) })
	s := r.fallback(p)
	for i, t := range texts {
		if i > 0 {
			s.text += " "
		}
		s = setting{s.text + t.text, t.origin}
	}
	r.v.texts[p.name] = s
}

// violate reports a parameter; required completes "must be …".
func (r *resolver) violate(p *parameter, s setting, required string) {
	r.bad = append(r.bad, Violation{Name: "-" + p.name, Required: required, Given: s.text, Origin: s.origin})
}

// results fills in the default results directory.
func (r *resolver) results() {
	if r.v.ResultsDir != "" {
		return
	}
	stamp := "<time>-<pid>"
	if !r.in.Start.IsZero() {
		stamp = fmt.Sprintf("%s-%d", r.in.Start.Format("20060102-150405"), r.in.PID)
	}
	r.v.ResultsDir = filepath.Join(r.in.Base, "kvbench-results", stamp)
	s := r.v.texts["results-dir"]
	s.text = r.v.ResultsDir
	r.v.texts["results-dir"] = s
}
