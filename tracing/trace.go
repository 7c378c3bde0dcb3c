package tracing

import "slices"

// Trace is what a Collector saw between OpenWindow and CloseWindow. Its JSON is the result's
// device_latency_tracing: one key per histogram, and "capture", which says how they were taken and
// how far they can be trusted.
type Trace struct {
	Histograms
	Capture Capture `json:"capture"`
	// Course is how some of the histograms grew; null without snapshots during the trace.
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
	FlushWait Histogram `json:"flush_wait_us,omitzero"`  // from asking for a flush to its end
	Discard   Histogram `json:"d2c_discard_us,omitzero"` // discards at the device
	Idle      Histogram `json:"idle_us,omitzero"`        // times in which nothing was in flight
}

// Named is a histogram with what it is called.
type Named struct {
	Name, Label string
	Histogram
}

// All returns the histograms that have samples, in the order in which reports show them.
func (h *Histograms) All() []Named {
	return slices.DeleteFunc([]Named{
		{"d2c_read_us", "D2C read: dispatch to completion", h.D2CRead},
		{"d2c_write_us", "D2C write: dispatch to completion", h.D2CWrite},
		{"q2d_read_us", "Q2D read: queue to dispatch", h.Q2DRead},
		{"q2d_write_us", "Q2D write: queue to dispatch", h.Q2DWrite},
		{"d2c_flush_us", "D2C flush: the device's own", h.Flush},
		{"flush_wait_us", "flush wait: asked for to done", h.FlushWait},
		{"d2c_discard_us", "D2C discard", h.Discard},
		{"bssplit_read_kb", "size of read requests", h.SizeRead},
		{"bssplit_write_kb", "size of write requests", h.SizeWrite},
		{"qd_read", "reads in flight at dispatch", h.DepthRead},
		{"qd_write", "writes in flight at dispatch", h.DepthWrite},
		{"lba_read_gb", "where reads went", h.LBARead},
		{"lba_write_gb", "where writes went", h.LBAWrite},
		{"idle_us", "gaps with nothing in flight", h.Idle},
		{"vfs_read_us", "read calls", h.VFSRead},
		{"vfs_write_us", "write calls", h.VFSWrite},
		{"vfs_read_sz_kb", "size of read calls", h.VFSReadSize},
		{"vfs_write_sz_kb", "size of write calls", h.VFSWriteSize},
		{"fsync_us", "fsync and fdatasync calls", h.Fsync},
		{"write_to_fsync_us", "end of write to fsync", h.WriteToFsync},
		{"fadvise_to_read_us", "cache-drop hint to read", h.FadviseToRead},
	}, func(n Named) bool { return n.Count == 0 })
}
