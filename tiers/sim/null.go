package sim

import (
	"context"

	"kvbench/tiers"
)

// Null takes any entry at once and keeps none of its bytes: the harness alone, and trace mode.
type Null struct{ index index }

var _ tiers.Tier = (*Null)(nil)

// NewNull returns an empty one.
func NewNull() *Null { return &Null{} }

// Traits: no data.
func (t *Null) Traits() tiers.Traits {
	return tiers.Traits{NoData: true, Align: 1, Description: "null: no bytes, no time"}
}

// Create begins an entry.
func (t *Null) Create(_ context.Context, o tiers.Object) (tiers.Writer, error) {
	return &nullIO{tier: t, o: o}, nil
}

// Open finds an entry.
func (t *Null) Open(_ context.Context, o tiers.Object) (tiers.Reader, error) {
	if err := t.index.has(o, "null tier"); err != nil {
		return nil, err
	}
	return &nullIO{}, nil
}

// Remove forgets an entry.
func (t *Null) Remove(_ context.Context, o tiers.Object) error { return t.index.remove(o, "null tier") }

// Close does nothing.
func (t *Null) Close() error { return nil }

// Instant is a NullTier whose operations take no time at all and cannot fail, so that a Cache over it keeps its books
// and does not call the tier: trace mode. It must be the tier of one Cache only.
type Instant struct{ Null }

var _ tiers.Tier = (*Instant)(nil)

// NewInstant returns one.
func NewInstant() *Instant { return &Instant{} }

// Traits: no data and no calls.
func (t *Instant) Traits() tiers.Traits {
	return tiers.Traits{NoData: true, Instant: true, Align: 1, Description: "null: no bytes, no time"}
}

type nullIO struct {
	tier *Null
	o    tiers.Object
}

func (*nullIO) WriteAt(context.Context, []byte, int64) error { return nil }

// ReadAt leaves p as it is: the tier holds no bytes (Traits.NoData).
func (*nullIO) ReadAt(context.Context, []byte, int64) error { return nil }

func (w *nullIO) Commit(context.Context) error { return w.tier.index.add(w.o, "null tier") }
func (*nullIO) Abort() error                   { return nil }
func (*nullIO) Close() error                   { return nil }
