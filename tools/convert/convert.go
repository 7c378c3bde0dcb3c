package convert

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kvbench/kvbench/units"
	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/traces"
)

// Options are the command's flags. Flags that a benchmark has, too, mean the same.
type Options struct {
	tokens    int // per block, 0 = as recorded
	start     string
	malformed bool
	// Sessions that are live at a time, and the seed of the moments at which they begin: recorded
	// sessions have a clock each, and which of them met is not recorded.
	users int
	seed  int64
	// The flags as typed: a value does not show whether the user gave it.
	flags *pflag.FlagSet
}

// NewOptions adds the flags to a flag set.
func NewOptions(fs *pflag.FlagSet) *Options {
	o := &Options{flags: fs}
	fs.IntVar(&o.tokens, "block-tokens", 0, "")
	fs.StringVar(&o.start, "trace-start", "0s", "")
	fs.BoolVar(&o.malformed, "trace-allow-malformed", false, "")
	// As in the open division, so that the rows are those of a replay.
	fs.IntVar(&o.users, "num-users", 100, "")
	fs.Int64Var(&o.seed, "seed", 42, "")
	return o
}

// Check finds the files, as the benchmarks do, and every mistake in the options, before anything is
// written. All mistakes come in one error that unwraps to them.
func (o *Options) Check(paths []string) (cfg traces.Config, err error) {
	var problems []error
	if o.tokens < 0 || o.tokens > workloads.MaxTokens {
		problems = append(problems, fmt.Errorf("-block-tokens: must be 0 (as recorded) to %d, "+
			"given %d", workloads.MaxTokens, o.tokens))
	}
	start, err := units.ParseDuration(o.start)
	if err == nil && start < 0 {
		err = errors.New("0s or more")
	}
	if err != nil {
		problems = append(problems, fmt.Errorf("-trace-start: must be %w, given %s", err, o.start))
	}
	if o.users < 1 || o.users > 100000 {
		problems = append(problems, fmt.Errorf("-num-users: must be 1 to 100000, given %d",
			o.users))
	}
	if o.seed < 0 {
		problems = append(problems, fmt.Errorf("-seed: must be 0 or more, given %d", o.seed))
	}
	if len(paths) == 0 {
		problems = append(problems, errors.New("no trace: name files, directories or glob "+
			"patterns of block traces, for example: kvreport convert sessions -o sessions.jsonl"))
	}
	// Once, at the recorded times.
	cfg = traces.Config{Cycles: 1, Speedup: 1, Start: start, AllowMalformed: o.malformed,
		Live: o.users, Seed: uint64(o.seed)}
	for _, p := range paths {
		files, err := formats.Blocks.Files(p)
		if err != nil {
			problems = append(problems, err)
		}
		cfg.Paths = append(cfg.Paths, files...)
	}
	// A value does not show whether the user gave the flag; Visit does.
	o.flags.Visit(func(f *pflag.Flag) {
		if f.Name == "num-users" {
			problems = append(problems, formats.OnlySessions("-num-users", cfg.Paths))
		}
	})
	return cfg, errors.Join(problems...)
}

// Run writes the rows of the traces to w, and returns a summary of them, one line each. It reads
// and writes row by row; memory grows with the distinct blocks alone.
func (o *Options) Run(cfg traces.Config, w io.Writer) (summary []string, err error) {
	rows, err := traces.OpenRows(formats.Blocks, cfg)
	if err != nil {
		return nil, err
	}
	defer rows.Close() // only read from
	out := formats.NewMooncakeWriter(w, o.tokens)
	written, short, sizes := int64(0), int64(0), map[int]bool{}
	err = rows.Each(func(row *formats.Row, at time.Duration) error {
		ok, err := out.Write(row, at)
		switch {
		case err != nil:
		case !ok:
			short++
		default:
			written++
			sizes[max(o.tokens, row.BlockTokens)] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := out.Flush(); err != nil {
		return nil, err
	}
	// Every row that was read is counted once, so that the counts add up.
	r := rows.Report()
	summary = append(summary, fmt.Sprintf("%s of %s read: %s written, %s malformed, %s before "+
		"-trace-start, %s without a whole block", units.Plural(r.Rows, "row"),
		units.Plural(len(cfg.Paths), "file"), units.Count.Text(written),
		units.Count.Text(r.Malformed), units.Count.Text(r.Skipped),
		units.Count.Text(short)))
	if r.Sessions > 0 {
		summary = append(summary, fmt.Sprintf("%s of agents, up to %s live at a time (-num-users)",
			units.Plural(r.Sessions, "session"), units.Count.Text(int64(r.Live))))
	}
	for _, bad := range r.First {
		summary = append(summary, bad.Error())
	}
	if more := r.Malformed - int64(len(r.First)); more > 0 {
		summary = append(summary, fmt.Sprintf("and %s more malformed", units.Count.Text(more)))
	}
	// A reader that takes these blocks for 512 tokens each finds rows that cannot be, or a cache
	// that is eight times too large.
	var other []string
	for size := range sizes {
		if size != 512 {
			other = append(other, fmt.Sprint(size))
		}
	}
	if len(other) > 0 {
		summary = append(summary, fmt.Sprintf("blocks have %s tokens, as block_size in each row says: "+
			"other readers have to support that, or join them with -block-tokens 512",
			strings.Join(other, " or ")))
	}
	return summary, nil
}
