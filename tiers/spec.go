package tiers

import (
	"errors"
	"fmt"
	"time"
)

// DeviceModel is a drive that one does not have, as a queueing model.
//
// The device has Parallelism places. A request (one chunk of an entry; every
// operation keeps up to the I/O depth of them outstanding) takes the place that
// is free first, waits there for its access latency, in parallel with the other
// places, and then passes the medium, which it shares with all others in the
// order of their coming: n bytes occupy the medium for n ÷ bandwidth of their
// direction, and where IOPS are given no shorter than 1 ÷ IOPS. Reads and writes
// share one medium (a drive that reads 14 and writes 7 GiB/s does half of each
// when its time is divided evenly); with Duplex each direction has its own. A
// request leaves its place when its bytes have passed.
//
// So one request at a time takes latency + size ÷ bandwidth, many at a time reach
// the bandwidth or the IOPS, whichever is less, and between them throughput grows
// with the number outstanding up to Parallelism.
//
// A limiter in front of a faster drive (the kernel's for cgroups, those of many
// clouds) hands out its bandwidth in slices of time: what fits into a slice passes
// at once when it begins, the rest waits for the next one. With Slice a request is
// complete not when its bytes would have passed but at the beginning of the slice
// in which that falls. The first slice begins with the first request after a rest
// of at least one.
//
// With Flush an entry is written when its bytes are and that has passed besides: what the flush
// takes that makes it durable, on drives whose write cache is volatile. It waits for nobody else's
// requests and holds none up; drives on which it does are slower than their model.
//
// Deletions, the filesystem, the CPU and the wear of the drive cost nothing.
type DeviceModel struct {
	Read         float64
	Write        float64
	ReadIOPS     float64 // requests/s, 0 = no bound
	WriteIOPS    float64 //
	ReadLatency  time.Duration
	WriteLatency time.Duration
	Parallelism  int
	Duplex       bool
	Slice        time.Duration // 0: the medium passes requests one by one
	Flush        time.Duration // of an entry that was written, once its bytes are
}

// Validate says what cannot be in a model; a nil one is fine.
func (m *DeviceModel) Validate() error {
	if m == nil {
		return nil
	}
	var errs []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("simulated device: "+format, args...))
		}
	}
	want(m.Read > 0 && m.Write > 0, "bandwidths %g and %g bytes/s must be positive", m.Read,
		m.Write)
	want(m.ReadIOPS >= 0 && m.WriteIOPS >= 0, "%g and %g requests/s must not be negative",
		m.ReadIOPS, m.WriteIOPS)
	want(m.ReadLatency >= 0 && m.WriteLatency >= 0, "latencies %v and %v must not be negative",
		m.ReadLatency, m.WriteLatency)
	want(m.Slice >= 0, "slices of %v must not be negative", m.Slice)
	want(m.Flush >= 0, "flushes of %v must not be negative", m.Flush)
	want(m.Parallelism >= 1, "parallelism %d must be at least 1", m.Parallelism)
	return errors.Join(errs...)
}

// Passing is how long a request occupies the medium: its bytes at the bandwidth,
// and no shorter than the requests/s allow.
func (m *DeviceModel) Passing(op Op, bytes int64) time.Duration {
	rate, iops := m.Read, m.ReadIOPS
	if op == Write {
		rate, iops = m.Write, m.WriteIOPS
	}
	seconds := float64(bytes) / rate
	if iops > 0 {
		seconds = max(seconds, 1/iops)
	}
	return time.Duration(seconds * float64(time.Second))
}

// LayoutKind is how a storage tier keeps entries in files.
type LayoutKind uint8

// The layouts.
const (
	LayoutFiles  LayoutKind = iota // a file each
	LayoutSlots                    // one preallocated file of slots, used again
	LayoutPacked                   // several entries in a file
	// LayoutNamed: a file each, of exactly the entry's size, flushed with its metadata.
	LayoutNamed
)

// Layout is how a storage tier keeps entries in files. The zero Layout is a file each.
type Layout struct {
	Kind   LayoutKind
	Bytes  int64 // of a slot (LayoutSlots), at least the size of the largest entry
	Places int   // entries in a file (LayoutPacked), at least 2
}

// EngineLayout is what an inference engine does with files as it comes: which objects it makes, how
// it asks for them, and how it gives them up. The calls themselves are enginetier's.
type EngineLayout struct {
	Name string // of the layout; that of its engine is what stands before the first hyphen
	// Tokens are those of an object: the engine cuts prompts into so many, and keeps no rest.
	Tokens int
	// Direct: past the page cache. Either: the engine has a setting for it.
	Direct, Either bool
	// Stores and Loads are how many calls for bytes the engine has under way at most, of all
	// requests together; 0 = one for each request.
	Stores, Loads int
	// Lent: threads of either direction take the other's calls when they have none of their own.
	Lent bool
	// Depth is how many objects of one request are under way beside each other.
	Depth int
	// LooksUp: it asks the filesystem for the objects of a request before it loads any, on one
	// thread: until the first that is not there, or with All for each.
	LooksUp, All bool
	// Full is what the engine itself does as it comes when there is no more room, where that is not
	// to evict: a tier here makes room all the same, or a run would end with it.
	Full string
	// Buckets: objects leave with all those that lie in their file, the oldest file first.
	Buckets bool
	// Layerwise: the engine has a setting by which each layer of an object is one of its own, and
	// computes a layer while the next one is loaded.
	Layerwise bool
	// Ranks is what becomes of an object where all tensor-parallel ranks store.
	Ranks TensorRanks
	// Hybrid is what becomes of one of a model whose layers do not all keep the same.
	Hybrid HybridParts
	// FilePattern is a regular expression for the paths of its files, temporary ones too, below the
	// engine's directory. Cleanup removes only files that match, also after a killed run.
	FilePattern string
}

