package result

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/units"
)

// Complete derives all values that follow from the counts of r and from hists. The recorder and
// package merge call it.
func (r *Result) Complete(hists Histograms) {
	r.Derive()
	r.Distribute(hists)
}

// A number with the tag ratio:"A+B/C" is the sum of the fields A and B of its structure ÷ field C. A
// number with the tag rate:"A/B" is field A ÷ field B in seconds; B has nanoseconds. Without a
// divisor both divide by the window: a rate is per second, a ratio of nanoseconds is a mean number.
// A number is nil if the divisor is 0 or a field is nil.

// Rates computes the numbers that divide by the window. Only the recorder calls it: each rank has
// its own window, and the rates of ranks are added.
func (r *Result) Rates() { quotients(reflect.ValueOf(r).Elem(), float64(r.WindowNS)) }

// quotients sets the tagged numbers of v and of all structures in it. With a window of 0 it leaves
// those that divide by the window.
func quotients(v reflect.Value, window float64) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			quotients(v.Elem(), window)
		}
	case reflect.Slice:
		for i := 0; i < v.Len() && v.Type().Elem().Kind() == reflect.Struct; i++ {
			quotients(v.Index(i), window)
		}
	case reflect.Map:
		for key, value := range v.Seq2() { // a value of a map cannot be set in place
			changed := reflect.New(value.Type()).Elem()
			changed.Set(value)
			quotients(changed, window)
			v.SetMapIndex(key, changed)
		}
	case reflect.Struct:
		for field, to := range v.Fields() {
			rule, unit := field.Tag.Get("ratio"), 1.0
			if rule == "" {
				rule, unit = field.Tag.Get("rate"), 1e9
			}
			part, whole, divided := strings.Cut(rule, "/")
			switch {
			case rule == "":
				quotients(to, window)
			case divided:
				to.Set(reflect.ValueOf(units.Ratio(total(v, part), total(v, whole)/unit)))
			case window > 0:
				to.Set(reflect.ValueOf(units.Ratio(total(v, part), window/unit)))
			}
		}
	}
}

// total returns the sum of the named fields of v, NaN if one is nil.
func total(v reflect.Value, names string) (sum float64) {
	for name := range strings.SplitSeq(names, "+") {
		switch f := v.FieldByName(name); {
		case f.CanInt():
			sum += float64(f.Int())
		case f.IsNil():
			return math.NaN()
		default:
			sum += float64(f.Elem().Int())
		}
	}
	return sum
}

// Derive computes the ratios and costs from the counts of r. A ratio is nil if its base is 0. The
// recorder and package merge call it: ratios of ranks are not averaged, because a rank of ten
// requests would weigh as much as a rank of a thousand.
func (r *Result) Derive() {
	quotients(reflect.ValueOf(r).Elem(), 0)
	for class, o := range r.Load {
		o.Censored = units.OrZero(o.CensoredRatio) > censoredAbove
		r.Load[class] = o
	}
	if f := r.FirstToken; f != nil { // from load time without waits, and compute time
		s := &f.Sums
		f.SavedRatio = units.Ratio(s.ComputeAll-s.Compute+s.Overlap-(s.Load-s.LoadWaits),
			s.ComputeAll)
		f.ComputeSavedRatio = units.Ratio(s.ComputeAll-s.Compute, s.ComputeAll)
		// A ratio below 1e-4 is rounding, or lookups that found nothing.
		if v := f.SavedRatio; v != nil && math.Abs(*v) < 1e-4 {
			*v = 0
		}
	}
	if n := &r.Requests; r.IO.Mode != IOMemory { // which has no storage time
		n.StorageTokensPerSecond = units.Ratio(n.GeneratedTokens,
			time.Duration(n.StorageLatencyNS).Seconds())
	}
	r.Checkpoint.setRates(r.Tiers)
	bytes := int64(0)
	for i := range r.Tiers {
		t := &r.Tiers[i]
		bytes += t.Read.Bytes + t.Write.Bytes
		for _, d := range []*TierTraffic{&t.Read, &t.Write} {
			// Time and bytes of completed operations only.
			d.NSPerMiB = units.Ratio(d.DeviceNS, float64(d.EntryBytes)/float64(units.MiB))
		}
	}
	// The CPU time of a simulation does not predict the CPU time of a real run.
	if h := &r.Harness; h.CPUNS > 0 && r.Simulation == nil {
		h.CPUNSPerByte = units.Ratio(h.CPUNS, bytes)
		if p := r.PlainIO; p != nil && p.BlockBytes > 0 {
			p.CPUNSPerRequest = units.Ratio(h.CPUNS, r.Requests.Operations)
		}
	}
	w := &r.DeviceCounters
	if w.Reason == "" && w.ReadBytes != nil && w.WriteBytes != nil {
		w.ReadRatio = units.Ratio(*w.ReadBytes, w.AppReadBytes)
		w.WriteRatio = units.Ratio(*w.WriteBytes, w.AppWriteBytes)
	}
	// Reads that the device did not count came from the page cache or a controller's cache. One
	// such client is enough: its bytes are in the sums.
	if w.ReadRatio != nil {
		served := w.ServedFromCache != nil && *w.ServedFromCache
		w.ServedFromCache = new(served || *w.ReadRatio < servedFromCacheBelow)
	}
	if n := r.Network; n != nil {
		n.Derive(w.AppReadBytes)
	}
	slices.SortFunc(r.Errors, ErrorCount.Compare)
}

