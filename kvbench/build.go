package kvbench

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"kvbench/tiers"
	"kvbench/workloads"
)

const (
	bytesPerGiB = float64(1 << 30)
	bytesPerMiB = float64(1 << 20)
)

// BuildResult turns what the engine knows and what the Recorder counted into the trial's Result. It has no side effects;
// the Recorder must be at rest for the numbers of different sections to agree.
func BuildResult(info RunInfo, rec *Recorder) *Result {
	b := newBuilder(info, rec)
	r := &Result{
		SchemaVersion: SchemaVersion, Benchmark: info.Benchmark, Division: info.Division,
		Trial: info.Trial, Count: info.Count, Rank: info.Rank, Ranks: info.Ranks, Nonce: info.Nonce, Digest: info.Digest,
		Seed: info.Seed + uint64(info.Rank), CompletionUnit: UnitRequest,
		WindowNS: int64(b.window), ElapsedNS: int64(info.Elapsed), DrainNS: int64(info.Drain),
		WarmupNS: int64(info.Warmup), SettleNS: int64(info.Settle),
		Parameters: parameters(info.Parameters), DiffersFromClosed: differences(info.Differs),
		Environment: info.Environment, Limits: info.Limits,
		Input: info.Input, Replay: info.Replay, Warnings: []string{},
	}
	if info.CountOperations {
		r.CompletionUnit = UnitOperation
	}
	if !info.Start.IsZero() {
		r.StartTime = info.Start.UTC().Format(time.RFC3339Nano)
	}
	if info.Option != 0 {
		r.Option = new(info.Option)
	}
	if info.NominalWindow > 0 {
		r.NominalWindowNS = new(int64(info.NominalWindow))
	}
	if info.Division == DivisionClosed {
		r.Notice = ClosedNotice
	}
	b.describe(r)
	b.counts(r)
	b.blockCache(r)
	b.latency(r)
	b.load(r)
	b.tiers(r)
	b.compatible(r)
	b.harness(r)
	b.witness(r)
	b.ceiling(r)
	b.simulation(r)
	r.Timeline = b.timeline()
	b.histograms(r)
	b.errors(r)
	b.warnings(r)
	r.DeviceLatencyTracing = info.Trace
	r.Warnings = append(r.Warnings, info.TraceWarnings...)
	b.validation(r)
	b.status(r)
	return r
}

// builder holds the merged counters while the sections are made.
type builder struct {
	info   RunInfo
	rec    *Recorder
	t      *shard // all shards together
	window time.Duration
	exists [tiers.NumLevels]bool
	loads  [workloads.NumClasses]ClassOutcome
}

func newBuilder(info RunInfo, rec *Recorder) *builder {
	b := &builder{info: info, rec: rec, t: rec.merge(), window: info.Window}
	if b.window <= 0 {
		if start, end := rec.Window(); int64(end) != never {
			b.window = max(end-start, 0)
		}
	}
	for _, t := range info.Tiers {
		b.exists[t.Level] = true
	}
	for l := range b.exists {
		for op := range tiers.NumOps {
			// A tier that moved bytes exists, even where the engine had no gauge of it.
			b.exists[l] = b.exists[l] || b.levelBytes(tiers.Level(l), op) > 0
		}
	}
	return b
}

func (b *builder) ofOp(l tiers.Level, op tiers.Op, k opHist) Distribution {
	return NewDistribution(k.unit(), b.t.hists.op[l][op][k])
}

func (b *builder) ofLevel(l tiers.Level, k levelHist) Distribution {
	return NewDistribution(Nanoseconds, b.t.hists.level[l][k])
}

func (b *builder) ofAll(k hist) Distribution { return NewDistribution(Nanoseconds, b.t.hists.all[k]) }

func (b *builder) sum(c counter) int64 { return b.t.n.sum[c] }

func (b *builder) levelBytes(l tiers.Level, op tiers.Op) int64 { return b.t.n.op[l][op][opMoved] }

func (b *builder) totalBytes(op tiers.Op) int64 {
	var n int64
	for l := range tiers.NumLevels {
		n += b.levelBytes(l, op)
	}
	return n
}

// perSecond returns n ÷ window, nil for an empty window.
func (b *builder) perSecond(n float64) *float64 { return ratio(n, b.window.Seconds()) }

// slowest returns the last existing level, the one that the trial is about.
func (b *builder) slowest() (tiers.Level, bool) {
	for l := int(tiers.NumLevels) - 1; l >= 0; l-- {
		if b.exists[l] {
			return tiers.Level(l), true
		}
	}
	return 0, false
}

func (b *builder) describe(r *Result) {
	i := b.info
	r.Model = ModelResult{
		Key: i.Model.Key, Name: i.Model.Name, RankBytesPerToken: b.tokenBytes(1), TensorParallel: i.TensorParallel,
	}
	if i.Model.Key != "" {
		r.Model.BytesPerToken = i.Model.BytesPerToken()
	}
	r.Workload = Workload{
		Users: i.Users, Workers: i.Workers, Arrival: i.Arrival, Turns: i.Turns, GenerationMode: i.GenerationMode,
		DecodeReads: i.DecodeReads, PrefillRate: orZero(finite(i.PrefillRate)),
	}
	r.IO = IOResult{
		CacheDir: i.CacheDir, Mode: i.IO, WriteDevice: i.WriteDevice, ChunkBytes: i.ChunkSize, Depth: i.Depth,
		MaxConcurrentAllocs: i.MaxConcurrentAllocs,
		Pool: PoolResult{
			Buffers: i.Pool.Buffers, BufferBytes: i.Pool.BufferSize, HugePages: i.Pool.HugePages, Covers: i.Pool.Covers,
		},
	}
	if p := i.Precondition; p != nil {
		c := *p
		c.LastRates = slices.DeleteFunc(slices.Clone(p.LastRates), func(v float64) bool { return finite(v) == nil })
		c.Spread = orZero(finite(p.Spread))
		r.Precondition = &c
	}
}

// tokenBytes returns the bytes of n tokens on this rank, 0 without a model.
func (b *builder) tokenBytes(n int) int64 {
	if b.info.Sizer.BytesPerToken <= 0 {
		return 0
	}
	return b.info.Sizer.Bytes(n)
}

func (b *builder) histograms(r *Result) {
	r.Histograms = make(map[string]HistogramData)
	all := b.t.hists.places()
	slices.SortFunc(all, func(x, y place) int { return cmp.Compare(x.name, y.name) })
	for _, p := range all {
		if *p.at == nil {
			continue
		}
		d, err := (*p.at).Encode()
		if err != nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("histogram %s is missing: %v", p.name, err))
			continue
		}
		r.Histograms[p.name] = d
	}
}

// parameters copies the list with values that JSON can hold.
func parameters(in []Parameter) []Parameter {
	out := make([]Parameter, len(in))
	for i, p := range in {
		out[i] = Parameter{Name: p.Name, Value: plain(p.Value), Origin: p.Origin}
	}
	return out
}

func differences(in []Difference) []Difference {
	out := make([]Difference, len(in))
	for i, d := range in {
		out[i] = Difference{Name: d.Name, Closed: plain(d.Closed), Value: plain(d.Value)}
	}
	return out
}

// plain makes a value of a parameter fit for JSON: durations as Go writes them, no NaN.
func plain(v any) any {
	switch v := v.(type) {
	case float64:
		if finite(v) == nil {
			return fmt.Sprint(v)
		}
	case fmt.Stringer:
		return v.String()
	}
	return v
}
