package faults

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"kvbench/tiers"
)

// Call names one call of a tier, a writer or a reader.
type Call string

// The calls that a hook receives. Commit and Abort end writers, CloseReader ends readers.
const (
	Create      Call = "create"
	Write       Call = "write"
	Commit      Call = "commit"
	Abort       Call = "abort"
	Open        Call = "open"
	Read        Call = "read"
	CloseReader Call = "close"
	Remove      Call = "remove"
)

// Event describes one call to a hook.
type Event struct {
	Call   Call
	Object tiers.Object
	Offset int64 // of Write and Read
	Length int
	N      int64 // number of calls of this kind, including this one
}

// Hook is called before each call. If it returns an error, the call is not made and fails with that
// error, except that Abort and CloseReader are made so that nothing leaks. Hooks are called
// concurrently and may block or panic: Write and Read call the hook on a goroutine of their own, and a
// panic there becomes the request's error.
type Hook func(ctx context.Context, e Event) error

// Files are files with a hook.
type Files struct {
	inner  tiers.Files
	hook   atomic.Pointer[Hook]
	mu     sync.Mutex
	counts map[Call]int64

	writers, readers atomic.Int64
}

var _ tiers.Files = (*Files)(nil)

// Wrap returns inner with a hook; a nil hook passes all calls.
func Wrap(inner tiers.Files, hook Hook) *Files {
	t := &Files{inner: inner, counts: make(map[Call]int64)}
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
func (t *Files) SetHook(hook Hook) {
	if hook == nil {
		hook = func(context.Context, Event) error { return nil }
	}
	t.hook.Store(&hook)
}

// Count returns the number of calls of that kind, including failed ones.
func (t *Files) Count(call Call) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[call]
}

// InUse returns how many writers and readers have begun and not ended: 0 after all transfers.
func (t *Files) InUse() (writers, readers int64) { return t.writers.Load(), t.readers.Load() }

func (t *Files) ask(ctx context.Context, call Call, o tiers.Object, off int64, length int) error {
	t.mu.Lock()
	t.counts[call]++
	n := t.counts[call]
	t.mu.Unlock()
	return (*t.hook.Load())(ctx, Event{Call: call, Object: o, Offset: off, Length: length, N: n})
}

// Traits returns the inner tier's traits.
func (t *Files) Traits() tiers.Traits { return t.inner.Traits() }

// Create calls the hook, then the inner tier.
func (t *Files) Create(ctx context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	if err := t.ask(ctx, Create, objs[0], 0, 0); err != nil {
		return nil, err
	}
	w, err := t.inner.Create(ctx, objs...)
	if err != nil {
		return nil, err
	}
	t.writers.Add(1)
	f := &writer{Writer: w, t: t, o: objs[0], users: users{end: w.Abort}}
	f.users.n.Store(1)
	return f, nil
}

// Open calls the hook, then the inner tier.
func (t *Files) Open(ctx context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	if err := t.ask(ctx, Open, objs[0], 0, 0); err != nil {
		return nil, err
	}
	r, err := t.inner.Open(ctx, objs...)
	if err != nil {
		return nil, err
	}
	t.readers.Add(1)
	f := &reader{Reader: r, t: t, o: objs[0], users: users{end: r.Close}}
	f.users.n.Store(1)
	return f, nil
}

// Remove calls the hook for each object, then the inner tier.
func (t *Files) Remove(ctx context.Context, objs ...tiers.Object) error {
	for _, o := range objs {
		if err := t.ask(ctx, Remove, o, 0, 0); err != nil {
			return err
		}
	}
	return t.inner.Remove(ctx, objs...)
}

// Close closes the inner tier.
func (t *Files) Close() error { return t.inner.Close() }

// users counts the owner of a reader or writer and its requests in flight. The last user ends the inner
// reader or writer, as a tier does.
type users struct {
	n   atomic.Int64
	end func() error
}

// leave removes a user. For the last one it returns the error of end.
func (u *users) leave() error {
	if u.n.Add(-1) > 0 {
		return nil
	}
	return u.end()
}

// submit calls the hook for a request and then passes the request on, or fails it.
func (t *Files) submit(call Call, o tiers.Object, u *users, io *tiers.IO, pass func(*tiers.IO)) {
	u.n.Add(1)
	// Restore the caller's Done before calling it, because Done may submit the request again. Leave
	// first, because the caller may close the reader or writer in Done.
	done := io.Done
	io.Done = func(io *tiers.IO) {
		io.Done = done
		_ = u.leave()
		done(io)
	}
	go func() {
		err := func() (err error) {
			defer func() {
				if v := recover(); v != nil {
					err = &tiers.PanicError{Value: v, Stack: debug.Stack()}
				}
			}()
			return t.ask(context.Background(), call, o, io.Off, io.N)
		}()
		if err != nil {
			io.End(err)
			return
		}
		pass(io)
	}()
}

// writer wraps an inner writer.
type writer struct {
	tiers.Writer
	t     *Files
	o     tiers.Object
	users users
	ended atomic.Bool
}

// end counts the writer out, once.
func (w *writer) end() {
	if w.ended.CompareAndSwap(false, true) {
		w.t.writers.Add(-1)
	}
}

func (w *writer) Submit(io *tiers.IO) { w.t.submit(Write, w.o, &w.users, io, w.Writer.Submit) }

func (w *writer) Commit(ctx context.Context) error {
	err := w.t.ask(ctx, Commit, w.o, 0, 0)
	if err != nil {
		_ = w.Writer.Abort() // a failed Commit leaves nothing
	} else {
		err = w.Writer.Commit(ctx)
	}
	w.end()
	return err
}

func (w *writer) Abort() error {
	if w.ended.Load() {
		return nil
	}
	err := w.t.ask(context.Background(), Abort, w.o, 0, 0)
	w.end()
	if inner := w.users.leave(); err == nil {
		err = inner
	}
	return err
}

// reader wraps an inner reader.
type reader struct {
	tiers.Reader
	t      *Files
	o      tiers.Object
	users  users
	closed atomic.Bool
}

func (r *reader) Submit(io *tiers.IO) { r.t.submit(Read, r.o, &r.users, io, r.Reader.Submit) }

func (r *reader) Close() error {
	if !r.closed.CompareAndSwap(false, true) {
		return nil
	}
	err := r.t.ask(context.Background(), CloseReader, r.o, 0, 0)
	r.t.readers.Add(-1)
	if inner := r.users.leave(); err == nil {
		err = inner
	}
	return err
}
