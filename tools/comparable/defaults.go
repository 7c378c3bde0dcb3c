package comparable

import (
	"flag"
	"strings"

	"kvbench/kvbench"
	"kvbench/params"
)

// defaults keeps what holds of each benchmark and division when nobody sets anything: benchmark text
// names only what the user changed.
type defaults map[[2]string]map[string]string

// of are the settings of a benchmark in a division, by name; nil for a division that is none of ours.
// The map is shared and not to be changed.
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
	v, err := set.Resolve(params.Inputs{Bench: b, Base: "/"})
	if err != nil {
		return nil
	}
	m := map[string]string{WriteDevice: kvbench.WriteDeviceTransfer}
	if v.Division == params.Closed {
		m[WriteDevice] = kvbench.WriteDeviceFlush
	}
	for _, p := range v.Parameters() {
		if params.Comparable(p.Name) {
			m[p.Name] = p.Value
		}
	}
	return m
}

// SplitProcs cuts the -GOMAXPROCS suffix of a benchmark's name, which the testing package appends.
func SplitProcs(name string) (base, procs string) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 || i == len(name)-1 || strings.Trim(name[i+1:], "0123456789") != "" {
		return name, ""
	}
	return name[:i], name[i:]
}
