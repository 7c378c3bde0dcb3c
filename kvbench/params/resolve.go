package params

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"time"
)

// Resolve decides and checks all parameters. The error is of type Violations and has all problems.
// Resolve also returns values after an error, with defaults for refused texts, for -help-parameters. The
// caller must not run these values. With a sweep Resolve also checks every combination that applies to
// the benchmark.
func (s *Set) Resolve(in Inputs) (*Values, error) {
	v, bad := s.resolve(in, nil)
	v.Points, v.Point = []*Values{v}, in.Job.point("")
	// A sweep may lead where no single value is wrong: each point is resolved as it will run.
	if axes := v.Sweep; len(axes) > 0 {
		points, more := s.points(in, axes)
		// A condition may be swept too: what applies at one point is swept.
		v.Sweep, v.Unswept = nil, nil
		for _, a := range axes {
			if in.Bench.Name == "" ||
				slices.ContainsFunc(points, func(p *Values) bool { return p.Applies(a.Key) }) {
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

// IOTimeout is -io-timeout as a valid flag or variable gives it, else 0: what can be known before
// any file is read.
func (s *Set) IOTimeout(in Inputs) time.Duration {
	r := s.resolver(in, nil)
	r.decide(find("io-timeout"))
	return r.v.IOTimeout
}

// points are the values at each point of a sweep: at the only one without axes.
func (s *Set) points(in Inputs, axes []Axis) (list []*Values, bad Violations) {
	for _, point := range points(axes) {
		p, more := s.resolve(in, point)
		p.Point = in.Job.point(pointName(axes, point))
		list, bad = append(list, p), bad.Merge(more)
	}
	return list, bad
}

func (s *Set) resolve(in Inputs, point map[string]string) (*Values, Violations) {
	r := s.resolver(in, point)
	v := r.v
	// The YAML file comes before anything else, because it may hold the division.
	file := &configFile{}
	if r.decide(find("config")); v.ConfigFile != "" {
		file = readConfig(v.ConfigFile)
		r.layers[FromFile] = file.values
	}
	if r.decide(find("division")); v.ConfigFile != "" && v.Division == Closed {
		// The file's contents do not matter any more: messages about them would only hide this one.
		r.refuse("config", "absent: the closed division takes no configuration file")
		file, r.layers[FromFile] = &configFile{}, nil
	}
	r.bad, v.Models = append(r.bad, file.bad...), file.models
	// From here on the division is known, and with it defaults and the benchmark's size.
	bench := make(map[string]string)
	maps.Copy(bench, in.Bench.set[v.Division])
	if r.decide(find("rehearse")); v.Rehearse {
		maps.Copy(bench, rehearsal)
	}
	r.set(FromBenchmark, in.Bench.Name, bench)
	r.launched()
	if r.decide(find("profile")); v.OfSessions() {
		r.set(FromProfile, v.ProfileName, settingsOfProfile(v.ProfileName, v.Division))
	}
	r.imitate()
	for _, p := range slices.Concat(table, keys) {
		if _, decided := v.given[p.name]; decided {
			continue
		}
		if r.decide(p); p.name == "sweep" {
			r.sweep(p)
		}
	}
	v.GenerationTime = v.GenerationTimes[slices.Index(generationModes, v.GenerationMode)]
	v.Profile.RAG.Uniform = v.Retrieval == "uniform"
	if v.ResultsDir == "" {
		v.ResultsDir = filepath.Join(in.Base, "kvbench-results", cmp.Or(in.Stamp, "<time>-<pid>"))
	}
	// What parameters mean together; each step may rely on those before it.
	r.model()
	r.pages()
	r.place()
	r.check()
	r.closed()
	return v, r.bad
}
