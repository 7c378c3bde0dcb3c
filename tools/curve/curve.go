package curve

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
	"kvbench/workloads/formats"
	"kvbench/workloads/model"
	"kvbench/workloads/traces"
)

// Options are the command's flags.
type Options struct {
	parameters        // the model and the trace
	tp         int    // number of tensor-parallel ranks
	tpIO       string // whether bytes are of one rank or of all
	capacities string // sizes, rows of the table
	drive      string // a size
	warmup     string // a duration; requests in it do not count
}

// NewOptions adds the flags to a flag set.
func NewOptions(fs *flag.FlagSet) *Options {
	o := &Options{parameters: newParameters(fs, "model", "kv-dtype", "tp-rule", "trace-speedup")}
	// A parameter of the benchmarks needs as many GPUs.
	fs.IntVar(&o.tp, "tensor-parallel", 1, "")
	// A parameter of the benchmarks needs the layout of an engine.
	fs.StringVar(&o.tpIO, "tp-io", "one", "")
	fs.StringVar(&o.capacities, "capacities", "", "")
	fs.StringVar(&o.drive, "drive", "", "")
	fs.StringVar(&o.warmup, "warmup", "0s", "")
	return o
}

// question has the parsed options.
type question struct {
	*params.Values
	sizer      model.Sizer
	capacities []int64
	drive      int64 // 0 = none
	warmup     time.Duration
	trace      traces.Config
}

// question checks all options and paths before a trace is read, which may take minutes. The error unwraps to
// every mistake.
func (o *Options) question(paths []string) (q question, err error) {
	v, cfg, err := o.resolve(paths, "curve mooncake.jsonl")
	problems := []error{err}
	if v == nil {
		return q, err
	}
	check := func(ok bool, name, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("-%s: must be %s", name,
				fmt.Sprintf(format, args...)))
		}
	}
	q = question{Values: v, trace: cfg}
	// In the benchmarks 0 replays as fast as possible. That has no times and so no rates.
	q.trace.Speedup = v.TraceSpeedup
	check(v.TraceSpeedup > 0, "trace-speedup", "above 0, given %g: rates need times", v.TraceSpeedup)
	check(o.tp >= 1 && o.tp <= 65536, "tensor-parallel", "1 to 65536, given %d", o.tp)
	// As in the benchmarks: the bytes of one rank, as if it had its own tier, or of all ranks in one
	// tier.
	q.sizer = model.NewSizer(v.Model, o.tp, model.TPRule(v.TPRule))
	check(o.tpIO == "one" || o.tpIO == "all", "tp-io", "one or all, given %q", o.tpIO)
	if o.tpIO == "all" {
		// All ranks together have more bytes than the model if heads are replicated. For models with
		// latents the layout decides whether each rank stores them, and the curve knows no layout.
		q.sizer.Ranks = int64(o.tp)
		check(v.TPRule != string(model.TPMLPerf), "tp-io", "one with -tp-rule mlperf, which is no "+
			"engine's")
		check(!v.Model.Latents(), "tp-io", "one with %s, whose latents all ranks have alike: most "+
			"engines keep them once, which this is, and vLLM as often as there are ranks", v.ModelName)
	}
	// A number without a unit is in GiB, as in -storage-capacity-gb.
	for text := range strings.FieldsFuncSeq(o.capacities, func(r rune) bool { return r == ',' }) {
		n, err := units.ParseSize(text, units.GiB)
		check(err == nil, "capacities", "%v, given %q", err, text)
		check(err != nil || n >= 1 && n <= 1<<60, "capacities", "above 0 and at most 1024 PiB, given %q",
			text)
		q.capacities = append(q.capacities, n)
	}
	if o.drive != "" {
		q.drive, err = driveSize(o.drive)
		check(err == nil, "drive", "%v, given %q", err, o.drive)
	}
	q.warmup, err = units.ParseDuration(o.warmup)
	check(err == nil && q.warmup >= 0, "warmup", "a time of 0s or more, given %q", o.warmup)
	return q, errors.Join(problems...)
}

