package objecttier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/objecttier/endpoint"
	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/workdir"
)

// Config says which bucket, and how it is used. Sizes of objects decide alone how each is moved, so
// that a run is the same whatever the store does.
type Config struct {
	Store  store.Config // with its bucket
	Prefix string       // of all ranks, without slashes at its ends; "" is none
	Rank   int          // the tier works in PREFIX/rank_<Rank>/
	Names  Names
	// Objects above MultipartAbove bytes go in parts of PartSize; those above RangeSize come in
	// ranges of that size, a multiple of 4096, 0 = always whole.
	MultipartAbove, PartSize, RangeSize int64
	Depth                               int // parts or ranges of an object under way at once
	// Split, if not 0, makes an entry of so many bytes each objects, whole ones all of them: as an
	// engine has it whose chunks are smaller than the blocks of a trace.
	Split int64
	// Requests is how many PUT, GET and HEAD of entries are under way at most, as an engine has
	// threads for its store; 0 = as many as are asked for. Unbounded has no such bound.
	Requests int
	// AlwaysRange asks for a range also where it is all of an object.
	AlwaysRange bool
	// Folder, if not nil, is a place of objects whose names mean something: the tier works in
	// PREFIX/<its name>/, and Names.Format is Files. Join takes part in what another process of the
	// run, with the same Nonce, has opened: it proves, reclaims and keeps nothing fresh.
	Folder *workdir.Folder
	Join   bool
	Nonce  string // of the run, for the marker
	Keep   bool   // Clear leaves everything for inspection; the next Open reclaims it
	// Process is who works here, for the marker; nil: this process.
	Process *Process
}

// The limits of S3: the smallest part but the last, and how many an upload may have.
const (
	smallestPart = 5 << 20
	mostParts    = 10_000
)

// cleanup is for how long what failed is undone, whoever waits: an upload that is not aborted in
// this time is the next start's.
const cleanup = 5 * time.Second

// validate names all that cannot be worked with. Flags have checked most of it in their own words.
func (c *Config) validate() error {
	errs := []error{c.Names.validate()}
	if (c.Folder != nil) != (c.Names.Format == Files) || c.Join && c.Folder == nil {
		errs = append(errs, errors.New("a tier of objects: names of files are those of a folder"))
	}
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("a tier of objects: "+format, args...))
		}
	}
	want(c.Rank >= 0, "rank %d: ranks count from 0", c.Rank)
	want(c.Requests >= 0, "%d requests at a time: must not be negative", c.Requests)
	want(c.Depth > 0, "depth %d must be positive", c.Depth)
	want(c.MultipartAbove > 0 && c.PartSize > 0, "objects above %d bytes go in parts of %d: both "+
		"must be positive", c.MultipartAbove, c.PartSize)
	// Pieces begin where ranges do, and content is compared by blocks of 4 KiB.
	want(c.Split >= 0 && c.Split%4096 == 0, "objects of %d bytes must be a multiple of 4096",
		c.Split)
	want(c.RangeSize >= 0 && c.RangeSize%4096 == 0, "ranges of %d bytes must be a multiple of 4096",
		c.RangeSize)
	want(!strings.HasPrefix(c.Prefix, "/") && !strings.HasSuffix(c.Prefix, "/") &&
		!strings.Contains(c.Prefix, "//"), "the prefix %q has slashes at its ends, or two together",
		c.Prefix)
	return errors.Join(errs...)
}

// Tier keeps objects in a bucket. It remembers which it has written, because a store tells neither
// whether a deletion found anything nor, without a request, whether an object is there.
type Tier struct {
	cfg    Config
	client *store.Client
	clock  clock.Clock
	base   string // PREFIX/rank_N/
	owner  owner
	files  workdir.Names // of a folder, nil without
	turns  turns

	mu      sync.Mutex
	entries map[tiers.ID]*entry
	closed  bool

	lingers   bool // see Linger
	reclaimed Reclaimed
	warnings  []string
	proof     time.Duration
	lost      atomic.Int64
	cut       atomic.Int64 // when an object was last given up that the store had all bytes of
	wasted    atomic.Int64
}

var _ tiers.Streamer = (*Tier)(nil)

// entry is an object that is there, or on its way.
type entry struct {
	state   state
	readers int
	size    int64
}

// state is how far an object has come.
type state uint8

const (
	writing state = iota
	present
	leaving // removed, and read by somebody
	stuck   // removed, and the store would not delete it
)

// URL is where the tier lies: s3://BUCKET/PREFIX/rank_N.
func (t *Tier) URL() string {
	return "s3://" + t.cfg.Store.Bucket + "/" + strings.TrimSuffix(t.base, "/")
}

// Warnings are what is not as it should be and does not keep a run from measuring.
func (t *Tier) Warnings() []string { return t.warnings }

// Reclaimed is what Open found of a dead run and removed.
func (t *Tier) Reclaimed() Reclaimed { return t.reclaimed }

// Stats is what the tier has to tell beside its requests.
type Stats struct {
	Lost        int64 // reads of written objects that the store did not have
	WastedBytes int64 // of uploads that failed after they had been acknowledged
	Proof       time.Duration
	Servers     []string
	Network     store.Network
	Failing     time.Duration // for how long no endpoint has answered
}

