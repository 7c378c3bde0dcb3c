package sim

import (
	"context"
	"errors"
	"math"
	"sync"

	"kvbench/tiers"
)

// Null takes any entry at once and keeps none of its bytes: the harness alone.
type Null struct{ table }

var _ tiers.Tier = (*Null)(nil)

// NewNull returns an empty one.
func NewNull() *Null { return &Null{} }

// Traits: no data, and one request for all of it.
func (t *Null) Traits() tiers.Traits {
	return tiers.Traits{Chunk: math.MaxInt, Align: 1, Description: "null: no bytes, no time"}
}

// Create begins an entry.
func (t *Null) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	return &nullIO{handle: handle{table: &t.table, o: objs[0]}}, nil
}

// Open finds an entry.
func (t *Null) Open(_ context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	h, err := t.open(objs[0])
	if err != nil {
		return nil, err
	}
	return &nullIO{h}, nil
}

type nullIO struct{ handle }

// Submit is done at once.
func (*nullIO) Submit(io *tiers.IO) { io.End(nil) }

// table remembers which objects a tier without bytes holds, so that opening or removing one
// that is not there is an error in it as in any other. It is what such tiers share.
type table struct {
	mu   sync.Mutex
	held map[tiers.ID]struct{}
}

func fail(op string, o tiers.Object, err error) error {
	return &tiers.OpError{Op: op, Path: "simulated tier", Key: o.Key, Offset: -1, Err: err}
}

func (t *table) open(o tiers.Object) (handle, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.held[o.ID()]; !ok {
		return handle{}, fail("open", o, tiers.ErrNotFound)
	}
	return handle{table: t, o: o}, nil
}

// Remove forgets objects.
func (t *table) Remove(_ context.Context, objs ...tiers.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, o := range objs {
		if _, ok := t.held[o.ID()]; !ok {
			errs = append(errs, fail("remove", o, tiers.ErrNotFound))
		}
		delete(t.held, o.ID())
	}
	return errors.Join(errs...)
}

// Space is without end, so nobody can say.
func (t *table) Space(context.Context) (tiers.Space, error) {
	return tiers.Space{}, errors.ErrUnsupported
}

// Close does nothing.
func (t *table) Close() error { return nil }

// handle is a writer or reader of one object, but for its requests.
type handle struct {
	tiers.One
	table *table
	o     tiers.Object
}

func (h *handle) Commit(context.Context) error {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.held[h.o.ID()]; ok {
		return fail("create", h.o, tiers.ErrExists)
	}
	if t.held == nil {
		t.held = make(map[tiers.ID]struct{})
	}
	t.held[h.o.ID()] = struct{}{}
	return nil
}

func (*handle) Abort() error { return nil }
func (*handle) Close() error { return nil }
