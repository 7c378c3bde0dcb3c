package tracing

import (
	"fmt"
	"math"
	"reflect"
	"strings"
)

// Trace has the data of a block-layer trace from Collector.OpenWindow to CloseWindow. Its JSON is the
// result's device_latency_tracing: one key per histogram, and "capture", which describes how the trace was
// taken and what it missed.
type Trace struct {
	Histograms
	Capture Capture `json:"capture"`
	// Course has four of the histograms over time; null without snapshots.
	Course *Course `json:"over_time,omitempty"`
}

// Histograms has the distributions, in the order of reports. A distribution without samples is empty. The
// names are those of the Python benchmark. D2C (dispatch to completion) and Q2D (queue to dispatch) are
// terms of btt. The tags of a field are the fields of Kind.
type Histograms struct {
	D2CRead       Histogram `json:"d2c_read_us,omitzero" title:"D2C read" what:"device: dispatch to completion" units:"µs"`
	D2CWrite      Histogram `json:"d2c_write_us,omitzero" title:"D2C write" what:"device: dispatch to completion" units:"µs"`
	Q2DRead       Histogram `json:"q2d_read_us,omitzero" title:"Q2D read" what:"scheduler: queue to dispatch" units:"µs"`
	Q2DWrite      Histogram `json:"q2d_write_us,omitzero" title:"Q2D write" what:"scheduler: queue to dispatch" units:"µs"`
	Flush         Histogram `json:"d2c_flush_us,omitzero" title:"D2C flush" what:"device: flush requests" units:"µs"`
	FlushWait     Histogram `json:"flush_wait_us,omitzero" title:"flush wait" what:"from the request for a flush to its end" units:"µs"`
	Discard       Histogram `json:"d2c_discard_us,omitzero" title:"D2C discard" what:"device: discards" units:"µs"`
	Idle          Histogram `json:"idle_us,omitzero" title:"idle" what:"gaps with nothing in flight" units:"µs"`
	VFSRead       Histogram `json:"vfs_read_us,omitzero" title:"VFS read" what:"read calls as the application sees them" units:"µs"`
	VFSWrite      Histogram `json:"vfs_write_us,omitzero" title:"VFS write" what:"write calls as the application sees them" units:"µs"`
	VFSReadSize   Histogram `json:"vfs_read_sz_kb,omitzero" title:"VFS read size" what:"bytes of one read call" units:"KiB"`
	VFSWriteSize  Histogram `json:"vfs_write_sz_kb,omitzero" title:"VFS write size" what:"bytes of one write call" units:"KiB"`
	Fsync         Histogram `json:"fsync_us,omitzero" title:"fsync" what:"flushes as the application sees them" units:"µs"`
	WriteToFsync  Histogram `json:"write_to_fsync_us,omitzero" title:"write to fsync" what:"gap between the last write and its flush" units:"µs"`
	FadviseToRead Histogram `json:"fadvise_to_read_us,omitzero" title:"fadvise to read" what:"gap between dropping pages and reading" units:"µs"`
	SizeRead      Histogram `json:"bssplit_read_kb,omitzero" title:"block size read" what:"sizes of block requests" units:"KiB"`
	SizeWrite     Histogram `json:"bssplit_write_kb,omitzero" title:"block size write" what:"sizes of block requests" units:"KiB"`
	DepthRead     Histogram `json:"qd_read,omitzero" title:"queue depth read" what:"requests in flight at dispatch" units:"requests"`
	DepthWrite    Histogram `json:"qd_write,omitzero" title:"queue depth write" what:"requests in flight at dispatch" units:"requests"`
	LBARead       Histogram `json:"lba_read_gb,omitzero" title:"LBA read" what:"position on the device" units:"GiB"`
	LBAWrite      Histogram `json:"lba_write_gb,omitzero" title:"LBA write" what:"position on the device" units:"GiB"`
}

// Kind describes a histogram of a trace.
type Kind struct {
	Key   string // the JSON key in results, also in those of the Python benchmark
	Title string
	What  string // what the histogram measures
	Units string // the unit of the buckets' bounds, for people
}

