package kvbench

import (
	"errors"
	"fmt"
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tracing"
	"kvbench/workloads"
)

// StorageConfig says which tiers a run has and how it reaches them.
type StorageConfig struct {
	GPUBytes     int64   // 0 = no gpu tier
	GPUBandwidth float64 // bytes/s of the simulated link
	CPUBytes     int64   // 0 = no cpu tier
	StorageBytes int64   // capacity of the storage tier, > 0

	CacheDir  string // absolute; the run works in CacheDir/rank_<Rank>
	Rank      int
	KeepFiles bool
	Direct    bool // direct I/O; else buffered write + fsync
	FlushOnly bool // device time of a write is its flush alone (closed division)

	Chunk      int // bytes per request to a tier
	Depth      int // chunks in flight per operation
	MaxWriters int // entries being written at a time, 0 = no bound
	Workers    int // how many operations may run at once: sizes the pool
	Verify     content.Verify
	Layout     tiers.Layout // of the storage tier's files; zero: a file per entry
	Nonce      [16]byte

	// FreeFloor is how much of the filesystem must stay free, in bytes; below it
	// the run ends. 0 = do not look.
	FreeFloor int64

	// Levels replaces the tiers above: null tiers, fault wrappers. The caller
	// closes them.
	Levels []cache.Level
	// Simulated: no tier holds bytes, so that nothing needs buffers.
	Simulated bool
}

// Config is everything that one trial needs. Run changes nothing in it.
type Config struct {
	// Info names the run in its result. The engine fills what it measures.
	Info record.Info

	// Source makes the trial's requests; it is called once, after preparation.
	Source  func() (workloads.Source, error)
	Planner workloads.Planner
	Workers int
	// SourceEnds: the source is finite. EndedBy names the reason when it has
	// given everything and all of it is served: EndedByMaxRequests or
	// EndedByInput, the default.
	SourceEnds bool
	EndedBy    string

	Window   time.Duration // 0 = until Requests are completed or the source ends
	Requests int64         // end the window with that many completed requests, 0 = no bound
	Warmup   time.Duration // load before the window opens
	Settle   time.Duration // rest before and after the window

	Autoscale *Autoscale // nil = the users stay as they are

	TokenTime  time.Duration // simulated generation, per token
	Overtaking bool          // turns may overtake their predecessors

	Storage    StorageConfig
	Population Population
	// ValidationTrace is the path of a recorded run to compare with, "" = none.
	ValidationTrace string
	Corpus          workloads.Corpus // documents that are written before the window, nil = none
	Precondition    Precondition

	// Trace counts the device's requests in the kernel during the window, nil = no.
	Trace *TraceConfig

	// Procs is GOMAXPROCS during the trial, 0 = as it is. What exceeds the cores
	// is spare for blocking I/O.
	Procs int

	Clock    clock.Clock    // nil = wall time
	Progress func(Snapshot) // called about once a second, nil = nobody looks
	// OnDispatch is shown every request with its plan at the moment when it is
	// handed to a worker, in the order of dispatch, the requests of one user in
	// theirs. It runs under the dispatcher's lock: it must be quick, must not
	// call back, and must not keep the plan, whose memory is reused.
	OnDispatch func(r *workloads.Request, plan []workloads.Op)
	// OnBlocks is shown what was decided about the blocks of each request, likewise.
	OnBlocks func(r *workloads.Request, s record.BlockSample)
	// Publish receives the result as soon as it is known, before the trial's
	// files are removed, so that a signal cannot cost it.
	Publish func(*result.Result) error
}

// TraceConfig says how much is traced and whose requests.
type TraceConfig struct {
	Level  tracing.Level
	Filter tracing.Filter
}

// Population is what decode-only writes before the window: Entries entries
// pop/<n> of Tokens tokens.
type Population struct {
	Entries int
	Tokens  int
}

// Precondition is the load that brings a drive to its steady state before the
// window (spec 11). Bytes 0 = none.
type Precondition struct {
	Bytes   int64
	Threads int
	Tokens  int // per entry, 0 = 2048
}

// Validate reports everything that cannot work, at once.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Source == nil {
		bad("source: none given")
	}
	if c.Workers < 1 {
		bad("workers: %d, need at least 1", c.Workers)
	}
	if c.Window < 0 || (c.Window == 0 && c.Requests == 0 && !c.SourceEnds) {
		bad("window: %v, need a positive window, a number of requests, or a source that ends", c.Window)
	}
	if c.Storage.Chunk <= 0 || c.Storage.Chunk%4096 != 0 {
		bad("chunk: %d bytes, need a positive multiple of 4096", c.Storage.Chunk)
	}
	if c.Storage.Depth < 1 {
		bad("depth: %d, need at least 1", c.Storage.Depth)
	}
	return errors.Join(errs...)
}
