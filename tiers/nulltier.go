package tiers

import (
	"context"
)

// NullTier takes any entry at once and keeps none of its bytes: the harness alone, and trace mode.
type NullTier struct{ index index }

var _ Tier = (*NullTier)(nil)

// NewNullTier returns an empty one.
func NewNullTier() *NullTier { return &NullTier{} }

// Traits: no data.
func (t *NullTier) Traits() Traits {
	return Traits{NoData: true, Align: 1, Description: "null: no bytes, no time"}
}

// Create begins an entry.
func (t *NullTier) Create(_ context.Context, o Object) (Writer, error) {
	return &nullIO{tier: t, o: o}, nil
}

// Open finds an entry.
func (t *NullTier) Open(_ context.Context, o Object) (Reader, error) {
	if err := t.index.has(o, "null tier"); err != nil {
		return nil, err
	}
	return &nullIO{}, nil
}

// Remove forgets an entry.
func (t *NullTier) Remove(_ context.Context, o Object) error { return t.index.remove(o, "null tier") }

// Close does nothing.
func (t *NullTier) Close() error { return nil }

// InstantTier is a NullTier whose operations take no time at all and cannot fail, so that a Cache over it keeps its books
// and does not call the tier: trace mode. It must be the tier of one Cache only.
type InstantTier struct{ NullTier }

var _ Tier = (*InstantTier)(nil)

// NewInstantTier returns one.
func NewInstantTier() *InstantTier { return &InstantTier{} }

// Traits: no data and no calls.
func (t *InstantTier) Traits() Traits {
	return Traits{NoData: true, Instant: true, Align: 1, Description: "null: no bytes, no time"}
}

type nullIO struct {
	tier *NullTier
	o    Object
}

func (*nullIO) WriteAt(context.Context, []byte, int64) error { return nil }

// ReadAt leaves p as it is: the tier holds no bytes (Traits.NoData).
func (*nullIO) ReadAt(context.Context, []byte, int64) error { return nil }

func (w *nullIO) Commit(context.Context) error { return w.tier.index.add(w.o, "null tier") }
func (*nullIO) Abort() error                   { return nil }
func (*nullIO) Close() error                   { return nil }
