package curve

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/units"
	"kvbench/workloads/formats"
	"kvbench/workloads/model"
	"kvbench/workloads/traces"
)

// Options are the command's flags. Flags that a benchmark has, too, mean the same.
type Options struct {
	// The model, the number of ranks, and whether bytes count one rank or all ranks.
	model  string
	dtype  string // of cached numbers
	tp     int
	tpRule string
	tpIO   string
	// Sizes as texts: rows of the table, and the drive.
	capacities, drive string
	warmup            string  // its requests do not count
	speedup           float64 // divides the times of the trace
	trace             *traceFlags
}

// NewOptions adds the flags to a flag set.
func NewOptions(fs *flag.FlagSet) *Options {
	o := &Options{trace: newTraceFlags(fs)}
	fs.StringVar(&o.model, "model", "llama3.1-8b", "")
	fs.StringVar(&o.dtype, "kv-dtype", model.OwnType, "")
	fs.IntVar(&o.tp, "tensor-parallel", 1, "")
	fs.StringVar(&o.tpRule, "tp-rule", string(model.TPEngine), "")
	fs.StringVar(&o.tpIO, "tp-io", "one", "")
	fs.StringVar(&o.capacities, "capacities", "", "")
	fs.StringVar(&o.drive, "drive", "", "")
	fs.StringVar(&o.warmup, "warmup", "0s", "")
	fs.Float64Var(&o.speedup, "trace-speedup", 1, "")
	return o
}

// question is the parsed options.
type question struct {
	model      model.Model
	sizer      model.Sizer
	capacities []int64
	drive      int64 // 0 = none
	warmup     time.Duration
	trace      traces.Config
}

// question checks all options and the paths, and reports every mistake in one error that unwraps to
// all of them. Nothing is read yet but the model and the names of directories.
func (o *Options) question(paths []string) (q question, err error) {
	var problems []error
	// All mistakes are reported at once: reading a trace may take minutes.
	refuse := func(name, format string, args ...any) {
		problems = append(problems, fmt.Errorf("-%s: must be %s", name,
			fmt.Sprintf(format, args...)))
	}
	check := func(ok bool, name, format string, args ...any) {
		if !ok {
			refuse(name, format, args...)
		}
	}
	if q.model, err = model.Find(o.model, nil); err != nil {
		problems = append(problems, fmt.Errorf("-model: %w", err))
	} else if !slices.Contains(model.DTypes(), o.dtype) {
		refuse("kv-dtype", "one of %s, given %q", strings.Join(model.DTypes(), ", "), o.dtype)
	} else if q.model, err = q.model.In(o.dtype); err != nil {
		problems = append(problems, fmt.Errorf("-kv-dtype: %w", err))
	}
	rule := model.TPRule(o.tpRule)
	check(rule == model.TPEngine || rule == model.TPMLPerf, "tp-rule", "%s or %s, given %q",
		model.TPEngine, model.TPMLPerf, o.tpRule)
	check(o.tp >= 1 && o.tp <= 65536, "tensor-parallel", "1 to 65536, given %d", o.tp)
	// As in the benchmarks: one rank's, as if each had a tier of its own, or the bytes of all in one.
	q.sizer = model.NewSizer(q.model, o.tp, rule)
	switch o.tpIO {
	case "one":
	case "all":
		// The bytes of all ranks: more than the model's where heads are replicated. Some engines
		// keep latents once per rank and others once: the layout decides that, and the curve knows
		// none.
		q.sizer.Ranks = int64(o.tp)
		check(rule != model.TPMLPerf, "tp-io", "one with -tp-rule mlperf, which is no engine's")
		check(!q.model.Latents(), "tp-io", "one with %s, whose latents all ranks have alike: most "+
			"engines keep them once, which this is, and vLLM as often as there are ranks", o.model)
	default:
		refuse("tp-io", "one or all, given %q", o.tpIO)
	}
	// A bare number is GiB, as with -storage-capacity-gb.
	for text := range strings.SplitSeq(o.capacities, ",") {
		if o.capacities == "" {
			break
		}
		n, err := units.ParseSize(text, units.GiB)
		switch {
		case err != nil:
			refuse("capacities", "%v, given %q", err, text)
		case n < 1 || n > 1<<60:
			refuse("capacities", "above 0 and at most 1024 PiB, given %q", text)
		}
		q.capacities = append(q.capacities, n)
	}
	if o.drive != "" {
		if q.drive, err = driveSize(o.drive); err != nil {
			refuse("drive", "%v, given %q", err, o.drive)
		}
	}
	// The benchmarks' 0, as fast as possible, has no time, and so no rates.
	check(o.speedup > 0 && !math.IsInf(o.speedup, 0), "trace-speedup",
		"above 0, given %g: rates need times", o.speedup)
	q.warmup, err = duration("warmup", o.warmup)
	problems = append(problems, err)
	q.trace, err = o.trace.config(paths, "curve mooncake.jsonl")
	q.trace.Speedup = o.speedup
	problems = append(problems, err)
	return q, errors.Join(problems...)
}

// driveSize reads the size of a drive. Drives, and nothing else here, are sold in powers of ten.
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

