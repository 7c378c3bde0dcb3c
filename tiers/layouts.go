package tiers

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
)

// Layout selects how a storage tier keeps entries in files. The zero Layout is one file per entry.
type Layout struct {
	Kind   string // a name of Layouts; "" = LayoutFiles
	Bytes  int64  // size of the largest object, for all layouts but files and packed: the size of slots
	Places int    // entries in a file, at least 2 (LayoutPacked)
}

// The suite's own layouts.
const (
	LayoutFiles  = "entry"  // one file per entry
	LayoutSlots  = "slots"  // one preallocated file of slots that are reused
	LayoutPacked = "packed" // several entries in a file
	// LayoutNamed: one file per entry, of exactly the entry's size, flushed with its metadata.
	LayoutNamed = "named"
)

// LayoutSpec describes a layout: for an engine's layout what the engine does with files by default,
// which objects it makes, how it looks them up and how it deletes them. Package filetier makes the
// calls.
type LayoutSpec struct {
	Name string // of an engine's layout the part before the first hyphen is the engine
	Help string // how it keeps objects, for people; "": the user cannot choose it
	// Blocks: only for block traces, because the layout is made of blocks of one size.
	Blocks bool
	// Several: several directories can each have a part of the objects.
	Several bool

	// The fields below concern the layouts of engines.

	// Tokens is the number of tokens in an object. The engine cuts prompts into objects of that many
	// tokens and does not store the rest. 0 = the layout is no engine's.
	Tokens int
	// Direct: direct I/O. Either: the engine has a setting for direct or buffered I/O.
	Direct, Either bool
	// Stores and Loads limit the calls that move bytes and are in flight, all requests of the engine
	// together; 0 = one for each request.
	Stores, Loads int
	// Shared: idle threads of one direction also take calls of the other direction.
	Shared bool
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
	// engine's directory. Cleanup removes only files that match, also after a killed run. The own
	// layouts use the names of the work directory.
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

// Layouts is the list of layouts: the suite's own, then the engines'. It describes the engines' main
// branches of September 2026: vLLM's tiering offload and disk backend, LMCache's multiprocess
// adapters, SGLang's HiCacheFile, Mooncake's SSD offload, Dynamo's KVBM. Mooncake's user chooses the
// objects and the ranks that own them: the 512 tokens are the blocks of its published traces. The
// ranks of LMCache's raw_block share one server.
//
// To add a layout, add its line here and a file in package filetier that makes its calls.
var Layouts = []LayoutSpec{
	{Name: LayoutFiles, Help: "a file for each entry, flushed", Several: true},
	{Name: "block", Help: "the same", Several: true},
	{Name: LayoutSlots, Help: "one preallocated file, no flush", Several: true, Blocks: true},
	{Name: LayoutPacked, Help: "N consecutive blocks in a file, flushed as written", Several: true,
		Blocks: true},
	{Name: LayoutNamed},
	{Name: "vllm-fs", Help: "a file for each object of all ranks", Several: true,
		Tokens: 16, Depth: 1, Direct: true, Either: true, LooksUp: true,
		Stores: 16, Loads: 16, Shared: true, Ranks: RanksTogether, Hybrid: HybridGroups,
		Full: "removes nothing, ever",
		FilePattern: `[^/]+_[0-9a-f]{12}_r0/[0-9a-f]{3}/[0-9a-f]{2}_g[0-9]+/` + hashPattern +
			`\.bin(?:_[0-9]+\.tmp)?|[^/]+_[0-9a-f]{12}_r0/config\.json|` +
			`\.o_direct_probe_[0-9]+\.tmp`},
	{Name: "vllm-slots", Help: "slots in a sparse file", Tokens: 16, Depth: 1, Direct: true,
		Either: true, Stores: 1, Loads: 1, Ranks: RanksEach, FilePattern: `slots\.rank_[0-9]+`},
	{Name: "lmcache-fs", Help: "a file for each object", Several: true, Tokens: 256, Depth: 1,
		Either: true, LooksUp: true, All: true, Loads: 8, Layerwise: true, Ranks: RanksApart,
		Hybrid: HybridStates, Full: "removes nothing unless configured to",
		FilePattern: `[^/]+@0x[0-9a-f]{8}@0@` + hashPattern + `(?:@[0-9]+)?\.data(?:\.tmp)?`},
	{Name: "lmcache-raw", Help: "slots with headers in a preallocated file", Tokens: 256, Depth: 4,
		Direct: true, Stores: 2, Loads: 4, Hybrid: HybridStates,
		Full: "stores nothing more unless configured to evict", FilePattern: `raw_block`},
	{Name: "hicache-file", Help: "a file for each object", Tokens: 64, Depth: 1, Stores: 1, Loads: 1,
		LooksUp: true, Ranks: RanksApart, Full: "removes nothing unless configured to",
		FilePattern: hashPattern + `_[^/]+\.bin|\.[0-9a-f]{32}\.tmp`},
	{Name: "mooncake-bucket", Help: "files of 256 MiB", Tokens: 512, Depth: 1, Stores: 1,
		Buckets: true, FilePattern: `[0-9]+\.(?:bucket|meta)`},
	{Name: "mooncake-offset", Help: "records in a preallocated file", Tokens: 512, Depth: 1,
		Stores: 1, Full: "stores nothing more unless configured to evict",
		FilePattern: `kv_cache\.data`},
	{Name: "kvbm-slots", Help: "slots in a preallocated file", Tokens: 16, Depth: 64, Direct: true,
		Stores: 64, Loads: 64, Ranks: RanksApart, FilePattern: `dynamo-kvbm-disk-cache-[0-9a-f]{6}`},
}

// EngineLayouts are the layouts of engines among Layouts.
var EngineLayouts = func() (list []LayoutSpec) {
	for _, l := range Layouts {
		if l.Tokens > 0 {
			list = append(list, l)
		}
	}
	return list
}()

// Spec returns the description of the layout; ok is false for an unknown name.
func (l Layout) Spec() (spec LayoutSpec, ok bool) {
	for _, spec := range Layouts {
		if spec.Name == l.Kind || l.Kind == "" && spec.Name == LayoutFiles {
			return spec, true
		}
	}
	return spec, false
}

// VLLMDir returns the directory in which vLLM keeps a model's blocks, in files and in object stores. vLLM hashes its
// whole configuration, of which this suite only has the model.
func VLLMDir(model string) string {
	model = strings.ReplaceAll(model, "/", "_")
	sum := sha256.Sum256([]byte(model))
	return fmt.Sprintf("%s_%x_r0", model, sum[:6])
}

// VLLMFile returns the path of a block with this hash and of a group of layers, which count from 0. The first
// digits of the hash spread the files over directories.
func VLLMFile(dir, hash string, group int) string {
	return fmt.Sprintf("%s/%s/%s_g%d/%s.bin", dir, hash[:3], hash[3:5], group, hash)
}

// EngineLayoutOf returns the engine's layout of that name.
func EngineLayoutOf(name string) (l LayoutSpec, known bool) {
	l, _ = Layout{Kind: name}.Spec()
	if l.Tokens == 0 {
		return LayoutSpec{}, false
	}
	return l, true
}

// A bucket of Mooncake is full at so many bytes or keys, whichever comes first.
const (
	BucketBytes = 256 << 20
	BucketKeys  = 500
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
