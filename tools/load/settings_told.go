package load

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
)

// SettingsReader tells the settings of records. The zero value is ready to use, by one goroutine
// at a time. It keeps what it read last and the defaults of each benchmark, because a text has one
// configuration for thousands of lines.
type SettingsReader struct {
	config   []benchfmt.Config // the last one read: thousands of lines share one
	list     []Setting         // of it
	defaults defaults
}

// Of are the settings of a record, each name once: of its result file, else of its configuration
// lines. Records without a result file that share their lines share the list, which is not to be
// changed.
func (r *SettingsReader) Of(rec *Record) []Setting {
	if len(rec.Config) == 0 {
		r.config, r.list = nil, nil
	} else if len(r.config) != len(rec.Config) || &r.config[0] != &rec.Config[0] {
		r.config, r.list = rec.Config, ofConfig(rec.Config)
	}
	if rec.Result == nil && !rec.Python {
		return r.list
	}
	// What the file says replaces what the lines say: the lines are those of the whole text.
	own := OfPython()
	if !rec.Python {
		own = OfResult(rec.Result)
	}
	list := slices.DeleteFunc(slices.Clone(r.list), func(have Setting) bool {
		return slices.ContainsFunc(own, func(s Setting) bool { return s.Name == have.Name })
	})
	return append(list, own...)
}

// Add takes a record's settings into those of its benchmark.
func (r *SettingsReader) Add(s *Settings, rec *Record) {
	told := r.Of(rec)
	if rec.Result != nil || rec.Python {
		s.add(told, nil)
		return
	}
	s.add(told, r.defaults.of(rec.Name, find(told, Division)))
}

// ofConfig are the settings that benchmark text tells. Text of this suite says "simulated: true"
// where that is so.
func ofConfig(config []benchfmt.Config) (list []Setting) {
	time, ours, device := Measured, false, false
	for _, line := range config {
		value := string(line.Value)
		switch line.Key {
		case Simulated:
			if value == "true" {
				time = InfinitelyFast
			}
			continue
		case "simulate-device":
			device = value != "" && value != "–"
		case Format:
			ours = true
		}
		if matters(line.Key) {
			list = append(list, Setting{line.Key, value})
		}
	}
	if time == InfinitelyFast && device {
		time = DeviceModel
	}
	// Text of other programs says nothing of virtual time, and need not.
	if ours || time != Measured {
		list = append(list, Setting{Simulated, time})
	}
	return list
}

// find is the value of a setting in a list, empty where it is not told.
func find(list []Setting, name string) string {
	for _, s := range list {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

// Simulation tells how a record was simulated: Measured when it was not, empty when nobody says.
func (r *SettingsReader) Simulation(rec *Record) string { return find(r.Of(rec), Simulated) }

// IsSimulated tells whether a record is of a run in virtual time.
func (r *SettingsReader) IsSimulated(rec *Record) bool {
	how := r.Simulation(rec)
	return how != "" && how != Measured
}

// defaults keeps what holds of each benchmark and division when nobody sets anything: benchmark
// text names only what the user changed.
type defaults map[[2]string]map[string]string

// of are the settings of a benchmark in a division, by name; nil for a division that is none of
// ours. The map is shared and not to be changed.
func (d *defaults) of(bench, division string) map[string]string {
	base, _, _ := strings.Cut(strings.TrimPrefix(bench, "Benchmark"), "/")
	base, _ = SplitProcs(base)
	key := [2]string{base, division}
	m, known := (*d)[key]
	if !known {
		if *d == nil {
			*d = defaults{}
		}
		m = resolve(base, division)
		(*d)[key] = m
	}
	return m
}

// resolve asks the parameter table.
func resolve(base, division string) map[string]string {
	b, ok := params.Benchmark(base)
	if !ok {
		b = params.Bench{}
	}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	set := params.Register(fs)
	if division == "" || fs.Parse([]string{"-division=" + division}) != nil {
		return nil
	}
	// The parameter table itself answers, so that a default that changes changes here too.
	v, err := set.Resolve(params.Inputs{Bench: b, Base: "/"})
	if err != nil {
		return nil
	}
	m := map[string]string{WriteDevice: result.WriteDeviceTransfer}
	if v.Division == params.Closed {
		m[WriteDevice] = result.WriteDeviceFlush
	}
	for _, p := range v.Parameters() {
		if params.Comparable(p.Name) {
			m[p.Name] = fmt.Sprint(p.Value)
		}
	}
	return m
}
