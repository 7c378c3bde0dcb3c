package record

import (
	"encoding/json"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads"
	"kvbench/workloads/model"
)

// Info is all that the engine knows about one trial beside what the Recorder counted. [BuildResult] turns both into
// a Result and touches nothing else: no clock, no file, no system call. Zero fields mean unknown and become null.
type Info struct {
	Benchmark string // "MaxStorageStress"
	Option    int    // MLPerf option, 0 when none
	Division  string
	Trial     int // from 0
	Count     int // trials asked for
	Rank      int
	Ranks     int
	Seed      uint64 // base seed, rank not added
	Nonce     string // hexadecimal
	Digest    string // of the requests as executed, when computed

	Parameters []result.Parameter  // in the order of the parameter table
	Differs    []result.Difference // from closed; empty in closed

	Status  string // as the engine sees it; BuildResult can only make it worse
	EndedBy string
	Error   string // what ended a failed trial

	Start         time.Time     // wall clock at the opening of the window
	NominalWindow time.Duration // as asked for, 0 when bounded by a count
	Window        time.Duration // as measured; 0 = take the Recorder's
	Elapsed       time.Duration // set-up, window, drain and clean-up together
	Drain         time.Duration // from the end of the window until the last worker stopped
	Warmup        time.Duration
	Settle        time.Duration

	Model          model.Model
	Sizer          model.Sizer
	TensorParallel int
	Users          int // 0 for traces
	Workers        int
	Arrival        string // open-loop, closed-loop
	Turns          string // ordered, overtaking
	GenerationMode string
	DecodeReads    string // once, batched
	Profile        string // latency, throughput: decides the criteria of storage_health
	QoS            [workloads.NumClasses]workloads.QoS
	PrefillRate    float64 // tokens/s of recomputation, 0 = not given

	CacheDir            string
	IO                  string // direct, buffered, as really used
	WriteDevice         string
	ChunkSize           int
	Depth               int
	MaxConcurrentAllocs int
	Pool                PoolInfo

	// Sums over all workers inside the window: WorkerIdle + WorkerBusy is about Workers × Window. Idle means without a
	// request; waiting for space, slots or buffers is busy.
	WorkerIdle time.Duration
	WorkerBusy time.Duration

	// The backlog by class at the window's opening and end, both cumulative since the load's origin as
	// Source.Account returns them, and the second moment on that scale, from which ages are reckoned.
	LoadStart []workloads.ClassLoad
	LoadEnd   []workloads.ClassLoad
	LoadEndAt time.Duration
	Requests  [workloads.NumClasses]RequestCount

	Tiers []TierInfo // existing tiers only, fastest first, read at the window's end

	Harness     result.Harness // what the process took in the window; idle, busy, waits and verdict are filled in here
	Limits      result.Limits
	Environment result.Environment

	// Witness is what the kernel counted at the backing device of the storage tier, without its byte counts where Reason says
	// why there are none; what follows from the application's bytes is filled in here. DeviceBusy is for how long the device
	// had requests.
	Witness    result.Witness
	DeviceBusy time.Duration

	Trace         json.RawMessage // of the kernel in the window, nil unless asked for
	TraceWarnings []string        // what its reader must know

	Ceiling      *result.Ceiling
	Precondition *result.Precondition
	Input        *result.Input      // trace sources only
	Validation   *result.Validation // with the numbers of the recorded run; compared here

	Simulation *SimulationInfo // nil: a real run
	Replay     *result.Replay  // of an I/O trace
	Rounds     []result.Round  // of the autoscaler
	Autoscale  *result.AutoscaleSummary

	Warnings []string

	// CountOperations: the unit of completion is an operation, not a request (Tier, Checkpoint, StorageCeiling, replay).
	CountOperations bool
}

// RequestCount tells what happened to the requests of one class inside the window, beside those that completed.
type RequestCount struct {
	Running        int64         // taken before the window and not complete at its opening
	Started        int64         // taken by a worker inside the window
	Failed         int64         // ended inside the window with a failed operation
	InFlight       int64         // taken and not complete at its end
	OldestInFlight time.Duration // age of the oldest of those, since its arrival
}

// TierInfo is one tier at the end of the window.
type TierInfo struct {
	Level       tiers.Kind
	Description string
	Capacity    int64 // bytes, 0 = unlimited
	Entries     int64
	Bytes       int64 // of the entries, reservations not included
	Peak        int64 // largest usage of the window, reservations included
	Waste       int64 // bytes held beyond the entries' own (slabs, padding)
}

// PoolInfo describes the buffers that chunks pass through.
type PoolInfo struct {
	Buffers    int
	BufferSize int
	HugePages  string // what the pool got
	Covers     bool   // workers × depth fit, so that no operation waits for buffers
}