// Report is the result, encoded as JSON. Bytes are of one rank or of all ranks (tp_io). Rates are in
// bytes per second. Unknown values are null.
type Report struct {
	Files          []string `json:"files"`
	Rows           int64    `json:"rows"`
	Malformed      int64    `json:"malformed_rows"`
	FirstMalformed string   `json:"first_malformed_row,omitempty"`
	Skipped        int64    `json:"skipped_rows"` // before -trace-start
	// Unordered rows are earlier than a row before them, with which they come.
	Unordered int64    `json:"unordered_rows,omitempty"`
	Notes     []string `json:"notes,omitempty"` // what was guessed or left out of rows
	// The agent sessions, and the largest number that was live at a time. Absent without sessions.
	Sessions int64 `json:"sessions,omitempty"`
	Live     int   `json:"live_sessions,omitempty"`

	Model         string `json:"model"`
	KVDType       string `json:"kv_dtype"`               // auto: the model's own type
	StoredAs      string `json:"kv_stored_as,omitempty"` // type and reason, if it is not the weights' type
	BytesPerToken int64  `json:"bytes_per_token"`        // of all ranks
	// FixedBytes is the size of a sequence's states, which the curve does not count.
	FixedBytes     int64   `json:"fixed_bytes_per_sequence"`
	TensorParallel int     `json:"tensor_parallel"`
	TPRule         string  `json:"tp_rule"`
	TPIO           string  `json:"tp_io"`
	WarmupS        float64 `json:"warmup_s"`
	Speedup        float64 `json:"trace_speedup"`

	// After the warm-up. Distinct blocks and the largest request are of the whole trace.
	Requests            int64   `json:"requests"`
	DurationS           float64 `json:"duration_s"`
	IntervalS           float64 `json:"peak_interval_s"`
	Blocks              int64   `json:"blocks"`
	Tokens              int64   `json:"tokens"`
	Bytes               int64   `json:"bytes"`
	SmallestBlock       int     `json:"smallest_block_tokens"`
	LargestBlock        int     `json:"largest_block_tokens"`
	LargestRequestBytes int64   `json:"largest_request_bytes"`
	Distinct            int64   `json:"distinct_blocks"`
	FootprintBytes      int64   `json:"footprint_bytes"`
	// Resized is the number of blocks that came again with another size. If it is 0, the curve is exact.
	Resized int64 `json:"resized_blocks"`

	IdealHitRatio      *float64 `json:"ideal_hit_ratio"`
	IdealTokenHitRatio *float64 `json:"ideal_token_hit_ratio"`
	Knee               *Place   `json:"knee"`
	Reaches            []Place  `json:"reaches"`
	DriveBytes         int64    `json:"drive_bytes,omitempty"`
	Points             []Point  `json:"points"`

	ideal int64 // hits of a cache without limit
	// The bytes of a token by -tp-io: of one rank or of all ranks.
	kept float64
}

// Place is a capacity, its hit ratio, and the share of the best hit ratio.
type Place struct {
	CapacityBytes int64    `json:"capacity_bytes"`
	HitRatio      *float64 `json:"hit_ratio"`
	OfIdeal       *float64 `json:"of_ideal"`
}

// Point has the results of a cache of one capacity.
type Point struct {
	CapacityBytes int64   `json:"capacity_bytes"`
	Tokens        float64 `json:"capacity_tokens"`
	Asked         bool    `json:"asked"` // by -capacities or -drive
	// Fits reports whether the blocks of every request fit together. Otherwise the point is for a cache
	// that keeps the first blocks of a larger request.
	Fits bool `json:"fits_largest_request"`

	// Counts of blocks, with the names of block_cache in a result.
	Hits           int64    `json:"hits"`
	Kept           int64    `json:"kept"` // in the cache, but after a missing block
	Written        int64    `json:"written"`
	HitRatio       *float64 `json:"hit_ratio"`
	OfIdeal        *float64 `json:"of_ideal"`
	TokenHitRatio  *float64 `json:"token_hit_ratio"`
	PrefixHitRatio *float64 `json:"prefix_hit_ratio"`

	// Rates are means over duration_s. Peaks are of the busiest peak_interval_s.
	ReadBytes  int64    `json:"read_bytes"`
	WriteBytes int64    `json:"write_bytes"`
	Read       *float64 `json:"read_bytes_per_second"`
	Write      *float64 `json:"write_bytes_per_second"`
	PeakRead   *float64 `json:"peak_read_bytes_per_second"`
	PeakWrite  *float64 `json:"peak_write_bytes_per_second"`
	// DriveWrites is drive writes per day: of -drive, otherwise of a drive of this capacity.
	DriveWrites *float64 `json:"drive_writes_per_day"`
}

