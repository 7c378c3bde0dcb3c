package result

import (
	"fmt"
	"reflect"
	"strings"

	"kvbench/kvbench/units"
)

// Histograms are the histograms of a trial, by their keys in the result. A histogram without values
// may be absent.
type Histograms map[string]*Histogram

// HistogramUnit returns the unit of the values in the histogram of that name.
func HistogramUnit(name string) units.Unit {
	switch {
	case strings.HasSuffix(name, "_size"):
		return units.Bytes
	case strings.HasSuffix(name, "_rate"):
		return units.BytesPerSec
	}
	return units.Nanoseconds
}

// SizeClasses is the number of size classes of entries: below 1 MiB, then powers of four (1–4 MiB,
// … 1–4 GiB), then all above. Each class has its own latencies, because sizes may differ by a
// factor of 1000.
const SizeClasses = 8

// SizeClassBounds returns the bounds [from, to) of class c in bytes. to is nil for the last class.
func SizeClassBounds(c int) (from int64, to *int64) {
	if c > 0 {
		from = 1 << (20 + 2*(c-1))
	}
	if c < SizeClasses-1 {
		to = new(int64(1) << (20 + 2*c))
	}
	return from, to
}

// Distribution returns the distribution of the histogram of that name.
func (hs Histograms) Distribution(name string) Distribution {
	return NewDistribution(HistogramUnit(name), hs[name])
}

// fill sets the Distribution fields of section, a pointer to a structure. The name of a field's
// histogram is of and the JSON key of the field.
func (hs Histograms) fill(section any, of string) {
	for field, at := range reflect.ValueOf(section).Elem().Fields() {
		if d, ok := at.Addr().Interface().(*Distribution); ok {
			*d = hs.Distribution(of + field.Tag.Get("json"))
		}
	}
}

// Distribute sets every distribution of the result: latencies and sizes of entries, and, if the
// result has these sections, object requests and times to the first token. Latency.Levels has a
// level per tier.
func (r *Result) Distribute(hs Histograms) {
	all := &r.Latency
	all.Levels = make(map[string]LevelLatency)
	all.Request.ByClass = make(map[string]Distribution)
	hs.fill(all, "")
	hs.fill(&all.Request, "request_")
	for _, class := range Classes {
		all.Request.ByClass[class] = hs.Distribution("request_end_to_end_" + class)
	}
	for _, t := range r.Tiers {
		of := LevelLatency{Read: hs.operation(t.Level + "_read"),
			Write: hs.operation(t.Level + "_write")}
		hs.fill(&of, t.Level+"_")
		of.ReRead = hs.Distribution(t.Level + "_reread")
		all.Levels[t.Level] = of
	}
	r.FirstReads.Latency = hs.overLevels(r.Tiers, "_first_read")
	r.ReReads.Latency = hs.overLevels(r.Tiers, "_reread")
	r.EntrySizes.Read = hs.overLevels(r.Tiers, "_read_size")
	r.EntrySizes.Write = hs.overLevels(r.Tiers, "_write_size")
	if o := r.Objects; o != nil {
		hs.fill(o, "object_")
		for kind, n := range o.Operations {
			n.Latency = hs.Distribution("object_" + kind)
			o.Operations[kind] = n
		}
	}
	if n := len(r.Tiers); n > 0 { // contexts are loaded from the slowest level
		for i := range r.ContextLoad {
			r.ContextLoad[i].derive(all.Levels[r.Tiers[n-1].Level].Read.Rate)
		}
	}
	if f := r.FirstToken; f != nil {
		f.ByClass = make(map[string]Distribution)
		hs.fill(f, "request_")
		for _, class := range Classes {
			f.ByClass[class] = hs.Distribution("request_ttft_" + class)
		}
	}
}

// overLevels returns the distribution over all levels of the histograms whose names end in name.
func (hs Histograms) overLevels(levels []Tier, name string) Distribution {
	sum := NewHistogram(HistogramUnit(name))
	for _, t := range levels {
		sum.Merge(hs[t.Level+name])
	}
	return NewDistribution(HistogramUnit(name), sum)
}

// operation returns the latencies of an operation on a level. It leaves out size classes without
// entries.
func (hs Histograms) operation(name string) OpLatency {
	o := OpLatency{BySize: []SizeLatency{}}
	hs.fill(&o, name+"_")
	o.IO = hs.Distribution(name)
	for c := range SizeClasses {
		io := hs.Distribution(fmt.Sprintf("%s_size_class_%d", name, c))
		if io.Count > 0 {
			from, to := SizeClassBounds(c)
			o.BySize = append(o.BySize, SizeLatency{FromBytes: from, ToBytes: to, IO: io})
		}
	}
	return o
}
