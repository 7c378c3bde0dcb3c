package tracing

import (
	"cmp"
	"strings"
	"time"
)

// Trace is what a Collector saw between OpenWindow and CloseWindow. Its JSON is the result's
// device_latency_tracing: one key per histogram, and "capture", which says how they were taken and
// how far they can be trusted.
type Trace struct {
	Histograms
	Capture Capture `json:"capture"`
}

// Histograms are the distributions by the names of the Python benchmark. Those without samples are
// nil. Times are microseconds, sizes KiB.
type Histograms struct {
	D2CRead  *Histogram `json:"d2c_read_us,omitempty"` // dispatch to completion
	D2CWrite *Histogram `json:"d2c_write_us,omitempty"`
	Q2DRead  *Histogram `json:"q2d_read_us,omitempty"` // queue to dispatch
	Q2DWrite *Histogram `json:"q2d_write_us,omitempty"`

	VFSRead       *Histogram `json:"vfs_read_us,omitempty"`
	VFSWrite      *Histogram `json:"vfs_write_us,omitempty"`
	VFSReadSize   *Histogram `json:"vfs_read_sz_kb,omitempty"`
	VFSWriteSize  *Histogram `json:"vfs_write_sz_kb,omitempty"`
	Fsync         *Histogram `json:"fsync_us,omitempty"`
	WriteToFsync  *Histogram `json:"write_to_fsync_us,omitempty"`
	FadviseToRead *Histogram `json:"fadvise_to_read_us,omitempty"`

	SizeRead   *Histogram `json:"bssplit_read_kb,omitempty"`
	SizeWrite  *Histogram `json:"bssplit_write_kb,omitempty"`
	DepthRead  *Histogram `json:"qd_read,omitempty"` // in flight at dispatch, itself included
	DepthWrite *Histogram `json:"qd_write,omitempty"`
	LBARead    *Histogram `json:"lba_read_gb,omitempty"`
	LBAWrite   *Histogram `json:"lba_write_gb,omitempty"`

	Flush *Histogram `json:"d2c_flush_us,omitempty"` // flush requests at the device
	// from asking for a flush to its completion
	FlushWait *Histogram `json:"flush_wait_us,omitempty"`
	Discard   *Histogram `json:"d2c_discard_us,omitempty"` // discards at the device
	Idle      *Histogram `json:"idle_us,omitempty"`        // times in which nothing was in flight
}

// Named is a histogram with what it is called.
type Named struct {
	Name, Label string
	*Histogram
}

// All returns the histograms that have samples, in the order in which reports show them.
func (h *Histograms) All() []Named {
	all := []Named{
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
	}
	with := all[:0]
	for _, n := range all {
		if n.Samples() > 0 {
			with = append(with, n)
		}
	}
	return with
}

// What a Capture's Status says.
const (
	StatusTraced   = "traced"   // histograms of every request
	StatusCounters = "counters" // only the device's own counters; Reason says why
	StatusNone     = "none"     // nothing; Reason says why
)

// Capture says how a trace was taken.
type Capture struct {
	Status string   `json:"status"`
	Reason string   `json:"reason,omitempty"` // why it is not StatusTraced
	Needs  []string `json:"needs,omitempty"`  // what would be needed for it

	Attach string `json:"attach,omitempty"` // how the programs were attached: tp_btf
	// FileAttach is how calls on files are seen: fexit, kprobe, or as system calls by tp_btf.
	FileAttach string `json:"file_attach,omitempty"`
	// NotBetter says of each better way of attaching why it was not used.
	NotBetter []string `json:"not_better,omitempty"`
	Level     string   `json:"level"`
	Filter    string   `json:"filter"`
	Device    string   `json:"device,omitempty"`  // behind the directory
	Members   []string `json:"members,omitempty"` // devices that were traced, where they are others
	Watched   string   `json:"watched,omitempty"` // processes that were told from others
	// MaxSegments is how many pieces of memory one request may have: the least of the devices, 0 =
	// unknown.
	MaxSegments int64 `json:"max_segments,omitempty"`
	WindowNS    int64 `json:"window_ns"`

	Read  Direction `json:"read"`
	Write Direction `json:"write"`

	Flushes      int64 `json:"flushes"`     // flush requests that the device completed
	FlushWaits   int64 `json:"flush_waits"` // requests that only asked for a flush: one per fsync
	Discards     int64 `json:"discards"`
	DiscardBytes int64 `json:"discard_bytes"`
	Others       int64 `json:"others"` // zeroing, zone management

	// Σ of the gaps in which nothing was in flight, with Lead and Tail
	IdleNS int64 `json:"idle_ns"`
	// UnobservedNS is how long lost completions hid the gaps; IdleNS reckons with as many gaps in
	// that time as in the rest. IdleKnown is false when that was most of the window; IdleNS then
	// has only Lead and Tail.
	UnobservedNS int64 `json:"blind_ns"`
	IdleKnown    bool  `json:"idle_known"`
	LeadNS       int64 `json:"lead_ns"` // before the first request
	TailNS       int64 `json:"tail_ns"` // after the last
	Gaps         int64 `json:"gaps"`

	Losses Losses `json:"losses"`
	// Stat is what the device's own counters say of the same window; null where there are none.
	Stat     *DeviceStat `json:"stat"`
	Warnings []string    `json:"warnings,omitempty"`
}