// shares are the shares of the best hit ratio whose capacities are reported.
var shares = []float64{0.5, 0.8, 0.9, 0.95, 0.99}

// Run reads the traces once. It needs about 120 bytes of memory per distinct block. It reports the
// number of malformed rows and the first one; too many are an error.
func Run(o *Options, paths []string) (*Report, error) {
	q, err := o.question(paths)
	if err != nil {
		return nil, err
	}
	rows, err := traces.Open(formats.Blocks, q.trace)
	if err != nil {
		return nil, err
	}
	// The drive's size is a capacity too: the tier may use the whole drive.
	asked := q.capacities
	if q.drive > 0 {
		asked = append(asked, q.drive)
	}
	c := newCounter(q.sizer, asked, q.warmup)
	if err := rows.Each(c.add); err != nil {
		return nil, err
	}
	// Report skipped rows: they change the curve.
	read := rows.Report()
	if c.requests == 0 {
		return nil, fmt.Errorf("no request is left of %s: -warmup %s passes them all",
			units.Plural(read.Rows, "row"), q.warmup)
	}
	r := &Report{Files: q.trace.Paths, Rows: read.Rows, Malformed: read.Malformed,
		Unordered: read.Unordered, Notes: read.Notes,
		Skipped: read.Skipped, Sessions: read.Sessions, Live: read.Live,
		Model: q.ModelName, KVDType: q.KVDType, StoredAs: q.Model.StoredAs,
		BytesPerToken: q.Model.BytesPerToken(), FixedBytes: q.Model.FixedBytes(),
		TensorParallel: o.tp, TPRule: q.TPRule, TPIO: o.tpIO,
		WarmupS: q.warmup.Seconds(), Speedup: q.trace.Speedup, DriveBytes: q.drive,
		kept: float64(q.sizer.BytesPerToken*max(1, q.sizer.Ranks)) /
			float64(max(1, q.sizer.Divisor))}
	if len(read.First) > 0 {
		r.FirstMalformed = read.First[0].Error()
	}
	c.report(r)
	r.places()
	return r, nil
}

// add adds a point, with the values that depend on its capacity.
func (r *Report) add(p Point) {
	p.Tokens = float64(p.CapacityBytes) / r.kept
	p.Read, p.Write = units.Ratio(p.ReadBytes, r.DurationS), units.Ratio(p.WriteBytes, r.DurationS)
	if p.Write != nil { // without -drive, the wear is of a drive of this capacity
		p.DriveWrites = units.Ratio(*p.Write*24*3600, cmp.Or(r.DriveBytes, p.CapacityBytes))
	}
	r.Points = append(r.Points, p)
}

// places sets the knee of the curve, and the capacities that reach shares of the best hit ratio.
//
// The knee is the point farthest above the straight line from 0 to the best point: below it a byte
// brings more hits than on average, above it fewer (Satopaa et al., "Finding a Kneedle in a Haystack",
// 2011). Both axes are linear, because the price of a drive is linear in its bytes.
func (r *Report) places() {
	if r.ideal == 0 {
		return
	}
	most, left := 0.0, shares
	for _, p := range r.Points {
		if !p.Fits {
			continue
		}
		place := Place{p.CapacityBytes, p.HitRatio, p.OfIdeal}
		above := *p.OfIdeal - float64(p.CapacityBytes)/float64(r.FootprintBytes)
		if p.CapacityBytes <= r.FootprintBytes && above > most {
			r.Knee, most = &place, above
		}
		for len(left) > 0 && float64(p.Hits) >= left[0]*float64(r.ideal) {
			r.Reaches, left = append(r.Reaches, place), left[1:]
		}
	}
}

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
	if v.Flag("num-users") {
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
