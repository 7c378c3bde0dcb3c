package objecttier

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/workdir"
)

// Config configures a Tier. The requests for an object depend only on the object's size, so a run makes
// the same requests on every store.
type Config struct {
	Store  store.Config // includes the bucket
	Prefix string       // prefix of all ranks, without slashes at its ends; may be ""
	Rank   int          // the tier works in PREFIX/rank_<Rank>/
	Names  Names
	// An object above MultipartAbove bytes is written in parts of PartSize. An object above RangeSize, a
	// multiple of 4096, is read in ranges of RangeSize; 0 = read whole objects.
	MultipartAbove, PartSize, RangeSize int64
	Depth                               int // parts or ranges of an object in flight
	// Pool has the buffers of reads. A piece has Chunk bytes.
	Pool  *buffer.Pool
	Chunk int
	// Requests limits the PUTs, GETs and HEADs in flight, like an engine's threads; 0 = no limit. Plain
	// I/O has no limit: see Tier.Plain.
	Requests int
	// AlwaysRange sends a Range header also for a whole object.
	AlwaysRange bool
	// Folder, if not nil, names the objects. Then the tier uses PREFIX/<name of the folder>/, and
	// Names.Format is Files. Join takes part in the run of another process with the same Nonce.
	Folder *workdir.Folder
	Join   bool
	Nonce  string // the nonce of the run's content
	Keep   bool   // Clear leaves all objects in the bucket
}

// mostParts is the limit of S3 for the parts of an object.
const mostParts = 10_000

// cleanup limits the time of requests that undo a failed write. Clear repeats requests that take longer.
const cleanup = 5 * time.Second

// Tier stores objects in a bucket. It remembers its objects: a store does not report whether a deletion
// found an object, and a HEAD per object would cost a request.
type Tier struct {
	cfg    Config
	client *store.Client
	clock  clock.Clock
	parent string // PREFIX/rank_N/
	own    string // parent/RUN/
	base   string // own, or the prefix of the run whose objects this run reads
	files  workdir.Names
	turns  turns

	mu       sync.Mutex
	entries  map[tiers.ID]*entry
	closed   bool
	keep     bool
	mark     manifest
	warnings []string
	aborted  []store.Upload // failed uploads, for Clear
	cut      time.Duration  // the time of the last failed write that the store may still execute

	checked time.Duration
	lost    atomic.Int64
	wasted  atomic.Int64
}

var _ tiers.Tier = (*Tier)(nil)

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
	leaving // removed, but still read
)

// URL returns the URL of the rank's runs: s3://BUCKET/PREFIX/rank_N.
func (t *Tier) URL() string {
	return "s3://" + t.cfg.Store.Bucket + "/" + strings.TrimSuffix(t.parent, "/")
}

// Run returns the URL of this run: s3://BUCKET/PREFIX/rank_N/RUN.
func (t *Tier) Run() string { return t.URL() + "/" + t.mark.Run }

// Warnings returns facts that a reader of the results must know.
func (t *Tier) Warnings() []string { return t.warnings }

// Stats has the counts of the tier, except those of its requests.
type Stats struct {
	Lost        int64         // reads of written objects that the store did not have
	WastedBytes int64         // acknowledged bytes of uploads that failed later
	Proof       time.Duration // the time of the check in Open
	Servers     []string
	Network     store.Network
}

// Stats returns the counts so far.
func (t *Tier) Stats() Stats {
	return Stats{Lost: t.lost.Load(), WastedBytes: t.wasted.Load(), Proof: t.checked,
		Servers: t.client.Servers(), Network: t.client.Network()}
}

// Endpoints returns the store's endpoints with their counts.
func (t *Tier) Endpoints() []*store.Endpoint { return t.client.Endpoints() }

// ResetPeaks resets the endpoints' largest numbers of requests in flight.
func (t *Tier) ResetPeaks() { t.client.ResetPeaks() }

// Amount returns the run's objects in the bucket, including those that are being written.
func (t *Tier) Amount() (n workdir.Amount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.entries {
		n.Files++
		n.Bytes += e.size
	}
	return n
}