// Report is the answer, encoded as JSON. Bytes are of one rank or of all (tp_io), rates are bytes
// per second; unknown values are null.
type Report struct {
	Files          []string `json:"files"`
	Rows           int64    `json:"rows"`
	Malformed      int64    `json:"malformed_rows"`
	FirstMalformed string   `json:"first_malformed_row,omitempty"`
	Skipped        int64    `json:"skipped_rows"` // before -trace-start
	// Sessions of agents, and the most that were live at a time; absent where there are none.
	Sessions int64 `json:"sessions,omitempty"`
	Live     int   `json:"live_sessions,omitempty"`

	Model         string `json:"model"`
	KVDType       string `json:"kv_dtype"`               // auto: the model's own
	StoredAs      string `json:"kv_stored_as,omitempty"` // and why: where it is not the weights'
	BytesPerToken int64  `json:"bytes_per_token"`        // of all ranks
	// FixedBytes is the bytes that a sequence keeps in addition, which the curve does not count.
	FixedBytes     int64   `json:"fixed_bytes_per_sequence"`
	TensorParallel int     `json:"tensor_parallel"`
	TPRule         string  `json:"tp_rule"`
	TPIO           string  `json:"tp_io"`
	WarmupS        float64 `json:"warmup_s"`
	Speedup        float64 `json:"trace_speedup"`

	// After warm-up, except that distinct blocks and the largest request are of the whole trace.
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
	// Resized is the number of blocks whose size changed: the curve is exact without them.
	Resized int64 `json:"resized_blocks"`

	IdealHitRatio      *float64 `json:"ideal_hit_ratio"`
	IdealTokenHitRatio *float64 `json:"ideal_token_hit_ratio"`
	Knee               *Place   `json:"knee"`
	Reaches            []Place  `json:"reaches"`
	DriveBytes         int64    `json:"drive_bytes,omitempty"`
	Points             []Point  `json:"points"`

	ideal int64 // hits of a cache without limit
	// The bytes of a token that count, by -tp-io: one rank's or all ranks'.
	kept float64
}

// Place is a capacity and its share of the best hit ratio.
type Place struct {
	CapacityBytes int64    `json:"capacity_bytes"`
	HitRatio      *float64 `json:"hit_ratio"`
	OfIdeal       *float64 `json:"of_ideal"`
}

// Point is the results of a cache of one capacity.
type Point struct {
	CapacityBytes int64   `json:"capacity_bytes"`
	Tokens        float64 `json:"capacity_tokens"`
	Asked         bool    `json:"asked"` // for by -capacities or -drive
	// Fits reports whether all blocks of any one request fit at the same time. Otherwise the point
	// is of a cache that keeps the first of them.
	Fits bool `json:"fits_largest_request"`

	// Counts of blocks, named as in the block_cache of a result, so that they can be compared.
	Hits           int64    `json:"hits"`
	Kept           int64    `json:"kept"` // there, but behind a missing one
	Written        int64    `json:"written"`
	HitRatio       *float64 `json:"hit_ratio"`
	OfIdeal        *float64 `json:"of_ideal"`
	TokenHitRatio  *float64 `json:"token_hit_ratio"`
	PrefixHitRatio *float64 `json:"prefix_hit_ratio"`

	// Rates are over duration_s; peaks over the busiest peak_interval_s.
	ReadBytes  int64    `json:"read_bytes"`
	WriteBytes int64    `json:"write_bytes"`
	Read       *float64 `json:"read_bytes_per_second"`
	Write      *float64 `json:"write_bytes_per_second"`
	PeakRead   *float64 `json:"peak_read_bytes_per_second"`
	PeakWrite  *float64 `json:"peak_write_bytes_per_second"`
	// DriveWrites is drive writes per day: of the drive, else of one as large as the capacity.
	DriveWrites *float64 `json:"drive_writes_per_day"`
	// FullS is the seconds after which the trace has filled the capacity without eviction;
	// ForecastS extrapolates at the rate of its second half.
	FullS     *float64 `json:"full_after_s"`
	ForecastS *float64 `json:"full_forecast_s"`
}

// shares are the shares of the best hit ratio whose capacities are reported.
var shares = []float64{0.5, 0.8, 0.9, 0.95, 0.99}

// Run reads the traces once, in memory that grows with their distinct blocks, some 120 bytes each.
// It reports the number of malformed rows and the first; too many of them are an error.
func Run(o *Options, paths []string) (*Report, error) {
	q, err := o.question(paths)
	if err != nil {
		return nil, err
	}
	rows, err := traces.OpenRows(formats.Blocks, q.trace)
	if err != nil {
		return nil, err
	}
	// The tier may take the whole drive: a row of its own.
	asked := q.capacities
	if q.drive > 0 {
		asked = append(asked, q.drive)
	}
	c := newCounter(q.sizer, asked, q.warmup)
	if err := rows.Each(c.add); err != nil {
		return nil, err
	}
	// Left-out rows are reported: the curve of half a trace is another curve.
	read := rows.Report()
	if c.requests == 0 {
		return nil, fmt.Errorf("no request is left of %s: -warmup %s passes them all",
			units.Plural(read.Rows, "row"), q.warmup)
	}
	r := &Report{Files: q.trace.Paths, Rows: read.Rows, Malformed: read.Malformed,
		Skipped: read.Skipped, Sessions: read.Sessions, Live: read.Live,
		Model: o.model, KVDType: o.dtype, StoredAs: q.model.StoredAs,
		BytesPerToken: q.model.BytesPerToken(), FixedBytes: q.model.FixedBytes(),
		TensorParallel: o.tp, TPRule: o.tpRule, TPIO: o.tpIO,
		WarmupS: q.warmup.Seconds(), Speedup: o.speedup, DriveBytes: q.drive,
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
	if p.Write != nil { // without a drive each capacity counts as a drive for its wear
		p.DriveWrites = units.Ratio(*p.Write*24*3600, cmp.Or(r.DriveBytes, p.CapacityBytes))
	}
	r.Points = append(r.Points, p)
}

// places sets the bend of the curve, and the capacities that reach shares of the best hit ratio.
//
// The bend is the point farthest above the straight line from 0 to the best point: up to it a byte brings
// more hits than on average, beyond it fewer (Satopaa et al., "Finding a Kneedle in a Haystack", 2011). Both
// axes are linear, like the price of bytes.
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
