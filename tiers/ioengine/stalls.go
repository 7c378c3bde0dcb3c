package ioengine

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// StallAfter is how long a device may take for a request before that is called a stall: an idle
// disk answers within a second.
const StallAfter = 2 * time.Second

// mostStalls is how many are described.
const mostStalls = 16

// Stuck describes a request or call that the device has had for long.
type Stuck struct {
	What string // read, write, ..., or as Call was told
	Path string // of its file; "descriptor 7" where the system does not tell
	Off  int64  // of reads and writes
	N    int    // likewise: the bytes asked for

	Begun    time.Duration // by the clock of the engine
	For      time.Duration // until it was answered, or until now
	Answered bool
}

// String says what was asked, and of which file.
func (s Stuck) String() string {
	if s.N > 0 {
		return fmt.Sprintf("%s of %d bytes at offset %d of %s", s.What, s.N, s.Off, s.Path)
	}
	return fmt.Sprintf("%s of %s", s.What, s.Path)
}

// Stalls are the requests and calls that took StallAfter and more.
type Stalls struct {
	Count   int64   // all of them
	Longest []Stuck // the longest ones, 16 at most
}

// add counts one.
func (s *Stalls) add(stuck Stuck) {
	s.Count++
	s.Longest = append(s.Longest, stuck)
	slices.SortStableFunc(s.Longest, func(a, b Stuck) int { return cmp.Compare(b.For, a.For) })
	s.Longest = s.Longest[:min(len(s.Longest), mostStalls)]
}

// ledger is what an engine knows of calls and of what came late. Each has one; its requests under
// way are its own affair, because they are many.
type ledger struct {
	now func() time.Duration

	mu    sync.Mutex
	calls map[*Stuck]struct{} // under way
	late  Stalls              // answered
}

// Call implements Engine.
func (l *ledger) Call(what, where string, f func() error) error {
	c := &Stuck{What: what, Path: where, Begun: l.now()}
	l.mu.Lock()
	if l.calls == nil {
		l.calls = make(map[*Stuck]struct{})
	}
	l.calls[c] = struct{}{}
	l.mu.Unlock()
	defer func() {
		took := l.now() - c.Begun
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.calls, c)
		if took >= StallAfter {
			c.For, c.Answered = took, true
			l.late.add(*c)
		}
	}()
	return f()
}

// stuck appends the calls that are older.
func (l *ledger) stuck(dst []Stuck, older time.Duration) []Stuck {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.calls {
		if s := *c; now-s.Begun > older {
			s.For = now - s.Begun
			dst = append(dst, s)
		}
	}
	return dst
}

// answered notes a request that has come back.
func (l *ledger) answered(op *Op) {
	if op.Ended-op.Begun < StallAfter {
		return
	}
	s := op.stuck(op.Ended)
	s.Answered = true
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late.add(s)
}

// stalls adds what is under way to what came late.
func (l *ledger) stalls(underway []Stuck) Stalls {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := Stalls{Count: l.late.Count, Longest: slices.Clone(l.late.Longest)}
	for _, s := range underway {
		// It may have been answered since somebody looked.
		if !slices.ContainsFunc(l.late.Longest, func(late Stuck) bool {
			return late.What == s.What && late.Path == s.Path && late.Begun == s.Begun &&
				late.Off == s.Off
		}) {
			all.add(s)
		}
	}
	return all
}

// stuck describes a request at a moment.
func (op *Op) stuck(now time.Duration) Stuck {
	s := Stuck{What: op.Kind.String(), Path: pathOf(op.FD), Begun: op.Begun, For: now - op.Begun}
	if op.Kind == Read || op.Kind == Write {
		s.Off, s.N = op.Off, op.N
	}
	return s
}

// pathOf is the file of a descriptor, which the kernel knows without asking the device.
func pathOf(fd int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return fmt.Sprintf("descriptor %d", fd)
	}
	return path
}
