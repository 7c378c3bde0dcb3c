package result

// Prompt counts the prompt tokens of the requests that completed in the window, and the found
// tokens: those read from a tier, so that no prefill computes them. A prompt has the common prefix,
// the requested entries of history, the retrieved chunks, and new tokens. The prompt of a
// decode-only request is the entry that was written before. The prompt of a block trace is the
// blocks, and the rest of its input. Tokens are not found if their turn overtook the turn before
// it, or if their entry was gone at the read. Requests with a failed operation are not counted.
type Prompt struct {
	PromptTokens
	Requests int64 `json:"requests" merge:"sum"`
	// Requests that found at least one token, and their share of requests: a hit in the logs of
	// engines.
	RequestsHit     int64                   `json:"requests_hit" merge:"sum"`
	RequestHitRatio *float64                `json:"request_hit_ratio" merge:"-" ratio:"RequestsHit/Requests"`
	ByKind          map[string]PromptTokens `json:"by_kind"` // PromptKinds
}

// PromptKinds are the keys of Prompt.ByKind in the order of the reports: LookupKinds, and new
// tokens, which are never found.
var PromptKinds = [...]string{"system", "multi_turn", "user", "block", "rag", "new"}

// PromptTokens counts the tokens of one kind, or of whole prompts.
type PromptTokens struct {
	Tokens int64 `json:"tokens" merge:"sum"`
	Found  int64 `json:"found_tokens" merge:"sum"`
	// of the tokens not found: a turn overtook the turn that writes them
	NotYetWritten int64    `json:"not_yet_written_tokens" merge:"sum"`
	HitRatio      *float64 `json:"hit_ratio" merge:"-" ratio:"Found/Tokens"` // found ÷ tokens
}

// Add adds the counts of x. It does not update HitRatio.
func (p *PromptTokens) Add(x PromptTokens) {
	p.Tokens += x.Tokens
	p.Found += x.Found
	p.NotYetWritten += x.NotYetWritten
}

// FirstToken is the time to the first token (TTFT) if tokens that are not found have to be
// computed. TTFT has four parts: queue (from the intended arrival until a worker takes the
// request), load (until the found tokens are loaded), GPU wait (until the server is free), and
// compute (until the rest of the prompt is computed). They add up exactly. It counts requests with
// a prompt that completed in the window. Writes come later and are not part of TTFT.
type FirstToken struct {
	Prefill  PrefillCost `json:"prefill" merge:"same"`
	Requests int64       `json:"requests" merge:"sum"`

	TTFT    Distribution            `json:"ttft" merge:"-"`
	ByClass map[string]Distribution `json:"ttft_by_class" merge:"-"`
	Load    Distribution            `json:"load" merge:"-"`
	GPUWait Distribution            `json:"gpu_wait" merge:"-"`
	Compute Distribution            `json:"compute" merge:"-"`

	Sums FirstTokenTime `json:"sums"`
	// SavedRatio is the share of TTFT that the cache saved against computing every prompt
	// completely: 1 − (load − load_waits + compute) ÷ compute_all. Queue, GPU wait and the waits of
	// loading are left out, because they are unknown for a run that computes every prompt. Load
	// includes the queue at the storage, so SavedRatio compares a storage under load with an idle
	// GPU. Below 0 an idle GPU would have computed the tokens faster; with a busy GPU the cache may
	// still save time.
	SavedRatio *float64 `json:"saved_ratio" merge:"-" line:"ttft-saved-ratio"`
	// ComputeSavedRatio is the share of compute time that the cache saved: 1 − compute ÷
	// compute_all. If the cost is linear in tokens, it is the share of found tokens.
	ComputeSavedRatio *float64 `json:"compute_saved_ratio" merge:"-"`
	// share of the window in which the server computed prompts
	GPUBusyShare *float64 `json:"gpu_busy_share" merge:"drop"`
	// prompts loaded in the window; unlike Requests with those of requests in flight at its end
	Prompts int64 `json:"prompts" merge:"sum"`
	// time in which the server computed in the window, and the time to compute what Prompts found
	AllNS int64 `json:"gpu_all_ns" merge:"sum"`

	// Loading is the load time by number of tokens, for requests that found at least half of their
	// bytes in the storage tier. It is measured under this load, without waits for the writers of
	// entries. The other requests that found tokens are in found_above.
	Loading    []LoadingTime `json:"loading" merge:"drop"`
	BreakEven  BreakEvens    `json:"break_even" merge:"drop"`
	Found      FoundParts    `json:"found"`
	FoundAbove FoundAbove    `json:"found_above"`
}

// PrefillCost is the compute time of a prompt of n tokens on the whole server: a·n + b·n² seconds.
type PrefillCost struct {
	PerToken       float64 `json:"a_seconds_per_token"`
	PerTokenSquare float64 `json:"b_seconds_per_token2"`
	GPU            string  `json:"gpu,omitempty"` // if the cost is a published rate
	Source         string  `json:"source,omitempty"`
	Tokens         int     `json:"measured_tokens,omitempty"` // length at which a published rate was measured
}

