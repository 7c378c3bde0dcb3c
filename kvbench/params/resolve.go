package params

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"time"
)

// Resolve decides every parameter and checks them all. The error is of type Violations and holds
// every problem at once. The values are returned in any case, with defaults where something was
// wrong, so that -help-parameters can be answered: they must not be run when the error is not nil.
// With a sweep every combination of what the benchmark hears is checked too.
func (s *Set) Resolve(in Inputs) (*Values, error) {
	v, bad := s.resolve(in, nil)
	v.Points = []*Values{v}
	// A sweep may lead where no single value is wrong: each point is resolved as it will run.
	if all := v.Sweep; len(all) > 0 {
		points, more := s.points(in, all)
		// A switch may be swept too: what is heard at one point is swept.
		v.Sweep, v.Unswept = nil, nil
		for _, a := range all {
			if in.Bench.Name == "" ||
				slices.ContainsFunc(points, func(p *Values) bool { return p.Hears(a.Key) }) {
				v.Sweep = append(v.Sweep, a)
			} else {
				v.Unswept = append(v.Unswept, a)
			}
		}
		if len(v.Unswept) > 0 { // or the benchmark would repeat itself under other names
			points, more = s.points(in, v.Sweep)
		}
		v.Points, bad = points, bad.Merge(more)
		for _, p := range points {
			p.Sweep, p.Unswept = v.Sweep, v.Unswept
		}
	}
	if len(bad) > 0 {
		return v, bad
	}
	return v, nil
}

// IOTimeout is -io-timeout as flag or environment give it, 0 where they do not, or not rightly:
// what can be known before any file is read.
func (s *Set) IOTimeout(in Inputs) time.Duration {
	v := newValues(in.Base)
	r := &resolver{given: s.given, in: in, file: &configFile{}, v: v}
	r.decide(v.row("io-timeout"))
	return v.IOTimeout
}

// points are the values at each point of a sweep: at the only one without axes.
func (s *Set) points(in Inputs, axes []Axis) (list []*Values, bad Violations) {
	for _, point := range points(axes) {
		p, more := s.resolve(in, point)
		p.Point = pointName(axes, point)
		list, bad = append(list, p), bad.Merge(more)
	}
	return list, bad
}

func (s *Set) resolve(in Inputs, point map[string]string) (*Values, Violations) {
	v := newValues(in.Base)
	v.Bench = in.Bench
	r := &resolver{given: maps.Clone(s.given), point: point, in: in, file: &configFile{}, v: v}
	// Go's own flags count as typed ones; they have no other layer.
	if in.BenchTime != "" {
		r.given["benchtime"] = []string{in.BenchTime}
	}
	if in.Count != "" {
		r.given["count"] = []string{in.Count}
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
	bench := in.Bench.settings(v.Division)
	if r.decide(v.row("rehearse")); v.Rehearse {
		r.want(v.Division == Closed, "rehearse", "false in the "+string(v.Division)+
			" division, whose windows may be short (it goes with -division closed)")
		maps.Copy(bench, rehearsal)
	}
	r.set(FromBenchmark, in.Bench.Name, bench)
	r.launched()
	r.decide(v.row("profile"))
	if v.OfSessions() {
		r.set(FromProfile, v.ProfileName, settingsOfProfile(v.ProfileName, v.Division))
	}
	r.imitate()
	for i := range v.rows {
		switch p := &v.rows[i]; {
		case p.name == "config", p.name == "division", p.name == "profile",
			p.name == "rehearse",
			slices.Contains(decidedFirst, p.name):
		case p.name == "sweep":
			r.sweep(p)
		default:
			r.decide(p)
		}
	}
	if v.ResultsDir == "" {
		stamp := cmp.Or(in.Stamp, "<time>-<pid>")
		v.ResultsDir = filepath.Join(in.Base, "kvbench-results", stamp)
	}
	// What parameters mean together; each step may rely on those before it.
	r.profile()
	r.model()
	r.pages()
	r.place()
	r.sessions()
	r.check()
	r.closed()
	return v, r.bad
}
