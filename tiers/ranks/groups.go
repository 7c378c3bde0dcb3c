package ranks

import (
	"context"
	"fmt"
	"slices"

	"kvbench/tiers"
	"kvbench/tiers/spread"
)

// Groups is the files of one engine that keeps the groups of layers of a hybrid model apart: an
// object is one of each group, numbered as tiers.Object.Layer, which are made and read one after
// the other. One that is opened with fewer bytes than it was made with is read of the first groups
// alone: the last ones are those of which a prompt needs its end and no more.
type Groups struct {
	Tier
	tails tiers.Tails
}

var _ spread.Files = (*Groups)(nil)

// NewGroups makes it of the files, which it closes from now on. Each group has so many bytes of an
// object, whole pages; tails are as many.
func NewGroups(files spread.Files, part int64, tails tiers.Tails) *Groups {
	cfg := Config{Bytes: part, Part: part, InTurn: true}
	for i := range tails {
		cfg.Ranks = append(cfg.Ranks, &group{files, i + 1})
	}
	t := &Groups{*New(cfg), tails}
	t.traits.Description = fmt.Sprintf("%s, a file for each of %d groups of layers",
		files.Traits().Description, len(tails))
	return t
}

// Lookup asks for the first groups' objects, and for those of the others at the end of what there
// is of the first. It returns how many of the first objects there are.
func (t *Groups) Lookup(ctx context.Context, objs ...tiers.Object) (found int, err error) {
	found = len(objs)
	for i, tail := range t.tails {
		from := 0
		if tail > 0 {
			from = max(0, found-tail)
		}
		if from == found {
			break
		}
		n, err := spread.Lookup(ctx, t.ranks[i], objs[from:found]...)
		if err != nil {
			return 0, err
		}
		found = from + n
	}
	return found, nil
}

// group is one of them, as files of its own.
type group struct {
	spread.Files
	number int // from 1
}

// of are its objects of those of the model.
func (g *group) of(objs []tiers.Object) []tiers.Object {
	objs = slices.Clone(objs)
	for i := range objs {
		objs[i].Layer = g.number
	}
	return objs
}

// Lookup asks for the group's objects.
func (g *group) Lookup(ctx context.Context, objs ...tiers.Object) (int, error) {
	return spread.Lookup(ctx, g.Files, g.of(objs)...)
}

// Create begins the group's objects.
func (g *group) Create(ctx context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	return g.Files.Create(ctx, g.of(objs)...)
}

// Open begins reading them.
func (g *group) Open(ctx context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	return g.Files.Open(ctx, g.of(objs)...)
}

// Remove deletes them.
func (g *group) Remove(ctx context.Context, objs ...tiers.Object) error {
	return g.Files.Remove(ctx, g.of(objs)...)
}

// Footprint is that of all groups, which the first one reports.
func (g *group) Footprint() (held, waste int64) {
	if g.number > 1 {
		return 0, 0
	}
	return g.Files.Footprint()
}
