package result

// RequestTotals are exact counts of the window.
type RequestTotals struct {
	Completed           int64 `json:"completed" merge:"sum"`
	Failed              int64 `json:"failed" merge:"sum"`
	ContextTokens       int64 `json:"context_tokens" merge:"sum"`
	GeneratedTokens     int64 `json:"generated_tokens" merge:"sum"`
	StorageLatencyNS    int64 `json:"storage_latency_ns" merge:"sum"`    // summed over requests
	GenerationLatencyNS int64 `json:"generation_latency_ns" merge:"sum"` // summed over requests
	Operations          int64 `json:"operations" merge:"sum"`            // demotions not among them
	FailedOperations    int64 `json:"failed_operations" merge:"sum"`     // of the whole run
	FailedInWindow      int64 `json:"failed_operations_in_window" merge:"sum"`
	RetriedOperations   int64 `json:"retried_operations" merge:"sum"`
	// in flight at the deadline: bytes of finished chunks count, they do not
	CancelledOperations int64 `json:"cancelled_operations" merge:"sum"`
	OldestCancelledNS   int64 `json:"oldest_cancelled_ns" merge:"max"`

	// Over the window; the last one over the time of all I/O, which parallel requests share.
	RequestsPerSecond      *float64 `json:"requests_per_s" merge:"sum"`
	TokensPerSecond        *float64 `json:"tokens_per_s" merge:"sum"` // generated
	StorageTokensPerSecond *float64 `json:"storage_tokens_per_s" merge:"any"`

	Time RequestTime `json:"time"`
}

// Moved is what the completed operations of requests moved, on all tiers together: whole entries,
// without demotions and without what the end of the window cut off. A run of blocks is one
// operation.
type Moved struct {
	ReadOperations  int64 `json:"read_operations" merge:"sum"`
	ReadBytes       int64 `json:"read_bytes" merge:"sum"`
	WriteOperations int64 `json:"write_operations" merge:"sum"`
	WriteBytes      int64 `json:"write_bytes" merge:"sum"`

	PrefillWrites int64 `json:"prefill_writes" merge:"sum"`
	DecodeReads   int64 `json:"decode_reads" merge:"sum"`
	PrefixBytes   int64 `json:"prefix_bytes" merge:"sum"` // of common prefixes that were read
	// Reads of the entry that the request wrote itself and of the same entry again, which are no
	// lookups: found, and evicted before they were read.
	OwnFound int64 `json:"own_found" merge:"sum"`
	OwnGone  int64 `json:"own_gone" merge:"sum"`
}

// RequestTime is where the time of requests went, in nanoseconds summed over the completed ones.
// The parts add up to EndToEnd exactly: a request does one thing at a time. Means add up, too,
// percentiles do not.
type RequestTime struct {
	EndToEnd int64 `json:"end_to_end_ns" merge:"sum"` // from the intended arrival
	Queue    int64 `json:"queue_ns" merge:"sum"`      // until a worker took it
	// Lookup is asking the storage for the objects of a request before any of them is read, as some
	// engines' layouts do and -s3-lookup; what the cache itself decides takes no such time.
	Lookup int64 `json:"lookup_ns,omitempty" merge:"sum"`
	// Context, Prefill and Decode are I/O: device and host.
	Context    int64 `json:"context_read_ns" merge:"sum"`  // prefix, history, documents, blocks of a prefix
	Prefill    int64 `json:"prefill_write_ns" merge:"sum"` // whatever it wrote
	Decode     int64 `json:"decode_read_ns" merge:"sum"`   // its own entry, again and again
	Room       int64 `json:"room_wait_ns" merge:"sum"`     // deletions and demotions for it included
	WriteLimit int64 `json:"write_limit_wait_ns" merge:"sum"`
	Buffers    int64 `json:"buffer_wait_ns" merge:"sum"`
	Pending    int64 `json:"pending_wait_ns" merge:"sum"`    // for another request that writes what it needs
	Data       int64 `json:"data_generation_ns" merge:"sum"` // while nothing of it was in flight
	GPUWait    int64 `json:"gpu_wait_ns" merge:"sum"`        // for what others compute
	Compute    int64 `json:"compute_ns" merge:"sum"`         // of what was not found, simulated
	Generation int64 `json:"generation_ns" merge:"sum"`      // of tokens, simulated
	// releasing entries: the last reader of an evicted one deletes it
	Release int64 `json:"release_ns" merge:"sum"`
	Rest    int64 `json:"rest_ns" merge:"sum"` // planning, attempts that failed
}

// Waits is how long requests waited for others inside the engine.
func (t *RequestTime) Waits() int64 { return t.Room + t.WriteLimit + t.Buffers + t.Pending }

// Close makes Rest what no other part is.
func (t *RequestTime) Close() {
	t.Rest = t.EndToEnd - t.Queue - t.Lookup - t.Context - t.Prefill - t.Decode - t.Waits() -
		t.Data - t.GPUWait - t.Compute - t.Generation - t.Release
}

// Add adds the times of another request.
func (t *RequestTime) Add(x *RequestTime) {
	t.EndToEnd += x.EndToEnd
	t.Queue += x.Queue
	t.Lookup += x.Lookup
	t.Context += x.Context
	t.Prefill += x.Prefill
	t.Decode += x.Decode
	t.Room += x.Room
	t.WriteLimit += x.WriteLimit
	t.Buffers += x.Buffers
	t.Pending += x.Pending
	t.Data += x.Data
	t.GPUWait += x.GPUWait
	t.Compute += x.Compute
	t.Generation += x.Generation
	t.Release += x.Release
	t.Rest += x.Rest
}
