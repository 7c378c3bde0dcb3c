package tracing

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Level is how much is traced.
type Level string

// The levels. LevelFile adds programs that run at the calls on files of every process of the
// machine, or where the kernel does not allow that at each system call of any (some 100 ns), so it
// must be asked for.
const (
	LevelBlock Level = "block" // requests at the device
	LevelFile  Level = "file"  // and the calls on files that lead to them: read, write, fsync
)

// Validate refuses what is no level.
func (l Level) Validate() error {
	if l != LevelBlock && l != LevelFile {
		return fmt.Errorf("unknown level %q: must be block or file", l)
	}
	return nil
}

// Filter is whose requests the histograms hold.
type Filter string

// The filters. A device's requests are known exactly; the process of a request is who queued it,
// which holds for direct I/O and reads, and for what the page cache wrote back later who had
// written to the file, as far as that was seen (Direction.WrittenBack, KernelRequests).
const (
	FilterDevice  Filter = "device"  // everybody's on the device; other processes' are counted
	FilterProcess Filter = "process" // those of the watched processes
)

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
	Level     Level    `json:"level"`
	Filter    Filter   `json:"filter"`
	Device    string   `json:"device,omitempty"`  // behind the directory
	Members   []string `json:"members,omitempty"` // devices that were traced, where they are others
	Watched   string   `json:"watched,omitempty"` // the processes that were traced
	// MaxSegments is how many pieces of memory one request may have: the least of the devices, 0 =
	// unknown.
	MaxSegments int64 `json:"max_segments,omitempty"`
	// PageBytes is how large a page of memory is on the traced machine, 0 = unknown.
	PageBytes int64 `json:"page_bytes,omitempty"`
	WindowNS  int64 `json:"window_ns"`

	Read  Direction `json:"read"`
	Write Direction `json:"write"`

	Flushes    int64 `json:"flushes"`     // flush requests that the device completed
	FlushWaits int64 `json:"flush_waits"` // requests that only asked for a flush: one per fsync
	// Of FlushWaits, those of the watched processes, and of threads of the kernel: a filesystem's
	// journal asks in the name of who called fsync.
	OwnFlushWaits    int64 `json:"own_flush_waits"`
	KernelFlushWaits int64 `json:"kernel_flush_waits"`

	Discards     int64 `json:"discards"`
	DiscardBytes int64 `json:"discard_bytes"`
	Others       int64 `json:"others"` // zeroing, zone management

	// IdleNS is Σ of the gaps in which nothing was in flight, with Lead and Tail.
	IdleNS int64 `json:"idle_ns"`
	// UnobservedNS is how long lost completions hid the gaps; IdleNS reckons with as many gaps in
	// that time as in the rest. IdleKnown is false when that was most of the window; IdleNS then
	// has only Lead and Tail.
	UnobservedNS int64 `json:"blind_ns"`
	IdleKnown    bool  `json:"idle_known"`
	LeadNS       int64 `json:"lead_ns"` // before the first request
	TailNS       int64 `json:"tail_ns"` // after the last
	Gaps         int64 `json:"gaps"`

	// Owners are the processes with requests in the window, the most bytes first, where that was
	// asked for.
	Owners []Owner `json:"owners,omitempty"`

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
	// KernelRequests are those of the foreign ones that a thread of the kernel queued, for files of
	// no process that is known: what the page cache held before the trace began, metadata, a
	// journal.
	KernelRequests int64 `json:"kernel_requests"`
	KernelBytes    int64 `json:"kernel_bytes"`
	// WrittenBack are those of Requests that the kernel queued for pages which a watched process,
	// or with Owners any process, had written to the page cache. They are attributed by their file:
	// of several processes that write to one, the last that made a clean page dirty has them all.
	WrittenBack      int64 `json:"written_back_requests"`
	WrittenBackBytes int64 `json:"written_back_bytes"`
	// Sequential are those that began where one of the 64 before it of this direction had ended.
	Sequential int64 `json:"sequential"`
}

// Owner is what one process asked of the traced devices, whichever of them it was.
type Owner struct {
	// PID is 0 for the kernel: what no process is known for. It is the kernel's own number, which
	// inside of a PID namespace is another.
	PID        int64  `json:"pid"`
	Name       string `json:"name"` // at the end; "kernel" for 0
	Reads      int64  `json:"reads"`
	ReadBytes  int64  `json:"read_bytes"`
	Writes     int64  `json:"writes"`
	WriteBytes int64  `json:"write_bytes"`
	// WrittenBack are those of Writes that the kernel queued for it.
	WrittenBack      int64 `json:"written_back_requests"`
	WrittenBackBytes int64 `json:"written_back_bytes"`
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
	Processes int64 `json:"processes"` // no room to watch one of the family
	Calls     int64 `json:"calls"`     // on files: not followed to their end
	Missed    int64 `json:"missed"`    // runs skipped because the program was running
	Partial   int64 `json:"partial"`   // completions in parts: no loss
	Merged    int64 `json:"merged"`    // requests merged into others: no loss
}

// Warn adds a sentence about what the numbers do not say.
func (c *Capture) Warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// Window returns how long the window was.
func (c *Capture) Window() time.Duration { return time.Duration(c.WindowNS) }

// EveryDevice is the name of the traced device where no device was selected.
const EveryDevice = "every device"

// Traced names what was traced.
func (c *Capture) Traced() string {
	return cmp.Or(c.Device, strings.Join(c.Members, "+"), EveryDevice)
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

// DeviceStat is the difference of two BlockStats, without what is a gauge. Discards tell the
// device which blocks it may forget: a filesystem mounted discard sends them for removed files.
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
