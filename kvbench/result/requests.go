package result

// RequestTotals are exact counts of the window.
type RequestTotals struct {
	Completed           int64 `json:"completed"`
	Failed              int64 `json:"failed"`
	ContextTokens       int64 `json:"context_tokens"`
	GeneratedTokens     int64 `json:"generated_tokens"`
	StorageLatencyNS    int64 `json:"storage_latency_ns"`    // summed over requests
	GenerationLatencyNS int64 `json:"generation_latency_ns"` // likewise
	Operations          int64 `json:"operations"`            // demotions not among them
	FailedOperations    int64 `json:"failed_operations"`     // of the whole run
	FailedInWindow      int64 `json:"failed_operations_in_window"`
	RetriedOperations   int64 `json:"retried_operations"`
	// in flight at the deadline: bytes of finished chunks count, they do not
	CancelledOperations int64 `json:"cancelled_operations"`
	OldestCancelledNS   int64 `json:"oldest_cancelled_ns"`

	Time RequestTime `json:"time"`
}

// RequestTime is where the time of requests went, in nanoseconds summed over the completed ones.
// The parts add up to EndToEnd exactly: a request does one thing at a time. Means add up likewise,
// percentiles do not.
type RequestTime struct {
	EndToEnd int64 `json:"end_to_end_ns"` // from the intended arrival
	Queue    int64 `json:"queue_ns"`      // until a worker took it
	// Lookup is asking the storage for the objects of a request before any of them is read, as some
	// engines' layouts do and -s3-lookup; what the cache itself decides takes no such time.
	Lookup int64 `json:"lookup_ns,omitempty"`
	// Context, Prefill and Decode are I/O: device and host.
	Context    int64 `json:"context_read_ns"`  // prefix, history, documents, blocks of a prefix
	Prefill    int64 `json:"prefill_write_ns"` // whatever it wrote
	Decode     int64 `json:"decode_read_ns"`   // its own entry, again and again
	Room       int64 `json:"room_wait_ns"`     // deletions and demotions for it included
	WriteLimit int64 `json:"write_limit_wait_ns"`
	Buffers    int64 `json:"buffer_wait_ns"`
	Pending    int64 `json:"pending_wait_ns"`    // for another request that writes what it needs
	Data       int64 `json:"data_generation_ns"` // while nothing of it was in flight
	GPUWait    int64 `json:"gpu_wait_ns"`        // for what others compute
	Compute    int64 `json:"compute_ns"`         // of what was not found, simulated
	Generation int64 `json:"generation_ns"`      // of tokens, simulated
	// letting go of entries: whoever holds one that was evicted last deletes it
	Release int64 `json:"release_ns"`
	Rest    int64 `json:"rest_ns"` // planning, attempts that failed
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
