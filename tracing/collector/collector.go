package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"kvbench/tracing"
	"kvbench/tracing/host"
)

// Options of Start. The zero value traces every device of the machine and counts the calling process's
// requests separately.
type Options struct {
	// Device is the device behind the directory of interest (BackingDevice). The zero Device is all
	// devices. A device with a Reason and no members cannot be filtered for: only requests of the
	// watched processes are traced then, on any device.
	Device host.Device
	Level  tracing.Level  // "" is LevelBlock
	Filter tracing.Filter // "" is FilterDevice
	// PID, Comm and Cgroup choose the watched processes: one process and its children, all processes of
	// a name and their children, or the processes of a cgroup (version 2) and of the cgroups below it,
	// by its directory. Without any of them it is the calling process, or no process with ByOwner.
	PID    int
	Comm   string
	Cgroup string
	// ByOwner also counts the requests of each process of the machine (Capture.Owners). With
	// FilterProcess the histograms have the watched processes, otherwise all processes.
	ByOwner bool

	fileAttach string // for tests: the only way of attaching to calls on files, "" tries all ways
}

// Validate returns every violation.
func (o Options) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	errs = append(errs, o.Level.Validate())
	check(o.Filter == tracing.FilterDevice || o.Filter == tracing.FilterProcess,
		"unknown filter %q", o.Filter)
	check(o.PID >= 0, "process id %d must not be negative", o.PID)
	named := 0
	for _, given := range []bool{o.PID != 0, o.Comm != "", o.Cgroup != ""} {
		if given {
			named++
		}
	}
	check(named <= 1, "only one of a process id, a name and a cgroup can be watched")
	check(named > 0 || !o.ByOwner || o.Filter != tracing.FilterProcess,
		"requests of watched processes are asked for, and none is named")
	check(len(o.Comm) < commLength, "process name %q is longer than the %d characters that the "+
		"kernel keeps", o.Comm, commLength-1)
	return errors.Join(errs...)
}

// The ways of attaching programs to the kernel. Requests are traced at typed tracepoints only: raw
// tracepoints need the same type information, and perf tracepoints mix requests up. Calls on files are
// traced by fexit in the kernel's functions for reading, writing and flushing, else at every system call of
// the machine.
const (
	byTracepoint = "tp_btf"
	byFexit      = "fexit"
	byNothing    = "none"
)

// commLength is the kernel's TASK_COMM_LEN, with the terminating zero.
const commLength = 16

// UnavailableError says why the kernel was not traced and what is missing. The text is one sentence for
// users.
type UnavailableError struct {
	Reason string
	Need   string // CAP_BPF and CAP_PERFMON (…), a kernel with …
	Err    error  // the kernel's error; may be nil
}

func (e *UnavailableError) Error() string {
	return "no tracing: " + e.Reason + "; needed: " + e.Need
}

// Unwrap returns the kernel's error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Collector traces one device, or all, until Close. The kernel counts every request between OpenWindow and
// CloseWindow exactly: opening and closing are one store to memory that the programs share, and the
// counters are read later. Its methods may be called from any goroutine.
//
// If the kernel does not allow tracing, a Collector reads the device's own counters (Unavailable says
// why), so that a run needs no second code path.
type Collector struct {
	device      host.Device
	targets     []host.Disk
	common      tracing.Capture // the part that is the same for every window
	programs    programs
	unavailable *UnavailableError // why the programs are not attached

	mu     sync.Mutex
	window window
	closed bool
}

// programs are the attached programs. They have two sets of counters: inside and outside the window.
type programs interface {
	open() error // records the counters and starts counting
	shut() error
	edge() (edge, error)
	read(t *tracing.Trace) error // fills in the counters of the window
	// lostInFlight counts the requests that were dispatched before a moment and have no completion.
	lostInFlight(before uint64) (lostInFlight, error)
	// family returns how many processes were found so far for an id or a name, including children, and
	// how many of them run. Both are 0 for the calling process alone and for a cgroup.
	family() (met, running int)
	close() error
}

// none replaces the programs on a kernel that does not accept them. It counts nothing.
type none struct{}

func (none) open() error                               { return nil }
func (none) shut() error                               { return nil }
func (none) edge() (edge, error)                       { return edge{}, nil }
func (none) read(*tracing.Trace) error                 { return nil }
func (none) lostInFlight(uint64) (lostInFlight, error) { return lostInFlight{}, nil }
func (none) family() (met, running int)                { return 0, 0 }
func (none) close() error                              { return nil }

// edge is the state at one end of a window.
type edge struct {
	now      uint64 // the programs' clock
	inFlight [2]int64
	idle     uint64 // time from which no request was in flight
	first    uint64 // when the window's first request was dispatched, 0 = none yet
	missed   int64  // runs that the kernel skipped since attaching
}

// window is the state read at its two ends. The kernel's counters are read later.
type window struct {
	opened, shut  bool
	start, end    time.Time
	before, after edge
	stat, statEnd host.Reading
	lost          lostInFlight
	err           error // the first error; kept until the next window
}

