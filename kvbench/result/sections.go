package result

import (
	"fmt"
	"strconv"

	"kvbench/kvbench/units"
)

// Model is the model, and the size of its tokens in bytes.
type Model struct {
	Key               string `json:"key"`
	Name              string `json:"name"`
	BytesPerToken     int64  `json:"bytes_per_token"`      // sum over all ranks
	RankBytesPerToken int64  `json:"rank_bytes_per_token"` // of one rank
	TensorParallel    int    `json:"tensor_parallel"`
	// StoredAs is the data type of the KV cache if it differs from the type of the weights, and its
	// source.
	StoredAs string `json:"kv_stored_as,omitempty"`
	// StoringRanks is how many ranks' bytes are stored, if more than one. Entries and tiers then
	// have the bytes of all these ranks. RankObjects is into how many objects an engine's object is
	// split for the ranks.
	StoringRanks int `json:"storing_ranks,omitempty"`
	RankObjects  int `json:"rank_objects,omitempty"`
}

// Whose returns, as text, on which ranks a token takes RankBytesPerToken.
func (m *Model) Whose() string {
	if m.StoringRanks > 1 {
		return fmt.Sprintf("each of %d ranks, which all store", m.StoringRanks)
	}
	return "this rank"
}

// Workload describes the load.
type Workload struct {
	Users          int     `json:"users" merge:"sum"`
	Workers        int     `json:"workers" merge:"sum"` // with an autoscaler the largest number; of plain I/O the requests in flight
	Arrival        string  `json:"arrival" merge:"same"`
	Turns          string  `json:"turns" merge:"same"`
	GenerationMode string  `json:"generation_mode" merge:"same"`
	DecodeReads    string  `json:"decode_reads" merge:"same"`
	PrefillRate    float64 `json:"prefill_rate_tokens_per_s,omitempty" merge:"same"`

	Features   []string    `json:"features,omitempty" merge:"list"`  // in force
	GPUs       int         `json:"gpus,omitempty" merge:"same"`      // of the simulated server
	GPUBytes   int64       `json:"gpu_bytes,omitempty" merge:"same"` // of one GPU; 0: no gpu tier
	Population *Population `json:"population,omitempty"`             // absent: no requests, or unknown
}

// Population is what a load draws its requests from, as it is known before the run: the users, and the
// largest context and answer that each of them draws; or the requests of a data set or of the first
// generated sessions.
type Population struct {
	Classes       map[string]int64 `json:"users_by_class,omitempty" merge:"sum"`
	Conversations int64            `json:"conversations,omitempty" merge:"sum"` // absent: not recorded
	Contexts      int64            `json:"contexts" merge:"sum"`                // of users, or of requests
	Rows          int64            `json:"rows,omitempty" merge:"sum"`          // of the files; absent: unknown
	Partial       bool             `json:"partial,omitempty" merge:"max"`       // the start of a data set

	ContextTokens    int64    `json:"context_tokens" merge:"sum"` // of all contexts; of users the largest
	MinContextTokens int64    `json:"context_tokens_min" merge:"min"`
	MaxContextTokens int64    `json:"context_tokens_max" merge:"max"`
	MeanContext      *float64 `json:"context_tokens_mean" merge:"any" ratio:"ContextTokens/Contexts"`
	AnswerTokens     int64    `json:"answer_tokens" merge:"sum"` // generated tokens, of users the most
	MeanAnswer       *float64 `json:"answer_tokens_mean" merge:"any" ratio:"AnswerTokens/Contexts"`
}

// Add adds a context and its answer, in tokens.
func (p *Population) Add(context, answer int) {
	n := int64(context)
	if p.Contexts == 0 {
		p.MinContextTokens = n
	}
	p.Contexts++
	p.MinContextTokens, p.MaxContextTokens = min(p.MinContextTokens, n), max(p.MaxContextTokens, n)
	p.ContextTokens += n
	p.AnswerTokens += int64(answer)
}

// Stalls counts the requests and calls on the storage tier that took at least AfterNS, or had been
// running that long when the result was made. It covers the whole trial, preparation included.
// Concurrent stalls count separately.
type Stalls struct {
	AfterNS   int64   `json:"after_ns" merge:"max"`
	Count     int64   `json:"count" merge:"sum"`
	LongestNS int64   `json:"longest_ns" merge:"max"`
	Longest   []Stall `json:"longest" merge:"list"` // the 16 longest
}

