package spread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"kvbench/tiers"
)

// Ranks combines the tiers of a model's tensor-parallel ranks into one tier. Each rank stores its part
// of an object's bytes as a separate object; the parts are in the order of the ranks. Ranks are
// separate processes with their own files, calls and threads, and work concurrently. An operation takes
// as long as the slowest rank.
type Ranks struct {
	ranks  []tiers.Tier
	traits tiers.Traits
	fixed  int64 // bytes per rank; 0: the ranks share an object evenly
	// tails, if not nil, means that the ranks are groups of layers of a hybrid model: see NewGroups.
	tails tiers.Tails
}

var _ tiers.Tier = (*Ranks)(nil)

// NewRanks returns a tier of at least two ranks of the same kind. Its Close closes them. bytes is the
// largest size of an object. depth is the number of objects of a rank in flight together.
func NewRanks(ranks []tiers.Tier, bytes int64, depth int) *Ranks {
	t := &Ranks{ranks: ranks, traits: ranks[0].Traits()}
	if t.traits.Extent = 0; depth > 1 {
		t.traits.Extent = int64(depth) * bytes
	}
	t.traits.Description += fmt.Sprintf(", of %d ranks", len(ranks))
	return t
}

// NewGroups returns a tier of an engine that stores each group of layers of a hybrid model as a
// separate object, numbered by tiers.Object.Layer. All groups are in one tier, and each has part bytes
// of an object, in whole pages. The groups are written and read one after the other. If an object is
// read with fewer bytes than were written, only the first groups are read: a prompt needs the last
// groups only at its end. tails has one element per group.
func NewGroups(tier tiers.Tier, part int64, tails tiers.Tails) *Ranks {
	t := &Ranks{traits: tier.Traits(), fixed: part, tails: tails}
	for range tails {
		t.ranks = append(t.ranks, tier)
	}
	t.traits.Extent = 0
	t.traits.Description += fmt.Sprintf(", a file for each of %d groups of layers", len(tails))
	return t
}

// Files returns the files of the first rank. Plain I/O uses only these.
func (t *Ranks) Files() tiers.Files { return tiers.FilesOf(t.ranks[0]) }

// InFiles returns the objects as they are in Files.
func (t *Ranks) InFiles(objs []tiers.Object) []tiers.Object { return t.of(0, objs) }

// Traits returns the tier's traits.
func (t *Ranks) Traits() tiers.Traits { return t.traits }

