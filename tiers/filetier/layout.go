package filetier

import (
	"context"
	"errors"
	"fmt"

	"kvbench/tiers"
)

// layout decides where the objects of a tier are, and makes the calls before and after their bytes
// move. All methods except place are called without a lock and are safe for concurrent use.
type layout interface {
	// start makes the calls before the first object, and completes the tier's traits.
	start(ctx context.Context) error
	// takes returns the bytes that an object takes in its file.
	takes(o tiers.Object) int64
	// place chooses the place of an object in a file. It must be after the objects of run in the same
	// file; otherwise place returns errApart. The caller holds Tier.mu.
	place(e *entry, run []*entry) error
	// create makes the calls before the objects of a span are written, and commit the calls after that.
	// abandon closes and removes the objects: after an error of create or commit, or instead of commit.
	create(ctx context.Context, s *span) error
	commit(ctx context.Context, s *span) error
	abandon(s *span) error
	// open makes the calls before objects are read, and done the calls after that. done is not called
	// after an error of open.
	open(ctx context.Context, s *span) error
	done(s *span) error
	// remove deletes a committed object, which open readers can still read. free is called when the
	// object has no readers left.
	remove(e *entry) error
	free(e *entry) error
	// lookUp makes the look-ups of the engine before it loads any object.
	lookUp(objs []tiers.Object) error
	// close closes the files of the layout. No request is in flight.
	close() error
}

// errApart means that an object cannot be adjacent to the other objects of its request.
var errApart = errors.New("not adjacent")

// base is the part that layouts have in common. Its defaults are for layouts of one file per object.
type base struct {
	t     *Tier
	calls *calls
}

func (base) start(context.Context) error         { return nil }
func (base) place(*entry, []*entry) error        { return nil }
func (base) commit(context.Context, *span) error { return nil }
func (base) remove(*entry) error                 { return nil }
func (base) free(*entry) error                   { return nil }
func (base) lookUp([]tiers.Object) error         { return nil }
func (base) close() error                        { return nil }

// done closes the file that was read.
func (b base) done(s *span) error { return b.calls.close(s.fd, s.path) }

// abandon closes and removes the file of an object, if create has made it.
func (b base) abandon(s *span) (err error) {
	if s.path == "" {
		return nil
	}
	if !s.closed {
		err = b.calls.close(s.fd, s.path)
	}
	return errors.Join(err, b.t.unlink(s.path))
}

// layouts has a function per layout of tiers.Layouts that makes it, by name. Each layout's file adds
// its own.
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
