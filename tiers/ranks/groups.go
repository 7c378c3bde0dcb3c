package ranks

import (
	"context"
	"fmt"
	"slices"

	"kvbench/tiers"
	"kvbench/tiers/spread"
)

// Groups is the files of one engine that stores each group of layers of a hybrid model in files of its
// own. An object consists of one object per group, numbered in tiers.Object.Layer, which are written
// and read one after the other. An object that is opened with fewer bytes than were written reads only
// the first groups: a prompt needs the last groups only at its end.
type Groups struct {
	Tier
	tails tiers.Tails
}

var _ spread.Files = (*Groups)(nil)

// NewGroups returns the groups of the files, which it closes. Each group has part bytes of an object,
// in whole pages. Tails has one element per group.
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

// Lookup looks up the first group's objects, and the other groups' objects at the end of the found
// ones. It returns how many objects exist before the first missing one.
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
		n, err := t.ranks[i].(tiers.Looker).Lookup(ctx, objs[from:found]...)
		if err != nil {
			return 0, err
		}
		found = from + n
	}
	return found, nil
}

// group is the files of one group.
type group struct {
	spread.Files
	number int // from 1
}

// of returns the group's objects of the model's objects.
func (g *group) of(objs []tiers.Object) []tiers.Object {
	objs = slices.Clone(objs)
	for i := range objs {
		objs[i].Layer = g.number
	}
	return objs
}

// Lookup looks up the group's objects.
func (g *group) Lookup(ctx context.Context, objs ...tiers.Object) (int, error) {
	return g.Files.(tiers.Looker).Lookup(ctx, g.of(objs)...)
}

// Create begins writing the group's objects.
func (g *group) Create(ctx context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	return g.Files.Create(ctx, g.of(objs)...)
}

// Open begins reading the group's objects.
func (g *group) Open(ctx context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	return g.Files.Open(ctx, g.of(objs)...)
}

// Remove deletes the group's objects.
func (g *group) Remove(ctx context.Context, objs ...tiers.Object) error {
	return g.Files.Remove(ctx, g.of(objs)...)
}

// Footprint returns the footprint of all groups for the first group, and 0 for the others.
func (g *group) Footprint() (held, waste int64) {
	if g.number > 1 {
		return 0, 0
	}
	return g.Files.Footprint()
}
