package ioengine

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"
)

// StallAfter is the latency from which a request counts as a stall. An idle disk completes requests
// within a second.
const StallAfter = 2 * time.Second

// mostStalls limits the stalls that are described.
const mostStalls = 16

// Stuck describes a request or call that takes long.
type Stuck struct {
	What string // read, write, ..., or the name passed to Call
	Path string // of its file; "descriptor 7" if the system does not know the path
	Off  int64  // of reads and writes
	N    int    // bytes of reads and writes

	Begun    time.Duration // on the engine's clock
	For      time.Duration // until its completion, or until now
	Answered bool          // it has completed
}

// String names the operation and its file.
func (s Stuck) String() string {
	if s.N > 0 {
		return fmt.Sprintf("%s of %d bytes at offset %d of %s", s.What, s.N, s.Off, s.Path)
	}
	return fmt.Sprintf("%s of %s", s.What, s.Path)
}

// Stalls are the requests and calls that took StallAfter or longer.
type Stalls struct {
	Count   int64
	Longest []Stuck // 16 at most
}

// add counts a stall.
func (s *Stalls) add(stuck Stuck) {
	s.Count++
	s.Longest = append(s.Longest, stuck)
	slices.SortStableFunc(s.Longest, func(a, b Stuck) int { return cmp.Compare(b.For, a.For) })
	s.Longest = s.Longest[:min(len(s.Longest), mostStalls)]
}

// ledger records an engine's calls in service, and the stalls that have completed. The requests in
// flight are too many for it: each engine keeps its own.
type ledger struct {
	now func() time.Duration
	// paused returns how long the process was paused in the last time of a length, nil: never.
	paused func(time.Duration) time.Duration
	calls  [16]calls

	mu   sync.Mutex
	late Stalls // completed
}

// calls are some of the calls in service. A call chooses one of several calls at random, so that callers
// on many processors rarely wait for each other's lock.
type calls struct {
	mu        sync.Mutex
	inService []Stuck  // zero in the places of calls that have ended
	_         [32]byte // no other lock in this cache line
}

// Call implements Engine.
func (l *ledger) Call(what, where string, f func() error) error {
	c := Stuck{What: what, Path: where, Begun: l.now()}
	some := &l.calls[rand.IntN(len(l.calls))]
	some.mu.Lock()
	place := slices.Index(some.inService, Stuck{})
	if place < 0 {
		place, some.inService = len(some.inService), append(some.inService, c)
	}
	some.inService[place] = c
	some.mu.Unlock()
	defer func() {
		some.mu.Lock()
		some.inService[place] = Stuck{}
		some.mu.Unlock()
		if c.For = l.now() - c.Begun; l.stalled(c.For) {
			c.Answered = true
			l.mu.Lock()
			defer l.mu.Unlock()
			l.late.add(c)
		}
	}()
	return f()
}

// stuck appends the calls that have been in service for longer than older.
func (l *ledger) stuck(dst []Stuck, older time.Duration) []Stuck {
	now := l.now()
	for i := range l.calls {
		some := &l.calls[i]
		some.mu.Lock()
		for _, s := range some.inService {
			if s.For = now - s.Begun; s.What != "" && s.For > older {
				dst = append(dst, s)
			}
		}
		some.mu.Unlock()
	}
	return dst
}

func (l *ledger) without(paused func(time.Duration) time.Duration) { l.paused = paused }

// stalled reports whether a request that took so long is a stall of the storage.
func (l *ledger) stalled(took time.Duration) bool {
	return took >= StallAfter && (l.paused == nil || took-l.paused(took) >= StallAfter)
}

// completed records a completed request if it was a stall.
func (l *ledger) completed(op *Op) {
	if !l.stalled(op.Ended - op.Begun) {
		return
	}
	s := op.stuck(op.Ended)
	s.Answered = true
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late.add(s)
}

// stalls returns the completed stalls and those in flight.
func (l *ledger) stalls(inFlight []Stuck) Stalls {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := Stalls{Count: l.late.Count, Longest: slices.Clone(l.late.Longest)}
	for _, s := range inFlight {
		if !l.stalled(s.For) {
			continue
		}
		// It may have completed since the caller listed it.
		if !slices.ContainsFunc(l.late.Longest, func(late Stuck) bool {
			return late.What == s.What && late.Path == s.Path && late.Begun == s.Begun &&
				late.Off == s.Off
		}) {
			all.add(s)
		}
	}
	return all
}

// stuck describes a request in flight at the time now.
func (op *Op) stuck(now time.Duration) Stuck {
	s := Stuck{What: op.Kind.String(), Path: pathOf(op.FD), Begun: op.Begun, For: now - op.Begun}
	if op.Kind == Read || op.Kind == Write {
		s.Off, s.N = op.Off, op.N
	}
	return s
}

// pathOf returns the path of a descriptor. The kernel knows it without access to the device.
func pathOf(fd int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return fmt.Sprintf("descriptor %d", fd)
	}
	return path
}
