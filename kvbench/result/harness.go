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
	Ladder      *Ladder  `json:"ladder"` // null: none was requested
	Verdict     Verdict  `json:"verdict" merge:"-"`
}

// Ladder is plain I/O on the storage tier right after the window, in the run's mix of directions,
// with as many requests in flight as the run had on average, and with two and four times as many. That of
// several ranks, which make theirs concurrently, is the sum of each step.
type Ladder struct {
	Rungs    []Rung   `json:"rungs" merge:"sum"`
	CPUShare *float64 `json:"cpu_share" merge:"max"` // of a process meanwhile
	// time of the device's discards meanwhile, those of other processes among them, ÷ that of the
	// sweep; null where they are not counted
	DiscardShare *float64 `json:"discard_share" merge:"max"`
	Reason       string   `json:"reason,omitempty" merge:"max"` // why there are no steps
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
	LoadLimited        = "load-limited"
	HarnessLimited     = "harness-limited"
	ConcurrencyLimited = "concurrency-limited" // more in flight would have moved more
	DiscardLimited     = "discard-limited"     // deletions took the device's time
	StorageLimited     = "storage-limited"
	Undecided          = "undecided" // nothing shows it
	NoVerdict          = "none"      // nothing was measured
)

// Verdict is what bounded the trial, with the numbers behind it; one that could not be measured
// is null and decides nothing.
type Verdict struct {
	Kind      string   `json:"kind"`
	IdleShare *float64 `json:"idle_share"`
	// of several ranks that on the host on which they used most
	CPUShare      *float64 `json:"cpu_share"`
	HostWaitShare *float64 `json:"host_wait_share"`
	// of the workers' busy time, what was neither storage nor a wait for it
	HarnessShare *float64 `json:"harness_share"`
	InFlight     *float64 `json:"in_flight"` // mean number of requests at the storage
	// of concurrency-limited: workers, depth, write limit, capacity
	Bound  string `json:"bound,omitempty"`
	Reason string `json:"reason"`
}