// Close closes all ranks.
func (t *Ranks) Close() error {
	var errs []error
	for _, r := range t.ranks {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// part returns the number of bytes of an object that a rank has: a multiple of Traits.Align. The last
// ranks may have fewer or none.
func (t *Ranks) part(size int64) int64 {
	if t.fixed > 0 {
		return t.fixed
	}
	n := int64(len(t.ranks))
	return tiers.AlignUp((size+n-1)/n, int64(t.traits.Align))
}

// of returns a rank's parts of the objects, without empty parts.
func (t *Ranks) of(rank int, objs []tiers.Object) (list []tiers.Object) {
	for _, o := range objs {
		part := t.part(o.Size)
		if o.Size = min(part, o.Size-int64(rank)*part); o.Size > 0 {
			if t.tails != nil {
				o.Layer = rank + 1
			}
			list = append(list, o)
		}
	}
	return list
}

// each calls do for all ranks, concurrently unless the ranks are groups. It returns the error of the
// lowest rank that failed.
func (t *Ranks) each(do func(rank int) error) error {
	errs := make([]error, len(t.ranks))
	if t.tails != nil {
		for i := range errs {
			errs[i] = do(i)
		}
	} else {
		// Ranks are separate processes: one rank must not wait for another.
		var wait sync.WaitGroup
		for i := 1; i < len(errs); i++ {
			wait.Go(func() { errs[i] = do(i) })
		}
		errs[0] = do(0)
		wait.Wait()
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}

// move moves the first objects, up to the first of another size, on all ranks that have bytes of them.
// The timing is the sum over groups, or the timing of the slowest rank.
func (t *Ranks) move(c *tiers.Call, objs []tiers.Object, do func(rank int, c *tiers.Call,
	own []tiers.Object) error) error {
	size, n := objs[0].Size, 1
	for n < len(objs) && objs[n].Size == size {
		n++
	}
	c.Timing, c.Done = tiers.Timing{}, 1
	if part := t.part(size); size > part*int64(len(t.ranks)) {
		return &tiers.OpError{Op: "move", Path: t.traits.Description, Key: objs[0].Key,
			Offset: -1, Err: fmt.Errorf("%d bytes are more than %d parts of %d", size,
				len(t.ranks), part)}
	}
	var mu sync.Mutex // of Observe
	calls := make([]tiers.Call, len(t.ranks))
	err := t.each(func(i int) error {
		own := t.of(i, objs[:n])
		if len(own) == 0 {
			calls[i].Done = n
			return nil
		}
		if c.Observe != nil {
			calls[i].Observe = func(chunk tiers.Chunk) {
				mu.Lock()
				defer mu.Unlock()
				c.Observe(chunk)
			}
		}
		return do(i, &calls[i], own)
	})
	c.Done = n
	for i := range calls {
		c.Done = min(c.Done, calls[i].Done)
		switch tm := calls[i].Timing; {
		case t.tails != nil:
			c.Timing.Add(tm)
		case total(tm) > total(c.Timing):
			c.Timing = tm
		}
	}
	return err
}

func total(t tiers.Timing) int64 { return int64(t.IO() + t.Generation + t.Admission) }

// Put implements tiers.Tier. An object exists only if all ranks have it: if one rank fails or writes
// fewer objects, Put removes the other ranks' parts.
func (t *Ranks) Put(ctx context.Context, c *tiers.Call, objs []tiers.Object, src tiers.Source,
) error {
	written := make([]int, len(t.ranks))
	err := t.move(c, objs, func(i int, call *tiers.Call, own []tiers.Object) error {
		err := t.ranks[i].Put(ctx, call, own, shifted{t, i, objs, src, nil})
		if err == nil {
			written[i] = call.Done
		}
		return err
	})
	keep := c.Done
	if err != nil {
		keep = 0
	}
	for i, n := range written {
		if n > keep {
			own := t.of(i, objs[:n])
			err = errors.Join(err, t.ranks[i].Remove(ctx, own[keep:]...))
		}
	}
	return err
}

// Get implements tiers.Tier.
func (t *Ranks) Get(ctx context.Context, c *tiers.Call, objs []tiers.Object, dst tiers.Sink) error {
	return t.move(c, objs, func(i int, call *tiers.Call, own []tiers.Object) error {
		return t.ranks[i].Get(ctx, call, own, shifted{t, i, objs, nil, dst})
	})
}

// shifted is the source and the sink of a rank. It adds the offset of the rank's part.
type shifted struct {
	t    *Ranks
	rank int
	objs []tiers.Object // the whole objects
	src  tiers.Source
	dst  tiers.Sink
}

// whole returns the whole object, and the offset of the rank's part in it.
func (s shifted) whole(own tiers.Object) (o tiers.Object, off int64) {
	for _, o = range s.objs {
		if o.Key == own.Key && o.Gen == own.Gen {
			break
		}
	}
	if s.t.tails == nil {
		o.Layer = own.Layer
	}
	return o, int64(s.rank) * s.t.part(o.Size)
}

// Fill implements tiers.Source.
func (s shifted) Fill(own tiers.Object, off int64, p []byte) error {
	o, from := s.whole(own)
	return s.src.Fill(o, from+off, p)
}

// Take implements tiers.Sink.
func (s shifted) Take(own tiers.Object, off int64, p []byte) error {
	o, from := s.whole(own)
	return s.dst.Take(o, from+off, p)
}

// Remove deletes the objects of every rank.
func (t *Ranks) Remove(ctx context.Context, objs ...tiers.Object) error {
	return t.each(func(i int) error { return t.ranks[i].Remove(ctx, t.of(i, objs)...) })
}

// Lookup looks up the objects on every rank, and returns how many objects all ranks have before the
// first missing one. With groups it looks up all objects in the first group, and in each further group
// only the last objects that were found.
func (t *Ranks) Lookup(ctx context.Context, objs ...tiers.Object) (found int, err error) {
	if t.tails != nil {
		return t.lookUpGroups(ctx, objs)
	}
	there := make([]int, len(t.ranks))
	err = t.each(func(i int) (err error) {
		own := t.of(i, objs)
		if there[i], err = t.ranks[i].Lookup(ctx, own...); there[i] == len(own) {
			there[i] = len(objs) // the rank has no bytes of the others
		}
		return err
	})
	return slices.Min(there), err
}

func (t *Ranks) lookUpGroups(ctx context.Context, objs []tiers.Object) (found int, err error) {
	found = len(objs)
	for i, tail := range t.tails {
		from := 0
		if tail > 0 {
			from = max(0, found-tail)
		}
		if from == found {
			break
		}
		n, err := t.ranks[i].Lookup(ctx, t.of(i, objs[from:found])...)
		if err != nil {
			return 0, err
		}
		found = from + n
	}
	return found, nil
}
