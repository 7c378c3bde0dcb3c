package curve

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"kvbench/kvbench/units"
	"kvbench/workloads/formats"
	"kvbench/workloads/traces"
)

// Formats returns the names of the formats of block traces.
func Formats() string { return strings.Join(formats.BlockFormats(), ", ") }

// traceFlags are the flags of the commands that read block traces. They mean the same as the
// benchmarks'.
type traceFlags struct {
	start     string
	malformed bool  // accept any share of malformed rows
	users     int   // number of agent sessions that are live at a time
	seed      int64 // of the session start times
	typed     *flag.FlagSet
}

// newTraceFlags adds the flags to a flag set.
func newTraceFlags(fs *flag.FlagSet) *traceFlags {
	f := &traceFlags{typed: fs}
	fs.StringVar(&f.start, "trace-start", "0s", "")
	fs.BoolVar(&f.malformed, "trace-allow-malformed", false, "")
	fs.IntVar(&f.users, "num-users", 100, "") // as in the open division
	fs.Int64Var(&f.seed, "seed", 42, "")
	return f
}

// config finds the files as the benchmarks do. The configuration replays them once at the recorded
// times. It returns every mistake in one error that unwraps to all. example is a correct command line.
func (f *traceFlags) config(paths []string, example string) (cfg traces.Config, err error) {
	start, err := duration("trace-start", f.start)
	problems := []error{err}
	if f.users < 1 || f.users > 100000 {
		problems = append(problems, fmt.Errorf("-num-users: must be 1 to 100000, given %d", f.users))
	}
	if f.seed < 0 {
		problems = append(problems, fmt.Errorf("-seed: must be 0 or more, given %d", f.seed))
	}
	if len(paths) == 0 {
		problems = append(problems, fmt.Errorf("no trace: name files, directories or glob patterns of "+
			"block traces, for example: kvreport %s", example))
	}
	cfg = traces.Config{Cycles: 1, Speedup: 1, Start: start, AllowMalformed: f.malformed, Live: f.users,
		Seed: uint64(f.seed)}
	for _, p := range paths {
		files, err := formats.Blocks.Files(p)
		problems = append(problems, err)
		cfg.Paths = append(cfg.Paths, files...)
	}
	f.typed.Visit(func(typed *flag.Flag) { // the default is not refused
		if typed.Name == "num-users" {
			problems = append(problems, formats.OnlySessions("-num-users", cfg.Paths))
		}
	})
	return cfg, errors.Join(problems...)
}

// duration parses the value of a flag.
func duration(flag, text string) (time.Duration, error) {
	d, err := units.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("0s or more")
	}
	if err != nil {
		return 0, fmt.Errorf("-%s: must be %w, given %s", flag, err, text)
	}
	return d, nil
}
