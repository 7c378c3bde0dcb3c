package record

import (
	"fmt"
	"reflect"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// distribution is the histogram of that name in numbers.
func (b *builder) distribution(name string) result.Distribution {
	return result.NewDistribution(histUnit(name), b.hists[name])
}

// distributions fills those of a section: a histogram is named as its key in the JSON, after what
// the section is of.
func (b *builder) distributions(section any, of string) {
	for field, at := range reflect.ValueOf(section).Elem().Fields() {
		if d, ok := at.Addr().Interface().(*result.Distribution); ok {
			*d = b.distribution(of + field.Tag.Get("json"))
		}
	}
}

// latency makes every distribution of the result.
func (b *builder) latency() {
	r, all := b.r, &b.r.Latency
	all.Levels = make(map[string]result.LevelLatency)
	all.Request.ByClass = make(map[string]result.Distribution)
	b.distributions(all, "")
	b.distributions(&all.Request, "request_")
	for _, class := range result.Classes {
		all.Request.ByClass[class] = b.distribution("request_end_to_end_" + class)
	}
	for _, l := range b.levels {
		of := result.LevelLatency{Read: b.opLatency(l, tiers.Read),
			Write: b.opLatency(l, tiers.Write)}
		b.distributions(&of, l.String()+"_")
		of.ReRead = b.distribution(l.String() + "_reread")
		all.Levels[l.String()] = of
	}
	r.FirstReads.Latency, r.ReReads.Latency = b.overLevels("_first_read"), b.overLevels("_reread")
	r.EntrySizes.Read, r.EntrySizes.Write = b.overLevels("_read_size"), b.overLevels("_write_size")
	r.ContextLoad = b.contextLoad()
}

// overLevels is what concerns entries and not levels: the sum over all of these.
func (b *builder) overLevels(name string) result.Distribution {
	sum := result.NewHistogram(histUnit(name))
	for l := range tiers.NumKinds {
		sum.Merge(b.hists[l.String()+name])
	}
	return result.NewDistribution(histUnit(name), sum)
}

// opLatency is one operation on one level. Size classes without entries are left out.
func (b *builder) opLatency(l tiers.Kind, op tiers.Op) result.OpLatency {
	name := opName(l, op)
	o := result.OpLatency{BySize: []result.SizeLatency{}}
	b.distributions(&o, name+"_")
	o.IO = b.distribution(name)
	for c := range numSizeClasses {
		io := b.distribution(fmt.Sprintf("%s_size_class_%d", name, c))
		if io.Count > 0 {
			from, to := sizeClassBounds(c)
			o.BySize = append(o.BySize, result.SizeLatency{FromBytes: from, ToBytes: to, IO: io})
		}
	}
	return o
}

// contextTokens are the contexts whose load time every result tells, whatever the load was.
var contextTokens = [...]int{8 << 10, 32 << 10, 128 << 10}

// contextLoad extrapolates from the effective bandwidth of single entries of the slowest level,
// because loading a context is one such read: the median entry's, and that of the twentieth that
// was slowest.
func (b *builder) contextLoad() []result.ContextLoad {
	out := []result.ContextLoad{}
	if len(b.levels) == 0 || b.info.Sizer.BytesPerToken == 0 {
		return out
	}
	slowest := b.levels[len(b.levels)-1]
	rate := b.r.Latency.Levels[slowest.String()].Read.Rate
	for _, tokens := range contextTokens {
		bytes := b.info.Sizer.Bytes(tokens)
		c := result.ContextLoad{
			Tokens: int64(tokens), Bytes: bytes, TypicalNS: timeAt(bytes, rate.P50),
			SlowNS: timeAt(bytes, rate.P5),
		}
		if c.RecomputeNS = b.recompute(tokens); c.RecomputeNS != nil && c.TypicalNS != nil {
			c.LoadingWins = new(*c.TypicalNS < *c.RecomputeNS)
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
