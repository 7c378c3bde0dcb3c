package result

// Harness is what this process cost, where the workers' time went, and the verdict.
type Harness struct {
	CPUNS        int64    `json:"cpu_ns" merge:"sum"`
	CPUNSPerByte *float64 `json:"cpu_ns_per_byte" merge:"-" line:"cpu-ns/B"` // per byte moved, all tiers
	PeakRSSBytes *int64   `json:"peak_rss_bytes" merge:"max" line:"peak-RSS-bytes"`
	Mallocs      int64    `json:"mallocs" merge:"sum"`
	AllocBytes   int64    `json:"alloc_bytes" merge:"sum"`
	GCCount      int64    `json:"gc_count" merge:"sum"`
	GCPauseNS    int64    `json:"gc_pause_ns" merge:"sum"`
	VolCtxSw     int64    `json:"voluntary_context_switches" merge:"sum"`
	InvolCtxSw   int64    `json:"involuntary_context_switches" merge:"sum"`
	WorkerIdleNS int64    `json:"worker_idle_ns" merge:"sum"` // summed over workers
	WorkerBusyNS int64    `json:"worker_busy_ns" merge:"sum"`
	// Waits of the process's goroutines, summed over goroutines, as Go's runtime reports: for
	// mutexes, for a processor (estimated from samples), and for the garbage collector before an
	// allocation.
	LockWaitNS  int64    `json:"lock_wait_ns" merge:"sum"`
	SchedWaitNS int64    `json:"sched_wait_ns" merge:"sum"`
	GCAssistNS  int64    `json:"gc_assist_ns" merge:"sum"`
	Busy        BusyTime `json:"busy"`
	Unloaded    Unloaded `json:"unloaded"`
	Verdict     Verdict  `json:"verdict" merge:"-"`
}

// Unloaded is the latency of the storage tier's requests with one request in flight, measured
// before the window. With several ranks rank 0 measures it. With buffered writes the latency of a
// write is the latency of its flush.
type Unloaded struct {
	Read   []UnloadedLatency `json:"read" merge:"list"`  // by size, the smallest first; null: unknown
	Write  []UnloadedLatency `json:"write" merge:"list"` // by size, the smallest first; null: unknown
	Reason string            `json:"reason,omitempty" merge:"max"`
}

// UnloadedLatency is the mean latency of requests of one size, without the slowest tenth.
type UnloadedLatency struct {
	RequestBytes int64 `json:"request_bytes"`
	NS           int64 `json:"ns"`
	Requests     int64 `json:"requests"`
}

// BusyTime divides the workers' busy time by cause, summed over workers. An operation at an edge of
// the window counts with the share of its time inside the window; each of its parts counts with the
// same share. So the sum may differ a little from WorkerBusyNS.
type BusyTime struct {
	StorageNS    int64 `json:"storage_ns" merge:"sum"`     // inside the storage tier: open, create, I/O, flush
	OtherTiersNS int64 `json:"other_tiers_ns" merge:"sum"` // inside the other tiers
	// HandoverNS is the part of StorageNS in which requests were not at the device: they waited in
	// this process for a thread, or had completed and were not yet reaped.
	HandoverNS int64 `json:"handover_ns" merge:"sum"`
	// EngineNS is the part of StorageNS in which requests waited for a thread of the imitated
	// engine (-read-threads, -write-threads). It is a property of that engine, not of this process.
	EngineNS   int64 `json:"engine_ns" merge:"sum"`
	ClearingNS int64 `json:"clearing_ns" merge:"sum"` // deleting and demoting other entries for capacity
	// RemovalNS is the time of deletions in the storage tier: a part of ClearingNS, and deletions
	// by the last reader of an entry.
	RemovalNS int64 `json:"removal_ns" merge:"sum"`
	// waiting for capacity until the readers and writers of entries to evict are done: the sum over tiers
	RoomNS       int64 `json:"room_ns" merge:"sum"`
	WriteLimitNS int64 `json:"write_limit_ns" merge:"sum"`
	WriterNS     int64 `json:"writer_ns" merge:"sum"` // waiting for another write of the entry
	BuffersNS    int64 `json:"buffers_ns" merge:"sum"`
	GenerationNS int64 `json:"generation_ns" merge:"sum"` // generating data while nothing was in flight
	HostNS       int64 `json:"host_ns" merge:"sum"`       // copying and verifying
	// DispatchNS is the time to take and end requests: the dispatcher's lock, parsing of input,
	// planning, cache decisions.
	DispatchNS int64 `json:"dispatch_ns" merge:"sum"`
	ThinkingNS int64 `json:"thinking_ns" merge:"sum"` // sleeping as long as a GPU would compute
}

// Verdict kinds.
const (
	LoadLimited     = "load-limited"     // the load submitted less than the storage could complete
	Shared          = "shared"           // another process used the device
	CapacityLimited = "capacity-limited" // workers waited for capacity of the tier
	DiscardLimited  = "discard-limited"  // deletions took the workers' or the device's time
	CPULimited      = "CPU-limited"      // this process took the time
	MemoryLimited   = "memory-limited"   // copies to and from memory tiers took it, without a storage tier
	StorageLimited  = "storage-limited"  // requests queued in the storage
	LatencyLimited  = "latency-limited"  // the storage completed requests as fast as single ones
	Undecided       = "undecided"        // a number is missing
	NoVerdict       = "none"             // nothing was measured
)

// Values of Verdict.Bound.
const (
	BoundWorkers    = "workers"
	BoundDepth      = "depth"
	BoundWriteLimit = "write limit"
	BoundEngine     = "engine threads"
	BoundBuffers    = "buffers"
)

// Verdict is what limited the trial, and the numbers for it. A number that was not measured is null
// and is not used.
type Verdict struct {
	Kind      string   `json:"kind"`
	IdleShare *float64 `json:"idle_share"` // share of the workers' time without a request
	// share used of the cores that the workers could use; with several ranks on the host with the
	// largest share
	CPUShare *float64 `json:"cpu_share"`
	CPUCores float64  `json:"cpu_cores,omitempty"` // these cores
	// share of the workers' busy time that was neither storage nor a wait for storage
	HarnessShare *float64 `json:"harness_share"`
	InFlight     *float64 `json:"in_flight"` // mean number of requests at the storage
	// mean latency of the storage tier's requests ÷ mean unloaded latency
	Slowdown *float64 `json:"slowdown"`
	// what limits the requests in flight if latency-limited: workers, depth, write limit, engine
	// threads, buffers
	Bound  string `json:"bound,omitempty"`
	Reason string `json:"reason"`
}
