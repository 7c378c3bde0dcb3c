package plainio

import (
	"context"
	"errors"
	"slices"

	"kvbench/kvbench"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/transfer"
	"kvbench/workloads/profile"
)

// field is files of one size that stay open, in which requests go to any place: what an engine does
// that keeps the blocks of its cache in slots. Writes go where something was written before, so
// that they change no metadata, and no flush follows them, as none follows a slot's.
type field struct {
	*mover
	op    tiers.Op
	size  int64 // of a file
	files []plot
}

// plot is one of the files.
type plot struct {
	tiers.Submitter
	object tiers.Object
	close  func() error
}

// A field is filled by requests of fieldFill bytes at least, fieldFillers at a time, whatever is
// asked of it later: one of pages is not to be filled page by page.
const (
	fieldFill    = 1 << 20
	fieldFillers = 16
)

// newField returns one without files, for requests of so many bytes at most.
func newField(e *kvbench.Env, l cache.Level, op tiers.Op, request, footprint int64) (*field,
	error) {
	m, err := newMover(e, l, "field/")
	if err != nil {
		return nil, err
	}
	switch {
	case m.store != nil:
		return nil, errors.New("requests inside files need a directory: an object store takes " +
			"whole objects (-cache-dir)")
	case l.Tier.Traits().CountsAtCommit:
		return nil, errors.New("requests inside files need direct I/O, and the files of this run " +
			"are behind the page cache, which would answer them (-io, or the filesystem refuses " +
			"direct I/O)")
	}
	m.chunk = max(request, fieldFill)
	return &field{mover: m, op: op,
		size: m.wholeChunks(min(m.largest(), footprint/fieldFillers))}, nil
}

// fill writes files of footprint bytes in all, one at least, and opens them, but begins no further
// one when enough says so; nil: it never does. They are closed by close, also after an error.
func (f *field) fill(ctx context.Context, footprint int64, enough func() bool) error {
	n := max(1, int(footprint/f.size))
	l, err := f.buffers(ctx, min(fieldFillers, n))
	if err != nil {
		return err
	}
	made := make([]plot, n)
	err = beside(ctx, f.env, l.len(), func(ctx context.Context, w int) (err error) {
		for i := w; i < n && err == nil && (i == 0 || enough == nil || !enough()); i += l.len() {
			made[i], err = f.plot(ctx, l.bufs[w])
		}
		return err
	})
	f.files = slices.DeleteFunc(made, func(p plot) bool { return p.close == nil })
	return errors.Join(err, l.free())
}

// plot writes a file and opens it.
func (f *field) plot(ctx context.Context, buf lent) (p plot, err error) {
	o := f.object(f.size)
	more := func(tiers.Chunk) bool { return true }
	if f.op == tiers.Write {
		w, err := f.level.Tier.Create(ctx, o)
		if err != nil {
			return p, err
		}
		if err := f.pour(ctx, w, buf, o, more); err != nil {
			return p, errors.Join(err, w.Abort())
		}
		return plot{w, o, func() error { return w.Commit(over) }}, nil
	}
	if err := f.write(ctx, buf, o, more); err != nil {
		return p, err
	}
	r, err := f.level.Tier.Open(ctx, o)
	if err != nil {
		return p, err
	}
	return plot{r, o, r.Close}, nil
}

// Readable is the files that are read here: the others are open for writing still.
func (f *field) Readable() (objects []tiers.Object) {
	if f.op != tiers.Read {
		return nil
	}
	for _, p := range f.files {
		objects = append(objects, p.object)
	}
	return objects
}

// over has ended: a flush that nobody measures is waited for no longer than any request after the
// end.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// close flushes what was written, and lets go of the files.
func (f *field) close() (err error) {
	for _, p := range f.files {
		err = errors.Join(err, p.close())
	}
	f.files = nil
	return err
}

// anywhere goes to places that draws says, from the n-th one on, all of them multiples of the
// request's size, until until says so.
func (f *field) anywhere(draws profile.Stream, n *int64, request int64,
	until func() bool) transfer.Next {
	places := int(f.size / request)
	return func(io *tiers.IO) tiers.Submitter {
		if until() {
			return nil
		}
		*n++
		i := draws.Between(profile.DrawObject, *n, 0, len(f.files)*places-1)
		io.Off, io.N = int64(i%places)*request, int(request)
		if f.op == tiers.Write && f.holds() {
			f.stampBlocks(io.Buf.B[:request])
		}
		return f.files[i/places].Submitter
	}
}
