//go:build linux && (amd64 || arm64)

package collector

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"kvbench/tracing"
	"kvbench/tracing/bpf"
	"kvbench/tracing/host"
)

// kernelPrograms are programs of package bpf in the kernel. Nothing is pinned, so the kernel removes
// them at the end of this process, even after a kill.
type kernelPrograms struct {
	coll  *ebpf.Collection
	links []link.Link

	targets []host.Disk
	byOwner bool
	initial int // processes that were watched from the beginning

	before counts // counts of earlier windows
	opened uint64
}

var _ programs = (*kernelPrograms)(nil)

// Each counter exists twice: inside and outside the window. Those outside are not read.
const (
	outside = 0
	inside  = 1
)

// control mirrors the variable of bpf/block.h.
type control struct {
	Opened uint64
	Window uint32
	Pad    [116]byte
}

func (k *kernelPrograms) open() (err error) {
	if k.before, err = k.total(); err != nil {
		return err
	}
	set := k.coll.Variables[bpf.TraceVarControl].Set
	if err := k.coll.Variables[bpf.TraceVarFirst].Set(&line{}); err != nil {
		return err
	}
	k.opened = monotonic()
	return errors.Join(set(&control{Opened: k.opened}),
		set(&control{Opened: k.opened, Window: inside}))
}

func (k *kernelPrograms) shut() error {
	return k.coll.Variables[bpf.TraceVarControl].Set(&control{Opened: k.opened, Window: outside})
}

// monotonic is the clock of bpf_ktime_get_ns.
func monotonic() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return uint64(ts.Nano())
}

// line mirrors a variable with a cache line of its own. The variable is the first word, or its lower
// half: both architectures are little-endian.
type line [16]uint64

// gauge mirrors the variable of bpf/counters.h.
type gauge struct {
	InFlight            int64
	Issued, Turns, Over uint64
	Pad                 [96]byte
}

func (k *kernelPrograms) edge() (edge, error) {
	var g [2]gauge
	var idle, first line
	v := k.coll.Variables
	err := errors.Join(v[bpf.TraceVarGauge].Get(&g), v[bpf.TraceVarIdle].Get(&idle),
		v[bpf.TraceVarFirst].Get(&first))
	return edge{now: monotonic(), inFlight: [2]int64{g[0].InFlight, g[1].InFlight},
		idle: idle[0], first: first[0], missed: k.missed()}, err
}

func (k *kernelPrograms) read(t *tracing.Trace) error {
	n, err := k.window()
	n.fill(t, float64(zoneSectors(k.targets))*host.SectorSize/(1<<30))
	return err
}

// window returns the counts of this window.
func (k *kernelPrograms) window() (counts, error) {
	n, err := k.total()
	n.since(&k.before)
	return n, err
}

// total returns the counts of this window and all earlier ones.
func (k *kernelPrograms) total() (n counts, err error) {
	m := k.coll.Maps
	for dir := range n.directions {
		err = errors.Join(err, sum(&n.directions[dir], m[bpf.TraceMapDirections], inside*2+dir))
	}
	err = errors.Join(err, sum(&n.other, m[bpf.TraceMapOtherCounts], inside))
	if calls := m[bpf.TraceMapCallCounts]; calls != nil {
		for kind := range n.calls {
			err = errors.Join(err, sum(&n.calls[kind], calls, inside*callKinds+kind))
		}
	}
	if k.byOwner {
		n.owners = map[uint32]bpf.TraceOwner{}
		var pid uint32
		var o bpf.TraceOwner
		entries := m[bpf.TraceMapOwners].Iterate()
		for entries.Next(&pid, &o) {
			n.owners[pid] = o
		}
		err = errors.Join(err, entries.Err())
	}
	var family [2]uint64
	err = errors.Join(err, k.coll.Variables[bpf.TraceVarFamily].Get(&family))
	n.unwatched = int64(family[1])
	return n, err
}

// sum adds up the counters of all processors under a key.
func sum[T any](to *T, m *ebpf.Map, key int) error {
	var perCPU []T
	if err := m.Lookup(uint32(key), &perCPU); err != nil {
		return err
	}
	for i := range perCPU {
		for at, n := range words(&perCPU[i]) {
			words(to)[at] += n
		}
	}
	return nil
}

// missed sums over all programs, with a system call for each. The kernel skips a run if it interrupts a run of the same program on
// the processor. Requests are then lost or unmatched, and count as such.
func (k *kernelPrograms) missed() (n int64) {
	for _, p := range k.coll.Programs {
		if s, err := p.Stats(); err == nil { // fails before Linux 5.12
			n += int64(s.RecursionMisses)
		}
	}
	return n
}

// lostInFlight visits the reads and writes at the device without a completion.
func (k *kernelPrograms) lostInFlight(before uint64) (s lostInFlight, err error) {
	var key uint64
	var e bpf.TraceEntry
	var g [2]gauge
	if err := k.coll.Variables[bpf.TraceVarGauge].Get(&g); err != nil {
		return s, fmt.Errorf("look for lost requests: %w", err)
	}
	it := k.coll.Maps[bpf.TraceMapLive].Iterate()
	for it.Next(&key, &e) {
		if e.Counted != 0 && e.Issue != 0 && e.Op <= dirWrite && e.Issue < before {
			s.counted[e.Op]++
			s.miscounted[e.Op] += int64(uint32(g[e.Op].Turns) - e.Turn)
			s.unobserved += int64(before - max(e.Issue, min(before, k.opened)))
		}
	}
	if err := it.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return s, fmt.Errorf("look for lost requests: %w", err)
	}
	return s, nil
}

func (k *kernelPrograms) close() error { return detach(k.links, k.coll) }

// detach undoes attachAll, in the reverse order.
func detach(links []link.Link, coll *ebpf.Collection) error {
	var errs []error
	for _, l := range slices.Backward(links) {
		errs = append(errs, l.Close())
	}
	coll.Close()
	return errors.Join(errs...)
}
