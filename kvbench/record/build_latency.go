package record

import (
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// contextTokens are the contexts whose load time every result tells.
var contextTokens = [...]int{8 << 10, 32 << 10, 128 << 10}

func (b *builder) latency(r *result.Result) {
	r.Latency = result.Latency{
		Levels:         make(map[string]result.LevelLatency),
		PrefixRead:     b.ofAll(histPrefix),
		ReadAdmission:  b.ofAll(histReadAdmission),
		WriteAdmission: b.ofAll(histWriteAdmission),
		SpaceWait:      b.ofAll(histSpace),
		PendingWait:    b.ofAll(histPending),
		DataGeneration: b.ofAll(histGenerate),
		Request: result.RequestLatency{
			EndToEnd:   b.ofAll(histEndToEnd),
			Queue:      b.ofAll(histQueue),
			Storage:    b.ofAll(histStorage),
			Prefill:    b.ofAll(histPrefill),
			Decode:     b.ofAll(histDecode),
			Generation: b.ofAll(histGeneration),
			ByClass:    make(map[string]result.Distribution),
		},
	}
	for c := range workloads.Class(workloads.NumClasses) {
		r.Latency.Request.ByClass[c.String()] = b.ofAll(histClass + hist(c))
	}
	for l := range tiers.NumKinds {
		if !b.exists[l] {
			continue
		}
		r.Latency.Levels[l.String()] = result.LevelLatency{
			Read:      b.opLatency(l, tiers.Read),
			Write:     b.opLatency(l, tiers.Write),
			FirstRead: b.ofLevel(l, histFirst),
			ReRead:    b.ofLevel(l, histReread),
			Delete:    b.ofLevel(l, histDelete),
		}
	}
	first, again, read, written := result.NewHistogram(units.Nanoseconds), result.NewHistogram(units.Nanoseconds), result.NewHistogram(units.Bytes), result.NewHistogram(units.Bytes)
	for l := range b.t.hists.op {
		first.Merge(b.t.hists.level[l][histFirst])
		again.Merge(b.t.hists.level[l][histReread])
		read.Merge(b.t.hists.op[l][tiers.Read][histSize])
		written.Merge(b.t.hists.op[l][tiers.Write][histSize])
	}
	r.FirstReads.Latency, r.ReReads.Latency = result.NewDistribution(units.Nanoseconds, first), result.NewDistribution(units.Nanoseconds, again)
	r.EntrySizes = result.EntrySizes{Read: result.NewDistribution(units.Bytes, read), Write: result.NewDistribution(units.Bytes, written)}
	r.ContextLoad = b.contextLoad()
}

func (b *builder) opLatency(l tiers.Kind, op tiers.Op) result.OpLatency {
	o := result.OpLatency{
		IO:        b.ofOp(l, op, histIO),
		Device:    b.ofOp(l, op, histDevice),
		Host:      b.ofOp(l, op, histHost),
		Demotion:  b.ofOp(l, op, histDemotion),
		Per100MiB: b.ofOp(l, op, histNormal),
		Rate:      b.ofOp(l, op, histRate),
		BySize:    []result.SizeLatency{},
	}
	for c := range numSizeClasses {
		io := b.ofOp(l, op, histBySize+opHist(c))
		if io.Count == 0 {
			continue
		}
		lo, hi := sizeClassBounds(c)
		s := result.SizeLatency{FromBytes: lo, IO: io}
		if hi > 0 {
			s.ToBytes = new(hi)
		}
		o.BySize = append(o.BySize, s)
	}
	return o
}

// contextLoad extrapolates from the effective bandwidth of single entries, because loading a context is one such read:
// the median entry's, and that of the twentieth that was slowest.
func (b *builder) contextLoad() []result.ContextLoad {
	out := []result.ContextLoad{}
	l, ok := b.slowest()
	if !ok || b.tokenBytes(1) == 0 {
		return out
	}
	rate := b.ofOp(l, tiers.Read, histRate)
	for _, tokens := range contextTokens {
		c := result.ContextLoad{Tokens: int64(tokens), Bytes: b.tokenBytes(tokens)}
		c.TypicalNS = timeAt(c.Bytes, rate.P50)
		c.SlowNS = timeAt(c.Bytes, rate.P5)
		if pr := b.info.Workload.PrefillRate; pr > 0 && units.Finite(pr) != nil {
			c.RecomputeNS = new(int64(float64(tokens) / pr * float64(time.Second)))
			if c.TypicalNS != nil {
				c.LoadingWins = new(*c.TypicalNS < *c.RecomputeNS)
			}
		}
		out = append(out, c)
	}
	return out
}

func timeAt(bytes int64, rate *int64) *int64 {
	if rate == nil || *rate <= 0 {
		return nil
	}
	return new(int64(float64(bytes) / float64(*rate) * float64(time.Second)))
}
