package tracing

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
	Kind
	Histogram
}

// All returns the histograms that have samples, in the order of Kinds.
func (h *Histograms) All() (list []Named) {
	for _, k := range Kinds {
		if n := k.of(h); n.Count != 0 {
			list = append(list, Named{k, *n})
		}
	}
	return list
}
