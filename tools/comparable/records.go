package comparable

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"kvbench/tools/input"
)

// Reader tells the settings of records. The zero value is ready to use, by one goroutine at a time.
type Reader struct {
	config []benchfmt.Config // the last one read
	list   []Setting         // of it
}

// Of are the settings of a record, each name once: of its result file, else of its configuration lines. Records without a
// result file that share their lines share the list, which is not to be changed.
func (r *Reader) Of(rec *input.Record) []Setting {
	if len(rec.Config) == 0 {
		r.config, r.list = nil, nil
	} else if len(r.config) != len(rec.Config) || &r.config[0] != &rec.Config[0] {
		r.config, r.list = rec.Config, ofConfig(rec.Config)
	}
	if rec.Result == nil && !rec.Python {
		return r.list
	}
	own := OfPython()
	if !rec.Python {
		own = OfResult(rec.Result)
	}
	list := slices.Clone(r.list)
	for _, s := range own {
		list = slices.DeleteFunc(list, func(have Setting) bool { return have.Name == s.Name })
		list = append(list, s)
	}
	return list
}

// ofConfig are the settings that benchmark text tells. Text of this suite says "simulated: true" where that is so.
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
		if Matters(line.Key) {
			list = append(list, Setting{line.Key, value})
		}
	}
	if time == InfinitelyFast && device {
		time = DeviceModel
	}
	if ours || time != Measured {
		list = append(list, Setting{Simulated, time})
	}
	return list
}

// Simulation tells how a record was simulated: Measured when it was not, empty when nobody says.
func (r *Reader) Simulation(rec *input.Record) string {
	for _, s := range r.Of(rec) {
		if s.Name == Simulated {
			return s.Value
		}
	}
	return ""
}

// IsSimulated tells whether a record is of a run in virtual time.
func (r *Reader) IsSimulated(rec *input.Record) bool {
	how := r.Simulation(rec)
	return how != "" && how != Measured
}

// Differ says in which of the settings that define the numbers two sets of trials of one benchmark differ: "I/O is direct
// and buffered". What text does not tell is the default of its division; a setting that one side knows in no way is no
// difference. Results with a difference are shown side by side but never compared.
func Differ(d *Defaults, bench string, a, b []*input.Record) string {
	x, y := d.values(bench, a), d.values(bench, b)
	var parts []string
	for _, name := range defining {
		if name == IO && len(x[IOUsed]) > 0 && len(y[IOUsed]) > 0 {
			continue // what was granted counts, not what was asked for
		}
		if v, w := x[name], y[name]; len(v) > 0 && len(w) > 0 && !slices.Equal(v, w) {
			parts = append(parts, fmt.Sprintf("%s is %s and %s", titles[name], strings.Join(v, "+"), strings.Join(w, "+")))
		}
	}
	return strings.Join(parts, ", ")
}

// values are the values of each defining setting over all trials, sorted.
func (d *Defaults) values(bench string, trials []*input.Record) map[string][]string {
	out := map[string][]string{}
	var reader Reader
	for _, rec := range trials {
		told := map[string]string{}
		for _, s := range append(OfName(bench), reader.Of(rec)...) {
			told[s.Name] = s.Value
		}
		missing := map[string]string(nil)
		if rec.Result == nil && !rec.Python {
			missing = d.Of(bench, told[Division])
		}
		for _, name := range defining {
			v, ok := told[name]
			if !ok {
				v, ok = missing[name]
			}
			if ok && !slices.Contains(out[name], v) {
				out[name] = append(out[name], v)
			}
		}
	}
	for _, v := range out {
		slices.Sort(v)
	}
	return out
}
