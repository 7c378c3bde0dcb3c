package kvbench

import (
	"time"

	"kvbench/tiers"
	"kvbench/workloads"
)

// contextTokens are the contexts whose load time every result tells.
var contextTokens = [...]int{8 << 10, 32 << 10, 128 << 10}

func (b *builder) latency(r *Result) {
	r.Latency = Latency{
		Levels:         make(map[string]LevelLatency),
		PrefixRead:     b.dist(histID{kind: histPrefix}),
		ReadAdmission:  b.dist(histID{kind: histAdmission, op: tiers.Read}),
		WriteAdmission: b.dist(histID{kind: histAdmission, op: tiers.Write}),
		SpaceWait:      b.dist(histID{kind: histSpace}),
		PendingWait:    b.dist(histID{kind: histPending}),
		DataGeneration: b.dist(histID{kind: histGenerate}),
		Request: RequestLatency{
			EndToEnd:   b.dist(histID{kind: histEndToEnd}),
			Queue:      b.dist(histID{kind: histQueue}),
			Storage:    b.dist(histID{kind: histStorage}),
			Prefill:    b.dist(histID{kind: histPrefill}),
			Decode:     b.dist(histID{kind: histDecode}),
			Generation: b.dist(histID{kind: histGeneration}),
			ByClass:    make(map[string]Distribution),
		},
	}
	for c := range workloads.Class(workloads.NumClasses) {
		r.Latency.Request.ByClass[c.String()] = b.dist(histID{kind: histClass, class: uint8(c)})
	}
	for l := range tiers.NumLevels {
		if !b.exists[l] {
			continue
		}
		r.Latency.Levels[l.String()] = LevelLatency{
			Read:      b.opLatency(l, tiers.Read),
			Write:     b.opLatency(l, tiers.Write),
			FirstRead: b.dist(histID{kind: histFirst, level: l}),
			ReRead:    b.dist(histID{kind: histReread, level: l}),
			Delete:    b.dist(histID{kind: histDelete, level: l}),
		}
	}
	all := func(histID) bool { return true }
	r.FirstReads.Latency = NewDistribution(Nanoseconds, b.merged(histFirst, all))
	r.ReReads.Latency = NewDistribution(Nanoseconds, b.merged(histReread, all))
	of := func(op tiers.Op) func(histID) bool { return func(id histID) bool { return id.op == op } }
	r.EntrySizes = EntrySizes{
		Read:  NewDistribution(Bytes, b.merged(histSize, of(tiers.Read))),
		Write: NewDistribution(Bytes, b.merged(histSize, of(tiers.Write))),
	}
	r.ContextLoad = b.contextLoad()
}

func (b *builder) opLatency(l tiers.Level, op tiers.Op) OpLatency {
	id := histID{level: l, op: op}
	o := OpLatency{
		IO:        b.dist(id.of(histIO)),
		Device:    b.dist(id.of(histDevice)),
		Host:      b.dist(id.of(histHost)),
		Demotion:  b.dist(id.of(histDemotion)),
		Per100MiB: b.dist(id.of(histNormal)),
		Rate:      b.dist(id.of(histRate)),
		BySize:    []SizeLatency{},
	}
	for c := range numSizeClasses {
		bySize := id.of(histBySize)
		bySize.class = uint8(c)
		if b.hist(bySize).Count() == 0 {
			continue
		}
		lo, hi := sizeClassBounds(c)
		s := SizeLatency{FromBytes: lo, IO: b.dist(bySize)}
		if hi > 0 {
			s.ToBytes = new(hi)
		}
		o.BySize = append(o.BySize, s)
	}
	return o
}

// contextLoad extrapolates from the effective bandwidth of single entries, because loading a context is one such read:
// the median entry's, and that of the twentieth that was slowest.
func (b *builder) contextLoad() []ContextLoad {
	out := []ContextLoad{}
	l, ok := b.slowest()
	if !ok || b.tokenBytes(1) == 0 {
		return out
	}
	rate := b.dist(histID{kind: histRate, level: l, op: tiers.Read})
	for _, tokens := range contextTokens {
		c := ContextLoad{Tokens: int64(tokens), Bytes: b.tokenBytes(tokens)}
		c.TypicalNS = timeAt(c.Bytes, rate.P50)
		c.SlowNS = timeAt(c.Bytes, rate.P5)
		if pr := b.info.PrefillRate; pr > 0 && finite(pr) != nil {
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