// FirstTokenTime has the parts of TTFT, and the time to compute every prompt completely, summed
// over requests in nanoseconds.
type FirstTokenTime struct {
	TTFT      int64 `json:"ttft_ns" merge:"sum"`
	Queue     int64 `json:"queue_ns" merge:"sum"`
	Load      int64 `json:"load_ns" merge:"sum"`
	LoadWaits int64 `json:"load_waits_ns" merge:"sum"` // of load: for capacity and writers
	// of load_waits: for the writers of entries
	LoadWriters int64 `json:"load_writer_waits_ns,omitempty" merge:"sum"`
	GPUWait     int64 `json:"gpu_wait_ns" merge:"sum"`
	Compute     int64 `json:"compute_ns" merge:"sum"`
	// Overlap is the part of compute during the loading of layers. TTFT does not include it.
	Overlap    int64 `json:"overlap_ns,omitempty" merge:"sum"`
	ComputeAll int64 `json:"compute_all_ns" merge:"sum"`
}

// Add adds the times of x.
func (t *FirstTokenTime) Add(x FirstTokenTime) {
	t.TTFT += x.TTFT
	t.Queue += x.Queue
	t.Load += x.Load
	t.LoadWaits += x.LoadWaits
	t.LoadWriters += x.LoadWriters
	t.GPUWait += x.GPUWait
	t.Compute += x.Compute
	t.Overlap += x.Overlap
	t.ComputeAll += x.ComputeAll
}

// FoundAbove counts requests that found more than half of their bytes in the tiers above the
// storage tier.
type FoundAbove struct {
	Requests int64 `json:"requests" merge:"sum"`
	Tokens   int64 `json:"tokens" merge:"sum"`
}

// FoundParts has sums over the requests that found at least half of their bytes in the storage
// tier: the found tokens, and whether loading was faster than computing.
type FoundParts struct {
	Requests int64 `json:"requests" merge:"sum"`
	Tokens   int64 `json:"tokens" merge:"sum"`
	Bytes    int64 `json:"bytes" merge:"sum"`
	LoadNS   int64 `json:"load_ns" merge:"sum"`    // under this load, without waits for writers
	SavedNS  int64 `json:"compute_ns" merge:"sum"` // time to compute them on an idle GPU
	// Requests whose load was faster than computing, and their found tokens.
	Worth       int64 `json:"worth_requests" merge:"sum"`
	WorthTokens int64 `json:"worth_tokens" merge:"sum"`
	// Load time above compute time, summed over the other requests: a cache that predicts the
	// faster way would save it.
	LostNS int64 `json:"lost_ns" merge:"sum"`

	WorthRatio      *float64 `json:"worth_ratio" merge:"-" ratio:"Worth/Requests"`           // of requests
	WorthTokenRatio *float64 `json:"worth_token_ratio" merge:"-" ratio:"WorthTokens/Tokens"` // of tokens
	// LoadBytesPerS is bytes ÷ load time: the mean rate of one request's load while other requests
	// load concurrently. NeededBytesPerS is bytes ÷ compute time: above this rate loading is faster
	// than computing.
	LoadBytesPerS   *float64 `json:"load_bytes_per_s" merge:"-" rate:"Bytes/LoadNS"`
	NeededBytesPerS *float64 `json:"needed_bytes_per_s" merge:"-" rate:"Bytes/SavedNS"`
}

// Add adds the found tokens and their bytes of a request, and the times to load and to compute them
// in ns. It does not update the ratios.
func (f *FoundParts) Add(tokens, bytes, load, saved int64) {
	f.Requests++
	f.Tokens += tokens
	f.Bytes += bytes
	f.LoadNS += load
	f.SavedNS += saved
	if load < saved {
		f.Worth++
		f.WorthTokens += tokens
	} else {
		f.LostNS += load - saved
	}
}

// LoadingTime is the load time of one range of token numbers. The ends of a range differ by a
// factor of two; a range with too few samples is combined with the next range. Tokens is the mean
// number of tokens in the range. The times are Tokens × the median and × the 95th percentile of the
// time per token.
type LoadingTime struct {
	Samples int64    `json:"samples"`
	Tokens  float64  `json:"tokens"`
	P50NS   *float64 `json:"p50_ns"`
	P95NS   *float64 `json:"p95_ns"`
}

// BreakEvens has the break-even for the median and for the 95th percentile of the load time under
// this load: the smallest number of tokens that is loaded faster than computed. Compute time is
// without a wait for the server. Null: too few loads.
type BreakEvens struct {
	P50 *BreakEven `json:"p50"`
	P95 *BreakEven `json:"p95"`
}

// Words of BreakEven.Answer.
const (
	LoadAlways = "always" // for every number of tokens
	LoadNever  = "never"  // for no number up to the longest
	LoadFrom   = "from"   // from tokens on
	LoadUntil  = "until"  // from tokens on, below until_tokens
)

// BreakEven is the range of token numbers that are loaded faster than computed. Tokens is 1 for
// always and null for never.
type BreakEven struct {
	Answer string `json:"answer"`
	Tokens *int64 `json:"tokens"`
	Until  *int64 `json:"until_tokens"`
	// largest number of tokens in the search: the model's context window, or a default
	Longest      int64 `json:"longest_tokens"`
	Extrapolated bool  `json:"extrapolated"` // tokens is outside of the measured range
}

// metrics adds the values of the benchmark line.
func (f *FirstToken) metrics(add func(unit string, v *float64)) {
	if f == nil {
		return
	}
	add("ttft-mean-ns", f.TTFT.Mean)
	add("ttft-p50-ns", number(f.TTFT.P50))
	add("ttft-p95-ns", number(f.TTFT.P95))
	// The benchmark line cannot mark a number as extrapolated, so leave it out.
	if b := f.BreakEven.P50; b != nil && !b.Extrapolated {
		add("break-even-tokens", number(b.Tokens))
	}
}