// Start loads and attaches the programs, which takes some 50 ms. It fails only for invalid options,
// for a process that does not exist, or if ctx is done. Without privilege or kernel support it returns
// a Collector that reads counters, with Unavailable set. Close the Collector after the timed phase,
// because detaching takes time.
func Start(ctx context.Context, opt Options) (*Collector, error) {
	opt.Level = cmp.Or(opt.Level, tracing.LevelBlock)
	opt.Filter = cmp.Or(opt.Filter, tracing.FilterDevice)
	if err := opt.Validate(); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if opt.PID != 0 && errors.Is(unix.Kill(opt.PID, 0), unix.ESRCH) { // EPERM: of another user
		return nil, fmt.Errorf("trace: there is no process %d", opt.PID)
	}
	c := &Collector{device: opt.Device, programs: none{}}
	c.common.Level, c.common.Filter, c.common.Device = opt.Level, opt.Filter, opt.Device.Name
	c.common.PageBytes = int64(os.Getpagesize())
	c.chooseTargets()
	opt.Filter = c.common.Filter
	common := c.common
	attached, unavailable := attach(opt, c.targets, &common)
	if c.unavailable = unavailable; unavailable == nil {
		c.programs, c.common = attached, common
	}
	return c, nil
}

// maxTargets is MAX_DEVICES in bpf/counters.h.
const maxTargets = 128

// chooseTargets chooses the devices to filter for, and warns if they differ from the requested ones.
func (c *Collector) chooseTargets() {
	if c.device.Name == "" && c.device.Reason == "" && len(c.device.Members) == 0 {
		return // every device
	}
	ts, reason := c.device.Disks()
	if len(ts) > maxTargets {
		ts, reason = nil, fmt.Sprintf("%s is spread over %d devices, at most %d can be traced at "+
			"once", cmp.Or(c.device.Name, strings.Join(c.device.Members, ", ")), len(ts),
			maxTargets)
	}
	c.targets, c.common.MaxSegments = ts, maxSegments(ts)
	warn := c.common.Warn
	if len(ts) == 0 {
		c.common.Filter = tracing.FilterProcess
		warn("the device cannot be isolated (%s): requests of the watched processes are taken "+
			"instead, on any device", reason)
		return
	}
	if len(ts) > 1 || ts[0].Name != c.device.Name {
		for _, t := range ts {
			c.common.Members = append(c.common.Members, t.Name)
		}
		members := strings.Join(c.common.Members, ", ")
		switch {
		case c.device.Name != "":
			warn("%s is traced at its members %s", c.device.Name, members)
		case c.device.Reason != "": // of several directories one has no device
			warn("not all directories are traced, only those on %s: %s", members, c.device.Reason)
		}
	}
	if c.device.Partition != "" {
		warn("the filesystem is on the partition %s: requests of all of %s are traced",
			c.device.Partition, c.device.Name)
	}
}

// Unavailable returns why only counters are read, or nil if requests are traced.
func (c *Collector) Unavailable() *UnavailableError { return c.unavailable }

// Watched returns how many processes were found so far for the watched PID or name, including children,
// and how many of them still run. Both are 0 if the calling process, a cgroup, or no process is watched.
func (c *Collector) Watched() (met, running int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, 0
	}
	return c.programs.family()
}

// OpenWindow begins a window and discards an earlier one. It takes well under a millisecond.
func (c *Collector) OpenWindow() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window = window{opened: true, stat: c.readStat()}
	w := &c.window
	w.err = c.programs.open()
	w.edge(&w.before, c.programs)
	w.start = time.Now()
	return w.err
}

// CloseWindow ends the window.
func (c *Collector) CloseWindow() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.window
	if !w.opened || w.shut {
		return nil
	}
	w.shut = true
	w.end = time.Now()
	w.err = errors.Join(w.err, c.programs.shut())
	c.readEnd(w)
	c.countLost()
	return w.err
}

// readEnd reads the state at the end of a window.
func (c *Collector) readEnd(w *window) {
	w.edge(&w.after, c.programs)
	w.statEnd = c.readStat()
}

func (w *window) edge(to *edge, p programs) {
	var err error
	*to, err = p.edge()
	w.err = errors.Join(w.err, err)
}

// readStat reads the counters of the traced device, or of its traced members.
func (c *Collector) readStat() host.Reading {
	s, err := host.ReadStats(c.targets)
	if len(c.targets) == 0 {
		s, err = c.device.ReadStat()
	}
	if err != nil {
		return nil
	}
	return s
}

// lostInFlight counts requests without a completion that still count as in flight.
type lostInFlight struct {
	counted    [2]int64
	unobserved int64    // time of the window in which they hid gaps, in ns
	miscounted [2]int64 // dispatches since then
}

// lostAfter is how long a request may be in flight before it counts as lost, although the device is busy.
// Drivers time out after 30 s.
const lostAfter = 60 * time.Second

// countLost counts, at the end of a window, requests without a completion whose address was not reused. If
// the device itself reports no request in flight, all of them are lost.
func (c *Collector) countLost() {
	w := &c.window
	now := w.after.now
	if s := c.readStat(); s == nil || s.Sub(nil).InFlight != 0 {
		now -= min(now, uint64(lostAfter))
	}
	lost, err := c.programs.lostInFlight(now)
	w.lost, w.err = lost, errors.Join(w.err, err)
}

// Snapshot returns the trace of the window, up to now if it is open. It returns nil before the first
// window.
func (c *Collector) Snapshot() (*tracing.Trace, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.window
	if !w.opened {
		return nil, nil
	}
	if !w.shut {
		w.end = time.Now()
		c.readEnd(&w)
	}
	if w.err != nil {
		return nil, fmt.Errorf("trace: %w", w.err)
	}
	t, err := c.build(&w)
	if err != nil {
		return nil, fmt.Errorf("trace: read the histograms: %w", err)
	}
	return t, nil
}

// Close detaches the programs and removes them from the kernel. The last window can no longer be read.
func (c *Collector) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return nil
	}
	return c.programs.close()
}

// maxSegments returns the smallest limit of the devices, 0 if unknown.
func maxSegments(ts []host.Disk) (least int64) {
	for _, t := range ts {
		if n := t.Number("queue/max_segments"); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}
