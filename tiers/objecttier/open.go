package objecttier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/objecttier/store"
)

// Open takes the prefix over: it proves that the store can be relied on, refuses a prefix in which
// another run works or somebody else's objects lie, and reclaims what a dead run has left.
// Whatever it made is removed again when it fails.
func Open(ctx context.Context, cfg Config) (*Tier, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := store.New(cfg.Store)
	if err != nil {
		return nil, err
	}
	cfg.Process = cmp.Or(cfg.Process, thisProcess())
	t := &Tier{cfg: cfg, client: client, clock: cfg.Store.Clock, entries: map[tiers.ID]*entry{},
		turns: newTurns(cfg.Requests),
		base:  strings.TrimPrefix(fmt.Sprintf("%s/rank_%d/", cfg.Prefix, cfg.Rank), "/")}
	begin := t.begin
	if cfg.Folder != nil {
		t.files = cfg.Folder.Files
		t.base = strings.TrimPrefix(cfg.Prefix+"/"+cfg.Folder.Name+"/", "/")
	}
	if cfg.Join {
		begin = t.join
	}
	t.owner = owner{t: t, at: client}
	if err := begin(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return t, nil
}

func (t *Tier) begin(ctx context.Context) error {
	// The marker comes first: a proof beside another run's objects would be a trace in its log, and
	// two that reclaim would delete each other's.
	if err := t.owner.take(ctx); err != nil {
		return err
	}
	// From here on, because reclaiming a million objects takes longer than it takes to be dead.
	t.owner.beat()
	err := t.reclaim(ctx)
	if err == nil {
		begun := t.clock.Now()
		err = t.prove(ctx)
		t.proof = t.clock.Now() - begun
	}
	if err != nil {
		t.owner.stop()
		return errors.Join(err, t.owner.release(context.WithoutCancel(ctx), false))
	}
	return nil
}

// late is how long after a write was given up its object may still appear.
const late = 500 * time.Millisecond

// Clear removes everything of the run, the marker last, unless it is to be kept. Deleted is told of
// each object that has gone how many bytes it had, perhaps by several goroutines at once. When ctx
// ends the rest is left for the next start. No transfer may be under way. It ends the heartbeat,
// and the tier with it.
func (t *Tier) Clear(ctx context.Context, deleted func(bytes int64)) error {
	t.owner.stop()
	t.mu.Lock()
	keep := t.cfg.Keep
	t.mu.Unlock()
	switch {
	case t.cfg.Join && keep:
		return nil
	case t.cfg.Join: // what it has not written is its owner's
	case keep:
		return t.owner.leave(ctx)
	default:
		if err := t.owner.confirm(ctx); err != nil {
			return err
		}
	}
	// Entries that are still being written belong to transfers that have been given up; what of
	// them has become an object the sweep below finds.
	t.mu.Lock()
	all := make([]tiers.Object, 0, len(t.entries))
	for id, e := range t.entries {
		all = append(all, tiers.Object{Key: id.Key, Gen: id.Gen, Size: e.size})
	}
	t.mu.Unlock()
	_, err := t.deleteKeys(ctx, all, func(o tiers.Object) {
		t.mu.Lock()
		delete(t.entries, o.ID())
		t.mu.Unlock()
		deleted(o.Size)
	})
	// A store may still carry out what it was sent, behind the deletion that came after it.
	if at := t.cut.Load(); at > 0 {
		_ = t.clock.Sleep(ctx, late-(t.clock.Now()-time.Duration(at)))
	}
	// What this process does not know of: a request that was given up may have been carried out.
	// A deletion that failed before is made up for by this.
	if t.cfg.Join {
		return err
	}
	if _, failed := t.sweep(ctx, t.ours, t.owner.litter.Load() || t.lingers); failed != nil {
		// The marker stays: the next start knows whose the rest is.
		return errors.Join(err, failed, t.owner.leave(context.WithoutCancel(ctx)))
	}
	if t.lingers {
		return t.owner.leave(ctx)
	}
	return t.owner.release(ctx, true)
}
