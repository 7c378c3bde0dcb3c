package result

import (
	"fmt"

	"kvbench/kvbench/units"
)

// Model is the model and how many bytes its tokens take.
type Model struct {
	Key               string `json:"key"`
	Name              string `json:"name"`
	BytesPerToken     int64  `json:"bytes_per_token"`      // all ranks together
	RankBytesPerToken int64  `json:"rank_bytes_per_token"` // of one rank
	TensorParallel    int    `json:"tensor_parallel"`
	// StoredAs is the type of cached numbers where it differs from the weights, and the source of
	// that.
	StoredAs string `json:"kv_stored_as,omitempty"`
	// StoringRanks is whose bytes are stored, where it is more than one rank's: entries and tiers
	// are of all of them then. RankObjects is into how many objects an engine's is cut for them.
	StoringRanks int `json:"storing_ranks,omitempty"`
	RankObjects  int `json:"rank_objects,omitempty"`
}

// Whose says on which ranks a token takes RankBytesPerToken.
func (m *Model) Whose() string {
	if m.StoringRanks > 1 {
		return fmt.Sprintf("each of %d ranks, which all store", m.StoringRanks)
	}
	return "this rank"
}

// Workload is how the load was made.
type Workload struct {
	Users          int     `json:"users" merge:"sum"`
	Workers        int     `json:"workers" merge:"sum"`
	Arrival        string  `json:"arrival" merge:"same"`
	Turns          string  `json:"turns" merge:"same"`
	GenerationMode string  `json:"generation_mode" merge:"same"`
	DecodeReads    string  `json:"decode_reads" merge:"same"`
	PrefillRate    float64 `json:"prefill_rate_tokens_per_s,omitempty" merge:"same"`
}

// Stalls are the requests and calls of the whole trial, preparation included, that the storage tier
// took After and longer to complete, or had not completed when the result was made. Parallel ones
// count one by one.
type Stalls struct {
	AfterNS   int64   `json:"after_ns" merge:"max"`
	Count     int64   `json:"count" merge:"sum"`
	LongestNS int64   `json:"longest_ns" merge:"max"`
	Longest   []Stall `json:"longest" merge:"list"` // the longest ones, 16 at most
}

// Stall is one of them.
type Stall struct {
	Operation string `json:"operation"` // read, write, create, remove, ...
	Path      string `json:"path"`
	Offset    int64  `json:"offset"` // of reads and writes, as Bytes
	Bytes     int64  `json:"bytes"`
	BegunNS   int64  `json:"begun_ns"` // since the trial began
	LengthNS  int64  `json:"length_ns"`
	Answered  bool   `json:"answered"` // false: the length is that until the result was made
}

// Distribution is a histogram in numbers. A percentile with too few samples behind it is null: p
// needs 10/(1−p).
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

// ClassOutcome is what was offered by one class and what became of it. With a warm-up, what the
// window found waiting or running counts as offered too (carried_in is how much of it was
// waiting).
type ClassOutcome struct {
	Offered            int64    `json:"offered" merge:"sum"`
	OfferedBytes       int64    `json:"offered_bytes" merge:"sum"` // of entries to be written
	CarriedIn          int64    `json:"carried_in" merge:"sum"`
	Started            int64    `json:"started" merge:"sum"`
	Completed          int64    `json:"completed" merge:"sum"`
	Failed             int64    `json:"failed" merge:"sum"` // at least one operation failed
	InFlight           int64    `json:"in_flight" merge:"sum"`
	Late               int64    `json:"in_flight_late,omitempty" merge:"sum"` // past their target
	Queued             int64    `json:"queued" merge:"sum"`
	OldestQueuedAgeS   *float64 `json:"oldest_queued_age_s" merge:"max"`
	OldestInFlightAgeS *float64 `json:"oldest_in_flight_age_s" merge:"max"`
	// completed ÷ (completed + failed + in flight + queued)
	ServedRatio   *float64 `json:"served_ratio" merge:"-"`
	CensoredRatio *float64 `json:"censored_ratio" merge:"-"` // in flight + queued, ÷ the same
	// more than 5 %: the slowest requests are not in the percentiles
	Censored bool `json:"censored" merge:"-"`
	// the p95 that the class is to keep, and the share of its requests within it, those that have
	// not ended and miss it already among the others
	TargetP95NS int64    `json:"target_p95_ns,omitempty" merge:"max"`
	Compliance  *float64 `json:"compliance" merge:"-"`
}

