package params

import (
	"crypto/rand"
	"embed"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/group"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads/compute"
	"kvbench/workloads/model"
	"kvbench/workloads/users"
)

// Values are all parameters in force for one benchmark. Sizes are bytes, rates per second, paths
// absolute with empty for none; what a word may be stands in the table. Plain data.
type Values struct {
	Division   Division
	Bench      Bench
	Job        *Job   // of the scenario, nil without one
	Scenario   string // its name or file, as given
	ConfigFile string
	Window     Window
	Count      int // trials

	// Whose entries are stored, and for how many. The name is a key or the path of a config.json.
	ModelName string
	Model     model.Model // what it means
	KVDType   string      // of cached numbers; auto is the model's own
	Users     int
	// ProfileName is what -profile says: see OfSessions.
	ProfileName string

	// How the users behave. Rank and seed together give each client streams of its own, so that
	// clients of one run do not request the same at the same moment; see StreamSeed.
	Arrival, Turns, GenerationMode, DecodeReads string
	Seed                                        int64

	// The tiers, fastest first. A capacity of 0 is no tier, but for the storage: there it comes from the
	// free space (95 % of it, divided by the ranks of this host); see NoStorage. The GPU's is of
	// one card, see GPUTierBytes, and its bandwidth is GiB/s per direction.
	GPUBytes, CPUBytes, StorageBytes int64
	GPUs, TensorParallel             int
	TPRule, TPIO, GPUBackend         string
	GPUBandwidth                     float64

	// How the storage tier does its I/O, and what of the bytes of the ceiling's mixed load is read.
	// Without a cache directory it works in the fixed temporary one of the user; several share its
	// entries; see Bucket.
	CacheDirs []string
	IO        string
	IOEngine  string
	ChunkSize int64
	IODepth   int // as given; see Depth
	IOTimeout time.Duration
	ReadShare float64
	// Which entry lives in which tier, and which has to leave; see Policy of package cache.
	TierPolicy, Promote, Evict string
	AdmitAfter                 int
	WriteBehindBytes           int64
	KeepShare, LargestShare    float64 // 0 = the policy's own

	// Limits bounds parameters. It changes no run.
	Limits struct {
		Users              int
		Window             time.Duration
		GPUBytes, CPUBytes int64
	}

	CeilingBytes int64 // that plain I/O may take of the storage tier; 0 = see CeilingSize

	// How fast requests come, how many, and how many are executed at a time; 0 is without a bound,
	// or at the pace of think times and traces, with automatic Workers, see WorkerCount.
	MaxConcurrentAllocs, Workers int
	RequestRate                  float64
	RequestSpacing               string
	MaxRequests                  int64

	// What computing costs that a prompt does not find, as given, and the GPU whose published rate
	// is taken; see Cost.
	PrefillRate compute.Cost
	GPU         string

	// This client among those of the run; all clients of a host share its free space.
	Rank, Ranks, LocalRanks int
	Launcher                *group.Launched // mpirun, srun or the like; nil without one
	RankFailure             string          // stop or continue
	starts, meets, guessed  bool            // see Starts, Meets and Meet

	// Of ranks that have met: for each directory of this rank, how many directories of all ranks
	// share its filesystem, itself included; and the number of filesystems. None and 0 are unknown.
	FilesystemShares []int
	Filesystems      int

	// Where ranks meet that a launcher or the user has started: auto, none or HOST:PORT.
	Rendezvous string
	// Whether the hosts' cache directories are on one filesystem: auto, true or false.
	SharedDir         string
	RendezvousTimeout time.Duration
	RankTimeout       time.Duration

	// Around the window: load that is not counted, and a pause in which nothing happens.
	Warmup, Settle     time.Duration
	Rehearse           bool // the closed division with short windows
	PerformanceProfile string

	// What the users do.
	DisableMultiTurn, DisablePrefixCaching, PrefillOnly, DecodeOnly, EnableRAG bool
	RAGDocuments                                                               int

	// Recorded requests instead of users: a file, a directory or a glob. Only the benchmark of a
	// format reads its path.
	BurstTracePath, AzureTracePath, BlockTracePath, DatasetPath, ValidationTrace string

	MaxConversations    int64 // 0 = all
	Tokenizer, Layout   string
	Layerwise           bool          // objects of the engine's layout are kept layer by layer
	Engine              string        // that is imitated, none without one
	ObjectTokens        int           // of an engine's layout, see CutTokens
	ReadThreads         int           // of an engine's layout, 0 = one for each request
	WriteThreads        int           // of an engine's layout, 0 = one for each request
	TraceSpeedup        float64       // 0 = as fast as possible
	TraceStart          time.Duration // on the trace's clock
	ReplayCycles        int           // 0 = until the window ends
	TraceAllowMalformed bool

	// A new or trimmed drive is faster than it stays: this writes until that has passed.
	Precondition        bool
	PreconditionBytes   int64 // 0 = twice the storage tier
	PreconditionThreads int   // 0 = one per core

	S3 ObjectStore

	// The number of users follows what the storage can do.
	Autoscaling        bool
	AutoscalerMode     string
	TargetSaturation   float64
	AutoscalerInterval time.Duration
	AutoscalerUsers    [2]int // the fewest and the most

	// Runs in virtual time, and operations instead of requests. A log is of a run in virtual time.
	IOTraceLog, IOTraceReplay, IOTraceTiers, IOTracePhases string
	IOTraceDeletes                                         bool
	Device                                                 *tiers.DeviceModel // nil = none

	// Checkpoints, and how their chunks move. Fadvise is for I/O through the page cache.
	Checkpoint Checkpoint
	Stream     Stream
	Fadvise    string

	Sweep   []Axis    // that applies to the benchmark
	Unswept []Axis    // that does not apply to it: it runs without them
	Point   string    // the name of these values' point of the sweep, empty without one
	Points  []*Values // those at each point of the sweep; itself without one

	// What the kernel saw of the device.
	LatencyTracing          bool
	TraceLevel, TraceFilter string

	// What is checked, kept and shown. The nonce has 32 hex digits, or none; see TrialNonce.
	Verify, Nonce, RunName, ResultsDir, ResultsFormat, Progress, Summary string
	KeepFiles                                                            bool
	// Where the run's metrics are served, "" nowhere, and whether other machines may read them.
	MetricsListen string
	MetricsRemote bool

	// Profile is the synthetic users' profile: defaults, then the benchmark's character, then the
	// YAML file.
	Profile users.Profile
	// GenerationTime is the sleep per generated token that GenerationMode means, of the times of all
	// modes.
	GenerationTime  time.Duration
	GenerationTimes [3]time.Duration
	Retrieval       string // of documents: uniform or zipfian
	// Models are the models that the YAML file adds or redefines.
	Models []model.Model

	scenarios embed.FS // the built-in ones

	base    string             // the directory in which the command was typed
	given   map[string]setting // by parameter or key: what is in force, as it was written
	refused map[string]bool    // parameters with a default, because what was given is wrong
	changed map[string]bool    // see Changed
}

