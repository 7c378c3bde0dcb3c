package load

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"kvbench/tracing"
)

// TraceHistogram is one histogram of block-layer tracing with what it is called. The words are
// those of btt, the tool that named D2C and Q2D.
type TraceHistogram struct {
	Key   string // d2c_read_us
	Title string // "D2C read"
	What  string // what it says
	Unit  string // of the buckets' bounds: µs, KiB, requests, GiB

	// Only the buckets with samples. Percentiles are as the file gives them, else lower bounds of
	// their buckets: the Python benchmark gives none.
	tracing.Histogram
}

// tracings are the known histograms in the order in which they are shown. Keys are those of the
// Python benchmark.
var tracings = [][3]string{
	{"d2c_read_us", "D2C read", "device: dispatch to completion"},
	{"d2c_write_us", "D2C write", "device: dispatch to completion"},
	{"q2d_read_us", "Q2D read", "scheduler: queue to dispatch"},
	{"q2d_write_us", "Q2D write", "scheduler: queue to dispatch"},
	{"d2c_flush_us", "D2C flush", "device: its own flushes"},
	{"flush_wait_us", "flush wait", "from asking for a flush to its end"},
	{"d2c_discard_us", "D2C discard", "device: discards"},
	{"idle_us", "idle", "gaps with nothing in flight"},
	{"vfs_read_us", "VFS read", "read calls as the application sees them"},
	{"vfs_write_us", "VFS write", "write calls as the application sees them"},
	{"vfs_read_sz_kb", "VFS read size", "bytes asked for by one read call"},
	{"vfs_write_sz_kb", "VFS write size", "bytes given to one write call"},
	{"fsync_us", "fsync", "flushes as the application sees them"},
	{"write_to_fsync_us", "write to fsync", "gap between the last write and its flush"},
	{"fadvise_to_read_us", "fadvise to read", "gap between dropping pages and reading"},
	{"bssplit_read_kb", "block size read", "sizes of block requests"},
	{"bssplit_write_kb", "block size write", "sizes of block requests"},
	{"qd_read", "queue depth read", "requests in flight at dispatch"},
	{"qd_write", "queue depth write", "requests in flight at dispatch"},
	{"lba_read_gb", "LBA read", "where on the device"},
	{"lba_write_gb", "LBA write", "where on the device"},
}

// traceUnits are what the ends of keys stand for; other histograms count requests.
var traceUnits = map[string]string{"us": "µs", "kb": "KiB", "gb": "GiB"}

// Tracing returns the histograms of the result file that have samples. Results without tracing have
// none.
func (rec *Record) Tracing() (out []TraceHistogram) {
	// The raw file is read, not the typed result: the Python benchmark has the same keys.
	section := rec.section("device_latency_tracing")
	if section == nil { // as of thousands of lines without a file
		return nil
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(section, &all)
	for _, known := range tracings {
		h := TraceHistogram{Key: known[0], Title: known[1], What: known[2]}
		h.Unit = cmp.Or(traceUnits[h.Key[strings.LastIndexByte(h.Key, '_')+1:]], "requests")
		if json.Unmarshal(all[h.Key], &h.Histogram) != nil {
			continue
		}
		empty := func(b tracing.Bucket) bool { return b.Count <= 0 }
		h.Buckets = slices.DeleteFunc(h.Buckets, empty)
		h.Count = 0
		for _, b := range h.Buckets {
			h.Count += b.Count
		}
		if h.Count <= 0 {
			continue
		}
		for p, to := range map[float64]**float64{0.50: &h.P50, 0.95: &h.P95, 0.99: &h.P99} {
			if *to == nil {
				*to = new(h.bound(p))
			}
		}
		out = append(out, h)
	}
	return out
}

// Course is how the traced histograms grew; nil where nobody noted it.
func (rec *Record) Course() *tracing.Course {
	var seen struct {
		Course *tracing.Course `json:"over_time"`
	}
	section := rec.section("device_latency_tracing")
	if section == nil || json.Unmarshal(section, &seen) != nil || seen.Course == nil ||
		!seen.Course.Sound() {
		return nil
	}
	return seen.Course
}

// bound is the lower bound of the bucket in which a percentile lies.
func (h TraceHistogram) bound(p float64) float64 {
	below := int64(0)
	i := slices.IndexFunc(h.Buckets, func(b tracing.Bucket) bool {
		below += b.Count
		return float64(below) >= p*float64(h.Count)
	})
	return h.Buckets[i].Range[0]
}
