//go:build linux && (amd64 || arm64)

package collector

import (
	"errors"
	"fmt"
	"maps"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"kvbench/tracing/bpf"
)

// kernelPrograms are programs of package bpf in the kernel. Nothing is pinned: they vanish with
// this process, however it ends.
type kernelPrograms struct {
	coll  *ebpf.Collection // of the block layer
	links []link.Link

	files     *ebpf.Collection // of calls on files, nil without; most maps are those of coll
	fileLinks []link.Link
	file      string // how they are attached
	notBetter []string

	opened    uint64
	epoch     uint32 // of the gauge: see bpf/counters.h
	openEpoch uint32 // the one in which the window opened
}

var _ programs = (*kernelPrograms)(nil)

func (k *kernelPrograms) describe() (file string, notBetter []string) {
	return k.file, k.notBetter
}

// Each counter exists twice: what is outside of the window goes where nobody looks.
const (
	outside = 0
	inside  = 1
)

// control mirrors the variable of bpf/block.h.
type control struct {
	Opened uint64
	Window uint32
	Epoch  uint32
	Pad    [112]byte
}

func (k *kernelPrograms) open() error {
	if err := k.clear(); err != nil {
		return err
	}
	set := k.coll.Variables[bpf.TraceVarControl].Set
	if err := k.coll.Variables[bpf.TraceVarFirst].Set(&line128{}); err != nil {
		return err
	}
	k.opened, k.openEpoch = monotonic(), k.epoch
	return errors.Join(set(&control{Opened: k.opened, Epoch: k.epoch}),
		set(&control{Opened: k.opened, Window: inside, Epoch: k.epoch}))
}

func (k *kernelPrograms) shut() error {
	return k.coll.Variables[bpf.TraceVarControl].Set(&control{Opened: k.opened, Window: outside,
		Epoch: k.openEpoch})
}

func (k *kernelPrograms) clear() error {
	m := k.coll.Maps
	err := errors.Join(
		zero[directionCounts](m[bpf.TraceMapDirections], inside*2+dirRead),
		zero[directionCounts](m[bpf.TraceMapDirections], inside*2+dirWrite),
		zero[otherCounts](m[bpf.TraceMapOtherCounts], inside),
	)
	for kind := range callKinds {
		if k.files != nil {
			one := zero[callCounts](m[bpf.TraceMapCallCounts], inside*callKinds+kind)
			err = errors.Join(err, one)
		}
	}
	if err != nil {
		return fmt.Errorf("clear the counters: %w", err)
	}
	return nil
}

func zero[T any](m *ebpf.Map, key int) error {
	return m.Put(uint32(key), make([]T, ebpf.MustPossibleCPU()))
}

// monotonic is the clock of bpf_ktime_get_ns.
func monotonic() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return uint64(ts.Nano())
}

// line128 mirrors variables that have a cache line of their own.
type line128 struct {
	Value uint64
	Pad   [120]byte
}

func (k *kernelPrograms) edge() (edge, error) {
	var g [2]line128
	var idle, first line128
	v := k.coll.Variables
	err := errors.Join(v[k.gauge(k.epoch)].Get(&g), v[bpf.TraceVarIdle].Get(&idle),
		v[bpf.TraceVarFirst].Get(&first))
	return edge{now: monotonic(), inFlight: [2]int64{int64(g[0].Value), int64(g[1].Value)},
		idle: idle.Value, first: first.Value}, err
}

func (k *kernelPrograms) read() (n counts, err error) {
	m := k.coll.Maps
	for dir := range n.directions {
		n.directions[dir], err = sumOf[directionCounts](m[bpf.TraceMapDirections], inside*2+dir)
		if err != nil {
			return n, err
		}
	}
	if n.other, err = sumOf[otherCounts](m[bpf.TraceMapOtherCounts], inside); err != nil {
		return n, err
	}
	for kind := range n.calls {
		if k.files == nil {
			break
		}
		n.calls[kind], err = sumOf[callCounts](m[bpf.TraceMapCallCounts], inside*callKinds+kind)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// sumOf adds up what each processor has counted under a key: structures of 64-bit words and nothing
// else.
func sumOf[T any](m *ebpf.Map, key int) (sum T, err error) {
	var perCPU []T
	if err := m.Lookup(uint32(key), &perCPU); err != nil {
		return sum, err
	}
	words := func(v *T) []uint64 {
		return unsafe.Slice((*uint64)(unsafe.Pointer(v)), unsafe.Sizeof(*v)/8)
	}
	for i := range perCPU {
		for at, n := range words(&perCPU[i]) {
			words(&sum)[at] += n
		}
	}
	return sum, nil
}

// missed sums over all programs. A run is skipped where the same program was interrupted on that
// processor; requests are then lost or unmatched, and counted as such.
func (k *kernelPrograms) missed() (n int64) {
	all := maps.Clone(k.coll.Programs)
	if k.files != nil {
		maps.Copy(all, k.files.Programs)
	}
	for _, p := range all {
		if s, err := p.Stats(); err == nil { // since Linux 5.12; before, nothing is known of them
			n += int64(s.RecursionMisses)
		}
	}
	return n
}

func (k *kernelPrograms) close() error {
	var err error
	if k.files != nil {
		err = detach(k.fileLinks, k.files)
	}
	return errors.Join(err, detach(k.links, k.coll))
}