// Stall is one such request or call.
type Stall struct {
	Operation string `json:"operation"` // read, write, create, remove, ...
	Path      string `json:"path"`
	Offset    int64  `json:"offset"` // of reads and writes, as is bytes
	Bytes     int64  `json:"bytes"`
	BegunNS   int64  `json:"begun_ns"` // since the trial began
	LengthNS  int64  `json:"length_ns"`
	Answered  bool   `json:"answered"` // false: length_ns is until the result was made
}

// Distribution has the numbers of a histogram. Percentile p is null with fewer than 10/(1−p)
// samples.
type Distribution struct {
	Unit       units.Unit `json:"unit"`
	Count      int64      `json:"count"`
	Mean       *float64   `json:"mean"`
	Min        *int64     `json:"min"`
	P5         *int64     `json:"p5"`
	P50        *int64     `json:"p50"`
	P95        *int64     `json:"p95"`
	P99        *int64     `json:"p99"`
	P999       *int64     `json:"p999"`
	P9999      *int64     `json:"p9999"`
	Max        *int64     `json:"max"`
	OutOfRange int64      `json:"out_of_range,omitempty"`
}

// ClassOutcome counts the offered requests of one class by outcome. Requests that waited or ran at the
// start of the window count as offered, too; carried_in is how many of these waited. Without a warm-up
// these are the requests that arrived at the start.
type ClassOutcome struct {
	Offered            int64    `json:"offered" merge:"sum"`
	OfferedBytes       int64    `json:"offered_bytes" merge:"sum"` // of entries to write
	CarriedIn          int64    `json:"carried_in" merge:"sum"`
	Started            int64    `json:"started" merge:"sum"`
	Completed          int64    `json:"completed" merge:"sum"`
	Failed             int64    `json:"failed" merge:"sum"` // at least one operation failed
	InFlight           int64    `json:"in_flight" merge:"sum"`
	Late               int64    `json:"in_flight_late,omitempty" merge:"sum"` // longer than the target
	Queued             int64    `json:"queued" merge:"sum"`
	OldestQueuedAgeS   *float64 `json:"oldest_queued_age_s" merge:"max"`
	OldestInFlightAgeS *float64 `json:"oldest_in_flight_age_s" merge:"max"`
	// completed ÷ (completed + failed + in flight + queued)
	ServedRatio *float64 `json:"served_ratio" merge:"-" ratio:"Completed/Completed+Failed+InFlight+Queued"`
	// (in flight + queued) ÷ the same sum
	CensoredRatio *float64 `json:"censored_ratio" merge:"-" ratio:"InFlight+Queued/Completed+Failed+InFlight+Queued"`
	// true above 5 %: the percentiles lack the slowest requests
	Censored bool `json:"censored" merge:"-"`
	// the target p95 of the class, and the share of its requests within the target; unfinished
	// requests that already miss the target count as misses
	TargetP95NS int64    `json:"target_p95_ns,omitempty" merge:"max"`
	Compliance  *float64 `json:"compliance" merge:"-"`
}

// Unmet returns how many requests unfinished at the end of the window miss the target of their
// class: those in flight for longer than the target, and all queued requests, as in the Python
// benchmark.
func (o ClassOutcome) Unmet() int64 { return o.Queued + o.Late }

// Classes are the keys of Result.Load except "total", the most urgent first.
var Classes = [...]string{"interactive", "responsive", "batch"}

// Lookups counts cache lookups: one per request and key. Re-reads are no lookups. A read of an
// entry that the request wrote itself is no lookup, because it cannot miss.
type Lookups struct {
	Hits   int64 `json:"hits" merge:"sum"` // including pending
	Misses int64 `json:"misses" merge:"sum"`
	// of turns that overtook the turn before: neither hit nor miss
	NotYetWritten int64                  `json:"not_yet_written" merge:"sum"`
	HitRate       *float64               `json:"hit_rate" merge:"-" ratio:"Hits/Hits+Misses"`
	ByKind        map[string]LookupCount `json:"by_kind"` // system, multi_turn, user, block, rag
}

