package record

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

const (
	bytesPerGiB = float64(1 << 30)
	bytesPerMiB = float64(1 << 20)
)

// Build turns what the engine knows and what the Recorder counted into the trial's Result. It has no side effects;
// the Recorder must be at rest for the numbers of different sections to agree.
func Build(info Info, rec *Recorder) *result.Result {
	b := newBuilder(info, rec)
	r := &b.info.Result
	r.SchemaVersion = result.SchemaVersion
	r.Seed += uint64(r.Rank)
	r.CompletionUnit = cmp.Or(r.CompletionUnit, result.UnitRequest)
	r.WindowNS = int64(b.window)
	if r.Division == result.DivisionClosed {
		r.Notice = result.ClosedNotice
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
	r.Warnings = append(r.Warnings, info.TraceWarnings...)
	b.validation(r)
	b.status(r)
	return r
}

// builder holds the merged counters while the sections are made.
type builder struct {
	info   Info
	rec    *Recorder
	t      *shard // all shards together
	window time.Duration
	known  map[string]result.Tier // by level: what is known without counting
	exists [tiers.NumKinds]bool
	loads  [workloads.NumClasses]result.ClassOutcome
}

func newBuilder(info Info, rec *Recorder) *builder {
	b := &builder{info: info, rec: rec, t: rec.merge(), window: info.Window, known: make(map[string]result.Tier)}
	if b.window <= 0 {
		if start, end := rec.Window(); int64(end) != never {
			b.window = max(end-start, 0)
		}
	}
	for _, t := range info.Tiers {
		b.known[t.Level] = t
	}
	for l := range b.exists {
		_, b.exists[l] = b.known[tiers.Kind(l).String()]
		for op := range tiers.NumOps {
			// A tier that moved bytes exists, even where the engine had no gauge of it.
			b.exists[l] = b.exists[l] || b.levelBytes(tiers.Kind(l), op) > 0
		}
	}
	return b
}

func (b *builder) ofOp(l tiers.Kind, op tiers.Op, k opHist) result.Distribution {
	return result.NewDistribution(k.unit(), b.t.hists.op[l][op][k])
}

func (b *builder) ofLevel(l tiers.Kind, k levelHist) result.Distribution {
	return result.NewDistribution(units.Nanoseconds, b.t.hists.level[l][k])
}

func (b *builder) ofAll(k hist) result.Distribution {
	return result.NewDistribution(units.Nanoseconds, b.t.hists.all[k])
}

func (b *builder) sum(c counter) int64 { return b.t.n.sum[c] }

func (b *builder) levelBytes(l tiers.Kind, op tiers.Op) int64 { return b.t.n.op[l][op][opMoved] }

func (b *builder) totalBytes(op tiers.Op) int64 {
	var n int64
	for l := range tiers.NumKinds {
		n += b.levelBytes(l, op)
	}
	return n
}

// perSecond returns n ÷ window, nil for an empty window.
func (b *builder) perSecond(n float64) *float64 { return units.Ratio(n, b.window.Seconds()) }

// slowest returns the last existing level, the one that the trial is about.
func (b *builder) slowest() (tiers.Kind, bool) {
	for l := int(tiers.NumKinds) - 1; l >= 0; l-- {
		if b.exists[l] {
			return tiers.Kind(l), true
		}
	}
	return 0, false
}

// describe makes what the engine knows fit for the JSON, without changing it for the engine.
func (b *builder) describe(r *result.Result) {
	r.Model.RankBytesPerToken = b.tokenBytes(1)
	r.Workload.PrefillRate = units.OrZero(units.Finite(r.Workload.PrefillRate))
	r.Parameters, r.DiffersFromClosed = parameters(r.Parameters), differences(r.DiffersFromClosed)
	r.Warnings = append([]string{}, r.Warnings...)
	if p := r.Precondition; p != nil {
		c := *p
		c.LastRates = slices.DeleteFunc(slices.Clone(p.LastRates), func(v float64) bool { return units.Finite(v) == nil })
		c.Spread = units.OrZero(units.Finite(p.Spread))
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

func (b *builder) histograms(r *result.Result) {
	r.Histograms = make(map[string]result.HistogramData)
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
func parameters(in []result.Parameter) []result.Parameter {
	out := make([]result.Parameter, len(in))
	for i, p := range in {
		out[i] = result.Parameter{Name: p.Name, Value: plain(p.Value), Origin: p.Origin}
	}
	return out
}

func differences(in []result.Difference) []result.Difference {
	out := make([]result.Difference, len(in))
	for i, d := range in {
		out[i] = result.Difference{Name: d.Name, Closed: plain(d.Closed), Value: plain(d.Value)}
	}
	return out
}

// plain makes a value of a parameter fit for JSON: durations as Go writes them, no NaN.
func plain(v any) any {
	switch v := v.(type) {
	case float64:
		if units.Finite(v) == nil {
			return fmt.Sprint(v)
		}
	case fmt.Stringer:
		return v.String()
	}
	return v
}
