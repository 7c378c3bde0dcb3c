package record

import (
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// ofAll is a distribution of the whole trial.
func (b *builder) ofAll(k hist) result.Distribution {
	return result.NewDistribution(units.Nanoseconds, b.hists.all[k])
}

// latency makes every distribution of the result.
func (b *builder) latency() {
	r := b.r
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
	ofLevel := func(l tiers.Kind, k levelHist) result.Distribution {
		return result.NewDistribution(units.Nanoseconds, b.hists.level[l][k])
	}
	for _, l := range b.levels {
		r.Latency.Levels[l.String()] = result.LevelLatency{
			Read:      b.opLatency(l, tiers.Read),
			Write:     b.opLatency(l, tiers.Write),
			FirstRead: ofLevel(l, histFirst),
			ReRead:    ofLevel(l, histReread),
			Delete:    ofLevel(l, histDelete),
		}
	}
	// What concerns entries and not levels is the sum over all of these.
	over := func(u units.Unit, of func(l tiers.Kind) *result.Histogram) result.Distribution {
		sum := result.NewHistogram(u)
		for l := range tiers.NumKinds {
			sum.Merge(of(l))
		}
		return result.NewDistribution(u, sum)
	}
	ofLevels := func(k levelHist) result.Distribution {
		return over(units.Nanoseconds,
			func(l tiers.Kind) *result.Histogram { return b.hists.level[l][k] })
	}
	sizes := func(op tiers.Op) result.Distribution {
		return over(units.Bytes,
			func(l tiers.Kind) *result.Histogram { return b.hists.op[l][op][histSize] })
	}
	r.FirstReads.Latency, r.ReReads.Latency = ofLevels(histFirst), ofLevels(histReread)
	r.EntrySizes = result.EntrySizes{Read: sizes(tiers.Read), Write: sizes(tiers.Write)}
	r.ContextLoad = b.contextLoad()
}

// opLatency is one operation on one level. Size classes without entries are left out.
func (b *builder) opLatency(l tiers.Kind, op tiers.Op) result.OpLatency {
	of := func(k opHist) result.Distribution {
		return result.NewDistribution(k.unit(), b.hists.op[l][op][k])
	}
	o := result.OpLatency{
		IO: of(histIO), Device: of(histDevice), Host: of(histHost), Demotion: of(histDemotion),
		Per100MiB: of(histNormal), Rate: of(histRate), BySize: []result.SizeLatency{},
	}
	for c := range numSizeClasses {
		if io := of(histBySize + opHist(c)); io.Count > 0 {
			from, to := sizeClassBounds(c)
			o.BySize = append(o.BySize, result.SizeLatency{FromBytes: from, ToBytes: to, IO: io})
		}
	}
	return o
}

// contextTokens are the contexts whose load time every result tells, whatever the load was.
var contextTokens = [...]int64{8 << 10, 32 << 10, 128 << 10}

// contextLoad extrapolates from the effective bandwidth of single entries of the slowest level,
// because loading a context is one such read: the median entry's, and that of the twentieth that
// was slowest.
func (b *builder) contextLoad() []result.ContextLoad {
	out := []result.ContextLoad{}
	if len(b.levels) == 0 || b.tokenBytes(1) == 0 {
		return out
	}
	slowest := b.levels[len(b.levels)-1]
	rate := b.r.Latency.Levels[slowest.String()].Read.Rate
	for _, tokens := range contextTokens {
		bytes := b.tokenBytes(tokens)
		c := result.ContextLoad{
			Tokens: tokens, Bytes: bytes, TypicalNS: timeAt(bytes, rate.P50),
			SlowNS: timeAt(bytes, rate.P5),
		}
		if pr := b.r.Workload.PrefillRate; pr > 0 {
			c.RecomputeNS = new(int64(float64(tokens) / pr * float64(time.Second)))
			if c.TypicalNS != nil {
				c.LoadingWins = new(*c.TypicalNS < *c.RecomputeNS)
			}
		}
		out = append(out, c)
	}
	return out
}

// timeAt is how long bytes take at a rate, nil when it is unknown.
func timeAt(bytes int64, rate *int64) *int64 {
	if rate == nil || *rate <= 0 {
		return nil
	}
	return new(int64(float64(bytes) / float64(*rate) * float64(time.Second)))
}