// LookupKinds are the keys of Lookups.ByKind in the order of the reports.
var LookupKinds = [...]string{"system", "multi_turn", "user", "block", "rag"}

// LookupCount counts the lookups of one kind.
type LookupCount struct {
	Hits          int64    `json:"hits" merge:"sum"`
	Pending       int64    `json:"pending" merge:"sum"` // of the hits: waited for the writer
	Misses        int64    `json:"misses" merge:"sum"`
	Gone          int64    `json:"gone" merge:"sum"` // of the misses: gone between lookup and read
	NotYetWritten int64    `json:"not_yet_written" merge:"sum"`
	HitRate       *float64 `json:"hit_rate" merge:"-" ratio:"Hits/Hits+Misses"`
}

// Add adds the counts of x. It does not update HitRate.
func (c *LookupCount) Add(x LookupCount) {
	c.Hits += x.Hits
	c.Pending += x.Pending
	c.Misses += x.Misses
	c.Gone += x.Gone
	c.NotYetWritten += x.NotYetWritten
}

// Tier is a tier of the cache. Bytes include demotions.
type Tier struct {
	Level         string `json:"level" merge:"same"`
	Description   string `json:"description" merge:"same"`
	CapacityBytes *int64 `json:"capacity_bytes" merge:"sum"` // null = unlimited
	Entries       int64  `json:"entries" merge:"sum"`
	UsedBytes     int64  `json:"used_bytes" merge:"sum"`
	// At the end: the part of used_bytes that is being evicted, and the capacity reserved for
	// writes in flight. used − leaving + claimed ≤ capacity.
	LeavingBytes int64 `json:"leaving_bytes" merge:"sum"`
	ClaimedBytes int64 `json:"claimed_bytes" merge:"sum"`
	PeakBytes    int64 `json:"peak_bytes" merge:"sum"`
	// Space in the storage beyond the entries, including files that wait to be overwritten.
	WasteBytes int64 `json:"waste_bytes" merge:"sum"`
	// Workers waited for capacity of this tier until the readers and writers of entries to evict were
	// done. Summed over workers.
	RoomNS     int64       `json:"room_ns" merge:"sum"`
	Read       TierTraffic `json:"read"`
	Write      TierTraffic `json:"write"`
	FirstReads ReadCount   `json:"first_reads"` // first_reads + re_reads = read.entry_bytes
	ReReads    ReadCount   `json:"re_reads"`
	DemotedOut EntryCount  `json:"demoted_out"`
	DemotedIn  EntryCount  `json:"demoted_in"`
	Evicted    EntryCount  `json:"evicted"`
	Deleted    EntryCount  `json:"deleted"`
}

// Policy is the placement policy of the tiers, and what it moved in the window in addition to the
// reads and writes of requests.
type Policy struct {
	Tier        string `json:"tier_policy" merge:"same"` // values of -tier-policy, -promote, -evict
	Promote     string `json:"promote" merge:"same"`
	Evict       string `json:"evict" merge:"same"`
	AdmitAfter  int    `json:"admit_after" merge:"same"`
	BehindBytes int64  `json:"write_behind_bytes" merge:"same"`

	Copied     EntryCount `json:"copied"`                        // to the storage tier, from above
	Promoted   EntryCount `json:"promoted"`                      // from the storage tier, upward
	Dropped    EntryCount `json:"dropped"`                       // from one tier; still in another
	Refused    EntryCount `json:"refused"`                       // evicted above the storage tier without a copy
	Unwritten  EntryCount `json:"unwritten"`                     // copies: too many waited, or failed
	MostBehind int64      `json:"most_behind_bytes" merge:"max"` // maximum waiting or being written

	// DriveWritesPerDay is the number of times per day that the storage tier would be written at
	// the rate of this window: bytes written ÷ seconds of the window × 86,400 ÷ capacity. Null
	// without a capacity or a window. A benchmark without pauses writes more than a server.
	DriveWritesPerDay *float64 `json:"drive_writes_per_day" merge:"drop"`

	// Compared is null for the default policy, and without lookups.
	Compared *Comparison `json:"compared"`
}

