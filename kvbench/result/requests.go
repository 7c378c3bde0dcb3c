package result

// RequestTotals has the exact counts of the window.
type RequestTotals struct {
	Completed           int64 `json:"completed" merge:"sum"`
	Failed              int64 `json:"failed" merge:"sum"`
	ContextTokens       int64 `json:"context_tokens" merge:"sum"`
	GeneratedTokens     int64 `json:"generated_tokens" merge:"sum"`
	StorageLatencyNS    int64 `json:"storage_latency_ns" merge:"sum"`    // summed over requests
	GenerationLatencyNS int64 `json:"generation_latency_ns" merge:"sum"` // summed over requests
	Operations          int64 `json:"operations" merge:"sum"`            // without demotions
	FailedOperations    int64 `json:"failed_operations" merge:"sum"`     // of the whole run
	FailedInWindow      int64 `json:"failed_operations_in_window" merge:"sum"`
	RetriedOperations   int64 `json:"retried_operations" merge:"sum"`
	// in flight at the deadline; not in operations, although the bytes of their finished chunks
	// count
	CancelledOperations int64 `json:"cancelled_operations" merge:"sum"`
	OldestCancelledNS   int64 `json:"oldest_cancelled_ns" merge:"max"`

	// Rates over the window. StorageTokensPerSecond is none: it is generated tokens ÷ storage_latency_ns, the
	// storage time summed over requests, of one rank as of several.
	RequestsPerSecond      *float64 `json:"requests_per_s" merge:"sum" rate:"Completed"`
	TokensPerSecond        *float64 `json:"tokens_per_s" merge:"sum" rate:"GeneratedTokens"` // generated
	StorageTokensPerSecond *float64 `json:"storage_tokens_per_s" merge:"-"`

	Time RequestTime `json:"time"`
}

// Moved counts the completed operations of requests and their bytes on all tiers. It has no
// demotions and no operations that the end of the window cut off. A run of blocks is one operation.
type Moved struct {
	ReadOperations  int64 `json:"read_operations" merge:"sum"`
	ReadBytes       int64 `json:"read_bytes" merge:"sum"`
	WriteOperations int64 `json:"write_operations" merge:"sum"`
	WriteBytes      int64 `json:"write_bytes" merge:"sum"`

	PrefillWrites int64 `json:"prefill_writes" merge:"sum"`
	DecodeReads   int64 `json:"decode_reads" merge:"sum"`
	PrefixBytes   int64 `json:"prefix_bytes" merge:"sum"` // read, of common prefixes
	// Reads of an entry that the request wrote itself, and repeated reads of an entry: found, and
	// evicted before the read. They are no lookups.
	OwnFound int64 `json:"own_found" merge:"sum"`
	OwnGone  int64 `json:"own_gone" merge:"sum"`
}

// RequestTime divides the time of completed requests into parts, in nanoseconds summed over
// requests. The parts add up to EndToEnd exactly. Means of the parts add up, too; percentiles do
// not.
type RequestTime struct {
	EndToEnd int64 `json:"end_to_end_ns" merge:"sum"` // from the intended arrival
	Queue    int64 `json:"queue_ns" merge:"sum"`      // until a worker takes the request
	// Lookup is the time to look up a request's objects in the storage before the first read. Some
	// engine layouts and -s3-lookup do so. Lookups in this process's metadata take no time here.
	Lookup int64 `json:"lookup_ns,omitempty" merge:"sum"`
	// Context, Prefill and Decode are I/O time (device and host).
	Context    int64 `json:"context_read_ns" merge:"sum"`  // prefix, history, documents, blocks of a prefix
	Prefill    int64 `json:"prefill_write_ns" merge:"sum"` // all writes
	Decode     int64 `json:"decode_read_ns" merge:"sum"`   // repeated reads of its own entry
	Room       int64 `json:"room_wait_ns" merge:"sum"`     // with deletions and demotions for it
	WriteLimit int64 `json:"write_limit_wait_ns" merge:"sum"`
	Buffers    int64 `json:"buffer_wait_ns" merge:"sum"`
	Pending    int64 `json:"pending_wait_ns" merge:"sum"`    // for another request's write
	Data       int64 `json:"data_generation_ns" merge:"sum"` // while none of its I/O was in flight
	GPUWait    int64 `json:"gpu_wait_ns" merge:"sum"`        // while the GPU computes other requests
	Compute    int64 `json:"compute_ns" merge:"sum"`         // of tokens not found, simulated
	Generation int64 `json:"generation_ns" merge:"sum"`      // of tokens, simulated
	// releasing entries; the last reader of an evicted entry deletes it
	Release int64 `json:"release_ns" merge:"sum"`
	Rest    int64 `json:"rest_ns" merge:"sum"` // planning, failed attempts
}

// Waits returns the time in which requests waited inside the engine: for capacity, the write limit,
// buffers and other requests' writes.
func (t *RequestTime) Waits() int64 { return t.Room + t.WriteLimit + t.Buffers + t.Pending }

// Close sets Rest to EndToEnd minus all other parts.
func (t *RequestTime) Close() {
	t.Rest = t.EndToEnd - t.Queue - t.Lookup - t.Context - t.Prefill - t.Decode - t.Waits() -
		t.Data - t.GPUWait - t.Compute - t.Generation - t.Release
}

// Add adds the times of x.
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