// Stats are the numbers so far.
func (t *Tier) Stats() Stats {
	return Stats{Lost: t.lost.Load(), WastedBytes: t.wasted.Load(), Proof: t.proof,
		Servers: t.client.Servers(), Network: t.client.Network(),
		Failing: t.cfg.Store.Endpoints.Failing()}
}

// Endpoints are those of the store, with what each has carried.
func (t *Tier) Endpoints() []*endpoint.Endpoint { return t.cfg.Store.Endpoints.All() }

// ResetPeaks begins the largest numbers of requests in flight anew, of each endpoint.
func (t *Tier) ResetPeaks() { t.cfg.Store.Endpoints.ResetPeaks() }

// Amount is what the run has in the bucket, as far as it knows: not what a request made of which
// only the answer was lost, and already what is being written.
func (t *Tier) Amount() (n workdir.Amount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.entries {
		n.Files++
		n.Bytes += e.size
	}
	return n
}

// Traits: streams, whose bytes count when the store has acknowledged them.
func (t *Tier) Traits() tiers.Traits {
	// No chunk size: how much one request moves is decided here. Align 1: no byte is padded.
	urls := t.cfg.Store.Endpoints.All()
	text := t.URL() + " at " + urls[0].URL
	if len(urls) > 1 {
		text += fmt.Sprintf(" and %d more", len(urls)-1)
	}
	return tiers.Traits{Align: 1, Stream: true, Holds: true, Description: text}
}

// Space is unknown: a store tells nobody, which is why a capacity has to be given.
func (t *Tier) Space(context.Context) (tiers.Space, error) {
	return tiers.Space{}, fmt.Errorf("the room of %s: %w", t.URL(), errors.ErrUnsupported)
}

// warn notes what is not as it should be, once.
func (t *Tier) warn(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.warnings {
		if w == text {
			return
		}
	}
	t.warnings = append(t.warnings, text)
}

// key is an object's name in the bucket.
func (t *Tier) key(o tiers.Object) string {
	if t.files != nil {
		dir, file := t.files.Of(o)
		return t.base + dir + "/" + file
	}
	return t.base + t.cfg.Names.Name(o)
}

// pieces are the objects of an entry, in the order of its bytes: itself, unless it is split.
func (t *Tier) pieces(o tiers.Object) (objs []tiers.Object) {
	if t.cfg.Split == 0 || o.Size <= t.cfg.Split {
		return []tiers.Object{o}
	}
	for off := int64(0); off < o.Size; off += t.cfg.Split {
		objs = append(objs, tiers.Object{Key: fmt.Sprintf("%s/%d", o.Key, off/t.cfg.Split),
			Gen: o.Gen, Size: min(t.cfg.Split, o.Size-off)})
	}
	return objs
}

// fail is an error as every tier has it, with the key that the cache knows.
func (t *Tier) fail(op string, o tiers.Object, off int64, err error) error {
	return &tiers.OpError{Op: op, Path: t.URL(), Key: o.Key, Offset: off, Err: err}
}

// claim notes that an object is being written, which must not exist.
func (t *Tier) claim(o tiers.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return t.fail("create", o, -1, tiers.ErrClosed)
	}
	// What could not be deleted is overwritten: nobody can read it, and a generation is new.
	if e := t.entries[o.ID()]; e != nil && e.state != stuck {
		return t.fail("create", o, -1, tiers.ErrExists)
	}
	t.entries[o.ID()] = &entry{size: o.Size}
	return nil
}

// settle ends a write: the object is there, or it is as if it had never been. Clear may have
// forgotten it meanwhile.
func (t *Tier) settle(o tiers.Object, there bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !there {
		delete(t.entries, o.ID())
	} else if e := t.entries[o.ID()]; e != nil {
		e.state = present
	}
}

// hold keeps an object from being deleted until drop. A store would delete it under a reader: what
// had not come by then would be lost.
func (t *Tier) hold(o tiers.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[o.ID()]
	if e == nil || e.state != present {
		return t.fail("open", o, -1, tiers.ErrNotFound)
	}
	e.readers++
	return nil
}

// drop ends a hold. The last one of an object that was removed meanwhile deletes it, whoever has
// gone by then: its room is counted as free.
func (t *Tier) drop(o tiers.Object) error {
	t.mu.Lock()
	e := t.entries[o.ID()]
	e.readers--
	last := e.readers == 0 && e.state == leaving
	t.mu.Unlock()
	if !last {
		return nil
	}
	return t.delete(context.Background(), o)
}

// delete deletes one object that nobody reads.
func (t *Tier) delete(ctx context.Context, o tiers.Object) error {
	if len(t.pieces(o)) > 1 {
		return t.deleteAll(ctx, []tiers.Object{o})
	}
	err := t.client.Delete(ctx, t.key(o))
	t.gone(o, err == nil)
	if err != nil {
		return t.fail("remove", o, -1, err)
	}
	return nil
}

// gone forgets an object, or notes that the store has kept it: Clear tries it again.
func (t *Tier) gone(o tiers.Object, deleted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if deleted {
		delete(t.entries, o.ID())
	} else if e := t.entries[o.ID()]; e != nil {
		e.state = stuck
	}
}

// Close ends the heartbeat and the connections. What lies in the bucket is for Clear.
func (t *Tier) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		t.owner.stop()
		t.client.Close()
	}
	return nil
}
