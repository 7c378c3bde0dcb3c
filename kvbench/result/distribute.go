package result

import (
	"fmt"
	"reflect"
	"strings"

	"kvbench/kvbench/units"
)

// Histograms are those of a trial by their keys in its result. A name without values may be absent.
type Histograms map[string]*Histogram

// HistogramUnit is what a histogram of that name counts.
func HistogramUnit(name string) units.Unit {
	switch {
	case strings.HasSuffix(name, "_size"):
		return units.Bytes
	case strings.HasSuffix(name, "_rate"):
		return units.BytesPerSec
	}
	return units.Nanoseconds
}

// SizeClasses: latencies mean little across sizes that differ by a thousand. Below 1 MiB, then
// powers of four, 1–4 MiB, … 1–4 GiB, and all above.
const SizeClasses = 8

// SizeClassBounds returns the bounds [from, to) of a class; the last has no end.
func SizeClassBounds(c int) (from int64, to *int64) {
	if c > 0 {
		from = 1 << (20 + 2*(c-1))
	}
	if c < SizeClasses-1 {
		to = new(int64(1) << (20 + 2*c))
	}
	return from, to
}

// Distribution is the histogram of that name in numbers.
func (hs Histograms) Distribution(name string) Distribution {
	return NewDistribution(HistogramUnit(name), hs[name])
}

// fill makes the distributions of a section: a histogram is named as its key in the JSON, after
// what the section is of.
func (hs Histograms) fill(section any, of string) {
	for field, at := range reflect.ValueOf(section).Elem().Fields() {
		if d, ok := at.Addr().Interface().(*Distribution); ok {
			*d = hs.Distribution(of + field.Tag.Get("json"))
		}
	}
}

// Distribute makes every distribution of the result: latencies, sizes of entries, and, where it has
// them, requests to a store and times to the first token. The levels are those of its tiers.
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
	if n := len(r.Tiers); n > 0 { // contexts come from the slowest level
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

// overLevels is what concerns entries and not levels: the sum over all of these.
func (hs Histograms) overLevels(levels []Tier, name string) Distribution {
	sum := NewHistogram(HistogramUnit(name))
	for _, t := range levels {
		sum.Merge(hs[t.Level+name])
	}
	return NewDistribution(HistogramUnit(name), sum)
}

// operation is one operation on one level. Size classes without entries are left out.
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
