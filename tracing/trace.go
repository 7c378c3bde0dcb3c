package tracing

import (
	"reflect"
	"strings"
)

// Trace has the data of a Collector from OpenWindow to CloseWindow. Its JSON is the result's
// device_latency_tracing: one key per histogram, and "capture", which describes how the trace was taken
// and what it missed.
type Trace struct {
	Histograms
	Capture Capture `json:"capture"`
	// Course is some of the histograms over time; null without snapshots.
	Course *Course `json:"over_time,omitempty"`
}

// Histograms are the distributions by the names of the Python benchmark. Those without samples are
// empty. Times are microseconds, sizes KiB.
type Histograms struct {
	D2CRead  Histogram `json:"d2c_read_us,omitzero"` // dispatch to completion
	D2CWrite Histogram `json:"d2c_write_us,omitzero"`
	Q2DRead  Histogram `json:"q2d_read_us,omitzero"` // queue to dispatch
	Q2DWrite Histogram `json:"q2d_write_us,omitzero"`

	VFSRead       Histogram `json:"vfs_read_us,omitzero"`
	VFSWrite      Histogram `json:"vfs_write_us,omitzero"`
	VFSReadSize   Histogram `json:"vfs_read_sz_kb,omitzero"`
	VFSWriteSize  Histogram `json:"vfs_write_sz_kb,omitzero"`
	Fsync         Histogram `json:"fsync_us,omitzero"`
	WriteToFsync  Histogram `json:"write_to_fsync_us,omitzero"`
	FadviseToRead Histogram `json:"fadvise_to_read_us,omitzero"`

	SizeRead   Histogram `json:"bssplit_read_kb,omitzero"`
	SizeWrite  Histogram `json:"bssplit_write_kb,omitzero"`
	DepthRead  Histogram `json:"qd_read,omitzero"` // in flight at dispatch, itself included
	DepthWrite Histogram `json:"qd_write,omitzero"`
	LBARead    Histogram `json:"lba_read_gb,omitzero"`
	LBAWrite   Histogram `json:"lba_write_gb,omitzero"`

	Flush     Histogram `json:"d2c_flush_us,omitzero"`   // flush requests at the device
	FlushWait Histogram `json:"flush_wait_us,omitzero"`  // from the request for a flush to its end
	Discard   Histogram `json:"d2c_discard_us,omitzero"` // discards at the device
	Idle      Histogram `json:"idle_us,omitzero"`        // gaps in which no request was in flight
}

// Kind describes a histogram of a trace. D2C and Q2D are terms of btt.
type Kind struct {
	Key    string // in results, as in the Python benchmark's
	Title  string
	What   string // what it measures
	Units  string // of the bounds of its buckets, for people
	Python string // its name in the Python benchmark's spreadsheet, if it has one
}

// Kinds are all histograms in the order in which reports show them.
var Kinds = []Kind{
	{"d2c_read_us", "D2C read", "device: dispatch to completion", "µs", "D2C Read (us)"},
	{"d2c_write_us", "D2C write", "device: dispatch to completion", "µs", "D2C Write (us)"},
	{"q2d_read_us", "Q2D read", "scheduler: queue to dispatch", "µs", "Q2D Read (us)"},
	{"q2d_write_us", "Q2D write", "scheduler: queue to dispatch", "µs", "Q2D Write (us)"},
	{"d2c_flush_us", "D2C flush", "device: its own flushes", "µs", ""},
	{"flush_wait_us", "flush wait", "from asking for a flush to its end", "µs", ""},
	{"d2c_discard_us", "D2C discard", "device: discards", "µs", ""},
	{"idle_us", "idle", "gaps with nothing in flight", "µs", ""},
	{"vfs_read_us", "VFS read", "read calls as the application sees them", "µs", "VFS Read (us)"},
	{"vfs_write_us", "VFS write", "write calls as the application sees them", "µs", "VFS Write (us)"},
	{"vfs_read_sz_kb", "VFS read size", "bytes asked for by one read call", "KiB", ""},
	{"vfs_write_sz_kb", "VFS write size", "bytes given to one write call", "KiB", ""},
	{"fsync_us", "fsync", "flushes as the application sees them", "µs", "fsync (us)"},
	{"write_to_fsync_us", "write to fsync", "gap between the last write and its flush", "µs", "Write-to-fsync (us)"},
	{"fadvise_to_read_us", "fadvise to read", "gap between dropping pages and reading", "µs", "fadvise-to-read (us)"},
	{"bssplit_read_kb", "block size read", "sizes of block requests", "KiB", "Block Size Read (KiB)"},
	{"bssplit_write_kb", "block size write", "sizes of block requests", "KiB", "Block Size Write (KiB)"},
	{"qd_read", "queue depth read", "requests in flight at dispatch", "requests", "Queue Depth Read"},
	{"qd_write", "queue depth write", "requests in flight at dispatch", "requests", "Queue Depth Write"},
	{"lba_read_gb", "LBA read", "where on the device", "GiB", "LBA Heatmap Read (GiB)"},
	{"lba_write_gb", "LBA write", "where on the device", "GiB", "LBA Heatmap Write (GiB)"},
}

// Named is a histogram with its Kind.
type Named struct {
	Kind
	Histogram
}

// All returns the histograms that have samples, in the order of Kinds.
func (h *Histograms) All() (list []Named) {
	byKey := map[string]Histogram{}
	for field, value := range reflect.ValueOf(h).Elem().Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		byKey[key] = value.Interface().(Histogram)
	}
	for _, k := range Kinds {
		if n := byKey[k.Key]; n.Count != 0 {
			list = append(list, Named{k, n})
		}
	}
	return list
}
