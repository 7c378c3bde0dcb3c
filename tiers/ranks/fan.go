package ranks

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kvbench/tiers"
	"kvbench/tiers/spread"
)

// mover is a writer or reader of one rank's objects.
type mover interface {
	tiers.Extent
	tiers.Submitter
}

// fan writes or reads objects of all ranks. The bytes of an object are those of the first rank, then
// those of the second, and so on. Object i begins at Start(i).
type fan[M mover] struct {
	t     *Tier
	objs  []tiers.Object // all of one size
	ranks []M            // the first ranks, which have bytes of the objects
	part  int64          // bytes per rank
	each  int64          // bytes from one object's start to the next
	give  func(M) error  // Abort or Close of a rank's mover
}

// begin begins objects of one size on all ranks that have bytes of them. It takes as many objects as
// every rank takes.
func begin[M mover](t *Tier, objs []tiers.Object, do func(spread.Files, []tiers.Object) (M, error),
	give func(M) error) (*fan[M], error) {
	size := objs[0].Size
	n := 1
	for n < len(objs) && objs[n].Size == size && size <= int64(t.traits.Chunk) {
		n++
	}
	part := t.part(size)
	count := int((size-1)/part) + 1 // ranks with bytes of an object
	if count > len(t.ranks) {
		return nil, t.error("open", objs[0], -1, fmt.Errorf("%d bytes are more than %d parts of %d",
			size, len(t.ranks), part))
	}
	for {
		f := &fan[M]{t: t, part: part, each: int64(t.traits.Chunk), give: give}
		ranks, begun := make([]M, count), make([]bool, count)
		err := t.each(count, func(i int) (err error) {
			ranks[i], err = do(t.ranks[i], t.allOf(i, objs[:n]))
			begun[i] = err == nil
			return err
		})
		least, most := n, 0
		for i, is := range begun {
			if is {
				f.ranks = append(f.ranks, ranks[i])
				least, most = min(least, ranks[i].Len()), max(most, ranks[i].Len())
			}
		}
		if err == nil && least == most {
			f.objs = objs[:least]
			return f, nil
		}
		// A concurrent call, such as Remove, has changed the objects of some ranks: begin again with
		// fewer objects, or fail. The number decreases each time, so the loop ends.
		if err := errors.Join(err, f.close()); err != nil {
			return nil, err
		}
		n = least
	}
}

// Len and Start implement tiers.Extent.
func (f *fan[M]) Len() int          { return len(f.objs) }
func (f *fan[M]) Start(i int) int64 { return int64(i) * f.each }

// close aborts or closes the objects of all ranks.
func (f *fan[M]) close() error {
	var errs []error
	for _, m := range f.ranks {
		errs = append(errs, f.give(m))
	}
	return errors.Join(errs...)
}

// Submit submits one request to every rank that has some of the bytes.
func (f *fan[M]) Submit(io *tiers.IO) {
	s, ok := io.State.(*split)
	if !ok {
		s = &split{}
		io.State = s
	}
	to, err := f.cut(s, io)
	if err != nil {
		io.End(f.t.error("move", f.objs[len(f.objs)-1], io.Off, err))
		return
	}
	if len(to) == 0 {
		io.End(nil)
	}
	// After the last Submit the request may be complete and reused, so do not read it any more.
	for i, rank := range to {
		f.ranks[rank].Submit(&s.parts[i])
	}
}

// split is the ranks' requests of one IO. It is reused with the IO to save allocations.
type split struct {
	io    *tiers.IO
	parts []tiers.IO

	mu   sync.Mutex
	left int
	err  error
}

// cut splits a request into the ranks' requests, and returns their ranks.
func (f *fan[M]) cut(s *split, io *tiers.IO) (to []int, err error) {
	size, end := f.objs[0].Size, io.Off+int64(io.N)
	last := len(f.objs) - 1
	if io.Off < 0 || end > f.Start(last)+size {
		return nil, fmt.Errorf("%d bytes at offset %d reach beyond the entry's %d", io.N, io.Off,
			size)
	}
	for at := io.Off; at < end; {
		k := min(int(at/f.each), last)
		off := at - f.Start(k)
		if off >= size { // padding between two objects
			at = f.Start(k + 1)
			continue
		}
		rank := int(off / f.part)
		until := min(end, f.Start(k)+min(size, int64(rank+1)*f.part))
		n := len(to)
		if n == len(s.parts) {
			s.parts = append(s.parts, tiers.IO{Done: s.done})
		}
		p := &s.parts[n]
		if p.Buf = io.Buf; io.Buf.B != nil {
			p.Buf.B = io.Buf.B[at-io.Off : until-io.Off]
		}
		p.Off = f.ranks[rank].Start(k) + off - int64(rank)*f.part
		p.N, p.Begun, p.Ended, p.Passed, p.Err = int(until-at), 0, 0, 0, nil
		to = append(to, rank)
		at = until
	}
	s.io, s.err, s.left = io, nil, len(to)
	io.Begun, io.Ended, io.Passed = 0, 0, 0
	return to, nil
}

// done is the Done of each rank's request; the last one completes the IO.
func (s *split) done(p *tiers.IO) {
	s.mu.Lock()
	io := s.io
	if s.err == nil {
		s.err = p.Err
	}
	if io.Begun == 0 || p.Begun < io.Begun {
		io.Begun, io.Passed = p.Begun, p.Passed
	}
	io.Ended = max(io.Ended, p.Ended)
	s.left--
	over, err := s.left == 0, s.err
	s.mu.Unlock()
	if over {
		io.End(err)
	}
}

// reader reads objects of all ranks.
type reader struct{ *fan[tiers.Reader] }

// Close closes the readers of all ranks.
func (r *reader) Close() error { return r.close() }

// writer writes objects of all ranks.
type writer struct{ *fan[tiers.Writer] }

// Commit commits the objects of all ranks. If one rank fails, it removes the other ranks' objects.
func (w *writer) Commit(ctx context.Context) error {
	done := make([]bool, len(w.ranks))
	err := w.t.each(len(w.ranks), func(i int) error {
		err := w.ranks[i].Commit(ctx)
		done[i] = err == nil
		return err
	})
	if err == nil {
		return nil
	}
	// No reader has seen them: an object exists when all ranks can open it.
	for i, is := range done {
		if is {
			err = errors.Join(err, w.t.ranks[i].Remove(ctx, w.t.allOf(i, w.objs)...))
		}
	}
	return errors.Join(err, w.close())
}

// Abort aborts the objects of all ranks.
func (w *writer) Abort() error { return w.close() }
