package result

// Harness is what measuring cost, and whether it was the limit.
type Harness struct {
	CPUNS        int64    `json:"cpu_ns" merge:"sum"`
	CPUNSPerByte *float64 `json:"cpu_ns_per_byte" merge:"-" line:"cpu-ns/B"` // bytes of all tiers, both directions
	PeakRSSBytes *int64   `json:"peak_rss_bytes" merge:"max" line:"peak-RSS-bytes"`
	Mallocs      int64    `json:"mallocs" merge:"sum"`
	AllocBytes   int64    `json:"alloc_bytes" merge:"sum"`
	GCCount      int64    `json:"gc_count" merge:"sum"`
	GCPauseNS    int64    `json:"gc_pause_ns" merge:"sum"`
	VolCtxSw     int64    `json:"voluntary_context_switches" merge:"sum"`
	InvolCtxSw   int64    `json:"involuntary_context_switches" merge:"sum"`
	WorkerIdleNS int64    `json:"worker_idle_ns" merge:"sum"` // summed over workers
	WorkerBusyNS int64    `json:"worker_busy_ns" merge:"sum"`
	// What goroutines of the process waited for, summed over them, as Go's runtime reports:
	// mutexes, a processor (an estimate from samples), and the collector, for which they had to
	// work before they could allocate.
	LockWaitNS  int64    `json:"lock_wait_ns" merge:"sum"`
	SchedWaitNS int64    `json:"sched_wait_ns" merge:"sum"`
	GCAssistNS  int64    `json:"gc_assist_ns" merge:"sum"`
	Busy        BusyTime `json:"busy"`
	Unloaded    Unloaded `json:"unloaded"`
	Verdict     Verdict  `json:"verdict" merge:"-"`
}

// Unloaded is how long the storage tier takes for a request while no other is in flight, measured
// before the window. With several ranks rank 0 measures it. Behind the page cache a write counts as
// its flush.
type Unloaded struct {
	Read   []UnloadedLatency `json:"read" merge:"list"`  // by size, the smallest first; null: unknown
	Write  []UnloadedLatency `json:"write" merge:"list"` // by size, the smallest first; null: unknown
	Reason string            `json:"reason,omitempty" merge:"max"`
}

// UnloadedLatency is the mean of requests of one size, without the slowest tenth.
type UnloadedLatency struct {
	RequestBytes int64 `json:"request_bytes"`
	NS           int64 `json:"ns"`
	Requests     int64 `json:"requests"`
}

// BusyTime is where the workers' busy time went, summed over them. An operation at an edge of the
// window counts with the share of its time that lies within, taken evenly of its parts, so that
// these may come to a little more or less than WorkerBusyNS.
type BusyTime struct {
	StorageNS    int64 `json:"storage_ns" merge:"sum"`     // inside the storage tier: open, create, I/O, flush
	OtherTiersNS int64 `json:"other_tiers_ns" merge:"sum"` // inside the others
	// HandoverNS is the part of StorageNS in which the requests in flight were not at the device:
	// they waited in this process for a thread, or had completed and were not yet reaped.
	HandoverNS int64 `json:"handover_ns" merge:"sum"`
	// EngineNS is the part of StorageNS in which they waited for one of the threads of the engine
	// whose layout it is: what that engine has, and not what this process makes of it.
	EngineNS   int64 `json:"engine_ns" merge:"sum"`
	ClearingNS int64 `json:"clearing_ns" merge:"sum"` // deleting and demoting others for capacity
	// RemovalNS is what deletions in the storage tier took: a part of ClearingNS, and those that
	// the last reader of an entry had to do.
	RemovalNS int64 `json:"removal_ns" merge:"sum"`
	// waiting for capacity: until readers and writers of the entries to evict are done
	RoomNS       int64 `json:"room_ns" merge:"sum"`
	WriteLimitNS int64 `json:"write_limit_ns" merge:"sum"`
	WriterNS     int64 `json:"writer_ns" merge:"sum"` // waiting for another's write of the same entry
	BuffersNS    int64 `json:"buffers_ns" merge:"sum"`
	GenerationNS int64 `json:"generation_ns" merge:"sum"` // making data while nothing was in flight
	HostNS       int64 `json:"host_ns" merge:"sum"`       // copying and verifying
	// DispatchNS is taking requests and ending them: the dispatcher's lock, parsing of input,
	// planning, decisions.
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
	StorageLimited  = "storage-limited"  // requests queued in the storage
	LatencyLimited  = "latency-limited"  // the storage completed requests as fast as single ones
	Undecided       = "undecided"        // a number is missing
	NoVerdict       = "none"             // nothing was measured
)

// Verdict is what bounded the trial, with the numbers behind it; one that could not be measured
// is null and decides nothing.
type Verdict struct {
	Kind      string   `json:"kind"`
	IdleShare *float64 `json:"idle_share"` // of the workers' time, without a request
	// of the cores that the workers could use; of several ranks on the host on which they used most
	CPUShare *float64 `json:"cpu_share"`
	// of the workers' busy time, what was neither storage nor a wait for it
	HarnessShare *float64 `json:"harness_share"`
	InFlight     *float64 `json:"in_flight"` // mean number of requests at the storage
	// mean latency of the storage tier's requests ÷ that of unloaded ones
	Slowdown *float64 `json:"slowdown"`
	// of latency-limited: workers, depth, write limit, engine threads
	Bound  string `json:"bound,omitempty"`
	Reason string `json:"reason"`
}