// Kinds are all histograms in the order in which reports show them.
var Kinds = func() (kinds []Kind) {
	for field := range reflect.TypeFor[Histograms]().Fields() {
		tag := field.Tag.Get
		key, _, _ := strings.Cut(tag("json"), ",")
		kinds = append(kinds, Kind{key, tag("title"), tag("what"), tag("units")})
	}
	return kinds
}()

// Named is a histogram with its Kind.
type Named struct {
	Kind
	Histogram
}

// All returns the histograms that have samples, in the order of Kinds.
func (h *Histograms) All() (list []Named) {
	fields := reflect.ValueOf(h).Elem()
	for i, kind := range Kinds {
		if n := fields.Field(i).Interface().(Histogram); n.Count != 0 {
			list = append(list, Named{kind, n})
		}
	}
	return list
}

// Histogram is one distribution that the kernel collected. Count and Sum are exact. Mean and the
// percentiles are null without samples; percentiles are interpolated within a bucket.
type Histogram struct {
	Unit    string   `json:"unit"` // us, kb (KiB), requests, gb (GiB)
	Count   int64    `json:"count"`
	Sum     float64  `json:"sum"`
	Mean    *float64 `json:"mean"`
	P50     *float64 `json:"p50"`
	P95     *float64 `json:"p95"`
	P99     *float64 `json:"p99"`
	Buckets []Bucket `json:"buckets"` // only buckets with samples, in ascending order
}

// Bucket counts the values in [Range[0], Range[1]), in the histogram's unit.
type Bucket struct {
	// The Python benchmark has the key range_us for every unit, so kvbench does, too.
	Range [2]float64 `json:"range_us"`
	Count int64      `json:"count"`
	// Value is the mean of the values in the bucket if the mean is known (request sizes), otherwise 0.
	// Mostly all requests of a bucket have one size: then Value is this size.
	Value float64 `json:"value,omitempty"`
}

// NewHistogram returns the distribution with these buckets, which are not empty and in ascending order. sum
// is the sum of all values. Without buckets the distribution is empty.
func NewHistogram(unit string, sum float64, buckets []Bucket) Histogram {
	h := Histogram{Unit: unit, Sum: sum, Buckets: buckets}
	for _, b := range buckets {
		h.Count += b.Count
	}
	if h.Count == 0 {
		return Histogram{}
	}
	h.Mean = new(h.Sum / float64(h.Count))
	h.P50, h.P95, h.P99 = new(h.Percentile(50)), new(h.Percentile(95)), new(h.Percentile(99))
	return h
}

// Check returns an error if the buckets do not match the count: a file may have been edited.
func (h Histogram) Check() error {
	var counted int64
	for i, b := range h.Buckets {
		if b.Count <= 0 || !(b.Range[0] < b.Range[1]) ||
			i > 0 && b.Range[0] < h.Buckets[i-1].Range[1] {
			return fmt.Errorf("bucket %d, [%g, %g) with %d samples, is empty or out of order", i,
				b.Range[0], b.Range[1], b.Count)
		}
		counted += b.Count
	}
	if counted != h.Count {
		return fmt.Errorf("the count is %d, but the buckets have %d samples", h.Count, counted)
	}
	return nil
}

// Percentile returns the value below which p percent of the samples lie. Without samples it is NaN.
func (h Histogram) Percentile(p float64) float64 {
	if h.Count == 0 {
		return math.NaN()
	}
	rank, seen := p/100*float64(h.Count), 0.0
	for _, b := range h.Buckets {
		n := float64(b.Count)
		switch {
		case seen+n < rank:
			seen += n
		case b.Value > 0:
			return b.Value
		case b.single():
			return b.Range[0]
		default:
			return b.Range[0] + (b.Range[1]-b.Range[0])*max(0, rank-seen)/n
		}
	}
	return h.Buckets[len(h.Buckets)-1].Range[1]
}

// single reports whether the bucket is for a single whole number, as the buckets of small depths are.
func (b Bucket) single() bool {
	return b.Range[1]-b.Range[0] == 1 && b.Range[0] == math.Trunc(b.Range[0])
}

// Middle returns the value that represents a bucket.
func (b Bucket) Middle() float64 {
	if b.single() {
		return b.Range[0]
	}
	return (b.Range[0] + b.Range[1]) / 2
}