// Comparison compares the hits of a policy with the hits of -tier-policy waterfall -evict lru, for
// the same lookups inside the window, in tiers of the same sizes. Lookups are of blocks or earlier
// entries.
type Comparison struct {
	Lookups       int64 `json:"lookups" merge:"sum"`
	Hits          int64 `json:"hits" merge:"sum"` // including entries still being written
	WaterfallHits int64 `json:"waterfall_lru_hits" merge:"sum"`
}

// Add adds counts.
func (c *Comparison) Add(x Comparison) {
	c.Lookups += x.Lookups
	c.Hits += x.Hits
	c.WaterfallHits += x.WaterfallHits
}

// Default reports whether p is the default policy.
func (p *Policy) Default() bool {
	return p.Tier == "waterfall" && p.Promote == "never" && p.Evict == "lru" && p.AdmitAfter == 0
}

// TierTraffic is one direction of a tier's traffic. Bytes count when a chunk completes, an
// operation when all of it completes. The counts agree to the byte:
//
//	Bytes = EntryBytes − EarlierBytes + DemotionBytes + CutBytes + LostBytes − MemoryBytes
type TierTraffic struct {
	Operations    int64 `json:"operations" merge:"sum"` // without demotions; a run of blocks is one
	Bytes         int64 `json:"bytes" merge:"sum"`
	EntryBytes    int64 `json:"entry_bytes" merge:"sum"`   // of whole entries, by operations
	EarlierBytes  int64 `json:"earlier_bytes" merge:"sum"` // of these, moved before the window
	DemotionBytes int64 `json:"demotion_bytes" merge:"sum"`
	CutBytes      int64 `json:"cut_bytes" merge:"sum"`  // of operations that the window's end cut off
	LostBytes     int64 `json:"lost_bytes" merge:"sum"` // of failed attempts
	// MemoryBytes are bytes of entries that stayed in, or came from, memory of the imitated engine:
	// with mooncake-bucket, objects stay in memory until their bucket is full. Absent if 0.
	MemoryBytes    int64    `json:"memory_bytes,omitempty" merge:"sum"`
	BytesPerSecond *float64 `json:"bytes_per_s" merge:"sum" rate:"Bytes"`
	Cancelled      int64    `json:"cancelled" merge:"sum"`
	DeviceNS       int64    `json:"device_ns" merge:"sum"` // sum over completed operations
	// Requests is the number of requests (chunks) that the tier completed, demotions included; 0
	// with buffered I/O. InFlightNS is the time in the window in which requests and flushes of
	// writes were at the device, summed over requests; of buffered writes only the flushes.
	// MeanInFlight is InFlightNS ÷ window. BytesPerSecond is Bytes ÷ window. Of checkpoints the window
	// has pauses: MeanInFlight is InFlightNS ÷ the time of the checkpoints, and BytesPerSecond is the
	// mean rate of the checkpoints by their rules, as on the benchmark line.
	Requests     int64    `json:"requests" merge:"sum"`
	InFlightNS   int64    `json:"in_flight_ns" merge:"sum"`
	MeanInFlight *float64 `json:"mean_in_flight" merge:"sum" ratio:"InFlightNS"`
	NSPerMiB     *float64 `json:"device_ns_per_mib" merge:"-"`
}

// EntryCount is a number of entries and their bytes.
type EntryCount struct {
	Entries int64 `json:"entries" merge:"sum"`
	Bytes   int64 `json:"bytes" merge:"sum"`
}

// ReadCount counts first reads of entries, or later reads.
type ReadCount struct {
	Operations int64 `json:"operations" merge:"sum"`
	Bytes      int64 `json:"bytes" merge:"sum"`
}

// Add adds counts.
func (c *ReadCount) Add(x ReadCount) {
	c.Operations += x.Operations
	c.Bytes += x.Bytes
}

// ReadKind counts first reads or later reads on all tiers.
type ReadKind struct {
	ReadCount
	Latency Distribution `json:"latency" merge:"-"`
}

// EntrySizes are the sizes of the entries that completed operations moved, without demotions.
// Blocks that one operation moves together (see BlockCache) count as one entry. Latencies are per
// entry, so they depend on these sizes.
type EntrySizes struct {
	Read  Distribution `json:"read"`
	Write Distribution `json:"write"`
}

