package result

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"kvbench/kvbench/units"
)

// Complete derives all values that follow from the counts of r and from hists. The recorder and
// package merge call it.
func (r *Result) Complete(hists Histograms) {
	r.Derive()
	r.Distribute(hists)
	for _, class := range Classes {
		if o, ok := r.Load[class]; ok {
			h := hists["request_end_to_end_"+class]
			o.Compliance = units.Ratio(h.AtMost(o.TargetP95NS), h.Count()+o.Unmet())
			r.Load[class] = o
		}
	}
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
		unfinished := o.InFlight + o.Queued
		o.CensoredRatio = units.Ratio(unfinished, o.Completed+o.Failed+unfinished)
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
		if !slices.Contains(ofEngines, p.Name) || r.IO.Mode == IOMemory && p.Name != "object-tokens" {
			continue // without a storage tier prompts are cut into its objects, and there are no files
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