// Unmet counts the requests that have not ended at the window's end and miss their class's target
// all the same: those that were in flight for longer, and, as the Python benchmark counts, all that
// were still queued.
func (o ClassOutcome) Unmet() int64 { return o.Queued + o.Late }

// Classes are the keys of Result.Load but "total", the most urgent first.
var Classes = [...]string{"interactive", "responsive", "batch"}

// Lookups are decisions about keys: one per request and key. Re-reads are not among them, nor the
// read of an entry that the request wrote itself, which cannot miss.
type Lookups struct {
	Hits   int64 `json:"hits" merge:"sum"` // pending among them
	Misses int64 `json:"misses" merge:"sum"`
	// of turns overtaken: neither hit nor miss
	NotYetWritten int64                  `json:"not_yet_written" merge:"sum"`
	HitRate       *float64               `json:"hit_rate" merge:"-"`
	ByKind        map[string]LookupCount `json:"by_kind"` // system, multi_turn, user, block, rag
}

// LookupKinds are the keys of Lookups.ByKind in the order of the reports.
var LookupKinds = [...]string{"system", "multi_turn", "user", "block", "rag"}

// LookupCount is one kind of them.
type LookupCount struct {
	Hits          int64    `json:"hits" merge:"sum"`
	Pending       int64    `json:"pending" merge:"sum"` // of the hits: waited for the writer
	Misses        int64    `json:"misses" merge:"sum"`
	Gone          int64    `json:"gone" merge:"sum"` // of the misses: was there when decided, not when read
	NotYetWritten int64    `json:"not_yet_written" merge:"sum"`
	HitRate       *float64 `json:"hit_rate" merge:"-"`
}

// Add adds counts; the rate has to follow.
func (c *LookupCount) Add(x LookupCount) {
	c.Hits += x.Hits
	c.Pending += x.Pending
	c.Misses += x.Misses
	c.Gone += x.Gone
	c.NotYetWritten += x.NotYetWritten
}

// Tier is one existing tier. Bytes include demotions, which are also given separately.
type Tier struct {
	Level         string `json:"level" merge:"same"`
	Description   string `json:"description" merge:"same"`
	CapacityBytes *int64 `json:"capacity_bytes" merge:"sum"` // null = unlimited
	Entries       int64  `json:"entries" merge:"sum"`
	UsedBytes     int64  `json:"used_bytes" merge:"sum"`
	// At the end: the part of used that is being evicted, and the capacity reserved by writes in
	// flight, for which it is. used − leaving + claimed ≤ capacity.
	LeavingBytes int64 `json:"leaving_bytes" merge:"sum"`
	ClaimedBytes int64 `json:"claimed_bytes" merge:"sum"`
	PeakBytes    int64 `json:"peak_bytes" merge:"sum"`
	// What places take beyond their entries; files that wait to be overwritten, too.
	WasteBytes int64       `json:"waste_bytes" merge:"sum"`
	Read       TierTraffic `json:"read"`
	Write      TierTraffic `json:"write"`
	FirstReads ReadCount   `json:"first_reads"` // with re_reads all of read.entry_bytes
	ReReads    ReadCount   `json:"re_reads"`
	DemotedOut EntryCount  `json:"demoted_out"`
	DemotedIn  EntryCount  `json:"demoted_in"`
	Evicted    EntryCount  `json:"evicted"`
	Deleted    EntryCount  `json:"deleted"`
}

// Policy is which entries lived where, and what that moved in the window in addition to the
// requests' own reads and writes.
type Policy struct {
	Tier        string `json:"tier_policy" merge:"same"` // the words of -tier-policy, -promote and -evict
	Promote     string `json:"promote" merge:"same"`
	Evict       string `json:"evict" merge:"same"`
	AdmitAfter  int    `json:"admit_after" merge:"same"`
	BehindBytes int64  `json:"write_behind_bytes" merge:"same"`

	Copied     EntryCount `json:"copied"`                        // to the storage tier, from above
	Promoted   EntryCount `json:"promoted"`                      // from the storage tier, upward
	Dropped    EntryCount `json:"dropped"`                       // from one tier; they lived on in another
	Refused    EntryCount `json:"refused"`                       // evicted above the storage tier without a copy
	Unwritten  EntryCount `json:"unwritten"`                     // copies: too many waited, or they failed
	MostBehind int64      `json:"most_behind_bytes" merge:"max"` // that waited or were being written at a time

	// DriveWritesPerDay is what the storage tier would write in a day at the rate of this window,
	// as a multiple of its capacity: bytes written to it ÷ seconds of the window × 86,400 ÷
	// capacity. Null without a capacity or a window. A load without pauses writes more than any
	// server.
	DriveWritesPerDay *float64 `json:"drive_writes_per_day" merge:"drop"`

	// Compared is null where it is the usual policy, with which others are compared, or where
	// nothing was looked for.
	Compared *Comparison `json:"compared"`
}