// Checkpoint is which checkpoints are written and read, and when.
type Checkpoint struct {
	Model           string
	Accelerators    int   // 0 = the model's own
	Scale           int64 // files are 1/Scale of their size
	Writes, Reads   int   // as given, see Values.CheckpointRuns
	Pause           time.Duration
	Keep            int // 0 = all
	Flush           string
	Shift           int    // as given, see CheckpointShift
	AcceleratorType string // "" = not given
}

// Stream is how the chunks of a file move.
type Stream struct {
	Bytes     int64 // of CheckpointStream's file
	Chunk     int64
	Buffers   int    // of each accelerator
	Generate  string // during, before
	Producers int    // as given, see StreamProducers
	Writers   int    // chunks in flight
	Readers   int    // ranges of a file that are read concurrently
	Range     int64  // as given, see StreamRange
}

// StreamSeed is the seed that all streams of this rank derive from.
func (v *Values) StreamSeed() uint64 { return uint64(v.Seed) + uint64(v.Rank) }

// GPUTierBytes is the size of the gpu tier: all cards.
func (v *Values) GPUTierBytes() int64 { return v.GPUBytes * int64(v.GPUs) }

// NoStorage reports whether the run has no storage tier: the slowest tier in memory evicts what exceeds
// its capacity.
func (v *Values) NoStorage() bool { return v.StorageBytes == noTier }

// LastTier returns the slowest tier's parameter, its capacity in bytes (0 = the free space decides), and
// how many parts of that size it has.
func (v *Values) LastTier() (name string, capacity int64, parts int) {
	switch {
	case !v.NoStorage():
		return "storage-capacity-gb", v.StorageBytes, 1
	case v.CPUBytes > 0:
		return "cpu-mem-gb", v.CPUBytes, 1
	}
	return "gpu-mem-gb", v.GPUBytes, v.GPUs
}

// Cards is the number of cards that hold the gpu tier, 0 if it is simulated.
func (v *Values) Cards() int {
	if v.GPUBackend == "cuda" {
		return v.GPUs
	}
	return 0
}

// ClosedLoop reports whether users wait until their requests complete.
func (v *Values) ClosedLoop() bool { return v.Arrival == "closed-loop" }

