package tiers

import (
	"errors"
	"fmt"
	"time"
)

// DeviceModel is a queueing model of a drive that the machine does not have.
//
// The device has Parallelism servers. A request is one chunk of an entry; every operation keeps up
// to the I/O depth of them outstanding. The request takes the first free server and waits there for
// its access latency, concurrently with the requests of the other servers. Then its bytes pass the
// medium, which all requests share in FIFO order: n bytes occupy the medium for n ÷ bandwidth of
// their direction, and with IOPS for at least 1 ÷ IOPS. Reads and writes share one medium (a drive
// that reads 14 and writes 7 GiB/s does half of each when its time is divided evenly); with Duplex
// each direction has its own. A request frees its server when its bytes have passed the medium.
//
// So one request at a time takes latency + size ÷ bandwidth. Many concurrent requests reach the
// bandwidth or the IOPS, whichever is less. Between the two, throughput grows with the number
// outstanding, up to Parallelism.
//
// A limiter in front of a faster drive (the kernel's for cgroups, the limiters of many clouds) hands
// out its bandwidth in time slices: bytes that fit into a slice pass at once when the slice begins,
// the rest waits for the next slice. With Slice a request completes at the beginning of the slice in
// which its bytes would have passed. The first slice begins with the first request after at least
// one idle slice.
//
// Flush is the time of the flush that makes an entry durable on a drive with a volatile write cache.
// It is added to the write of the entry. It neither waits for other requests nor delays them; drives
// on which it does are slower than their model.
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
	Flush        time.Duration // added to the write of each entry
}

// Validate returns an error that names every value that a model cannot have. A nil model is valid.
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

// Passing returns how long a request occupies the medium: its bytes ÷ bandwidth, at least 1 ÷ IOPS.
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
	LayoutFiles  LayoutKind = iota // one file per entry
	LayoutSlots                    // one preallocated file of slots that are reused
	LayoutPacked                   // several entries in a file
	// LayoutNamed: one file per entry, of exactly the entry's size, flushed with its metadata.
	LayoutNamed
)

// Layout is how a storage tier keeps entries in files. The zero Layout is one file per entry.
type Layout struct {
	Kind   LayoutKind
	Bytes  int64 // size of a slot (LayoutSlots), at least the size of the largest entry
	Places int   // entries in a file (LayoutPacked), at least 2
}

// EngineLayout describes what an inference engine does with files by default: which objects it
// makes, how it looks them up, and how it deletes them. Package enginetier makes the calls.
type EngineLayout struct {
	Name string // of the layout; the part before the first hyphen is the engine's name
	// Tokens is the number of tokens in an object. The engine cuts prompts into objects of that many
	// tokens and does not store the rest.
	Tokens int
	// Direct: direct I/O. Either: the engine has a setting for direct or buffered I/O.
	Direct, Either bool
	// Stores and Loads limit the calls that move bytes and are in flight, all requests of the engine
	// together; 0 = one for each request.
	Stores, Loads int
	// Lent: idle threads of one direction also take calls of the other direction.
	Lent bool
	// Depth is how many objects of one request are in flight concurrently.
	Depth int
	// LooksUp: before it loads any object of a request, the engine looks the objects up in the
	// filesystem, on one thread: up to the first missing object, or with All every object.
	LooksUp, All bool
	// Full says what the engine does by default when its capacity is used up, where it does not
	// evict. A tier here evicts all the same, because the run would end otherwise.
	Full string
	// Buckets: eviction removes all objects of a file together, the oldest file first.
	Buckets bool
	// Layerwise: the engine has a setting that stores each layer of an object as an object of its
	// own. It computes a layer while the next one is loaded.
	Layerwise bool
	// Ranks says which objects tensor-parallel ranks store.
	Ranks TensorRanks
	// Hybrid says what the engine stores of a model with several kinds of layers.
	Hybrid HybridParts
	// FilePattern is a regular expression for the paths of its files, temporary ones too, below the
	// engine's directory. Cleanup removes only files that match, also after a killed run.
	FilePattern string
}

// HybridParts is what an engine keeps of layers with windows and states.
type HybridParts uint8

// The known ways.
const (
	// The keys and values of all tokens in all layers, and no states. It also stands for the engines
	// that do not document what they store.
	HybridTokens HybridParts = iota
	HybridStates             // the GPU's pages of tokens and states as they are, in one object
	HybridGroups             // an object for each group of layers, read as far as needed
)

// TensorRanks is how the ranks of a tensor-parallel group share files.
type TensorRanks uint8

// The ways to share them.
const (
	RanksUnsaid TensorRanks = iota // not documented
	// RanksApart: one object per rank; of latents, which are equal on all ranks, only the first
	// rank's object.
	RanksApart
	RanksEach     // one object per rank, also of latents
	RanksTogether // one object that has the bytes of all ranks in sequence, also of latents
)

// hashPattern matches an object's hash in the name of its file. In the patterns below, [^/]+ stands
// for the model's name.
const hashPattern = `[0-9a-f]{64}`

// EngineLayouts is the list of layouts. It describes the engines' main branches of September 2026:
// vLLM's tiering offload and disk backend, LMCache's multiprocess adapters, SGLang's HiCacheFile,
// Mooncake's SSD offload, Dynamo's KVBM. Mooncake's user chooses the objects and the ranks that own
// them: the 512 tokens are the blocks of its published traces. The ranks of LMCache's raw_block
// share one server.
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
		Full:        "removes nothing unless configured to",
		FilePattern: `[^/]+@0x[0-9a-f]{8}@0@` + hashPattern + `(?:@[0-9]+)?\.data(?:\.tmp)?`},
	{Name: "lmcache-raw", Tokens: 256, Depth: 4, Direct: true, Stores: 2, Loads: 4,
		Hybrid: HybridStates, Full: "stores nothing more unless configured to evict",
		FilePattern: `raw_block`},
	{Name: "hicache-file", Tokens: 64, Depth: 1, Stores: 1, Loads: 1, LooksUp: true,
		Ranks: RanksApart, Full: "removes nothing unless configured to",
		FilePattern: hashPattern + `_[^/]+\.bin|\.[0-9a-f]{32}\.tmp`},
	{Name: "mooncake-bucket", Tokens: 512, Depth: 1, Stores: 1, Buckets: true,
		FilePattern: `[0-9]+\.(?:bucket|meta)`},
	{Name: "mooncake-offset", Tokens: 512, Depth: 1, Stores: 1,
		Full: "stores nothing more unless configured to evict", FilePattern: `kv_cache\.data`},
	{Name: "kvbm-slots", Tokens: 16, Depth: 64, Direct: true, Stores: 64, Loads: 64,
		Ranks: RanksApart, FilePattern: `dynamo-kvbm-disk-cache-[0-9a-f]{6}`},
}

// EngineLayoutOf returns the layout of that name.
func EngineLayoutOf(name string) (l EngineLayout, known bool) {
	for _, l := range EngineLayouts {
		if l.Name == name {
			return l, true
		}
	}
	return l, false
}

// A bucket of Mooncake is full at so many bytes or keys, whichever comes first.
const (
	BucketBytes = 256 << 20
	BucketKeys  = 500
)