// Comparison is what a policy costs in hits: what requests needed inside the window, blocks or
// earlier entries, what of it was there when they came, and what -tier-policy waterfall -evict lru
// would have had of the same, in tiers of the same sizes.
type Comparison struct {
	Lookups       int64 `json:"lookups" merge:"sum"`
	Hits          int64 `json:"hits" merge:"sum"` // what was still being written among them
	WaterfallHits int64 `json:"waterfall_lru_hits" merge:"sum"`
}

// Add adds counts.
func (c *Comparison) Add(x Comparison) {
	c.Lookups += x.Lookups
	c.Hits += x.Hits
	c.WaterfallHits += x.WaterfallHits
}

// Default reports whether it is the default policy.
func (p *Policy) Default() bool {
	return p.Tier == "waterfall" && p.Promote == "never" && p.Evict == "lru" && p.AdmitAfter == 0
}

// TierTraffic is one direction of a tier. Bytes count as chunks complete, operations as a whole.
// Where they were counted separately, they are the same to the byte:
//
//	Bytes = EntryBytes − EarlierBytes + DemotionBytes + CutBytes + LostBytes − MemoryBytes
type TierTraffic struct {
	Operations    int64 `json:"operations" merge:"sum"` // demotions not among them; a run of blocks is one
	Bytes         int64 `json:"bytes" merge:"sum"`
	EntryBytes    int64 `json:"entry_bytes" merge:"sum"`   // of the operations, whole entries
	EarlierBytes  int64 `json:"earlier_bytes" merge:"sum"` // of these before the window, in a warm-up
	DemotionBytes int64 `json:"demotion_bytes" merge:"sum"`
	CutBytes      int64 `json:"cut_bytes" merge:"sum"`  // of operations that did not end in the window
	LostBytes     int64 `json:"lost_bytes" merge:"sum"` // of attempts that failed, repeated or not
	// MemoryBytes stayed in, or came from, memory of the engine whose layout it is: mooncake-bucket
	// writes whole buckets. Absent where there is none.
	MemoryBytes    int64    `json:"memory_bytes,omitempty" merge:"sum"`
	BytesPerSecond *float64 `json:"bytes_per_s" merge:"sum"`
	Cancelled      int64    `json:"cancelled" merge:"sum"`
	DeviceNS       int64    `json:"device_ns" merge:"sum"` // summed over completed operations
	// Requests are those that the tier completed, a chunk each, demotions among them; none where
	// bytes go by way of the page cache. InFlightNS is how long of the window they and the flushes
	// of writes were at the device, summed over all: a multiple of the window where many are in
	// flight, see MeanInFlight.
	Requests     int64    `json:"requests" merge:"sum"`
	InFlightNS   int64    `json:"in_flight_ns" merge:"sum"`
	MeanInFlight *float64 `json:"mean_in_flight" merge:"sum"`
	NSPerMiB     *float64 `json:"device_ns_per_mib" merge:"-"`
}

// EntryCount is a number of entries and their bytes.
type EntryCount struct {
	Entries int64 `json:"entries" merge:"sum"`
	Bytes   int64 `json:"bytes" merge:"sum"`
}

// ReadCount counts the first reads of entries, or the ones after.
type ReadCount struct {
	Operations int64 `json:"operations" merge:"sum"`
	Bytes      int64 `json:"bytes" merge:"sum"`
}

// Add adds counts.
func (c *ReadCount) Add(x ReadCount) {
	c.Operations += x.Operations
	c.Bytes += x.Bytes
}

// ReadKind is those of all tiers.
type ReadKind struct {
	ReadCount
	Latency Distribution `json:"latency" merge:"-"`
}

