package plainio

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"kvbench/kvbench"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/transfer"
	"kvbench/workloads/users"
)

// field is files of one size that stay open, with requests at any place in them, like an engine
// that keeps the blocks of its cache in slots. Writes overwrite written data, so that they change
// no metadata, and no flush follows them, as none follows a slot's.
type field struct {
	*mover
	op    tiers.Op
	size  int64 // of a file
	files []region
}

// region is one of the files.
type region struct {
	tiers.Submitter
	close func() error
}

// A field is filled in pieces of fieldFill bytes, fieldFillers at a time and in as many files,
// whatever its request size: filling page by page would be slow, and a request of 16 MiB is three
// seconds of a slow drive. Filling with a time limit begins with fieldFirst pieces at a time in one
// file, and then has as many as the storage writes in a quarter of a second.
const (
	fieldFill    = 1 << 20
	fieldFillers = 16
	fieldFirst   = 4
)

// newField returns a field without files, for requests of up to request bytes.
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
	size := m.wholeChunks(min(m.largest(), footprint/fieldFillers))
	m.chunk = fieldFill
	return &field{mover: m, op: op, size: size}, nil
}

// fill writes files of footprint bytes in all, at least one, and opens them. It begins no file
// after the first one after until; 0: no limit. close closes them, also after an error.
//
// It begins no files that would be late: a batch has as many as fit into half of the time left, at
// the rate so far.
func (f *field) fill(ctx context.Context, footprint int64, until time.Duration) error {
	n := max(1, int(footprint/f.size))
	l, err := f.buffers(ctx, min(fieldFillers, n*int(f.size/fieldFill)), fieldFill)
	if err != nil {
		return err
	}
	begun := f.env.Clock.Now()
	for whole := true; err == nil && whole && len(f.files) < n; {
		files, streams := fieldFillers, l.len()
		if until > 0 {
			files, streams = 1, min(streams, fieldFirst)
		}
		if now := f.env.Clock.Now(); until > 0 && len(f.files) > 0 && now > begun {
			perSecond := float64(len(f.files)) * float64(f.size) / (now - begun).Seconds()
			room := perSecond * (until - now).Seconds() / float64(f.size)
			if room < 1 {
				break
			}
			files = min(fieldFillers, max(1, int(room/2)))
			streams = min(l.len(), max(fieldFirst, int(perSecond/4/fieldFill)))
		}
		whole, err = f.batch(ctx, l, min(files, n-len(f.files)), streams, until)
	}
	return errors.Join(err, l.free())
}

// batch writes files concurrently, piece by piece in turns, and reports whether they are whole:
// otherwise it removes them.
func (f *field) batch(ctx context.Context, l *lease, files, streams int,
	until time.Duration) (whole bool, err error) {
	objects, made := make([]tiers.Object, files), make([]tiers.Writer, files)
	abort := func(err error) error {
		for _, w := range made {
			if w != nil {
				err = errors.Join(err, w.Abort())
			}
		}
		return err
	}
	for i := range made {
		objects[i] = f.object(f.size)
		if made[i], err = f.level.Tier.Create(ctx, objects[i]); err != nil {
			made[i] = nil
			return false, abort(err)
		}
	}
	pieces := int64(files) * (f.size / fieldFill)
	var begun, ended atomic.Int64
	err = concurrently(ctx, f.env, streams, func(ctx context.Context, i int) error {
		next := func(io *tiers.IO) tiers.Submitter {
			if until > 0 && len(f.files) > 0 && f.env.Clock.Now() >= until {
				return nil
			}
			at := begun.Add(1) - 1
			if at >= pieces {
				return nil
			}
			io.Off, io.N = at/int64(files)*fieldFill, fieldFill
			f.stampBlocks(io.Buf.B)
			return made[at%int64(files)]
		}
		return l.bufs[i].pass(ctx, f.env.Clock, &tiers.IO{}, next, func(tiers.Chunk) bool {
			ended.Add(1)
			return true
		})
	})
	if err != nil || ended.Load() < pieces {
		return false, abort(err)
	}
	regions := make([]region, files)
	err = concurrently(ctx, f.env, files, func(ctx context.Context, i int) (err error) {
		regions[i], err = f.open(ctx, made[i], objects[i])
		return err
	})
	f.files = append(f.files, slices.DeleteFunc(regions,
		func(p region) bool { return p.close == nil })...)
	return true, err
}

// open opens a written file for the field's requests.
func (f *field) open(ctx context.Context, w tiers.Writer, o tiers.Object) (p region, err error) {
	if f.op == tiers.Write {
		return region{w, func() error { return w.Commit(over) }}, nil
	}
	if err := w.Commit(ctx); err != nil {
		return p, err
	}
	r, err := f.level.Tier.Open(ctx, o)
	if err != nil {
		return p, err
	}
	return region{r, r.Close}, nil
}

// over has ended: an unmeasured flush gets only the grace of any request after the end.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// close flushes and closes the files.
func (f *field) close() (err error) {
	for _, p := range f.files {
		err = errors.Join(err, p.close())
	}
	f.files = nil
	return err
}

// anywhere returns requests at random places, from the n-th draw on, all aligned to the request's
// size, until the function until returns true.
func (f *field) anywhere(draws users.Stream, n *int64, request int64,
	until func() bool) transfer.Next {
	places := int(f.size / request)
	return func(io *tiers.IO) tiers.Submitter {
		if until() {
			return nil
		}
		*n++
		i := draws.Between(users.DrawObject, *n, 0, len(f.files)*places-1)
		io.Off, io.N = int64(i%places)*request, int(request)
		if f.op == tiers.Write && f.holds() {
			f.stampBlocks(io.Buf.B[:request])
		}
		return f.files[i/places].Submitter
	}
}
