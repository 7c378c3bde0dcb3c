package curve

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
	"kvbench/workloads/formats"
	"kvbench/workloads/traces"
)

// Formats returns the names of the formats of block traces.
func Formats() string { return strings.Join(formats.BlockFormats(), ", ") }

// parameters are flags of a command that are parameters of BlockTrace. They mean the same and are checked
// alike.
type parameters struct{ set *params.Set }

// newParameters adds the named parameters, and those of reading a trace, to a flag set. Defaults are those
// of the open division.
func newParameters(fs *flag.FlagSet, names ...string) parameters {
	all := flag.NewFlagSet("", flag.ContinueOnError)
	p := parameters{params.Register(all)}
	_ = all.Set("division", string(params.Open)) // cannot fail
	for _, name := range append(names, "trace-start", "trace-allow-malformed", "num-users", "seed") {
		fs.Var(all.Lookup(name).Value, name, "")
	}
	return p
}

// resolve returns the values and the configuration that replays the traces once at the recorded times. It
// reads only names of files. The error unwraps to every mistake. example is a correct command line.
func (p parameters) resolve(paths []string, example string) (*params.Values, traces.Config, error) {
	bench, _ := params.Benchmark("BlockTrace")
	base, err := os.Getwd()
	if err != nil {
		return nil, traces.Config{}, err
	}
	v, err := p.set.Resolve(params.Inputs{Bench: bench, Base: base})
	if len(paths) == 0 {
		err = errors.Join(err, fmt.Errorf("no trace: name files, directories or glob patterns of "+
			"block traces, for example: kvreport %s", example))
	}
	cfg := traces.Config{Cycles: 1, Speedup: 1, Start: v.TraceStart, Live: v.Users,
		AllowMalformed: v.TraceAllowMalformed, Seed: uint64(v.Seed)}
	for _, path := range paths {
		files, missing := formats.Blocks.Files(path)
		err = errors.Join(err, missing)
		cfg.Paths = append(cfg.Paths, files...)
	}
	if slices.Contains(p.set.Typed(), "num-users") {
		err = errors.Join(err, formats.OnlySessions("-num-users", cfg.Paths))
	}
	return v, cfg, err
}

// driveSize parses the size of a drive, with decimal units (GB, TB, PB) or binary units.
func driveSize(text string) (int64, error) {
	for name, unit := range map[string]float64{"GB": 1e9, "TB": 1e12, "PB": 1e15} {
		if number, ok := strings.CutSuffix(strings.ToUpper(text), name); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil || !(v*unit >= 1e6 && v*unit <= 1e18) {
				return 0, errors.New("a size such as 3.84TB or 960GB")
			}
			return int64(v * unit), nil
		}
	}
	n, err := units.ParseSize(text, 1)
	if err == nil && n < units.MiB { // a bare number would be bytes
		err = errors.New("a size such as 3.84TB or 3576GiB")
	}
	return n, err
}
