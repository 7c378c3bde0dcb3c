package result

import "kvbench/kvbench/units"

// Prompt is what the prompts of the requests that completed in the window were made of, in tokens,
// and what of it was found: read from a tier, so that it need not be computed. A prompt is the
// common prefix, every entry of history and every retrieved chunk that the request asks for, and
// what is new; of a decode-only request it is the entry that was written before, of a block trace
// the blocks and what its input has beyond them. What a turn asks for that has overtaken the one
// before is not found, and neither is what was gone when it was to be read. A request with a failed
// operation is not counted at all.
type Prompt struct {
	PromptTokens
	Requests int64 `json:"requests" merge:"sum"`
	// Those that found anything, and their share: what engines log as a hit.
	RequestsHit     int64                   `json:"requests_hit" merge:"sum"`
	RequestHitRatio *float64                `json:"request_hit_ratio" merge:"-"`
	ByKind          map[string]PromptTokens `json:"by_kind"` // PromptKinds
}

// PromptKinds are the keys of Prompt.ByKind in the order of the reports: those of LookupKinds, and
// what is new and can never be found.
var PromptKinds = [...]string{"system", "multi_turn", "user", "block", "rag", "new"}

// PromptTokens is one part of prompts, or all of it.
type PromptTokens struct {
	Tokens int64 `json:"tokens" merge:"sum"`
	Found  int64 `json:"found_tokens" merge:"sum"`
	// of those not found: their turn was overtaken
	NotYetWritten int64    `json:"not_yet_written_tokens" merge:"sum"`
	HitRatio      *float64 `json:"hit_ratio" merge:"-"` // found ÷ tokens
}

// Add adds tokens; the ratio has to follow.
func (p *PromptTokens) Add(x PromptTokens) {
	p.Tokens += x.Tokens
	p.Found += x.Found
	p.NotYetWritten += x.NotYetWritten
}

// FirstToken is how long requests waited for their first token, when what they do not find has to
// be computed: from the intended arrival until a worker took them (queue), until what was found was
// loaded, until the server was free to compute (GPU wait), and until the rest of the prompt was
// computed. These four are all of it, to the nanosecond. Of requests that completed in the window
// and had a prompt. What is written follows, and is in no first token's time.
type FirstToken struct {
	Prefill  PrefillCost `json:"prefill" merge:"same"`
	Requests int64       `json:"requests" merge:"sum"`

	TTFT    Distribution            `json:"ttft" merge:"-"`
	ByClass map[string]Distribution `json:"ttft_by_class" merge:"-"`
	Load    Distribution            `json:"load" merge:"-"`
	GPUWait Distribution            `json:"gpu_wait" merge:"-"`
	Compute Distribution            `json:"compute" merge:"-"`

	Sums FirstTokenTime `json:"sums"`
	// SavedRatio is how much of the time to the first token the cache saved against computing every
	// prompt whole: 1 − (load − load_waits + compute) ÷ compute_all. Queue, GPU wait and the waits
	// of loading are left out on both sides, because it is unknown what they would have been with
	// every prompt computed. The queue at the storage is in load, so that this compares a storage
	// under load with an idle GPU: below 0 that one would have computed sooner than loading took,
	// and with a busy one the cache may be worth it all the same.
	SavedRatio *float64 `json:"saved_ratio" merge:"-" line:"ttft-saved-ratio"`
	// ComputeSavedRatio is how much of the computing itself it saved: 1 − compute ÷ compute_all.
	// With a cost of tokens alone that is the share of tokens found.
	ComputeSavedRatio *float64 `json:"compute_saved_ratio" merge:"-"`
	// of the window in which the server computed prompts
	GPUBusyShare *float64 `json:"gpu_busy_share" merge:"drop"`

	// Loading is the time of loading a prompt's tokens by their number, of the requests that found
	// any in the storage: measured under this load, without waits for the writers of entries. Those
	// that had more than half of the bytes from the tiers above are separate.
	Loading    []LoadingTime `json:"loading" merge:"drop"`
	BreakEven  BreakEvens    `json:"break_even" merge:"drop"`
	Found      FoundParts    `json:"found"`
	FoundAbove FoundAbove    `json:"found_above"`
}

// PrefillCost is a·n + b·n² seconds for a prompt of n tokens, of the whole server.
type PrefillCost struct {
	PerToken       float64 `json:"a_seconds_per_token"`
	PerTokenSquare float64 `json:"b_seconds_per_token2"`
	GPU            string  `json:"gpu,omitempty"` // where it is a published rate
	Source         string  `json:"source,omitempty"`
}

// FirstTokenTime is summed over requests, in nanoseconds: of what TTFT is made, and what it would
// have been to compute every prompt whole.
type FirstTokenTime struct {
	TTFT      int64 `json:"ttft_ns" merge:"sum"`
	Queue     int64 `json:"queue_ns" merge:"sum"`
	Load      int64 `json:"load_ns" merge:"sum"`
	LoadWaits int64 `json:"load_waits_ns" merge:"sum"` // of load: for capacity, and for the writers of entries
	GPUWait   int64 `json:"gpu_wait_ns" merge:"sum"`
	Compute   int64 `json:"compute_ns" merge:"sum"`
	// Overlap is the part of compute that was done while layers were loaded: TTFT is without it.
	Overlap    int64 `json:"overlap_ns,omitempty" merge:"sum"`
	ComputeAll int64 `json:"compute_all_ns" merge:"sum"`
}

