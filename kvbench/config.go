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
	"kvbench/tiers/workdir"
	"kvbench/tracing/collector"
	"kvbench/tracing/host"
)

// StorageConfig has the settings of the tiers and of the I/O of a run.
type StorageConfig struct {
	GPUBytes     int64   // of all cards; 0 = no gpu tier
	Cards        int     // that hold the gpu tier; 0 = it is simulated
	GPUBandwidth float64 // bytes/s of the simulated link
	CPUBytes     int64   // 0 = no cpu tier
	StorageBytes int64   // capacity of the storage tier; 0 = no storage tier

	Roots     []Root // the directories of the storage tier
	Folder    *workdir.Folder
	Bucket    *Bucket // not nil: the storage tier is this bucket, not a directory
	Rank      int
	KeepFiles bool
	// Removal, if not nil, has the progress of the removal of files.
	Removal *workdir.Removal
	// IOEngine is the I/O engine for the files: psync, uring or auto. "" means auto.
	IOEngine string
	// Chained: when a request completes, the run submits the next request with the same buffer and does
	// no other work, as plain I/O does. The choice of auto depends on Chained.
	Chained bool
	// Lanes is the number of rings of io_uring. 0 = one per processor that the run may use.
	Lanes int
	// IOTimeout ends the trial when a request or system call is in flight for longer. 0 = no limit.
	IOTimeout time.Duration
	Direct    bool // direct I/O; false: buffered write + fsync
	// FlushOnly: the device time of a write is the time of its flush alone (closed division).
	FlushOnly bool

	// Use has the size and the number of the buffers. A chunk is the data of one I/O request.
	buffer.Use
	Verify content.Verify
	// Layout is the layout of the storage tier's files. The zero Layout has one file per entry.
	// Layout.Bytes is the size of a whole object, summed over TP ranks and groups of layers.
	Layout tiers.Layout
	Advice filetier.Advice // the fadvise calls for buffered files
	Engine EngineFiles     // for the Layout of an inference engine
	Nonce  [16]byte        // makes the content of each trial different

	Policy Policy // placement, promotion and eviction

	// Levels, if not nil, replaces all tiers that the other fields describe, for example by null tiers or
	// by tiers that inject faults. The caller closes the tiers in Levels.
	Levels []cache.Level
	// Simulated: no tier holds bytes, so the run allocates no buffers.
	Simulated bool
}

// Root is a directory of the storage tier. If there are several, the hash of an entry's key selects the
// directory.
type Root struct {
	Dir  string // absolute; the run works in Dir/rank_<Rank>, or in the Folder
	Room int64  // of several directories: the capacity of this one in bytes of entries
	// Floor: the run ends if the filesystem has less free space than these bytes. 0 = no limit.
	Floor int64
}

// Bucket is a bucket of an object store as the storage tier. The trial sets the Config's Rank, Nonce,
// Keep, Depth, Pool, Chunk, and the store's Rank and Clock.
type Bucket struct {
	objecttier.Config
	From string // the flag or variable that has the endpoints, for the result
	// Lookup: before an inference request reads, it asks the store with HEAD which of its entries exist.
	Lookup bool
}

// Policy is the placement, promotion and eviction policy. With the zero value new entries go to the fastest
// tier, evicted entries go to the next tier, reads do not promote, and the eviction order is LRU.
type Policy struct {
	cache.Policy
	Order string // the name of Evict in the result; "" = lru
}

// PolicyOf returns the policy for the names that a result has: placement, promotion and eviction order. The
// order "bucket" is for the layout mooncake-bucket: it evicts all objects of a bucket file together.
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

// dirs returns the paths of the run's directories.
func (c *StorageConfig) dirs() (paths []string) {
	for _, r := range c.Roots {
		paths = append(paths, r.Dir)
	}
	return paths
}

// EngineFiles has the settings of an inference engine's file layout. The trial sets Rank and Depth.
type EngineFiles struct {
	filetier.Imitation
	// Tails are the groups of layers that are stored as separate objects, see spread.NewGroups. Empty: an
	// object has all layers.
	Tails tiers.Tails
	// Ranks is the number of TP ranks. Each TP rank stores its part of an object as a separate object.
	// 0 means 1.
	Ranks int
}

// Config is a trial's input in addition to its workload. Run does not change it.
type Config struct {
	// Info has the run's settings for the result. Run adds the measurements.
	Info record.Info

	Settle time.Duration // the pause before and after the window
	// AwaitDiscards: before the preparation, wait until the device has discarded the files that earlier
	// trials removed, see Env.Quiet.
	AwaitDiscards bool
	Storage       StorageConfig

	// Trace has the options of the block-layer trace of the window. nil = no trace. Run sets the device to
	// the storage tier's device.
	Trace *collector.Options

	// Unloaded is the time for which Run measures the latency at queue depth 1 before the window. With 0
	// there is no such measurement, and no verdict is storage-limited or latency-limited.
	Unloaded time.Duration

	Group *group.Member // the connection to the other clients of the run; nil: one client
	Clock clock.Clock   // nil = wall time
	// Usage returns the process's resource usage so far. nil = host.ReadUsage. The usage is in real
	// time, also with a virtual Clock.
	Usage func() host.Usage
	// Progress is called about once a second, from one goroutine at a time. nil: no live line.
	Progress func(Snapshot)
	// Publish writes the result. Run calls Publish before it removes the trial's files, so that a signal
	// during the removal does not lose the result. If Publish hangs, Run stops waiting after a signal or
	// after Storage.IOTimeout. Publish then continues concurrently with the caller, so the caller needs a
	// lock for its data.
	Publish func(*result.Result) error
	// PublishTo is the path to which Publish writes, for the live line.
	PublishTo string
}

// Snapshot has the data of the live line.
type Snapshot struct {
	// "opening the storage tier", "reclaiming files of an earlier run", "preconditioning",
	// "filling", "preparing", "pausing", "warming up", "running",
	// "waiting for I/O in flight", "writing the result to …", "removing the trial's files"
	Stage     string
	Elapsed   time.Duration // the time since the start of the stage
	Total     time.Duration // the length of the stage, 0 = unknown
	Live      record.Live
	Queued    int64 // requests of the workload that wait
	InFlight  int64 // requests of the workload in flight
	Tiers     []cache.Gauge
	Free      int64 // bytes free on the storage tier's filesystem, -1 = unknown
	Done      int64 // bytes that the stage has written before the window, or removed
	DoneTotal int64 // the value of Done at the end of the stage
	// Stuck counts the I/O requests and calls that have been in flight for ioengine.StallAfter or longer.
	// StuckFor is the age of the oldest one.
	Stuck    int
	StuckFor time.Duration
	// Silent is the time in which no I/O completed although some was in flight, 0 below 10 s.
	Silent time.Duration
}