// EntrySizes are the sizes of the entries moved by completed operations, demotions not among them;
// blocks that one request moves together (see BlockCache) are one. Latencies are per entry and mean
// nothing without them.
type EntrySizes struct {
	Read  Distribution `json:"read"`
	Write Distribution `json:"write"`
}

// Latency has every distribution of the trial. Levels that do not exist are absent.
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

// LevelLatency is one tier.
type LevelLatency struct {
	Read      OpLatency    `json:"read"`
	Write     OpLatency    `json:"write"`
	FirstRead Distribution `json:"first_read"`
	ReRead    Distribution `json:"re_read"`
	Delete    Distribution `json:"delete"`
}

// OpLatency is one operation on one tier; io = device + host, demotions only in demotion and
// (writes) in device.
type OpLatency struct {
	IO       Distribution `json:"io"`
	Device   Distribution `json:"device"`
	Host     Distribution `json:"host"`
	Size     Distribution `json:"size"` // bytes of entries
	Demotion Distribution `json:"demotion"`
	// of one request to the tier, a chunk, while the device has it; demotions included, none where
	// writes go to the page cache
	Request   Distribution  `json:"request"`
	Per100MiB Distribution  `json:"per_100mib"`
	Rate      Distribution  `json:"rate"` // effective bytes per second of one entry
	BySize    []SizeLatency `json:"by_size"`
}

// SizeLatency is the io latency of entries of at least FromBytes and less than ToBytes.
type SizeLatency struct {
	FromBytes int64        `json:"from_bytes"`
	ToBytes   *int64       `json:"to_bytes"` // null = no bound
	IO        Distribution `json:"io"`
}

// RequestLatency is per request, of all completed ones: 0 where one had nothing of a kind. The
// parts are those of RequestTime.
type RequestLatency struct {
	EndToEnd   Distribution            `json:"end_to_end"` // from the intended arrival
	Queue      Distribution            `json:"queue"`
	Storage    Distribution            `json:"storage"` // all I/O
	Context    Distribution            `json:"context"`
	Prefill    Distribution            `json:"prefill"`
	Decode     Distribution            `json:"decode"`
	Wait       Distribution            `json:"wait"` // for capacity, the write limit, buffers, others
	Generation Distribution            `json:"generation"`
	Rest       Distribution            `json:"rest"`
	ByClass    map[string]Distribution `json:"end_to_end_by_class"`
}

// ContextLoad is the time to load the KV of a context from the slowest tier, at the median entry's
// bandwidth and at that of the slowest twentieth.
type ContextLoad struct {
	Tokens      int64  `json:"tokens" merge:"same"`
	Bytes       int64  `json:"bytes" merge:"same"`
	TypicalNS   *int64 `json:"typical_ns" merge:"-"`
	SlowNS      *int64 `json:"slow_ns" merge:"-"`
	RecomputeNS *int64 `json:"recompute_ns" merge:"same"` // at the given prefill rate
	LoadingWins *bool  `json:"loading_wins" merge:"-"`    // typically
}

// ErrorCount is a kind of failure.
type ErrorCount struct {
	Tier      string `json:"tier" merge:"same"`
	Operation string `json:"operation" merge:"same"`
	Errno     string `json:"errno" merge:"same"`
	Count     int64  `json:"count" merge:"sum"`
}

func (e ErrorCount) String() string {
	return fmt.Sprintf("%s %s: %s", e.Tier, e.Operation, e.Errno)
}

// ErrorSample is one of the first ten failures.
type ErrorSample struct {
	Tier      string `json:"tier"`
	Operation string `json:"operation"`
	Errno     string `json:"errno"`
	Key       string `json:"key"`
	Offset    *int64 `json:"offset"` // null where the failure has none
	Message   string `json:"message"`
	Fatal     bool   `json:"fatal,omitempty"`
}

// Where names the place of the failure.
func (e ErrorSample) Where() string {
	if e.Offset == nil {
		return e.Key
	}
	return fmt.Sprintf("%s at offset %d", e.Key, *e.Offset)
}

