// Package faults wraps a tier so that tests can make any of its calls fail, wait or panic.
package faults

import (
	"context"
	"sync"
	"sync/atomic"

	"kvbench/tiers"
)

// Call names one call of a tier, a writer or a reader.
type Call string

// The calls that can be met. Commit and Abort end writers, CloseReader readers.
const (
	Create      Call = "create"
	WriteAt     Call = "write"
	Commit      Call = "commit"
	Abort       Call = "abort"
	Open        Call = "open"
	ReadAt      Call = "read"
	CloseReader Call = "close"
	Remove      Call = "remove"
)

// Event is one call as a hook sees it.
type Event struct {
	Call   Call
	Object tiers.Object
	Offset int64 // of WriteAt and ReadAt
	Length int
	N      int64 // how many of this Call the tier has seen, this one included
}

// Hook is asked before each call. A non-nil error is returned in its place and the call is not made, except for
// Abort and CloseReader, which are made all the same so that nothing leaks. It may block, or panic, and is called
// concurrently.
type Hook func(ctx context.Context, e Event) error

// Tier is a tier with a hook.
type Tier struct {
	inner  tiers.Tier
	hook   atomic.Pointer[Hook]
	mu     sync.Mutex
	counts map[Call]int64

	writers, readers atomic.Int64
}

var _ tiers.Tier = (*Tier)(nil)

// Wrap returns inner with hook in front of it; a nil hook lets everything pass.
func Wrap(inner tiers.Tier, hook Hook) *Tier {
	t := &Tier{inner: inner, counts: make(map[Call]int64)}
	t.SetHook(hook)
	return t
}

// On returns a hook that fails the n-th call of that kind with err, or every one if n is 0.
func On(call Call, n int64, err error) Hook {
	return func(_ context.Context, e Event) error {
		if e.Call == call && (n == 0 || e.N == n) {
			return err
		}
		return nil
	}
}

// SetHook replaces the hook.
func (t *Tier) SetHook(hook Hook) {
	if hook == nil {
		hook = func(context.Context, Event) error { return nil }
	}
	t.hook.Store(&hook)
}

// Unwrap returns the tier inside.
func (t *Tier) Unwrap() tiers.Tier { return t.inner }

// Count is how many calls of that kind were made, failed ones included.
func (t *Tier) Count(call Call) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[call]
}

// InUse is how many writers and readers have begun and not ended: 0 when all transfers have.
func (t *Tier) InUse() (writers, readers int64) { return t.writers.Load(), t.readers.Load() }

func (t *Tier) ask(ctx context.Context, call Call, o tiers.Object, off int64, length int) error {
	t.mu.Lock()
	t.counts[call]++
	n := t.counts[call]
	t.mu.Unlock()
	return (*t.hook.Load())(ctx, Event{Call: call, Object: o, Offset: off, Length: length, N: n})
}

// Traits are those of the tier inside.
func (t *Tier) Traits() tiers.Traits { return t.inner.Traits() }

// Create asks the hook, then the tier inside.
func (t *Tier) Create(ctx context.Context, o tiers.Object) (tiers.Writer, error) {
	if err := t.ask(ctx, Create, o, 0, 0); err != nil {
		return nil, err
	}
	w, err := t.inner.Create(ctx, o)
	if err != nil {
		return nil, err
	}
	t.writers.Add(1)
	fw := &writer{t: t, o: o, inner: w}
	if s, ok := w.(tiers.Skipper); ok {
		return &skipWriter{writer: fw, skip: s}, nil
	}
	return fw, nil
}

// Open asks the hook, then the tier inside.
func (t *Tier) Open(ctx context.Context, o tiers.Object) (tiers.Reader, error) {
	if err := t.ask(ctx, Open, o, 0, 0); err != nil {
		return nil, err
	}
	r, err := t.inner.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	t.readers.Add(1)
	fr := &reader{t: t, o: o, inner: r}
	if s, ok := r.(tiers.Skipper); ok {
		return &skipReader{reader: fr, skip: s}, nil
	}
	return fr, nil
}

// Remove asks the hook, then the tier inside.
func (t *Tier) Remove(ctx context.Context, o tiers.Object) error {
	if err := t.ask(ctx, Remove, o, 0, 0); err != nil {
		return err
	}
	return t.inner.Remove(ctx, o)
}

// Close closes the tier inside.
func (t *Tier) Close() error { return t.inner.Close() }

type writer struct {
	t     *Tier
	o     tiers.Object
	inner tiers.Writer
	ended atomic.Bool
}

func (w *writer) end() {
	if w.ended.CompareAndSwap(false, true) {
		w.t.writers.Add(-1)
	}
}

func (w *writer) WriteAt(ctx context.Context, p []byte, off int64) error {
	if err := w.t.ask(ctx, WriteAt, w.o, off, len(p)); err != nil {
		return err
	}
	return w.inner.WriteAt(ctx, p, off)
}

func (w *writer) Commit(ctx context.Context) error {
	err := w.t.ask(ctx, Commit, w.o, 0, 0)
	if err != nil {
		_ = w.inner.Abort() // a failed Commit leaves nothing
	} else {
		err = w.inner.Commit(ctx)
	}
	w.end()
	return err
}

func (w *writer) Abort() error {
	if w.ended.Load() {
		return w.inner.Abort()
	}
	err := w.t.ask(context.Background(), Abort, w.o, 0, 0)
	w.end()
	if inner := w.inner.Abort(); err == nil {
		err = inner
	}
	return err
}

type reader struct {
	t      *Tier
	o      tiers.Object
	inner  tiers.Reader
	closed atomic.Bool
}

func (r *reader) ReadAt(ctx context.Context, p []byte, off int64) error {
	if err := r.t.ask(ctx, ReadAt, r.o, off, len(p)); err != nil {
		return err
	}
	return r.inner.ReadAt(ctx, p, off)
}

func (r *reader) Close() error {
	if !r.closed.CompareAndSwap(false, true) {
		return r.inner.Close()
	}
	err := r.t.ask(context.Background(), CloseReader, r.o, 0, 0)
	r.t.readers.Add(-1)
	if inner := r.inner.Close(); err == nil {
		err = inner
	}
	return err
}

// Tiers without data take their time in Skip; it counts as one write or read of everything.

type skipWriter struct {
	*writer
	skip tiers.Skipper
}

func (w *skipWriter) Skip(ctx context.Context, n int64) error {
	if err := w.t.ask(ctx, WriteAt, w.o, 0, int(n)); err != nil {
		return err
	}
	return w.skip.Skip(ctx, n)
}

type skipReader struct {
	*reader
	skip tiers.Skipper
}

func (r *skipReader) Skip(ctx context.Context, n int64) error {
	if err := r.t.ask(ctx, ReadAt, r.o, 0, int(n)); err != nil {
		return err
	}
	return r.skip.Skip(ctx, n)
}