// derive computes the load time of the context from the read rates of single entries: TypicalNS
// from the median, SlowNS from the 5th percentile.
func (c *ContextLoad) derive(rate Distribution) {
	c.TypicalNS, c.SlowNS, c.LoadingWins = timeAt(c.Bytes, rate.P50), timeAt(c.Bytes, rate.P5), nil
	if c.RecomputeNS != nil && c.TypicalNS != nil {
		c.LoadingWins = new(*c.TypicalNS < *c.RecomputeNS)
	}
}

// timeAt returns how long bytes take at rate (bytes/s), in ns; nil if the rate is unknown.
func timeAt(bytes int64, rate *int64) *int64 {
	if rate == nil || *rate <= 0 {
		return nil
	}
	return new(int64(float64(bytes) / float64(*rate) * 1e9))
}

// Compare orders failures by count, highest first, then by tier, operation and errno.
func (e ErrorCount) Compare(o ErrorCount) int {
	return cmp.Or(cmp.Compare(o.Count, e.Count), cmp.Compare(e.Tier, o.Tier),
		cmp.Compare(e.Operation, o.Operation), cmp.Compare(e.Errno, o.Errno))
}

// ofEngines are the parameters of an engine and its layout that Imitated lists.
var ofEngines = []string{"layout", "object-tokens", "io", "io-depth", "read-threads",
	"write-threads", "s3-keys", "s3-lookup", "s3-requests", "tier-policy", "promote",
	"write-behind-gb", "admit-after", "evict"}

// Imitated returns the inference engine that the run imitated, "" for none. its are the parameters
// that the engine or its layout set, others those that the user set, by the Origin of the value.
// Each text is "name value".
func (r *Result) Imitated() (engine string, its, others []string) {
	for _, p := range r.Parameters {
		if p.Name == "engine" && p.Value != "none" {
			engine = fmt.Sprint(p.Value)
		}
		if !slices.Contains(ofEngines, p.Name) || r.IO.Mode == IOMemory && p.Name != "object-tokens" ||
			r.CompletionUnit == UnitOperation && p.Name != "io" {
			continue // without a storage tier there are no files, and plain I/O has only the I/O mode
		}
		from, _, _ := strings.Cut(p.Origin, " ")
		text := fmt.Sprintf("%s %v", p.Name, p.Value)
		if strings.HasSuffix(p.Name, "-threads") && fmt.Sprint(p.Value) == "0" {
			text = p.Name + " one per request"
		}
		switch from {
		case "engine", "layout":
			its = append(its, text)
		case "default", "division", "benchmark":
		default:
			others = append(others, text)
		}
	}
	return engine, its, others
}

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
// level per tier. It also sets what follows from distributions: the compliance of the classes, and the
// load times of contexts.
func (r *Result) Distribute(hs Histograms) {
	all := &r.Latency
	all.Levels = make(map[string]LevelLatency)
	all.Request.ByClass = make(map[string]Distribution)
	hs.fill(all, "")
	hs.fill(&all.Request, "request_")
	for _, class := range Classes {
		name := "request_end_to_end_" + class
		all.Request.ByClass[class] = hs.Distribution(name)
		if o, ok := r.Load[class]; ok {
			o.Compliance = units.Ratio(hs[name].AtMost(o.TargetP95NS), hs[name].Count()+o.Unmet())
			r.Load[class] = o
		}
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