// DeviceCounters cross-checks the kernel's counters of the backing device with the application's bytes of
// the storage tier.
type DeviceCounters struct {
	Device     string `json:"device" merge:"same"`
	Reason     string `json:"reason" merge:"same"` // why there are no counters, or what is odd about them
	ReadBytes  *int64 `json:"read_bytes" merge:"sum"`
	WriteBytes *int64 `json:"write_bytes" merge:"sum"`
	ReadIOs    *int64 `json:"read_ios" merge:"sum"`
	WriteIOs   *int64 `json:"write_ios" merge:"sum"`
	// What deletions and flushes of all processes cost the device. Times are summed over
	// requests, which overlap; 0 also where the kernel does not count them (before 4.18, 5.5).
	DiscardIOs      *int64   `json:"discard_ios" merge:"sum"`
	DiscardBytes    *int64   `json:"discard_bytes" merge:"sum"`
	DiscardNS       *int64   `json:"discard_ns" merge:"sum"`
	FlushIOs        *int64   `json:"flush_ios" merge:"sum"`
	FlushNS         *int64   `json:"flush_ns" merge:"sum"`
	QueueNS         *int64   `json:"queue_ns" merge:"sum"` // time in queue of all requests together
	AppReadBytes    int64    `json:"app_read_bytes" merge:"sum"`
	AppWriteBytes   int64    `json:"app_write_bytes" merge:"sum"`
	ReadRatio       *float64 `json:"read_ratio" merge:"-" line:"device-read-ratio"` // device ÷ application
	WriteRatio      *float64 `json:"write_ratio" merge:"-"`                         //
	ServedFromCache *bool    `json:"served_from_cache" merge:"max"`
	BusyShare       *float64 `json:"busy_share" merge:"drop"` // of the window with a request in flight
}

// servedFromCacheBelow is the share of the application's reads that the device must have seen.
const servedFromCacheBelow = 0.95

// Parameter is one value in force and where it came from.
type Parameter struct {
	Name   string `json:"name"`
	Value  any    `json:"value"` // string, number or bool
	Origin string `json:"origin"`
}

// Difference is one parameter that keeps a run from being comparable with the closed division.
type Difference struct {
	Name   string `json:"name"`
	Closed any    `json:"closed"`
	Value  any    `json:"value"`
}

// Ceiling is what plain sequential I/O reached on the same directory: reads alone, writes alone
// (0: not measured), and every mix that was measured, in the order of its share of reads.
type Ceiling struct {
	Read   float64        `json:"read_bytes_per_s"`
	Write  float64        `json:"write_bytes_per_s"`
	Points []CeilingPoint `json:"points"`
}

// CeilingPoint is a window of plain I/O with one mix of reads and writes.
type CeilingPoint struct {
	ReadShare float64 `json:"read_share"` // of the bytes, as measured
	Rate      float64 `json:"bytes_per_s"`
	InFlight  int     `json:"in_flight"`
	FileBytes int64   `json:"file_bytes"`
	// the queue-depth sweep that found the number in flight; null: it was given
	Sweep []SweepStep `json:"sweep"`
}

// PlainIO is what a benchmark without requests did with its tier.
type PlainIO struct {
	FootprintBytes int64       `json:"footprint_bytes" merge:"sum"` // that it may take
	FileBytes      int64       `json:"file_bytes" merge:"same"`
	Sweep          []SweepStep `json:"sweep" merge:"drop"` // see CeilingPoint

	// BlockBytes is how large the requests are that go to any place inside the files; 0: files are
	// read and written from their start to their end. Then there are as many requests per second,
	// and the process has used so much of its processors for each.
	BlockBytes        int64    `json:"block_bytes,omitempty" merge:"same"`
	RequestsPerSecond *float64 `json:"requests_per_s,omitempty" merge:"sum" line:"io/s"`
	CPUNSPerRequest   *float64 `json:"cpu_ns_per_request,omitempty" merge:"-" line:"cpu-ns/io"`
	// Knee says how size and number of these requests were found; nil: they were given.
	Knee *Knee `json:"knee,omitempty" merge:"drop"`
}

// Removal is files removed until the device has discarded them: rates are over all of that time.
type Removal struct {
	Files          int64    `json:"files" merge:"sum"`
	Bytes          int64    `json:"bytes" merge:"sum"`
	UnlinkNS       int64    `json:"unlink_ns" merge:"max"` // until the last file was gone
	QuietNS        int64    `json:"quiet_ns" merge:"max"`  // and until the device had discarded them, too
	FilesPerSecond *float64 `json:"files_per_s" merge:"sum" line:"removals/s"`
	BytesPerSecond *float64 `json:"bytes_per_s" merge:"sum" line:"freed-B/s"`
}

