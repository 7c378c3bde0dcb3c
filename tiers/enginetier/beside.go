package enginetier

import (
	"context"
	"errors"
	"sync"

	"kvbench/tiers"
)

// beside is objects of one request that are under way beside each other: each has its own calls, as
// if it were alone, and a transfer has as many of them under way as it likes. They stand in the
// order of the request, each at a page of its own, so that a request for bytes is for one of them.
type beside struct {
	parts []*handle
	each  int64 // bytes from one to the next
}

// mover is what one object, or several, are for those who write or read.
type mover interface {
	tiers.Writer
	tiers.Reader
}

// beside begins the first object and those behind it of the same size, up to Depth. What cannot be
// begun ends them: it is told to whoever asks for it first.
func (t *Tier) beside(objs []tiers.Object, begin func(tiers.Object) (*handle, error)) (mover,
	error) {
	h, err := begin(objs[0])
	if err != nil {
		return nil, err
	}
	each := int64(t.traits.Chunk)
	list := []*handle{h}
	for i := 1; i < min(len(objs), t.cfg.Depth) && objs[i].Size == objs[0].Size; i++ {
		if objs[0].Size > each {
			break
		}
		next, err := begin(objs[i])
		if err != nil {
			break
		}
		list[i-1].padded, next.at = true, int64(i)*each
		list = append(list, next)
	}
	if len(list) == 1 {
		return h, nil
	}
	return &beside{parts: list, each: each}, nil
}

// Len and Start implement tiers.Extent.
func (b *beside) Len() int          { return len(b.parts) }
func (b *beside) Start(i int) int64 { return int64(i) * b.each }

// Submit makes one call for each object that the bytes are of. That is one where requests are as
// large as the tier wishes; otherwise the last of them ends the request.
func (b *beside) Submit(io *tiers.IO) {
	end := io.Off + int64(io.N)
	last := int64(len(b.parts) - 1)
	from := max(0, min(io.Off/b.each, last))
	to := max(from, min((end-1)/b.each, last))
	if from == to {
		b.parts[from].Submit(io)
		return
	}
	var mu sync.Mutex
	var errs []error
	left := to - from + 1
	io.Begun, io.Ended, io.Passed, io.Memory = 0, 0, 0, 0
	done := func(part *tiers.IO) {
		mu.Lock()
		errs = append(errs, part.Err)
		io.Memory += part.Memory
		if io.Begun == 0 || part.Begun < io.Begun {
			io.Begun, io.Passed = part.Begun, part.Passed
		}
		io.Ended = max(io.Ended, part.Ended)
		left--
		over := left == 0
		mu.Unlock()
		if over {
			io.End(errors.Join(errs...))
		}
	}
	for i := from; i <= to; i++ {
		at := max(io.Off, i*b.each)
		n := min(end, (i+1)*b.each) - at
		if i == to {
			n = end - at
		}
		p := io.Buf
		p.B = p.B[at-io.Off:]
		b.parts[i].Submit(&tiers.IO{Buf: p, Off: at, N: int(n), Done: done})
	}
}

// Commit commits one after the other. If one fails those before it are removed.
func (b *beside) Commit(ctx context.Context) error {
	for i, h := range b.parts {
		err := h.Commit(ctx)
		if err == nil {
			continue
		}
		for _, done := range b.parts[:i] {
			err = errors.Join(err, h.t.Remove(ctx, done.f.o))
		}
		return errors.Join(err, b.Close())
	}
	return nil
}

// Committed is the sum of theirs, which all are of one size.
func (b *beside) Committed(n int64) (sum int64) {
	for _, h := range b.parts {
		sum += h.Committed(n / int64(len(b.parts)))
	}
	return sum
}

// Abort gives all of them up.
func (b *beside) Abort() error { return b.Close() }

// Close lets go of all of them.
func (b *beside) Close() error {
	var errs []error
	for _, h := range b.parts {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}