// Overtaking reports whether a turn may start before its predecessor's entry is written.
func (v *Values) Overtaking() bool { return v.Turns == "overtaking" }

// Direct reports whether the file tier uses direct I/O.
func (v *Values) Direct() bool { return v.IO == "direct" }

// Admission is how many requests for an entry precede its admission to the storage tier.
func (v *Values) Admission() int {
	if v.TierPolicy == "selective" {
		return max(2, v.AdmitAfter)
	}
	return v.AdmitAfter
}

// CPythonPopulation reports whether the population is drawn with CPython's generator, as the Python
// benchmark's is.
func (v *Values) CPythonPopulation() bool { return v.Division == Closed }

// EngineLayout is the layout in force if it is an engine's; Tokens is 0 if it is not.
func (v *Values) EngineLayout() tiers.LayoutSpec {
	l, _ := tiers.EngineLayoutOf(v.Layout)
	return l
}

// StoringRanks is how many tensor-parallel ranks store bytes of their own in this run: one, unless
// the I/O of all is to be done.
func (v *Values) StoringRanks() int {
	l := v.EngineLayout()
	if v.TPIO != "all" || l.Ranks == tiers.RanksUnsaid ||
		l.Ranks == tiers.RanksApart && v.Model.Latents() {
		return 1
	}
	return v.TensorParallel
}

// RankObjects is how many objects, one of each rank, are one of the engine's layout.
func (v *Values) RankObjects() int {
	if v.EngineLayout().Ranks == tiers.RanksTogether {
		return 1
	}
	return v.StoringRanks()
}

// maxUserWorkers bounds the automatic number of workers; traceWorkers is the number for request traces,
// which have no users.
const (
	maxUserWorkers = 500
	traceWorkers   = 16
)

// WorkerCount is the number of workers: as given, else one per user or live session that waits for
// answers up to 500, else 16 for traces.
func (v *Values) WorkerCount() int {
	switch {
	case v.Workers > 0:
		return v.Workers
	case v.Bench.Load == LoadReplay,
		v.Bench.Load == LoadTrace && !(v.Bench.Blocks() && v.ClosedLoop()):
		return traceWorkers
	}
	return min(v.Users, maxUserWorkers)
}

// autoInFlight is how many chunks the workers keep in flight together by default.
// More do not make a device faster that has so many streams already, and cost it: with direct I/O
// every buffer in flight is memory that the device writes to, and a test disk here read 3.0 GiB/s
// into 16 buffers of 1 MiB in turn, 2.2 into 64 and 1.9 into 256.
const autoInFlight = 8

// Depth is the number of chunks in flight per operation.
func (v *Values) Depth() int {
	if v.IODepth > 0 {
		return v.IODepth
	}
	if l := v.EngineLayout(); l.Tokens > 0 {
		return l.Depth
	}
	workers := v.WorkerCount()
	return max(1, (autoInFlight+workers-1)/workers)
}

// What plain I/O takes of a large storage tier by default, and in quick; and where many sub-benchmarks
// each write their files first.
const (
	mostCeiling, quickCeiling = 64 << 30, 2 << 30
	mostField, quickField     = 8 << 30, 512 << 20
)

var ioParameters = strings.Fields("cache-dir io io-engine chunk-size io-depth workers")

// IOKey is the same text for values with which requests go to the same place in the same way: rates
// of others are not to be compared.
func (v *Values) IOKey() string {
	key := []string{}
	for _, p := range table {
		if slices.Contains(ioParameters, p.name) ||
			v.OnObjects() && strings.HasPrefix(p.name, "s3-") {
			key = append(key, p.name+"="+p.text(v))
		}
	}
	return strings.Join(key, " ")
}

// CeilingSize is how many bytes of a storage tier plain I/O may take: as given, else half of it, up
// to 64 GiB (quick 2 GiB).
func (v *Values) CeilingSize(storage int64) int64 {
	return v.footprint(storage, mostCeiling, quickCeiling)
}

func (v *Values) footprint(storage, most, quick int64) int64 {
	switch {
	case v.CeilingBytes > 0:
		return min(storage, v.CeilingBytes)
	case v.Division == Quick:
		most = quick
	}
	return min(storage/2, most)
}

// FieldSize is how many bytes the files take in which plain I/O goes to any place: as given, else
// fewer than others take, because each of many sub-benchmarks writes them first.
func (v *Values) FieldSize(storage int64) int64 {
	return v.footprint(storage, mostField, quickField)
}

// autoBlocks is how many requests BlockIO has in flight by default, enough for a drive.
const autoBlocks = 32