// Latency has the latency distributions of the trial. Levels without a tier are absent.
type Latency struct {
	Levels         map[string]LevelLatency `json:"levels"`
	PrefixRead     Distribution            `json:"prefix_read"`
	Request        RequestLatency          `json:"request"`
	ReadAdmission  Distribution            `json:"read_admission"`
	WriteAdmission Distribution            `json:"write_admission"`
	SpaceWait      Distribution            `json:"space_wait"`   // of the operations that waited
	PendingWait    Distribution            `json:"pending_wait"` // of the operations that waited
	DataGeneration Distribution            `json:"data_generation"`
}

// LevelLatency has the latencies of one tier.
type LevelLatency struct {
	Read      OpLatency    `json:"read"`
	Write     OpLatency    `json:"write"`
	FirstRead Distribution `json:"first_read"`
	ReRead    Distribution `json:"re_read"`
	Delete    Distribution `json:"delete"`
}

// OpLatency has the latencies of one kind of operation on one tier. io = device + host. Demotions
// are only in demotion, and their writes also in device.
type OpLatency struct {
	IO       Distribution `json:"io"`
	Device   Distribution `json:"device"`
	Host     Distribution `json:"host"`
	Size     Distribution `json:"size"` // bytes of entries
	Demotion Distribution `json:"demotion"`
	// time of one request (chunk) at the device, demotions included; none for buffered writes
	Request   Distribution  `json:"request"`
	Per100MiB Distribution  `json:"per_100mib"`
	Rate      Distribution  `json:"rate"` // bytes/s of one entry
	BySize    []SizeLatency `json:"by_size"`
}

// SizeLatency is the io latency of entries in one size class: FromBytes ≤ size < ToBytes.
type SizeLatency struct {
	FromBytes int64        `json:"from_bytes"`
	ToBytes   *int64       `json:"to_bytes"` // null = no bound
	IO        Distribution `json:"io"`
}

// RequestLatency has the latencies of completed requests and of their parts; see RequestTime. A
// request without a part counts as 0.
type RequestLatency struct {
	EndToEnd   Distribution            `json:"end_to_end"` // from the intended arrival
	Queue      Distribution            `json:"queue"`
	Storage    Distribution            `json:"storage"` // all I/O
	Context    Distribution            `json:"context"`
	Prefill    Distribution            `json:"prefill"`
	Decode     Distribution            `json:"decode"`
	Wait       Distribution            `json:"wait"` // for capacity, limits and other writes
	Generation Distribution            `json:"generation"`
	Rest       Distribution            `json:"rest"`
	ByClass    map[string]Distribution `json:"end_to_end_by_class"`
}

// ContextLoad is the time to load the KV cache of a context from the slowest tier: TypicalNS at the
// median read rate of entries, SlowNS at the 5th percentile.
type ContextLoad struct {
	Tokens      int64  `json:"tokens" merge:"same"`
	Bytes       int64  `json:"bytes" merge:"same"`
	TypicalNS   *int64 `json:"typical_ns" merge:"-"`
	SlowNS      *int64 `json:"slow_ns" merge:"-"`
	RecomputeNS *int64 `json:"recompute_ns" merge:"same"` // at the prefill rate
	LoadingWins *bool  `json:"loading_wins" merge:"-"`    // typical_ns < recompute_ns
}

// ErrorCount is the number of failures of one kind.
type ErrorCount struct {
	Tier      string `json:"tier" merge:"same"`
	Operation string `json:"operation" merge:"same"`
	Errno     string `json:"errno" merge:"same"`
	Count     int64  `json:"count" merge:"sum"`
}

func (e ErrorCount) String() string {
	return fmt.Sprintf("%s %s: %s", e.Tier, e.Operation, e.Errno)
}

// ErrorSample is one of the first ten failures, or the fatal failure.
type ErrorSample struct {
	Tier      string `json:"tier"`
	Operation string `json:"operation"`
	Errno     string `json:"errno"`
	Key       string `json:"key"`
	Offset    *int64 `json:"offset"` // null if the failure has none
	Message   string `json:"message"`
	Fatal     bool   `json:"fatal,omitempty"`
}

// Where returns the key of the failure, with its offset if known.
func (e ErrorSample) Where() string {
	if e.Offset == nil {
		return e.Key
	}
	return fmt.Sprintf("%s at offset %d", e.Key, *e.Offset)
}

