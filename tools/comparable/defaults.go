package comparable

import (
	"flag"
	"strings"

	"kvbench/kvbench"
	"kvbench/params"
)

// Defaults keeps what holds of each benchmark and division when nobody sets anything: benchmark text names only what the
// user changed. The zero value is ready to use, by one goroutine at a time.
type Defaults struct {
	known map[[2]string]map[string]string
}

// Of are the settings of a benchmark (without GOMAXPROCS) in a division, by name; nil for a division that is none of ours.
// The map is shared and not to be changed.
func (d *Defaults) Of(bench, division string) map[string]string {
	base, _, _ := strings.Cut(strings.TrimPrefix(bench, "Benchmark"), "/")
	key := [2]string{base, division}
	m, known := d.known[key]
	if !known {
		if d.known == nil {
			d.known = make(map[[2]string]map[string]string)
		}
		m = defaults(base, division)
		d.known[key] = m
	}
	return m
}

func defaults(base, division string) map[string]string {
	b, ok := params.Benchmark(base)
	if !ok {
		b = params.Bench{}
	}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	set := params.Register(fs)
	if division == "" || fs.Parse([]string{"-division=" + division}) != nil {
		return nil
	}
	v, err := set.Resolve(params.Inputs{Bench: b, Base: "/"})
	if err != nil {
		return nil
	}
	d := map[string]string{WriteDevice: kvbench.WriteDeviceTransfer}
	if v.Division == params.Closed {
		d[WriteDevice] = kvbench.WriteDeviceFlush
	}
	for _, p := range v.Parameters() {
		if params.Comparable(p.Name) {
			d[p.Name] = p.Value
		}
	}
	return d
}
