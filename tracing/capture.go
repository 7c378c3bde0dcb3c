package tracing

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Level says how much is traced.
type Level string

// The levels. LevelFile adds programs that run at the calls on files of every process of the machine,
// or, if the kernel does not allow that, at every system call (some 100 ns each). So it is off by
// default.
const (
	LevelBlock Level = "block" // requests at the device
	LevelFile  Level = "file"  // and the calls on files: read, write, fsync
)

// Validate returns an error for an unknown level.
func (l Level) Validate() error {
	if l != LevelBlock && l != LevelFile {
		return fmt.Errorf("unknown level %q: must be block or file", l)
	}
	return nil
}

// Filter selects the requests in the histograms.
type Filter string

// The filters. The device of a request is known exactly. Its process is the one that queued it, which is
// right for direct I/O and reads. For write-back of the page cache it is the process that wrote to the
// file, if the trace has seen the write (Direction.WrittenBack, KernelRequests).
const (
	FilterDevice  Filter = "device"  // all requests of the device; other processes' are also counted
	FilterProcess Filter = "process" // requests of the watched processes
)

// The values of Capture.Status.
const (
	StatusTraced   = "traced"   // histograms of every request
	StatusCounters = "counters" // only the device's own counters; Reason says why
	StatusNone     = "none"     // nothing; Reason says why
)

// Capture describes how a trace was taken.
type Capture struct {
	Status string   `json:"status"`
	Reason string   `json:"reason,omitempty"` // why it is not StatusTraced
	Needs  []string `json:"needs,omitempty"`  // what is missing for it

	Attach string `json:"attach,omitempty"` // how the programs were attached: tp_btf
	// FileAttach is how calls on files are traced: fexit, or as system calls by tp_btf.
	FileAttach string `json:"file_attach,omitempty"`
	// NotBetter has the reason for each better way of attaching that was not used.
	NotBetter []string `json:"not_better,omitempty"`
	Level     Level    `json:"level"`
	Filter    Filter   `json:"filter"`
	Device    string   `json:"device,omitempty"`  // behind the directory
	Members   []string `json:"members,omitempty"` // the traced devices, if not Device itself
	Watched   string   `json:"watched,omitempty"` // the traced processes
	// MaxSegments is how many memory segments one request may have: the smallest limit of the
	// devices, 0 = unknown.
	MaxSegments int64 `json:"max_segments,omitempty"`
	// PageBytes is the size of a memory page on the traced machine, 0 = unknown.
	PageBytes int64 `json:"page_bytes,omitempty"`
	WindowNS  int64 `json:"window_ns"`

	Read  Direction `json:"read"`
	Write Direction `json:"write"`

	Flushes    int64 `json:"flushes"`     // flush requests that the device completed
	FlushWaits int64 `json:"flush_waits"` // requests that only flush: one per fsync
	// The part of FlushWaits from the watched processes, and from kernel threads: a filesystem's
	// journal flushes on behalf of the caller of fsync.
	OwnFlushWaits    int64 `json:"own_flush_waits"`
	KernelFlushWaits int64 `json:"kernel_flush_waits"`

	Discards     int64 `json:"discards"`
	DiscardBytes int64 `json:"discard_bytes"`
	Others       int64 `json:"others"` // zeroing, zone management

	// IdleNS is Σ of the gaps in which nothing was in flight, with Lead and Tail.
	IdleNS int64 `json:"idle_ns"`
	// UnobservedNS is the time in which lost completions hid the gaps; IdleNS assumes as many gaps in
	// that time as in the rest. IdleKnown is false if that was most of the window; IdleNS then has
	// only Lead and Tail.
	UnobservedNS int64 `json:"blind_ns"`
	IdleKnown    bool  `json:"idle_known"`
	LeadNS       int64 `json:"lead_ns"` // before the first request
	TailNS       int64 `json:"tail_ns"` // after the last
	Gaps         int64 `json:"gaps"`

	// Owners are the processes with requests in the window, the most bytes first, if
	// requested.
	Owners []Owner `json:"owners,omitempty"`

	Losses Losses `json:"losses"`
	// Stat is the device's own counters for the same window; null if it has none.
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
	Requeued int64 `json:"requeued"` // returned by a full device queue, and issued again
	// Stale counts requests whose completion the programs did not receive. They are in no histogram.
	Stale          int64 `json:"stale"`
	InFlightBefore int64 `json:"in_flight_before"`
	InFlightAfter  int64 `json:"in_flight_after"`

	D2CNS      int64 `json:"d2c_ns"` // Σ
	Q2DNS      int64 `json:"q2d_ns"`
	Q2DSamples int64 `json:"q2d_samples"`
	// MeanDepth is the time-weighted mean of requests in service: Σ D2C / window (Little's law), with
	// the mean D2C for lost completions.
	MeanDepth float64 `json:"mean_depth"`

	ForeignRequests int64 `json:"foreign_requests"` // of other processes on the same device
	ForeignBytes    int64 `json:"foreign_bytes"`
	// KernelRequests counts the foreign requests that a kernel thread queued for no known process:
	// pages that were dirty before the trace began, metadata, a journal.
	KernelRequests int64 `json:"kernel_requests"`
	KernelBytes    int64 `json:"kernel_bytes"`
	// WrittenBack counts the Requests that the kernel queued for pages which a watched process, or
	// with Owners any process, had written to the page cache. They are attributed by their file: if
	// several processes write to it, the last one that made a clean page dirty has them all.
	WrittenBack      int64 `json:"written_back_requests"`
	WrittenBackBytes int64 `json:"written_back_bytes"`
	// Sequential counts requests that began where one of the previous 64 of this direction had ended.
	Sequential int64 `json:"sequential"`
}