// InFlight is how many requests plain I/O keeps in flight: workers times depth, each 1 where it is
// automatic. Where both are, BlockIO has its default, and others have 0: a sweep finds how many.
func (v *Values) InFlight() int {
	switch {
	case v.IODepth != automatic:
		return max(v.Workers, 1) * v.IODepth
	case v.Workers == 0 && v.Bench.Name == "BlockIO":
		return autoBlocks
	}
	return v.Workers
}

// Effective returns what a run does where a value may leave it to the benchmark, by the names of settings.
func (v *Values) Effective() map[string]string {
	switch {
	case v.Bench.Name == "BlockIO", v.Bench.Name == "StorageCeiling":
		return map[string]string{"in-flight": result.InFlight(v.InFlight())}
	case v.Bench.Load == LoadNone:
		return nil
	}
	return map[string]string{"workers": strconv.Itoa(v.WorkerCount()), "io-depth": strconv.Itoa(v.Depth())}
}

// Changed reports whether the user gave the parameter another value than the one that applies without
// the user. So a default that is given changes nothing.
func (v *Values) Changed(name string) bool { return v.changed[name] }

// Flag reports whether a flag changed the parameter: other layers may be for other runs.
func (v *Values) Flag(name string) bool {
	return v.Changed(name) && v.Origin(name).kind >= FromFlag
}

// Cost is the time of computing what a prompt does not find, and the published rate that it is, if
// it is one.
func (v *Values) Cost() (compute.Cost, compute.Rate) {
	if v.GPU == "" {
		return v.PrefillRate, compute.Rate{}
	}
	rate, _ := compute.On(v.Model.Key, v.GPU) // Resolve has found it
	return rate.Cost, rate
}

// TrialNonce is the nonce of one trial: as given, or drawn anew.
func (v *Values) TrialNonce() (nonce [16]byte) {
	_, _ = rand.Read(nonce[:]) // never fails
	_, _ = hex.Decode(nonce[:], []byte(v.Nonce))
	return nonce
}

// Simulated reports whether the run happens in virtual time, without storage.
func (v *Values) Simulated() bool { return v.IOTraceLog != "" || v.Device != nil }

// Text is the canonical text of the value in force, "" for an unknown name.
func (v *Values) Text(name string) string {
	if p := byName[name]; p != nil {
		return v.text(p)
	}
	return ""
}

// text is the canonical text; what has no field is kept as it was given.
func (v *Values) text(p *parameter) string {
	if p.field == "" {
		return v.given[p.name].text
	}
	return p.text(v)
}

// ByScenario reports whether the scenario gave the value in force, which its line prints.
func (v *Values) ByScenario(name string) bool { return v.Origin(name).kind == FromScenario }

// Origin says which layer gave the value in force, for people.
func (v *Values) Origin(name string) Origin { return v.given[name].origin }

// record is a parameter, or a key as it was written, as results and people read it.
func (v *Values) record(p *parameter) result.Parameter {
	given := v.given[p.name]
	if p.key() {
		return result.Parameter{Name: p.name, Value: given.text, Origin: given.origin.String()}
	}
	value := p.show(v.text(p))
	if p.name == "cache-dir" && v.NoStorage() {
		value = "–"
	}
	return result.Parameter{Name: p.name, Value: value, Origin: given.origin.String()}
}

// Parameters lists every parameter in force in the order of the table, then the profile's keys that
// were set.
func (v *Values) Parameters() (records []result.Parameter) {
	for _, p := range table {
		if !p.has(action) {
			records = append(records, v.record(p))
		}
	}
	return append(records, v.profileKeys()...)
}

// profileKeys are the profile's keys that the YAML file, the profile or the benchmark set.
func (v *Values) profileKeys() (records []result.Parameter) {
	for _, p := range keys {
		if _, set := v.given[p.name]; set && !p.has(idle) {
			records = append(records, v.record(p))
		}
	}
	return records
}

// Overrides lists what the user set and what makes numbers incomparable, for the configuration
// lines of the output: neither places (directories, ranks) nor what is only shown, so that the
// outputs of two drives differ in none of them. Left out are division and seed, which have lines of
// their own, and Go's flags.
func (v *Values) Overrides() (records []result.Parameter) {
	for _, p := range slices.Concat(table, keys) {
		if v.Changed(p.name) && !p.has(action, place, goFlag, idle) && p.name != "division" &&
			p.name != "seed" {
			records = append(records, v.record(p))
		}
	}
	return records
}

// IdleKeys are the keys of the YAML file that have no effect.
func (v *Values) IdleKeys() (names []string) {
	for _, p := range keys {
		if _, set := v.given[p.name]; set && p.has(idle) {
			names = append(names, p.name)
		}
	}
	return names
}
