package sim

import (
	"context"
	"errors"
	"math"

	"kvbench/tiers"
)

// Null takes any entry at once and keeps none of its bytes: the harness alone.
type Null struct{ index index }

var _ tiers.Tier = (*Null)(nil)

// NewNull returns an empty one.
func NewNull() *Null { return &Null{} }

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
	if err := t.index.has(objs[0], "null tier"); err != nil {
		return nil, err
	}
	return &nullIO{}, nil
}

// Remove forgets entries.
func (t *Null) Remove(_ context.Context, objs ...tiers.Object) error {
	return t.index.remove(objs, "null tier")
}

// Space is without end, so nobody can say.
func (t *Null) Space(context.Context) (tiers.Space, error) {
	return tiers.Space{}, errors.ErrUnsupported
}

// Close does nothing.
func (t *Null) Close() error { return nil }

type nullIO struct {
	tiers.One
	tier *Null
	o    tiers.Object
}

// Submit is done at once.
func (*nullIO) Submit(io *tiers.IO) { io.End(nil) }

func (w *nullIO) Commit(context.Context) error { return w.tier.index.add(w.o, "null tier") }
func (*nullIO) Abort() error                   { return nil }
func (*nullIO) Close() error                   { return nil }
