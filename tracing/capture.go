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
	LevelFile  Level = "file"  // requests at the device, and the calls on files: read, write, fsync
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

// The filters. The trace knows the device of each request exactly. As the process of a request it takes the
// process that queued the request, which is right for direct I/O and for reads. The kernel queues the
// write-back of the page cache. There the trace takes the process that wrote to the file, if it has seen
// the write (Direction.WrittenBack, KernelRequests).
const (
	// FilterDevice: all requests of the device. Requests of other processes are also counted separately.
	FilterDevice Filter = "device"
	// FilterProcess: only requests of the watched processes.
	FilterProcess Filter = "process"
)

// The values of Capture.Status.
const (
	StatusTraced   = "traced"   // histograms of every request
	StatusCounters = "counters" // only the device's own counters; Reason says why
	StatusNone     = "none"     // neither histograms nor counters; Reason says why
)

// Capture describes how a trace was taken.
type Capture struct {
	Status string   `json:"status"`
	Reason string   `json:"reason,omitempty"` // why Status is not StatusTraced
	Needs  []string `json:"needs,omitempty"`  // what the machine lacks for StatusTraced

	Attach string `json:"attach,omitempty"` // how the eBPF programs were attached: tp_btf
	// FileAttach is how calls on files are traced: fexit, or as system calls by tp_btf.
	FileAttach string `json:"file_attach,omitempty"`
	// NotBetter names each better way to attach the programs that was not used, and the reason.
	NotBetter []string `json:"not_better,omitempty"`
	Level     Level    `json:"level"`
	Filter    Filter   `json:"filter"`
	Device    string   `json:"device,omitempty"`  // the device of the directory
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
	// OwnFlushWaits and KernelFlushWaits are the parts of FlushWaits from the watched processes and from
	// kernel threads. Kernel threads flush when a filesystem's journal serves the caller of fsync.
	OwnFlushWaits    int64 `json:"own_flush_waits"`
	KernelFlushWaits int64 `json:"kernel_flush_waits"`

	Discards     int64 `json:"discards"`
	DiscardBytes int64 `json:"discard_bytes"`
	Others       int64 `json:"others"` // zeroing, zone management

	// IdleNS is the sum of the gaps in which no request was in flight, including LeadNS and TailNS.
	IdleNS int64 `json:"idle_ns"`
	// UnobservedNS is the time in which lost completions hid the gaps. IdleNS assumes the same share of
	// gaps in this time as in the other time of the window. If UnobservedNS is most of the window,
	// IdleKnown is false, and IdleNS has only LeadNS and TailNS.
	UnobservedNS int64 `json:"blind_ns"`
	IdleKnown    bool  `json:"idle_known"`
	LeadNS       int64 `json:"lead_ns"` // the time before the first request
	TailNS       int64 `json:"tail_ns"` // the time after the last request
	Gaps         int64 `json:"gaps"`

	// Owners are the processes with requests in the window, in descending order of their bytes. Empty
	// unless the trace was asked for them.
	Owners []Owner `json:"owners,omitempty"`

	Losses Losses `json:"losses"`
	// Stat has the device's own counters for the same window; null if the device has no counters.
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
	// Stale counts requests whose completion the eBPF programs did not receive. No histogram has them.
	Stale          int64 `json:"stale"`
	InFlightBefore int64 `json:"in_flight_before"`
	InFlightAfter  int64 `json:"in_flight_after"`

	D2CNS      int64 `json:"d2c_ns"` // the sum over all requests
	Q2DNS      int64 `json:"q2d_ns"` // the sum over Q2DSamples requests
	Q2DSamples int64 `json:"q2d_samples"`
	// DepthExcess is the largest share by which lost completions can raise the mean depth at dispatch: a
	// request with a lost completion counts as in flight until the trace finds it.
	DepthExcess float64 `json:"depth_excess,omitzero"`
	// MeanDepth is the time-weighted mean of the requests in service: the sum of all D2C times divided by
	// the window (Little's law). Requests whose completion was lost count with the mean D2C.
	MeanDepth float64 `json:"mean_depth"`

	ForeignRequests int64 `json:"foreign_requests"` // of other processes on the same device
	ForeignBytes    int64 `json:"foreign_bytes"`
	// KernelRequests counts the foreign requests that a kernel thread queued for no known process: for
	// pages that were dirty before the trace began, for metadata, or for a journal.
	KernelRequests int64 `json:"kernel_requests"`
	KernelBytes    int64 `json:"kernel_bytes"`
	// WrittenBack counts the Requests that the kernel queued for pages which a watched process had
	// written to the page cache; with Owners, for pages of any process. The file decides to which
	// process these requests belong: if several processes write to a file, all its requests belong to the
	// process that last made a clean page dirty.
	WrittenBack      int64 `json:"written_back_requests"`
	WrittenBackBytes int64 `json:"written_back_bytes"`
	// Sequential counts requests that began where one of the previous 64 of this direction had ended.
	Sequential int64 `json:"sequential"`
}

// Owner is one process's requests to the traced devices.
type Owner struct {
	// PID is the process's number in the machine's first PID namespace. 0 stands for the kernel: requests
	// of no known process.
	PID        int64  `json:"pid"`
	Name       string `json:"name"` // the name at the end of the window; "kernel" for PID 0
	Reads      int64  `json:"reads"`
	ReadBytes  int64  `json:"read_bytes"`
	Writes     int64  `json:"writes"`
	WriteBytes int64  `json:"write_bytes"`
	// WrittenBack counts those of the Writes that the kernel queued for the process.
	WrittenBack      int64 `json:"written_back_requests"`
	WrittenBackBytes int64 `json:"written_back_bytes"`
}

// D2C returns the sum of all D2C times, with an estimate for lost completions.
func (d Direction) D2C() float64 {
	if d.Requests == 0 {
		return 0
	}
	return float64(d.D2CNS) * float64(d.Requests+d.Stale) / float64(d.Requests)
}

// Losses counts the events that the trace has noticed to be missing.
type Losses struct {
	Unmatched int64 `json:"unmatched"` // completions whose dispatch was not seen
	Orphaned  int64 `json:"orphaned"`  // requests that were queued and never dispatched
	Stale     int64 `json:"stale"`     // lost completions of flushes and discards
	Full      int64 `json:"full"`      // requests that a full map of the trace could not take
	Processes int64 `json:"processes"` // child processes that a full map could not take
	Calls     int64 `json:"calls"`     // calls on files whose end the trace did not see
	Missed    int64 `json:"missed"`    // events during which the eBPF program already ran
	Partial   int64 `json:"partial"`   // completions of a part of a request: not lost
	Merged    int64 `json:"merged"`    // requests that were merged into others: not lost
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

// Imbalance returns the number of requests of a direction that the counters miss. It is 0 unless the kernel
// skipped an eBPF program.
func (d Direction) Imbalance() int64 {
	return d.InFlightBefore + d.Issued - d.Requeued - d.Requests - d.Stale - d.InFlightAfter
}

// Seen returns the share of the window in which the trace knows when no request was in flight.
func (c *Capture) Seen() float64 {
	if c.WindowNS <= 0 {
		return 1
	}
	return 1 - min(1, float64(c.UnobservedNS)/float64(c.WindowNS))
}

// DeviceStat is the difference of two BlockStats, without the gauges. A discard releases blocks of the
// device: a filesystem with the mount option discard sends discards for removed files.
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
