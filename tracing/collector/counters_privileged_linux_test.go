//go:build linux && (amd64 || arm64)

package collector

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers/privtest"
	"kvbench/tracing/bpf"
)

// ledger is the block layer's programs in the kernel, not attached: only the test makes events.
// Requests are invalid addresses, so the programs see each as a read of 0 bytes.
type ledger struct {
	*kernelPrograms
	t testing.TB
}

// detached loads the programs of the block layer with a type that a test can run.
func detached(t testing.TB, values map[string]any) *ebpf.Collection {
	t.Helper()
	privtest.Root(t)
	privtest.Need(t, rlimit.RemoveMemlock())
	spec, err := bpf.LoadTrace()
	require.NoError(t, err)
	values[bpf.TraceVarProbed] = uint32(1)
	require.NoError(t, configure(spec, nil, values))
	for name, p := range spec.Programs {
		ofCalls := strings.HasPrefix(name, "kv_sys") || strings.HasPrefix(name, "kv_uring")
		if !strings.HasPrefix(name, "kv_") || ofCalls {
			delete(spec.Programs, name)
			continue
		}
		p.Type, p.AttachType, p.AttachTo = ebpf.RawTracepoint, ebpf.AttachNone, ""
	}
	coll, err := ebpf.NewCollection(spec)
	privtest.Need(t, err)
	t.Cleanup(coll.Close)
	return coll
}

func newLedger(t testing.TB) ledger {
	coll := detached(t, map[string]any{bpf.TraceVarHaveStart: uint32(1)})
	k := &kernelPrograms{coll: coll}
	l := ledger{kernelPrograms: k, t: t}
	require.NoError(t, l.open())
	return l
}

// events runs the programs for one request, in the order of their names.
func (l ledger) events(rq uint64, names ...string) {
	l.t.Helper()
	for _, name := range names {
		_, err := l.coll.Programs["kv_"+name].Run(&ebpf.RunOptions{Context: [3]uint64{rq}})
		privtest.Need(l.t, err) // since Linux 5.10
	}
}

func (l ledger) counts() (bpf.TraceDirection, bpf.TraceOther, int64) {
	l.t.Helper()
	n, err := l.window()
	require.NoError(l.t, err)
	e, err := l.edge()
	require.NoError(l.t, err)
	return n.directions[dirRead], n.other, e.inFlight[dirRead]
}

// TestCountersInTheKernel runs the programs for everything that a device and a scheduler can do with a
// request, and for missing events.
func TestCountersInTheKernel(t *testing.T) {
	const rq, another = 0x1000, 0x2000
	for _, c := range []struct {
		name   string
		events []string
		// Expected for the direction: requests, issued, requeued, stale; also merged, orphaned and
		// in flight.
		requests, issued, requeued, stale, merged, orphaned int64
		inFlight                                            int64
	}{
		{name: "the way of a request", events: []string{"start", "issue", "complete"}, requests: 1,
			issued: 1},
		{name: "in flight", events: []string{"start", "issue"}, issued: 1, inFlight: 1},
		{name: "given back by a full device",
			events: []string{"start", "issue", "requeue", "issue", "complete"}, requests: 1,
			issued: 2, requeued: 1},
		{name: "given back and waiting", events: []string{"start", "issue", "requeue"}, issued: 1,
			requeued: 1},
		{name: "given back twice", events: []string{"start", "issue", "requeue", "issue", "requeue",
			"issue", "complete"}, requests: 1, issued: 3, requeued: 2},
		{name: "given back before it was issued",
			events: []string{"start", "requeue", "issue", "complete"}, requests: 1, issued: 1},
		{name: "a lost completion, found when it is queued again",
			events: []string{"start", "issue", "start", "issue", "complete"}, requests: 1,
			issued: 2, stale: 1},
		{name: "a lost completion, found when it is issued again",
			events: []string{"issue", "issue", "complete"}, requests: 1, issued: 2, stale: 1},
		{name: "two lost completions", events: []string{"issue", "start", "issue", "start", "issue",
			"complete"}, requests: 1, issued: 3, stale: 2},
		{name: "merged into another", events: []string{"start", "merge"}, merged: 1},
		{name: "merged after it was issued", events: []string{"start", "issue", "merge"}, issued: 1,
			merged: 1},
		{name: "queued and never issued", events: []string{"start", "start", "issue", "complete"},
			requests: 1, issued: 1, orphaned: 1},
		{name: "the end of an unknown one", events: []string{"complete", "requeue", "merge"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLedger(t)
			l.events(rq, c.events...)
			reads, other, inFlight := l.counts()
			assert.Equal(t, [4]int64{c.requests, c.issued, c.requeued, c.stale},
				[4]int64{reads.Requests, reads.Issued, reads.Requeued, reads.Stale})
			assert.Equal(t, [2]int64{c.merged, c.orphaned},
				[2]int64{other.Merged, other.Orphaned})
			assert.Equal(t, c.inFlight, inFlight)
			assert.Equal(t, c.stale > 0, reads.UnobservedNs > 0)
			l.events(another, "start", "issue", "complete")
			after, _, inFlight := l.counts()
			assert.Equal(t, c.requests+1, after.Requests, "others are not concerned")
			assert.Equal(t, c.inFlight, inFlight)
		})
	}
}

