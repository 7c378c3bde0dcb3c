package tiertest

import (
	"context"
	"errors"
	"math"
	"sync"

	"kvbench/tiers"
)

// Null is a tier that stores no bytes and completes all requests at once. It records which objects
// exist, so that opening or removing a missing object fails as in any tier.
type Null struct{ held sync.Map }

var _ tiers.Files = (*Null)(nil)

// NewNull returns an empty tier.
func NewNull() *Null { return &Null{} }

// fail returns an error that names the object, as every tier does.
func fail(op string, o tiers.Object, err error) error {
	return &tiers.OpError{Op: op, Path: "null tier", Key: o.Key, Offset: -1, Err: err}
}

// Traits returns the traits of a tier without bytes and with one request per object.
func (t *Null) Traits() tiers.Traits {
	return tiers.Traits{Chunk: math.MaxInt, Align: 1, Description: "null: no bytes, no time"}
}

// Create begins to write an object.
func (t *Null) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	return &nullIO{tier: t, o: objs[0]}, nil
}

// Open finds an object.
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

// Close does nothing.
func (t *Null) Close() error { return nil }

// nullIO is a Writer or Reader of one object. Abort has nothing to undo: before Commit the tier does
// not know the object.
type nullIO struct {
	tiers.OneObject
	tier *Null
	o    tiers.Object
}

// Submit completes the request at once.
func (*nullIO) Submit(io *tiers.IO) { io.End(nil) }

// Commit refuses the second of two writers of one generation, as the memory tier does.
func (x *nullIO) Commit(context.Context) error {
	if _, there := x.tier.held.LoadOrStore(x.o.ID(), true); there {
		return fail("create", x.o, tiers.ErrExists)
	}
	return nil
}

func (*nullIO) Abort() error { return nil }
func (*nullIO) Close() error { return nil }
