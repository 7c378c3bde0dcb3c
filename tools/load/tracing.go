package load

import "encoding/json"

// TraceHistogram is one histogram of block-layer tracing. Its words are those of btt, the tool
// that named D2C and Q2D.
type TraceHistogram struct {
	Key   string // d2c_read_us
	Title string // "D2C read"
	What  string // what it says
	Unit  string // of the buckets' bounds: µs, KiB, requests, GiB
	Count int64

	Buckets       []TraceBucket // those with samples, in order
	P50, P95, P99 float64       // as the file gives them, else lower bounds of their buckets
}

// TraceBucket is the number of samples of at least Low and less than High.
type TraceBucket struct {
	Low, High float64
	Count     int64
}

// tracings are the known histograms in the order in which they are shown. Keys are those of the
// Python benchmark, whatever the unit: _us, _kb, _gb.
var tracings = []TraceHistogram{
	{Key: "d2c_read_us", Title: "D2C read", What: "device: dispatch to completion", Unit: "µs"},
	{Key: "d2c_write_us", Title: "D2C write", What: "device: dispatch to completion", Unit: "µs"},
	{Key: "q2d_read_us", Title: "Q2D read", What: "scheduler: queue to dispatch", Unit: "µs"},
	{Key: "q2d_write_us", Title: "Q2D write", What: "scheduler: queue to dispatch", Unit: "µs"},
	{Key: "d2c_flush_us", Title: "D2C flush", What: "device: its own flushes", Unit: "µs"},
	{Key: "flush_wait_us", Title: "flush wait", What: "from asking for a flush to its end",
		Unit: "µs"},
	{Key: "d2c_discard_us", Title: "D2C discard", What: "device: discards", Unit: "µs"},
	{Key: "idle_us", Title: "idle", What: "gaps with nothing in flight", Unit: "µs"},
	{Key: "vfs_read_us", Title: "VFS read", What: "read calls as the application sees them",
		Unit: "µs"},
	{Key: "vfs_write_us", Title: "VFS write", What: "write calls as the application sees them",
		Unit: "µs"},
	{Key: "vfs_read_sz_kb", Title: "VFS read size", What: "bytes asked for by one read call",
		Unit: "KiB"},
	{Key: "vfs_write_sz_kb", Title: "VFS write size", What: "bytes given to one write call",
		Unit: "KiB"},
	{Key: "fsync_us", Title: "fsync", What: "flushes as the application sees them", Unit: "µs"},
	{Key: "write_to_fsync_us", Title: "write to fsync",
		What: "gap between the last write and its flush", Unit: "µs"},
	{Key: "fadvise_to_read_us", Title: "fadvise to read",
		What: "gap between dropping pages and reading", Unit: "µs"},
	{Key: "bssplit_read_kb", Title: "block size read", What: "sizes of block requests",
		Unit: "KiB"},
	{Key: "bssplit_write_kb", Title: "block size write", What: "sizes of block requests",
		Unit: "KiB"},
	{Key: "qd_read", Title: "queue depth read", What: "requests in flight at dispatch",
		Unit: "requests"},
	{Key: "qd_write", Title: "queue depth write", What: "requests in flight at dispatch",
		Unit: "requests"},
	{Key: "lba_read_gb", Title: "LBA read", What: "where on the device", Unit: "GiB"},
	{Key: "lba_write_gb", Title: "LBA write", What: "where on the device", Unit: "GiB"},
}

// Tracing returns the histograms of the result file that have samples. Results without tracing have
// none.
func (rec *Record) Tracing() (out []TraceHistogram) {
	// The raw file is read, not the typed result: the Python benchmark has the same keys.
	rec.Lookup("device_latency_tracing") // splits the file
	var all map[string]json.RawMessage
	if json.Unmarshal(rec.top["device_latency_tracing"], &all) != nil {
		return nil
	}
	for _, h := range tracings {
		var doc struct {
			P50     *float64 `json:"p50"`
			P95     *float64 `json:"p95"`
			P99     *float64 `json:"p99"`
			Buckets []struct {
				Range [2]float64 `json:"range_us"`
				Count int64      `json:"count"`
			} `json:"buckets"`
		}
		if raw, ok := all[h.Key]; !ok || json.Unmarshal(raw, &doc) != nil {
			continue
		}
		for _, b := range doc.Buckets {
			if b.Count > 0 {
				h.Buckets = append(h.Buckets, TraceBucket{b.Range[0], b.Range[1], b.Count})
				h.Count += b.Count
			}
		}
		if h.Count > 0 {
			h.P50, h.P95, h.P99 = h.percentile(0.50, doc.P50), h.percentile(0.95, doc.P95),
				h.percentile(0.99, doc.P99)
			out = append(out, h)
		}
	}
	return out
}

// percentile is that of the file, else the lower bound of the bucket in which it lies: the Python
// benchmark gives no percentiles.
func (h TraceHistogram) percentile(p float64, given *float64) float64 {
	if given != nil {
		return *given
	}
	below := int64(0)
	for _, b := range h.Buckets {
		if below += b.Count; float64(below) >= p*float64(h.Count) {
			return b.Low
		}
	}
	return h.Buckets[len(h.Buckets)-1].Low
}