// HybridParts is what an engine keeps of layers with windows and states.
type HybridParts uint8

// What it may be.
const (
	// What tokens leave, as if all of them mattered to all layers, and no states: what most engines
	// do is not written down.
	HybridTokens HybridParts = iota
	HybridStates             // with states the pages of the GPU as they are, in one object
	HybridGroups             // those of each group of layers an object, read as far as needed
)

// TensorRanks is how the ranks of a tensor-parallel group share files.
type TensorRanks uint8

// The ways to share them.
const (
	RanksUnsaid TensorRanks = iota // nobody wrote down how
	// an object of each; of latents, which all have alike, the first rank's
	RanksApart
	RanksEach     // an object of each, of latents, too
	RanksTogether // one object with the bytes of each behind each other, likewise
)

// hashPattern matches an object's hash in the name of its file. In the patterns below, [^/]+ stands
// for the model's name.
const hashPattern = `[0-9a-f]{64}`

// EngineLayouts are those that there are. The facts are of the engines' main lines in September
// 2026: vLLM's tiering offload and disk backend, LMCache's multiprocess adapters, SGLang's
// HiCacheFile, Mooncake's SSD offload, Dynamo's KVBM. An object of Mooncake is whatever its user
// hands it: the 512 tokens are the blocks of its published traces. Whose ranks' files these are is
// its user's to say, too, and the ranks of LMCache's raw_block share a server.
var EngineLayouts = []EngineLayout{
	{Name: "vllm-fs", Tokens: 16, Depth: 1, Direct: true, Either: true, LooksUp: true,
		Stores: 16, Loads: 16, Lent: true, Ranks: RanksTogether, Hybrid: HybridGroups,
		Full: "removes nothing, ever",
		FilePattern: `[^/]+_[0-9a-f]{12}_r0/[0-9a-f]{3}/[0-9a-f]{2}_g[0-9]+/` + hashPattern +
			`\.bin(?:_[0-9]+\.tmp)?|[^/]+_[0-9a-f]{12}_r0/config\.json|` +
			`\.o_direct_probe_[0-9]+\.tmp`},
	{Name: "vllm-slots", Tokens: 16, Depth: 1, Direct: true, Either: true, Stores: 1, Loads: 1,
		Ranks: RanksEach, FilePattern: `slots\.rank_[0-9]+`},
	{Name: "lmcache-fs", Tokens: 256, Depth: 1, Either: true, LooksUp: true, All: true,
		Loads: 8, Layerwise: true, Ranks: RanksApart, Hybrid: HybridStates,
		Full:        "removes nothing unless it is told to",
		FilePattern: `[^/]+@0x[0-9a-f]{8}@0@` + hashPattern + `(?:@[0-9]+)?\.data(?:\.tmp)?`},
	{Name: "lmcache-raw", Tokens: 256, Depth: 4, Direct: true, Stores: 2, Loads: 4,
		Hybrid: HybridStates, Full: "stores nothing more unless it is told to evict",
		FilePattern: `raw_block`},
	{Name: "hicache-file", Tokens: 64, Depth: 1, Stores: 1, Loads: 1, LooksUp: true,
		Ranks: RanksApart, Full: "removes nothing unless it is told to",
		FilePattern: hashPattern + `_[^/]+\.bin|\.[0-9a-f]{32}\.tmp`},
	{Name: "mooncake-bucket", Tokens: 512, Depth: 1, Stores: 1, Buckets: true,
		FilePattern: `[0-9]+\.(?:bucket|meta)`},
	{Name: "mooncake-offset", Tokens: 512, Depth: 1, Stores: 1,
		Full: "stores nothing more unless it is told to evict", FilePattern: `kv_cache\.data`},
	{Name: "kvbm-slots", Tokens: 16, Depth: 64, Direct: true, Stores: 64, Loads: 64,
		Ranks: RanksApart, FilePattern: `dynamo-kvbm-disk-cache-[0-9a-f]{6}`},
}

// EngineLayoutOf is the one of that name.
func EngineLayoutOf(name string) (l EngineLayout, known bool) {
	for _, l := range EngineLayouts {
		if l.Name == name {
			return l, true
		}
	}
	return l, false
}

// Mooncake fills a bucket up to so many bytes or keys, whichever comes first.
const (
	BucketBytes = 256 << 20
	BucketKeys  = 500
)
