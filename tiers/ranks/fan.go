package ranks

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kvbench/tiers"
	"kvbench/tiers/spread"
)

// mover is a rank's objects, being written or read.
type mover interface {
	tiers.Extent
	tiers.Submitter
}

// fan is objects as a writer or a reader: of each the bytes of all ranks, one rank behind the
// other, in as many bytes as Start says.
type fan[M mover] struct {
	t     *Tier
	objs  []tiers.Object // of one size
	ranks []M            // the first ones, who have something of them
	part  int64          // bytes of a rank
	each  int64          // from an object to the next
	give  func(M) error  // up
}

// begin begins objects of one size with all ranks that have something of them, as many as each of
// them takes.
func begin[M mover](t *Tier, objs []tiers.Object, do func(spread.Files, []tiers.Object) (M, error),
	give func(M) error) (*fan[M], error) {
	size := objs[0].Size
	n := 1
	for n < len(objs) && objs[n].Size == size && size <= int64(t.traits.Chunk) {
		n++
	}
	part := t.part(size)
	who := int((size-1)/part) + 1
	if who > len(t.ranks) {
		return nil, t.error("open", objs[0], -1, fmt.Errorf("%d bytes are more than %d parts of %d",
			size, len(t.ranks), part))
	}
	for {
		f := &fan[M]{t: t, part: part, each: int64(t.traits.Chunk), give: give}
		ranks, begun := make([]M, who), make([]bool, who)
		err := t.each(who, func(i int) (err error) {
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
		// Somebody has come between, as who removes one of them: none are begun, or fewer. Each
		// time there are fewer, so that it ends.
		if err := errors.Join(err, f.close()); err != nil {
			return nil, err
		}
		n = least
	}
}

// Len and Start implement tiers.Extent.
func (f *fan[M]) Len() int          { return len(f.objs) }
func (f *fan[M]) Start(i int) int64 { return int64(i) * f.each }

// close gives the objects of all ranks up, or lets go of them.
func (f *fan[M]) close() error {
	var errs []error
	for _, m := range f.ranks {
		errs = append(errs, f.give(m))
	}
	return errors.Join(errs...)
}

// Submit makes a request of every rank that has some of the bytes.
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
	// With the last one the request may be over, and used again: nothing is looked at behind it.
	for i, rank := range to {
		f.ranks[rank].Submit(&s.parts[i])
	}
}

// split is a request as those of the ranks. It lives as long as its IO, so that a stream of them
// allocates little.
type split struct {
	io    *tiers.IO
	parts []tiers.IO

	mu   sync.Mutex
	left int
	err  error
}

// cut makes the parts of a request, and says whose they are.
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
		if off >= size { // between two objects
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

// done is told by each rank; the slowest ends the request.
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

// reader is objects that are read.
type reader struct{ *fan[tiers.Reader] }

// Close lets go of them.
func (r *reader) Close() error { return r.close() }

// writer is objects that are written.
type writer struct{ *fan[tiers.Writer] }

// Commit commits the objects of all ranks. If one fails those of the others are removed.
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
	// Nobody has seen them: an object is there when all ranks can open it.
	for i, is := range done {
		if is {
			err = errors.Join(err, w.t.ranks[i].Remove(ctx, w.t.allOf(i, w.objs)...))
		}
	}
	return errors.Join(err, w.close())
}

// Abort gives all of them up.
func (w *writer) Abort() error { return w.close() }