// Add adds the times of another request.
func (t *FirstTokenTime) Add(x FirstTokenTime) {
	t.TTFT += x.TTFT
	t.Queue += x.Queue
	t.Load += x.Load
	t.LoadWaits += x.LoadWaits
	t.GPUWait += x.GPUWait
	t.Compute += x.Compute
	t.Overlap += x.Overlap
	t.ComputeAll += x.ComputeAll
}

// FoundAbove are the requests that found most of what they found in the tiers above the storage.
type FoundAbove struct {
	Requests int64 `json:"requests" merge:"sum"`
	Tokens   int64 `json:"tokens" merge:"sum"`
}

// FoundParts are what requests found of their prompts, at least half of it in the storage, and
// whether loading it was worth it: sums over these requests.
type FoundParts struct {
	Requests int64 `json:"requests" merge:"sum"`
	Tokens   int64 `json:"tokens" merge:"sum"`
	Bytes    int64 `json:"bytes" merge:"sum"`
	LoadNS   int64 `json:"load_ns" merge:"sum"`    // under this load, waits for writers left out
	SavedNS  int64 `json:"compute_ns" merge:"sum"` // of an idle GPU, for the same tokens behind the same others
	// Of these the requests that had it sooner than it would have been computed, and what it was.
	Worth       int64 `json:"worth_requests" merge:"sum"`
	WorthTokens int64 `json:"worth_tokens" merge:"sum"`
	// By how much loading took longer than computing, of the others: what a cache that knew would
	// have saved.
	LostNS int64 `json:"lost_ns" merge:"sum"`

	WorthRatio      *float64 `json:"worth_ratio" merge:"-"`       // of requests
	WorthTokenRatio *float64 `json:"worth_token_ratio" merge:"-"` // of tokens
	// LoadBytesPerS is bytes ÷ load time: the rate at which each request had them, with all others
	// that were loading concurrently. NeededBytesPerS is bytes ÷ compute time: the rate at which
	// loading what was found takes as long as computing it, and above which it is worth it.
	LoadBytesPerS   *float64 `json:"load_bytes_per_s" merge:"-"`
	NeededBytesPerS *float64 `json:"needed_bytes_per_s" merge:"-"`
}

// Add adds what another request found; the ratios have to follow.
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

// derive reckons what follows from the sums.
func (f *FoundParts) derive() {
	f.WorthRatio = units.Ratio(f.Worth, f.Requests)
	f.WorthTokenRatio = units.Ratio(f.WorthTokens, f.Tokens)
	f.LoadBytesPerS = units.Ratio(float64(f.Bytes), float64(f.LoadNS)/1e9)
	f.NeededBytesPerS = units.Ratio(float64(f.Bytes), float64(f.SavedNS)/1e9)
}

// LoadingTime is one length of Loading: the mean of those in a range whose ends differ by a factor
// of two, or of neighbouring ranges where one has too few samples. Times are those of that mean, at
// the median and the 95th percentile of the time per token.
type LoadingTime struct {
	Samples int64    `json:"samples"`
	Tokens  float64  `json:"tokens"`
	P50NS   *float64 `json:"p50_ns"`
	P95NS   *float64 `json:"p95_ns"`
}

// BreakEvens are the smallest numbers of tokens that are loaded faster than they are computed: when
// loading takes its median, and when it takes its 95th percentile, under this load. Computing is
// the time of service, without a wait for the server. Null: too few loads to tell.
type BreakEvens struct {
	P50 *BreakEven `json:"p50"`
	P95 *BreakEven `json:"p95"`
}

// Words of BreakEven.Answer.
const (
	LoadAlways = "always" // whatever the length
	LoadNever  = "never"  // up to the longest prompt
	LoadFrom   = "from"   // from tokens on
	LoadUntil  = "until"  // from tokens on, and from until_tokens on not any more
)

// BreakEven is one of them. Tokens is 1 for always and null for never.
type BreakEven struct {
	Answer string `json:"answer"`
	Tokens *int64 `json:"tokens"`
	Until  *int64 `json:"until_tokens"`
	// the model's window, or what stands for it: lengths up to it were looked at
	Longest      int64 `json:"longest_tokens"`
	Extrapolated bool  `json:"extrapolated"` // the tokens lie outside of the lengths measured
}

// metrics adds what stands on the benchmark line.
func (f *FirstToken) metrics(add func(unit string, v *float64)) {
	if f == nil {
		return
	}
	add("ttft-mean-ns", f.TTFT.Mean)
	add("ttft-p50-ns", number(f.TTFT.P50))
	add("ttft-p95-ns", number(f.TTFT.P95))
	// A number on the line has no mark: one outside of the lengths measured is left out.
	if b := f.BreakEven.P50; b != nil && !b.Extrapolated {
		add("break-even-tokens", number(b.Tokens))
	}
}