// Traits implements tiers.Tier. Chunk is 0, because the tier itself chooses the size of requests. Align
// is 1, because nothing is padded.
func (t *Tier) Traits() tiers.Traits {
	urls := t.cfg.Store.URLs
	text := t.URL() + " at " + urls[0]
	if len(urls) > 1 {
		text += fmt.Sprintf(" and %d more", len(urls)-1)
	}
	return tiers.Traits{Align: 1, Holds: true, Description: text}
}

// warn adds a warning.
func (t *Tier) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// key returns an object's key in the bucket.
func (t *Tier) key(o tiers.Object) string {
	if t.files != nil {
		dir, file := t.files.Of(o)
		return t.base + dir + "/" + file
	}
	return t.base + t.cfg.Names.Name(o)
}

// fail returns an error of a tier, with the cache's key.
func (t *Tier) fail(op string, o tiers.Object, off int64, err error) error {
	return &tiers.OpError{Op: op, Path: t.URL(), Key: o.Key, Offset: off, Err: err}
}

// claim marks an object as being written. The object must not exist.
func (t *Tier) claim(o tiers.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return t.fail("create", o, -1, tiers.ErrClosed)
	}
	if t.entries[o.ID()] != nil {
		return t.fail("create", o, -1, tiers.ErrExists)
	}
	t.entries[o.ID()] = &entry{size: o.Size}
	return nil
}

// settle ends a write. If the object does not exist, it removes the entry. Clear may already have removed it.
func (t *Tier) settle(o tiers.Object, exists bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !exists {
		delete(t.entries, o.ID())
	} else if e := t.entries[o.ID()]; e != nil {
		e.state = present
	}
}

// hold prevents the deletion of an object until drop is called. The store itself would delete an object
// during a read.
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

// drop ends a hold. If the object was removed, the last drop deletes it.
func (t *Tier) drop(o tiers.Object) error {
	t.mu.Lock()
	e := t.entries[o.ID()]
	last := false
	if e != nil { // nil: Clear has deleted the object during a late read
		e.readers--
		last = e.readers == 0 && e.state == leaving
	}
	t.mu.Unlock()
	if !last {
		return nil
	}
	return t.deleteAll(context.Background(), []tiers.Object{o}) // the space already counts as free
}

// Close closes the connections. Clear removes the objects in the bucket.
func (t *Tier) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.client.Close()
	return nil
}

// Format is a format of keys. The format can change the speed: some stores place objects by key, and
// some have limits per prefix.
type Format string

// The formats. In an inference engine the key ends in a hash of tokens. Here it ends in a SHA-256 of key and
// generation with the same number of digits.
const (
	Own     Format = "own"     // kvbench's, as in the file tier: <2 hex>/<30 hex>-<16 hex of the generation>
	LMCache Format = "lmcache" // <model>@<kv rank>@0@<64 hex>
	VLLM    Format = "vllm"    // <model>_<12 hex>_r0/<3 hex>/<2 hex>_g0/<64 hex>.bin
	Files   Format = "files"   // the names of Config.Folder
)

// Names makes the keys of a run's objects below its prefix.
type Names struct {
	Format Format `json:"keys"`
	Model  string `json:"model,omitempty"` // in the engines' formats
	Rank   int    `json:"kv_rank"`
	Ranks  int    `json:"kv_ranks"` // tensor parallelism
}

// Name returns the key of an object below the run's prefix.
func (n Names) Name(o tiers.Object) string {
	if n.Format == Own {
		fan, name := workdir.Name(o)
		return fan + "/" + name
	}
	sum := workdir.Hash(o)
	if n.Format == LMCache { // other names than those of its files
		// The four bytes are world size, rank, local world size and local rank.
		return fmt.Sprintf("%s@%02x%02x%02x%02x@0@%s", n.Model, n.Ranks, n.Rank, n.Ranks, n.Rank,
			sum)
	}
	return tiers.VLLMFile(tiers.VLLMDir(n.Model), sum, 0) // the groups of a hybrid model are one object
}
