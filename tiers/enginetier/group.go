package enginetier

import (
	"context"
	"errors"
	"sync"

	"kvbench/tiers"
)

// group is several objects of one request that move concurrently. Each object has its own calls, as
// if it were alone. The objects stand in the order of the request, each at the start of a page, so
// that a request of the tier's chunk size concerns one object.
type group struct {
	parts []*handle
	each  int64 // bytes from one object's start to the next
}

// mover is the reader or writer of one object or of a group.
type mover interface {
	tiers.Writer
	tiers.Reader
}

// group begins the first object and the objects of the same size after it, up to Depth. An object
// that cannot begin ends the group without an error: the caller gets the error when that object is
// the first.
func (t *Tier) group(objs []tiers.Object, begin func(tiers.Object) (*handle, error)) (mover,
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
	return &group{parts: list, each: each}, nil
}

// Len and Start implement tiers.Extent.
func (g *group) Len() int          { return len(g.parts) }
func (g *group) Start(i int) int64 { return int64(i) * g.each }

// Submit makes one call for each object in the range of the request. That is one object if requests
// have the tier's chunk size; otherwise the last call to complete ends the request.
func (g *group) Submit(io *tiers.IO) {
	end := io.Off + int64(io.N)
	last := int64(len(g.parts) - 1)
	from := max(0, min(io.Off/g.each, last))
	to := max(from, min((end-1)/g.each, last))
	if from == to {
		g.parts[from].Submit(io)
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
		at := max(io.Off, i*g.each)
		n := min(end, (i+1)*g.each) - at
		if i == to {
			n = end - at
		}
		p := io.Buf
		p.B = p.B[at-io.Off:]
		g.parts[i].Submit(&tiers.IO{Buf: p, Off: at, N: int(n), Done: done})
	}
}

// Commit commits the objects one after the other. If one fails, it removes those before it.
func (g *group) Commit(ctx context.Context) error {
	for i, h := range g.parts {
		err := h.Commit(ctx)
		if err == nil {
			continue
		}
		for _, done := range g.parts[:i] {
			err = errors.Join(err, h.t.Remove(ctx, done.f.o))
		}
		return errors.Join(err, g.Close())
	}
	return nil
}

// Committed returns the sum over the objects, which all have the same size.
func (g *group) Committed(n int64) (sum int64) {
	for _, h := range g.parts {
		sum += h.Committed(n / int64(len(g.parts)))
	}
	return sum
}

// Abort removes all objects.
func (g *group) Abort() error { return g.Close() }

// Close ends the owner's use of all objects.
func (g *group) Close() error {
	var errs []error
	for _, h := range g.parts {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}
