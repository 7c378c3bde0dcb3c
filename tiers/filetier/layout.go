package filetier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"kvbench/tiers"
)

// layout says where the objects of a tier lie, and makes the calls before and after their bytes move. All
// methods but place are called without a lock, and are safe for concurrent use. Base has defaults that
// make no call.
type layout interface {
	// start makes the calls before the first object, and completes the tier's traits.
	start(ctx context.Context) error
	// takes returns the bytes that an object takes in its file.
	takes(o tiers.Object) int64
	// place chooses the place of an object in a file. It follows the objects of run in the same file, or
	// place returns errApart. The caller holds Tier.mu.
	place(e *entry, run []*entry) error
	// create makes the calls before the objects of a span are written, commit the calls after that.
	// After an error of either, and in the place of commit, abandon closes and removes what there is of
	// them.
	create(ctx context.Context, s *span) error
	commit(ctx context.Context, s *span) error
	abandon(s *span) error
	// open makes the calls before objects are read, done the calls after that. After an error of open
	// done is not called.
	open(ctx context.Context, s *span) error
	done(s *span) error
	// remove deletes a committed object, which open readers can still read. Free is called later, when
	// the object has no reader left.
	remove(e *entry) error
	free(e *entry) error
	// lookUp makes the look-ups of the engine before it loads any object.
	lookUp(objs []tiers.Object) error
	// close closes the files of the layout. No request is in flight.
	close() error
}

// errApart: an object does not lie next to the others of its request.
var errApart = errors.New("not adjacent")

// base is the part that layouts have in common.
type base struct {
	t     *Tier
	calls *calls
}

func (base) start(context.Context) error         { return nil }
func (base) place(*entry, []*entry) error        { return nil }
func (base) create(context.Context, *span) error { return nil }
func (base) commit(context.Context, *span) error { return nil }
func (base) open(context.Context, *span) error   { return nil }
func (base) abandon(*span) error                 { return nil }
func (base) done(*span) error                    { return nil }
func (base) remove(*entry) error                 { return nil }
func (base) free(*entry) error                   { return nil }
func (base) lookUp([]tiers.Object) error         { return nil }
func (base) close() error                        { return nil }

// layouts makes each layout of tiers.Layouts, by its name. The file of a layout adds it.
var layouts = map[string]func(base) layout{}

// newLayout returns the layout of a configuration.
func newLayout(t *Tier) (layout, error) {
	spec, _ := t.cfg.Layout.Spec()
	make := layouts[spec.Name]
	if make == nil {
		return nil, fmt.Errorf("make a storage tier: there is no layout %q", t.cfg.Layout.Kind)
	}
	t.spec = spec
	return make(base{t, &t.calls}), nil
}

// LongestName returns the length in bytes of the longest file name that contains the model's name,
// for a whole object; 0 = the layout has no such name. It needs no directory.
func LongestName(cfg Config) int {
	l, _ := newLayout(&Tier{cfg: cfg})
	if l, ok := l.(interface{ longest() string }); ok {
		return len(l.longest())
	}
	return 0
}

const hashBytes = 2 * sha256.Size // in hexadecimal digits

// hash returns the part of a file name in place of the engine's hash of tokens. Both are spread
// evenly over directories and the trees of filesystems. It includes the generation, so that an
// object that is written again has another file.
func hash(o tiers.Object) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d", o.Key, o.Gen)
	return hex.EncodeToString(h.Sum(nil))
}