// Direction is the sum over reads or writes that completed in the window. In flight before + Issued
// − Requeued = Requests + Stale + in flight after.
type Direction struct {
	Requests int64 `json:"requests"`
	Bytes    int64 `json:"bytes"`
	Errors   int64 `json:"errors"`
	Issued   int64 `json:"issued"`
	Requeued int64 `json:"requeued"` // given back by a full device queue, and issued again
	// Stale are requests whose completion no program was shown by the kernel. They are in no
	// histogram.
	Stale          int64 `json:"stale"`
	InFlightBefore int64 `json:"in_flight_before"`
	InFlightAfter  int64 `json:"in_flight_after"`

	D2CNS      int64 `json:"d2c_ns"` // Σ
	Q2DNS      int64 `json:"q2d_ns"`
	Q2DSamples int64 `json:"q2d_samples"`
	// MeanDepth is the time-weighted mean of requests at the device: Σ D2C / window (Little's law),
	// with the mean D2C for those whose completion was lost.
	MeanDepth float64 `json:"mean_depth"`

	ForeignRequests int64 `json:"foreign_requests"` // of other processes on the same device
	ForeignBytes    int64 `json:"foreign_bytes"`
}

// D2C is Σ D2C with an estimate for the lost completions.
func (d Direction) D2C() float64 {
	if d.Requests == 0 {
		return 0
	}
	return float64(d.D2CNS) * float64(d.Requests+d.Stale) / float64(d.Requests)
}

// Losses are what the trace knows that it did not see.
type Losses struct {
	Unmatched int64 `json:"unmatched"` // completions whose dispatch was not seen
	Orphaned  int64 `json:"orphaned"`  // queued, never dispatched
	Stale     int64 `json:"stale"`     // lost completions of flushes and discards
	Full      int64 `json:"full"`      // no room to follow a request
	// calls on files whose end was not seen, or without room to follow them
	Calls int64 `json:"calls"`
	// runs of a program that the kernel skipped because it was already running
	Missed  int64 `json:"missed"`
	Partial int64 `json:"partial"` // completions in parts: no loss
	Merged  int64 `json:"merged"`  // requests merged into others: no loss
}

// Window returns how long the window was.
func (c *Capture) Window() time.Duration { return time.Duration(c.WindowNS) }

// EveryDevice is what a trace took that was not told one.
const EveryDevice = "every device"

// Traced names what was traced.
func (c *Capture) Traced() string {
	return cmp.Or(c.Device, strings.Join(c.Members, "+"),
		EveryDevice)
}

// Requests returns the completed reads and writes.
func (c *Capture) Requests() int64 { return c.Read.Requests + c.Write.Requests }

// Imbalance is the number of requests of a direction that the counters miss: 0 unless a program did
// not run.
func (d Direction) Imbalance() int64 {
	return d.InFlightBefore + d.Issued - d.Requeued - d.Requests - d.Stale - d.InFlightAfter
}

// Seen is the share of the window in which no lost completion hid the gaps.
func (c *Capture) Seen() float64 {
	if c.WindowNS <= 0 {
		return 1
	}
	return 1 - min(1, float64(c.UnobservedNS)/float64(c.WindowNS))
}

// DeviceStat is the difference of two BlockStats, without what is a gauge.
type DeviceStat struct {
	ReadIOs     int64         `json:"read_ios"`
	ReadBytes   int64         `json:"read_bytes"`
	ReadTicks   time.Duration `json:"read_ns"`
	WriteIOs    int64         `json:"write_ios"`
	WriteBytes  int64         `json:"write_bytes"`
	WriteTicks  time.Duration `json:"write_ns"`
	FlushIOs    int64         `json:"flush_ios"`
	DiscardIOs  int64         `json:"discard_ios"`
	IOTicks     time.Duration `json:"busy_ns"`
	TimeInQueue time.Duration `json:"queue_ns"`
}
