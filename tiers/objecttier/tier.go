package objecttier

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// Config configures a Tier. The size of an object alone decides how it is moved, so that a run does
// the same whatever the store does.
type Config struct {
	Store  store.Config // with its bucket
	Prefix string       // of all ranks, without slashes at its ends; "" is none
	Rank   int          // the tier works in PREFIX/rank_<Rank>/
	Names  Names
	// Objects above MultipartAbove bytes are written in parts of PartSize. Those above RangeSize
	// are read in ranges of that size, a multiple of 4096; 0 = always whole.
	MultipartAbove, PartSize, RangeSize int64
	Depth                               int // parts or ranges of an object in flight
	// Requests bounds the PUT, GET and HEAD of entries in flight, as the threads of an engine do;
	// 0 = no bound. Unbounded is a view without it.
	Requests int
	// AlwaysRange sends a Range header also for all of an object.
	AlwaysRange bool
	// Folder, if not nil, names the objects: the tier works in PREFIX/<its name>/, and Names.Format
	// is Files. Join takes part in the run of another process with the same Nonce.
	Folder *workdir.Folder
	Join   bool
	Nonce  string // of the run's content
	Keep   bool   // Clear leaves everything
}

// The limits of S3: the smallest part but the last, and the parts of an upload.
const (
	smallestPart = 5 << 20
	mostParts    = 10_000
)

// cleanup bounds the requests that undo a failed write. Clear repeats what takes longer.
const cleanup = 5 * time.Second

// Tier keeps objects in a bucket. It remembers which it has written, because a store reports
// neither whether a deletion found anything nor, without a request, whether an object exists.
type Tier struct {
	cfg    Config
	client *store.Client
	clock  clock.Clock
	parent string // PREFIX/rank_N/
	own    string // parent/RUN/
	base   string // own, or where the run lies whose objects this one reads
	files  workdir.Names
	turns  turns

	mu       sync.Mutex
	entries  map[tiers.ID]*entry
	closed   bool
	keep     bool
	mark     manifest
	warnings []string
	aborted  []store.Upload // uploads that failed, for Clear
	cut      time.Duration  // when the tier last gave up a write that the store may still execute

	checked time.Duration
	lost    atomic.Int64
	wasted  atomic.Int64
}

var _ tiers.Streamer = (*Tier)(nil)

// entry is an object that exists, or is being written.
type entry struct {
	state   state
	readers int
	size    int64
}

// state is the state of an object.
type state uint8

const (
	writing state = iota
	present
	leaving // removed, and still read
	stuck   // removed, and the store failed to delete it
)

// URL is where the runs of the rank lie: s3://BUCKET/PREFIX/rank_N.
func (t *Tier) URL() string {
	return "s3://" + t.cfg.Store.Bucket + "/" + strings.TrimSuffix(t.parent, "/")
}

// Run is where this run lies: s3://BUCKET/PREFIX/rank_N/RUN.
func (t *Tier) Run() string { return t.URL() + "/" + t.mark.Run }

// Warnings are conditions that do not keep a run from measuring.
func (t *Tier) Warnings() []string { return t.warnings }

// Stats are the counts of the tier besides its requests.
type Stats struct {
	Lost        int64 // reads of written objects that the store did not have
	WastedBytes int64 // of uploads that failed after the store had acknowledged them
	Proof       time.Duration
	Servers     []string
	Network     store.Network
}

// Stats are the counts so far.
func (t *Tier) Stats() Stats {
	return Stats{Lost: t.lost.Load(), WastedBytes: t.wasted.Load(), Proof: t.checked,
		Servers: t.client.Servers(), Network: t.client.Network()}
}

// Endpoints are the store's, with their counts.
func (t *Tier) Endpoints() []*endpoint.Endpoint { return t.cfg.Store.Endpoints.All() }

// ResetPeaks begins the largest numbers of requests in flight anew.
func (t *Tier) ResetPeaks() { t.cfg.Store.Endpoints.ResetPeaks() }

// Amount is the run's objects in the bucket, those included that are being written.
func (t *Tier) Amount() (n workdir.Amount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.entries {
		n.Files++
		n.Bytes += e.size
	}
	return n
}

// Traits implements tiers.Tier. Chunk is 0, because the tier decides how much a request moves, and
// Align is 1, because no byte is padded.
func (t *Tier) Traits() tiers.Traits {
	urls := t.cfg.Store.Endpoints.All()
	text := t.URL() + " at " + urls[0].URL
	if len(urls) > 1 {
		text += fmt.Sprintf(" and %d more", len(urls)-1)
	}
	return tiers.Traits{Align: 1, Stream: true, Holds: true, Description: text}
}

// Create implements tiers.Tier: objects are streams only.
func (t *Tier) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	return nil, t.fail("create", objs[0], -1, errors.ErrUnsupported)
}

// Open implements tiers.Tier: objects are streams only.
func (t *Tier) Open(_ context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	return nil, t.fail("open", objs[0], -1, errors.ErrUnsupported)
}

// Space is unknown: a store does not report it, so a capacity has to be given.
func (t *Tier) Space(context.Context) (tiers.Space, error) {
	return tiers.Space{}, fmt.Errorf("the room of %s: %w", t.URL(), errors.ErrUnsupported)
}

// warn notes a warning, once.
func (t *Tier) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(t.warnings, text) {
		t.warnings = append(t.warnings, text)
	}
}

// key is an object's key in the bucket.
func (t *Tier) key(o tiers.Object) string {
	if t.files != nil {
		dir, file := t.files.Of(o)
		return t.base + dir + "/" + file
	}
	return t.base + t.cfg.Names.Name(o)
}

// fail is an error as every tier has it, with the key that the cache knows.
func (t *Tier) fail(op string, o tiers.Object, off int64, err error) error {
	return &tiers.OpError{Op: op, Path: t.URL(), Key: o.Key, Offset: off, Err: err}
}

// claim notes that an object, which must not exist, is being written.
func (t *Tier) claim(o tiers.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return t.fail("create", o, -1, tiers.ErrClosed)
	}
	// An object that could not be deleted is overwritten: no reader can open it.
	if e := t.entries[o.ID()]; e != nil && e.state != stuck {
		return t.fail("create", o, -1, tiers.ErrExists)
	}
	t.entries[o.ID()] = &entry{size: o.Size}
	return nil
}

// settle ends a write: the object exists, or it is forgotten. Clear may have forgotten it.
func (t *Tier) settle(o tiers.Object, exists bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !exists {
		delete(t.entries, o.ID())
	} else if e := t.entries[o.ID()]; e != nil {
		e.state = present
	}
}

// hold keeps an object from being deleted until drop. A store would delete it under its reader.
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

// drop ends a hold. The last one of a removed object deletes it.
func (t *Tier) drop(o tiers.Object) error {
	t.mu.Lock()
	e := t.entries[o.ID()]
	last := false
	if e != nil { // else Clear has deleted it under a late read
		e.readers--
		last = e.readers == 0 && e.state == leaving
	}
	t.mu.Unlock()
	if !last {
		return nil
	}
	return t.deleteAll(context.Background(), []tiers.Object{o}) // its space counts as free already
}

// Close closes the connections. Objects in the bucket are removed by Clear.
func (t *Tier) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.client.Close()
	return nil
}
