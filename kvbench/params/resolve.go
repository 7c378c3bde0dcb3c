package params

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Inputs are what Resolve needs to know beside the flags. Only Base is required.
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

// Resolve decides every parameter and checks them all. The error is of type Violations and holds
// every problem at once. The values are returned in any case, with defaults where something was
// wrong, so that -help-parameters can be answered: they must not be run when the error is not nil.
// With a sweep every combination is checked too.
func (s *Set) Resolve(in Inputs) (*Values, error) {
	v, bad := s.resolve(in, nil)
	v.Points = []*Values{v}
	// A sweep may lead where no single value is wrong: each point is resolved as it will run.
	if len(v.Sweep) > 0 {
		v.Points = nil
		for _, point := range points(v.Sweep) {
			p, more := s.resolve(in, point)
			p.Point = pointName(v.Sweep, point)
			v.Points = append(v.Points, p)
			bad = bad.Merge(more)
		}
	}
	if len(bad) > 0 {
		return v, bad
	}
	return v, nil
}

func (s *Set) resolve(in Inputs, point map[string]string) (*Values, Violations) {
	v := newValues(in.Base)
	v.Bench = in.Bench
	r := &resolver{given: maps.Clone(s.given), point: point, in: in, file: &configFile{}, v: v}
	// Go's own flags count as typed ones; they have no other layer.
	if in.BenchTime != "" {
		r.given["benchtime"] = []string{in.BenchTime}
	}
	if in.Count != 0 {
		r.given["count"] = []string{strconv.Itoa(in.Count)}
	}
	// The YAML file comes before anything else, because it may hold the division.
	if r.decide(v.row("config")); v.ConfigFile != "" {
		r.file = readConfig(v.ConfigFile)
	}
	if r.decide(v.row("division")); v.ConfigFile != "" && v.Division == Closed {
		// The file's contents do not matter any more: messages about them would only hide this one.
		r.refuse("config", "absent: the closed division takes no configuration file")
		r.file = &configFile{}
	}
	// From here on the division is known, and with it defaults and the benchmark's size.
	r.bad = append(r.bad, r.file.bad...)
	r.bench = in.Bench.settings(v.Division)
	var unplaced string
	r.launched, unplaced = launched(in.env)
	for i := range v.rows {
		switch p := &v.rows[i]; p.name {
		case "config", "division":
		case "sweep":
			r.sweep(p)
		default:
			r.decide(p)
		}
	}
	// One directory for all benchmarks of a process, or their trials could not be found together.
	if v.ResultsDir == "" {
		stamp := "<time>-<pid>"
		if !in.Start.IsZero() {
			stamp = fmt.Sprintf("%s-%d", in.Start.Format("20060102-150405"), in.PID)
		}
		v.ResultsDir = filepath.Join(in.Base, "kvbench-results", stamp)
	}
	// What parameters mean together; each step may rely on those before it.
	r.profile()
	r.model()
	r.place(unplaced)
	r.check()
	r.closed()
	return v, r.bad
}

// resolver is one resolution under way.
type resolver struct {
	given    map[string][]string
	point    map[string]string // of the sweep, nil for the values that hold at none
	in       Inputs
	file     *configFile
	launched map[string]setting // rank, ranks and local-ranks, when a launcher sets them
	bench    map[string]string  // the benchmark's settings in this division
	v        *Values
	bad      Violations
}

// decide takes the strongest layer, if there is any. A text that cannot be read is reported and the
// next layer is taken, so that checks of other parameters against this one still make sense.
func (r *resolver) decide(p *parameter) {
	for _, p.given = range r.layers(p) {
		err := p.value.Set(p.given.text)
		if err == nil {
			return
		}
		p.refused = true
		r.violate(p, p.given, err.Error())
		p.given = setting{}
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
	add(FromFlag, "", r.given[p.name]...)
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
	if p.has(profileKey) {
		list = append(list, r.file.values[p.name]...)
	} else {
		list = append(list, r.file.values[sectionParameters+"."+p.name]...)
	}
	if s, ok := r.launched[p.name]; ok {
		list = slices.DeleteFunc(list, func(s setting) bool { return s.text == "auto" })
		list = append(list, s)
	}
	if text, ok := r.bench[p.name]; ok {
		add(FromBenchmark, r.in.Bench.Name, text)
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

// sweep takes all sweeps of the strongest layer that has any.
func (r *resolver) sweep(p *parameter) {
	all := r.layers(p)
	p.given = all[0]
	// The last is the default, which is none.
	given := slices.DeleteFunc(all[:len(all)-1],
		func(s setting) bool { return s.origin.Kind != p.given.origin.Kind })
	texts := make([]string, len(given))
	for i, s := range given {
		texts[i] = s.text
	}
	// Recorded as it was typed: the axes are in the names of the sub-benchmarks.
	r.v.sweep = strings.Join(texts, " ")
	r.v.Sweep = r.axes(p, given)
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