// DeviceCounters has the kernel's counters of the backing device in the window, and the
// application's bytes on the storage tier for comparison.
type DeviceCounters struct {
	Device     string `json:"device" merge:"same"`
	Reason     string `json:"reason" merge:"same"` // why counters are null or not comparable
	ReadBytes  *int64 `json:"read_bytes" merge:"sum"`
	WriteBytes *int64 `json:"write_bytes" merge:"sum"`
	ReadIOs    *int64 `json:"read_ios" merge:"sum"`
	WriteIOs   *int64 `json:"write_ios" merge:"sum"`
	// Discards and flushes of all processes. Times are summed over requests, which may overlap.
	// They are also 0 on kernels that do not count discards (before 4.18) or flushes (before 5.5).
	DiscardIOs      *int64   `json:"discard_ios" merge:"sum"`
	DiscardBytes    *int64   `json:"discard_bytes" merge:"sum"`
	DiscardNS       *int64   `json:"discard_ns" merge:"sum"`
	FlushIOs        *int64   `json:"flush_ios" merge:"sum"`
	FlushNS         *int64   `json:"flush_ns" merge:"sum"`
	QueueNS         *int64   `json:"queue_ns" merge:"sum"` // time in queue, summed over requests
	AppReadBytes    int64    `json:"app_read_bytes" merge:"sum"`
	AppWriteBytes   int64    `json:"app_write_bytes" merge:"sum"`
	ReadRatio       *float64 `json:"read_ratio" merge:"-" line:"device-read-ratio"` // device ÷ application
	WriteRatio      *float64 `json:"write_ratio" merge:"-"`                         //
	ServedFromCache *bool    `json:"served_from_cache" merge:"max"`
	BusyShare       *float64 `json:"busy_share" merge:"drop"` // share of time with requests in flight
}

// servedFromCacheBelow is the read ratio below which a cache served some reads.
const servedFromCacheBelow = 0.95

// Parameter is the effective value of a parameter, and its origin.
type Parameter struct {
	Name   string `json:"name"`
	Value  any    `json:"value"` // string, number or bool
	Origin string `json:"origin"`
}

// Difference is a parameter whose value differs from the value in the closed division.
type Difference struct {
	Name   string `json:"name"`
	Closed any    `json:"closed"`
	Value  any    `json:"value"`
}

// Ceiling is the rate of plain sequential I/O in the same directory: reads only, writes only (0:
// not measured), and all measured mixes, sorted by share of reads.
type Ceiling struct {
	Read   float64        `json:"read_bytes_per_s"`
	Write  float64        `json:"write_bytes_per_s"`
	Points []CeilingPoint `json:"points"`
}

// CeilingPoint is a measurement of plain I/O with one mix of reads and writes.
type CeilingPoint struct {
	ReadShare float64 `json:"read_share"` // of the bytes, as measured
	Rate      float64 `json:"bytes_per_s"`
	InFlight  int     `json:"in_flight"`
	FileBytes int64   `json:"file_bytes"`
	// the queue-depth sweep that chose in_flight; null: the user chose it
	Sweep []SweepStep `json:"sweep"`
}

// PlainIO is the section of a benchmark without requests.
type PlainIO struct {
	FootprintBytes int64       `json:"footprint_bytes" merge:"sum"` // maximum
	FileBytes      int64       `json:"file_bytes" merge:"same"`
	Sweep          []SweepStep `json:"sweep" merge:"drop"` // see CeilingPoint
	// SweepDoubt is why the sweep cannot have found the number in flight; absent: there is no doubt.
	SweepDoubt string `json:"sweep_doubt,omitempty" merge:"same"`

	// BlockBytes is the size of random requests inside the files; 0: files are read and written
	// sequentially. RequestsPerSecond and CPUNSPerRequest are set for random requests.
	BlockBytes        int64    `json:"block_bytes,omitempty" merge:"same"`
	RequestsPerSecond *float64 `json:"requests_per_s,omitempty" merge:"sum" line:"io/s"`
	CPUNSPerRequest   *float64 `json:"cpu_ns_per_request,omitempty" merge:"-" line:"cpu-ns/io"`
	// Knee is how size and number of these requests were chosen; null: the user chose them.
	Knee *Knee `json:"knee,omitempty" merge:"drop"`
}

