package tiertest

import (
	"context"
	"errors"
	"math"
	"sync"

	"kvbench/tiers"
)

// Null is a tier that takes any entry at once and keeps none of its bytes. It remembers which ones
// it has, so that opening or removing one that is not there is an error as in any other.
type Null struct{ held sync.Map }

var _ tiers.Tier = (*Null)(nil)

// NewNull returns an empty one.
func NewNull() *Null { return &Null{} }

// fail names the object as every tier does.
func fail(op string, o tiers.Object, err error) error {
	return &tiers.OpError{Op: op, Path: "null tier", Key: o.Key, Offset: -1, Err: err}
}

// Traits: no data, and one request for all of it.
func (t *Null) Traits() tiers.Traits {
	return tiers.Traits{Chunk: math.MaxInt, Align: 1, Description: "null: no bytes, no time"}
}

// Create begins an entry.
func (t *Null) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	return &nullIO{tier: t, o: objs[0]}, nil
}

// Open finds an entry.
func (t *Null) Open(_ context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	if _, ok := t.held.Load(objs[0].ID()); !ok {
		return nil, fail("open", objs[0], tiers.ErrNotFound)
	}
	return &nullIO{tier: t, o: objs[0]}, nil
}

// Remove forgets objects.
func (t *Null) Remove(_ context.Context, objs ...tiers.Object) error {
	var errs []error
	for _, o := range objs {
		if _, ok := t.held.LoadAndDelete(o.ID()); !ok {
			errs = append(errs, fail("remove", o, tiers.ErrNotFound))
		}
	}
	return errors.Join(errs...)
}

// Space is without end, so nobody can say.
func (t *Null) Space(context.Context) (tiers.Space, error) {
	return tiers.Space{}, errors.ErrUnsupported
}

// Close does nothing.
func (t *Null) Close() error { return nil }

// nullIO is a writer or reader of one object. It has nothing to take back: until Commit the object
// is nowhere.
type nullIO struct {
	tiers.One
	tier *Null
	o    tiers.Object
}

// Submit is done at once.
func (*nullIO) Submit(io *tiers.IO) { io.End(nil) }

// Commit is where the second of two writers of one generation is refused, as in memory.
func (x *nullIO) Commit(context.Context) error {
	if _, there := x.tier.held.LoadOrStore(x.o.ID(), true); there {
		return fail("create", x.o, tiers.ErrExists)
	}
	return nil
}

func (*nullIO) Abort() error { return nil }
func (*nullIO) Close() error { return nil }