// SweepStep is plain I/O with a number of requests in flight: one step of a queue-depth sweep.
type SweepStep struct {
	InFlight int     `json:"in_flight"`
	Read     float64 `json:"read_bytes_per_s"`
	Write    float64 `json:"write_bytes_per_s"`
	NS       int64   `json:"ns"` // how long it took
}

// Rate is what the step moved in both directions together.
func (s SweepStep) Rate() float64 { return s.Read + s.Write }

// Brief reports, of a step with requests of so many bytes, that fewer than four for each place in
// flight ended. Its rate is then that of its beginning: requests that a device completes
// concurrently end together, and a mean over time needs some of their periods.
func (s SweepStep) Brief(request int64) bool {
	return s.Rate()*float64(s.NS)/1e9 < 4*float64(s.InFlight)*float64(request)
}

// Precondition is what preconditioning wrote before the window.
type Precondition struct {
	Bytes      int64     `json:"bytes" merge:"sum"`
	DurationNS int64     `json:"duration_ns" merge:"max"`
	Writers    int       `json:"writers" merge:"sum"`
	LastRates  []float64 `json:"last_rates_bytes_per_s" merge:"drop"` // of its last rounds
	Spread     float64   `json:"spread" merge:"drop"`                 // (max − min) ÷ mean of those
}

// TraceFiles says which recording was played: where it lies is a place and says nothing of it.
// Equal hashes are equal recordings, as far as they were hashed.
type TraceFiles struct {
	Files       int    `json:"files"`
	Bytes       int64  `json:"bytes"`
	HashedBytes int64  `json:"hashed_bytes"` // from the beginning of the first file on
	SHA256      string `json:"sha256"`       // of all files' sizes and the hashed bytes
}

// String is how reports tell it.
func (f TraceFiles) String() string {
	return fmt.Sprintf("sha256 %.12s (%d B in %d)", f.SHA256, f.Bytes, f.Files)
}

// Input is what a trace reader met.
type Input struct {
	Rows      int64 `json:"rows" merge:"sum"`
	Failed    int64 `json:"failed" merge:"sum"`
	Malformed int64 `json:"malformed" merge:"sum"`
	Skipped   int64 `json:"skipped,omitempty" merge:"sum"` // before the start of the replay (-trace-start)
	// of the whole input, where the window has ended before it; absent where it is unknown
	TotalRows *int64 `json:"total_rows,omitempty" merge:"sum"`
	Cycles    int64  `json:"cycles" merge:"min"`
	// of agents, that began, and the most that were live at a time; absent where there are none
	Sessions     int64 `json:"sessions,omitempty" merge:"sum"`
	LiveSessions int64 `json:"live_sessions,omitempty" merge:"sum"`

	Problems  []string `json:"problems" merge:"list"`            // the first few, with file and line
	Tokenizer string   `json:"tokenizer,omitempty" merge:"same"` // what counted the tokens of texts
}

// censoredAbove is the share of unfinished requests from which percentiles of the finished ones say
// so.
const censoredAbove = 0.05

// Add makes o the outcome of both; Derive has to follow.
func (o *ClassOutcome) Add(x ClassOutcome) {
	o.Offered += x.Offered
	o.OfferedBytes += x.OfferedBytes
	o.CarriedIn += x.CarriedIn
	o.Started += x.Started
	o.Completed += x.Completed
	o.Failed += x.Failed
	o.InFlight += x.InFlight
	o.Queued += x.Queued
	o.OldestQueuedAgeS = larger(o.OldestQueuedAgeS, x.OldestQueuedAgeS)
	o.OldestInFlightAgeS = larger(o.OldestInFlightAgeS, x.OldestInFlightAgeS)
}

// Derive fills in the ratios. Their base is what was there to be served, so that a warm-up's
// backlog cannot push the served share above one.
func (o *ClassOutcome) Derive() {
	there := o.Completed + o.Failed + o.InFlight + o.Queued
	o.ServedRatio = units.Ratio(o.Completed, there)
	o.CensoredRatio = units.Ratio(o.InFlight+o.Queued, there)
	o.Censored = units.OrZero(o.CensoredRatio) > censoredAbove
}

// larger returns the larger number, nil when there is none.
func larger(a, b *float64) *float64 {
	if a == nil || (b != nil && *b > *a) {
		return b
	}
	return a
}