// InFlight returns the text of a number of requests in flight that a run fixes; 0: a sweep chooses it.
func InFlight(n int) string {
	if n == 0 {
		return "by a sweep"
	}
	return strconv.Itoa(n)
}

// Removal is the removal of files. Rates are over quiet_ns.
type Removal struct {
	Files          int64    `json:"files" merge:"sum"`
	Bytes          int64    `json:"bytes" merge:"sum"`
	UnlinkNS       int64    `json:"unlink_ns" merge:"max"` // until the last file was removed
	QuietNS        int64    `json:"quiet_ns" merge:"max"`  // until also discarded, from the begin
	FilesPerSecond *float64 `json:"files_per_s" merge:"sum" line:"removals/s"`
	BytesPerSecond *float64 `json:"bytes_per_s" merge:"sum" line:"freed-B/s"`
}

// SweepStep is one step of a queue-depth sweep: plain I/O with a number of requests in flight.
type SweepStep struct {
	InFlight int     `json:"in_flight"`
	Read     float64 `json:"read_bytes_per_s"`
	Write    float64 `json:"write_bytes_per_s"`
	NS       int64   `json:"ns"` // duration of the step
}

// Rate returns the sum of the read and write rates, in bytes/s.
func (s SweepStep) Rate() float64 { return s.Read + s.Write }

// Brief reports whether fewer than four requests per request in flight completed in the step.
// request is the size of a request in bytes. The rate of such a step is not steady: a device
// completes concurrent requests together, so a mean needs several of these periods.
func (s SweepStep) Brief(request int64) bool {
	return s.Rate()*float64(s.NS)/1e9 < 4*float64(s.InFlight)*float64(request)
}

// Precondition describes the writes of preconditioning before the window.
type Precondition struct {
	Bytes      int64     `json:"bytes" merge:"sum"`
	DurationNS int64     `json:"duration_ns" merge:"max"`
	Writers    int       `json:"writers" merge:"sum"`
	LastRates  []float64 `json:"last_rates_bytes_per_s" merge:"drop"` // of the last rounds
	Spread     float64   `json:"spread" merge:"drop"`                 // (max − min) ÷ mean of these
}

// TraceFiles identifies the replayed trace files by content, independent of their path. Files with
// equal hashes are equal in size and in the hashed bytes.
type TraceFiles struct {
	Files       int    `json:"files"`
	Bytes       int64  `json:"bytes"`
	HashedBytes int64  `json:"hashed_bytes"` // from the start of the first file
	SHA256      string `json:"sha256"`       // of all files' sizes and the hashed bytes
}

// String returns the text for reports.
func (f TraceFiles) String() string {
	return fmt.Sprintf("sha256 %.12s (%d B in %d)", f.SHA256, f.Bytes, f.Files)
}

// Input counts the rows that the trace reader read.
type Input struct {
	Rows      int64 `json:"rows" merge:"sum"`
	Failed    int64 `json:"failed" merge:"sum"`
	Malformed int64 `json:"malformed" merge:"sum"`
	Skipped   int64 `json:"skipped,omitempty" merge:"sum"` // before -trace-start
	// earlier than a row before them, with which they came
	Unordered   int64    `json:"unordered,omitempty" merge:"sum"`
	Interpreted int64    `json:"interpreted,omitempty" merge:"sum"` // guessed or left out in part, of all rows read ahead
	Notes       []string `json:"notes,omitempty" merge:"list"`      // what was guessed or left out
	// of the whole input, if the window ended before the end of the input; absent if unknown
	TotalRows *int64 `json:"total_rows,omitempty" merge:"sum"`
	Cycles    int64  `json:"cycles" merge:"min"`
	// sessions of agents that began, and the maximum that were live at a time; absent without
	// agents
	Sessions     int64 `json:"sessions,omitempty" merge:"sum"`
	LiveSessions int64 `json:"live_sessions,omitempty" merge:"sum"`

	Problems  []string `json:"problems" merge:"list"`            // the first few, with file and line
	Tokenizer string   `json:"tokenizer,omitempty" merge:"same"` // counts the tokens of texts
}

// censoredAbove is the share of unfinished requests above which Censored is true.
const censoredAbove = 0.05