// Owner is one process's requests to the traced devices.
type Owner struct {
	// PID is 0 for the kernel: requests of no known process. It is the kernel's number, which differs
	// inside a PID namespace.
	PID        int64  `json:"pid"`
	Name       string `json:"name"` // at the end; "kernel" for 0
	Reads      int64  `json:"reads"`
	ReadBytes  int64  `json:"read_bytes"`
	Writes     int64  `json:"writes"`
	WriteBytes int64  `json:"write_bytes"`
	// WrittenBack counts the Writes that the kernel queued for it.
	WrittenBack      int64 `json:"written_back_requests"`
	WrittenBackBytes int64 `json:"written_back_bytes"`
}

// D2C returns Σ D2C with an estimate for lost completions.
func (d Direction) D2C() float64 {
	if d.Requests == 0 {
		return 0
	}
	return float64(d.D2CNS) * float64(d.Requests+d.Stale) / float64(d.Requests)
}

// Losses counts the events that the trace knows it has missed.
type Losses struct {
	Unmatched int64 `json:"unmatched"` // completions whose dispatch was not seen
	Orphaned  int64 `json:"orphaned"`  // queued, never dispatched
	Stale     int64 `json:"stale"`     // lost completions of flushes and discards
	Full      int64 `json:"full"`      // no capacity to follow a request
	Processes int64 `json:"processes"` // no capacity to watch a child process
	Calls     int64 `json:"calls"`     // on files: not followed to their end
	Missed    int64 `json:"missed"`    // runs skipped because the program was running
	Partial   int64 `json:"partial"`   // completions in parts: no loss
	Merged    int64 `json:"merged"`    // requests merged into others: no loss
}

// Warn adds a sentence about the limits of the numbers.
func (c *Capture) Warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// Window returns the length of the window.
func (c *Capture) Window() time.Duration { return time.Duration(c.WindowNS) }

// EveryDevice is the name of the traced device if no device was selected.
const EveryDevice = "every device"

// Traced names the traced devices.
func (c *Capture) Traced() string {
	return cmp.Or(c.Device, strings.Join(c.Members, "+"), EveryDevice)
}

// Requests returns the completed reads and writes.
func (c *Capture) Requests() int64 { return c.Read.Requests + c.Write.Requests }

// Imbalance returns the number of requests of a direction that the counters miss: 0 unless a program
// did not run.
func (d Direction) Imbalance() int64 {
	return d.InFlightBefore + d.Issued - d.Requeued - d.Requests - d.Stale - d.InFlightAfter
}

// Seen returns the share of the window in which no lost completion hid the gaps.
func (c *Capture) Seen() float64 {
	if c.WindowNS <= 0 {
		return 1
	}
	return 1 - min(1, float64(c.UnobservedNS)/float64(c.WindowNS))
}

// DeviceStat is the difference of two BlockStats, without gauges. A discard releases blocks of the
// device: a filesystem mounted discard sends them for removed files.
type DeviceStat struct {
	ReadIOs      int64         `json:"read_ios"`
	ReadBytes    int64         `json:"read_bytes"`
	ReadTicks    time.Duration `json:"read_ns"`
	WriteIOs     int64         `json:"write_ios"`
	WriteBytes   int64         `json:"write_bytes"`
	WriteTicks   time.Duration `json:"write_ns"`
	FlushIOs     int64         `json:"flush_ios"`
	FlushTicks   time.Duration `json:"flush_ns"`
	DiscardIOs   int64         `json:"discard_ios"`
	DiscardBytes int64         `json:"discard_bytes"`
	DiscardTicks time.Duration `json:"discard_ns"`
	IOTicks      time.Duration `json:"busy_ns"`
	TimeInQueue  time.Duration `json:"queue_ns"`
}
