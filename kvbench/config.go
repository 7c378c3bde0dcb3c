package kvbench

import (
	"slices"
	"time"

	"kvbench/kvbench/group"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/evict"
	"kvbench/tiers/filetier"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/endpoint"
	"kvbench/tiers/workdir"
	"kvbench/tracing/collector"
	"kvbench/tracing/host"
)

// StorageConfig says which tiers a run has and how it reaches them.
type StorageConfig struct {
	GPUBytes     int64   // 0 = no gpu tier
	GPUBandwidth float64 // bytes/s of the simulated link
	CPUBytes     int64   // 0 = no cpu tier
	StorageBytes int64   // capacity of the storage tier, > 0

	CacheDir string // absolute; the run works in CacheDir/rank_<Rank>, or in Folder
	Folder   *workdir.Folder
	Bucket   *Bucket // not nil: in the place of a directory
	// Roots are several directories, which are worked in as in CacheDir, in the place of it.
	Roots     []Root
	Rank      int
	KeepFiles bool
	// Removal, if not nil, shows how far the removal of files has come.
	Removal *workdir.Removal
	// IOEngine is how files are read and written: psync, uring, or auto, which "" is. Chained says
	// that where a request comes back the next one follows in its buffer and nothing else is done:
	// what plain I/O does, and what auto goes by.
	IOEngine string
	Chained  bool
	// IOTimeout ends the trial when the storage leaves a request or call unanswered for longer; 0 =
	// wait for ever.
	IOTimeout time.Duration
	Direct    bool // direct I/O; else buffered write + fsync
	FlushOnly bool // device time of a write is its flush alone (closed division)

	// Use is how the run uses its buffers. A chunk is a request to a tier.
	buffer.Use
	Verify content.Verify
	// Layout is the layout of the storage tier's files; zero: a file per entry. Its Bytes are the size of
	// a whole object, of all ranks and groups.
	Layout tiers.Layout
	Advice filetier.Advice // of files behind the page cache
	Engine EngineFiles     // for the Layout of an engine
	Nonce  [16]byte

	Policy Policy // which entry lives where
	// FreeFloor is how much of the filesystem must stay free, in bytes; below it
	// the run ends. 0 = do not look.
	FreeFloor int64

	// Levels replaces the tiers above: null tiers, fault wrappers. The caller
	// closes them.
	Levels []cache.Level
	// Simulated: no tier holds bytes, so that nothing needs buffers.
	Simulated bool
}

// Root is one of several directories that share the entries of the storage tier by the hash of
// their keys.
type Root struct {
	Dir string // absolute
	// Room is how many bytes of entries it may take at most, and Floor how much of its filesystem
	// must stay free; 0 = do not look.
	Room, Floor int64
}

// Bucket is a bucket of an object store as the storage tier. The trial itself sets rank, nonce, what
// is kept, depth, and the store's endpoints and clock.
type Bucket struct {
	objecttier.Config
	URLs    []string // of the store's endpoints
	From    string   // the flag or variable that names them, for the result
	Balance endpoint.Balance
	// Lookup requests from the store which entries of a request it has, before any read.
	Lookup bool
}

// Policy says where entries live and which have to leave. The zero value is a waterfall of least
// recent use.
type Policy struct {
	cache.Policy
	Order string // the name of Evict in the result; empty: lru
}

// PolicyOf is the policy of the words that results have for it: of the tiers, of promotion, of the
// order of eviction. The order "bucket" evicts the buckets of the layout that has some.
func PolicyOf(tier, promote, order string) Policy {
	p := Policy{Order: order, Policy: cache.Policy{
		Place: cache.Placement(slices.Index(cache.Placements, tier)), Evict: evict.Named(order)}}
	if promote == "on-hit" {
		p.Promote = cache.OnHit
	}
	if order == "bucket" {
		p.Evict = func(int64) evict.Order {
			return evict.NewBuckets(tiers.BucketBytes, tiers.BucketKeys)
		}
	}
	return p
}

// roots are the directories that the run works in: one, or several.
func (c *StorageConfig) roots() []Root {
	if len(c.Roots) == 0 {
		return []Root{{Dir: c.CacheDir, Floor: c.FreeFloor}}
	}
	return c.Roots
}

// dirs are the paths of the directories.
func (c *StorageConfig) dirs() (paths []string) {
	for _, r := range c.roots() {
		paths = append(paths, r.Dir)
	}
	return paths
}

// EngineFiles is how an inference engine keeps the storage tier's files. A trial sets rank and depth
// itself.
type EngineFiles struct {
	filetier.Imitation
	// Tails: groups of layers are kept apart, see spread.NewGroups; none: they are not.
	Tails tiers.Tails
	// Ranks are tensor-parallel ranks that each keep a part of the bytes as an object of its own; 0
	// and 1 = there is one.
	Ranks int
}

// Config is a trial's input in addition to its workload. Run does not change it.
type Config struct {
	// Info names the run in its result. The engine fills what it measures.
	Info record.Info

	Settle time.Duration // rest before and after the window
	// AwaitDiscards waits, before anything is prepared, until the device has discarded what earlier
	// trials removed, see Env.Quiet.
	AwaitDiscards bool
	Storage       StorageConfig

	// Trace counts requests in the kernel during the window, as it says, nil = no. Its device is
	// the device of the storage tier.
	Trace *collector.Options

	// Unloaded is how long the latency of single requests is measured before the window, for the
	// verdict; 0 = not at all: then no result is called storage-limited or latency-limited.
	Unloaded time.Duration

	Group *group.Member // of clients that begin together; nil: there is but this one
	Clock clock.Clock   // nil = wall time
	// Usage reads the process's resource usage until now, nil = host.ReadUsage. Processors ignore a
	// virtual Clock: waiting for them is not part of its time.
	Usage func() host.Usage
	// Progress is called about once a second, from one goroutine at a time; nil: no live line.
	Progress func(Snapshot)
	// Publish receives the result before the trial's files are removed, so that a signal cannot
	// cost it. If Publish hangs, Run stops waiting after a signal or after Storage.IOTimeout, and
	// Publish continues concurrently: the caller must not read what it writes without a lock.
	Publish func(*result.Result) error
	// PublishTo is where it writes, for the live line.
	PublishTo string
}

// Snapshot is what the live line shows.
type Snapshot struct {
	// "opening the storage tier", "reclaiming files of an earlier run", "preconditioning",
	// "filling", "preparing", "resting", "warming up", "running",
	// "waiting for what is in flight", "writing the result to …", "removing its files"
	Stage    string
	Elapsed  time.Duration // in this stage
	Total    time.Duration // of this stage, 0 = unknown
	Live     record.Live
	Queued   int64
	InFlight int64
	Tiers    []cache.Gauge
	Free     int64 // bytes free on the storage tier's filesystem, -1 = unknown
	Done     int64 // bytes so far and in all: written before the window, or removed
	Of       int64
	// Requests that the device has had for long, and the age of the oldest.
	Stuck    int
	StuckFor time.Duration
}