// TestRequestsLostInFlight expects a request without a completion to be found at the end of the
// window.
func TestRequestsLostInFlight(t *testing.T) {
	l := newLedger(t)
	l.events(0x1000, "start", "issue")
	l.events(0x2000, "start", "issue", "complete")
	l.events(0x3000, "start", "issue", "requeue")
	s, err := l.lostInFlight(monotonic())
	require.NoError(t, err)
	assert.Equal(t, [2]int64{1, 0}, s.counted)
	assert.Positive(t, s.unobserved)
	s, err = l.lostInFlight(l.opened)
	require.NoError(t, err)
	assert.Zero(t, s, "not yet")

	// In a later window the request hides gaps from the opening on.
	require.NoError(t, l.open())
	now := monotonic()
	s, err = l.lostInFlight(now)
	require.NoError(t, err)
	assert.Equal(t, lostInFlight{counted: [2]int64{1, 0}, unobserved: int64(now - l.opened),
		miscounted: [2]int64{2, 0}}, s)
	l.events(0x1000, "start", "issue", "complete")
	reads, _, inFlight := l.counts()
	assert.EqualValues(t, 1, reads.Stale)
	assert.LessOrEqual(t, reads.UnobservedNs, int64(monotonic()-l.opened))
	assert.Zero(t, inFlight)
}

// TestCapacityForRequests fills the table of requests. It expects that requests without a place are
// counted as such, and the others followed.
func TestCapacityForRequests(t *testing.T) {
	l := newLedger(t)
	capacity := l.coll.Maps[bpf.TraceMapLive].MaxEntries()
	const more = 100
	for i := range uint64(capacity) + more {
		l.events(0x1000+i*8, "start")
	}
	_, other, _ := l.counts()
	assert.EqualValues(t, more, other.Full)
	l.events(0x1000, "issue", "complete")
	reads, _, _ := l.counts()
	assert.EqualValues(t, 1, reads.Requests)
	l.events(0x1000, "start", "issue", "complete")
	reads, other, _ = l.counts()
	assert.EqualValues(t, 2, reads.Requests, "there is capacity again")
	assert.EqualValues(t, more, other.Full)
}

// TestIdleTimeIsTheLastCompletion reads the gauge and the idle time while requests complete, as a program
// on another processor does at a dispatch. If the gauge is 0, the idle time must be the last completion. If
// the programs stored it after the gauge, it could be the completion before, and busy time would count as
// a gap.
func TestIdleTimeIsTheLastCompletion(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one processor does one thing after the other")
	}
	l := newLedger(t)
	gauge, idle := l.word(bpf.TraceVarGauge), l.word(bpf.TraceVarIdle)
	var completing atomic.Uint64 // start of the current completion, 0 = none; the gauge is 1 before its end
	stop, seen, early := make(chan struct{}), 0, 0
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for range 1000 {
				since := completing.Load()
				if since == 0 || atomic.LoadUint64(gauge) != 0 {
					continue
				}
				if seen++; atomic.LoadUint64(idle) < since {
					early++
				}
			}
		}
	})
	for range 20_000 {
		l.events(0x1000, "start", "issue")
		completing.Store(monotonic())
		l.events(0x1000, "complete")
		completing.Store(0)
	}
	close(stop)
	reader.Wait()
	t.Logf("looked %d times between a completion and what follows", seen)
	assert.Zero(t, early)
}

// word is a variable in the memory that the programs share.
func (l ledger) word(name string) *uint64 {
	l.t.Helper()
	spec, err := bpf.LoadTrace()
	require.NoError(l.t, err)
	v := spec.Variables[name]
	m := l.coll.Maps[v.SectionName]
	memory, err := unix.Mmap(m.FD(), 0, int(m.ValueSize()), unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(l.t, err)
	l.t.Cleanup(func() { assert.NoError(l.t, unix.Munmap(memory)) })
	return (*uint64)(unsafe.Pointer(&memory[v.Offset]))
}
