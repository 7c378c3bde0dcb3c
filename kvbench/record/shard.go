package record

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// shard has a part of a Recorder's counts. mu guards all fields. Workers are spread over the shards
// by their number, so they rarely wait for each other. Counting a chunk takes about 30 ns, a third
// of it for the mutex.
type shard struct {
	mu        sync.Mutex
	n         counters
	hists     histograms
	rounds    [tiers.NumOps]*result.Histogram // see Recorder.TakeRound
	timeless  bool
	oldest    int64 // ns that the longest cancelled operation took
	timeline  timeline
	unsettled []unsettled // by worker
	parts     [][tiers.NumOps]result.RootTraffic
}

// part returns the counts of the part of the storage tier that had a request, nil if the tier has
// no parts.
func (s *shard) part(l tiers.Kind, op tiers.Op, n int) *result.RootTraffic {
	if l != tiers.Storage || n >= len(s.parts) {
		return nil
	}
	return &s.parts[n][op]
}

// worker returns the unsettled bytes of the n-th worker of this shard.
func (s *shard) worker(n int) *unsettled {
	for n >= len(s.unsettled) {
		s.unsettled = append(s.unsettled, unsettled{})
	}
	return &s.unsettled[n]
}

// leaveOut, if paused is set, drops the latencies that are recorded until its result is called. Counts stay.
func (s *shard) leaveOut(paused bool) (record func()) {
	if !paused {
		return func() {}
	}
	hists := s.hists
	s.hists, s.timeline.silent = make(histograms, len(histNames)), true
	return func() { s.hists, s.timeline.silent = hists, false }
}

// took records a time, unless operations take no time.
func (s *shard) took(place hist, d time.Duration) {
	if !s.timeless {
		s.hists.at(place).Record(int64(d))
	}
}

// tookAt records a time, also in the timeline.
func (s *shard) tookAt(what timed, at, d time.Duration) {
	if !s.timeless {
		s.hists.at(timedHists[what]).Record(int64(d))
		s.timeline.took(what, at, d)
	}
}

// inFlight counts the time of the window in which a request to a part of a tier was in flight.
func (s *shard) inFlight(l tiers.Kind, op tiers.Op, part int, ns int64) {
	s.n.traffic(l, op).InFlightNS += ns
	if p := s.part(l, op, part); p != nil {
		p.InFlightNS += ns
	}
}

// bytes counts the bytes and the latency of a request that completed inside the window.
func (s *shard) bytes(l tiers.Kind, c *tiers.Chunk) {
	n := s.n.traffic(l, c.Op)
	n.Bytes += c.Bytes
	n.MemoryBytes += c.Memory
	s.timeline.at(c.Completed).n[bucketBytes(l, c.Op)] += c.Bytes
	// The time between submission and completion in which the device did not have the request.
	s.n.HandoverNS[l] += int64(c.Completed - c.Submitted - (c.Ended - c.Begun))
	s.n.HeldNS[l] += int64(c.Held)
	p := s.part(l, c.Op, c.Part)
	if p != nil {
		p.Bytes += c.Bytes
	}
	if !c.Flush && !c.Piece && c.Bytes > 0 {
		if p != nil {
			p.Requests++
			p.RequestNS += int64(c.Ended - c.Begun)
		}
		n.Requests++
		if l == tiers.Storage {
			s.tookAt(timedReadRequest+timed(c.Op), c.Completed, c.Ended-c.Begun)
		} else {
			s.took(histLevels[l].op[c.Op].request, c.Ended-c.Begun)
		}
	}
}

// block counts a request of the storage tier that is a whole operation, except for its bytes and
// its latency. Writes count as prefill, reads as decoding.
func (s *shard) block(c *tiers.Chunk) {
	took := int64(c.Ended - c.Begun)
	n, q := s.n.traffic(tiers.Storage, c.Op), &s.n.Requests
	n.Operations++
	n.DeviceNS += took
	n.EntryBytes += c.Bytes
	q.Operations++
	q.Completed++
	q.StorageLatencyNS += took
	q.Time.EndToEnd += took
	phase, purpose, time := tiers.Decode, workloads.ForDecodeRead, &q.Time.Decode
	if c.Op == tiers.Write {
		phase, purpose, time = tiers.Prefill, workloads.ForPrefill, &q.Time.Prefill
	} else {
		s.n.Tiers[tiers.Storage].FirstReads.Add(result.ReadCount{Operations: 1, Bytes: c.Bytes})
	}
	*time += took
	s.moved(c.Op, phase, purpose, c.Bytes, 1)
	s.timeline.at(c.Completed).n[bucketRequests]++
}

// busy adds the part of an operation's time that lies in the window to the busy time of workers.
func (s *shard) busy(o OpSample, within float64) {
	if o.Phase == tiers.Evict {
		return // in the time of the worker that needed the capacity
	}
	part := func(d time.Duration) int64 { return int64(within * float64(d)) }
	b := &s.n.Busy
	if o.Level == tiers.Storage {
		b.StorageNS += part(o.Device)
	} else {
		b.OtherTiersNS += part(o.Device)
	}
	b.HostNS += part(o.Host)
	b.BuffersNS += part(o.Admission)
	b.GenerationNS += part(o.Generation)
	b.WriteLimitNS += part(o.Slot)
	b.ClearingNS += part(o.Space)
	for l, waited := range o.Room {
		s.n.Tiers[l].RoomNS += part(waited)
		b.ClearingNS -= part(waited)
	}
	b.WriterNS += part(o.Pending)
}

// partial counts an operation that the deadline cut off. No histogram has it, because its latency is
// unknown. The longest time of such an operation is kept: it bounds what the percentiles miss.
func (s *shard) partial(o OpSample) {
	s.n.Requests.CancelledOperations++
	s.n.traffic(o.Level, o.Op).Cancelled++
	s.oldest = max(s.oldest, int64(o.total()))
}

// operation counts a completed operation. u is what its worker has moved inside the window.
func (s *shard) operation(o OpSample, u *unsettled) {
	s.waits(o)
	h := &histLevels[o.Level].op[o.Op]
	if o.Phase == tiers.Evict {
		// A demotion is no operation of a request, so it is not in the tier's latency. Only its
		// write is in the lower tier's device histogram, because it loads the device as any write
		// does.
		s.took(h.demotion, o.IO())
		if o.Op == tiers.Write {
			s.took(h.device, o.Device)
		}
		return
	}
	n := s.n.traffic(o.Level, o.Op)
	n.Operations++
	n.DeviceNS += int64(o.Device)
	s.n.Requests.Operations++
	n.EntryBytes += o.Bytes
	n.EarlierBytes += o.Bytes - u[o.Level][o.Op]
	u[o.Level][o.Op] = 0
	s.moved(o.Op, o.Phase, o.Purpose, o.Bytes, o.Blocks)
	if o.Op == tiers.Read {
		s.read(o)
	}
	// In a timeless load there are millions of re-reads. The sizes were recorded at the first read.
	if o.Op == tiers.Write || o.First || !s.timeless {
		s.hists.at(h.size).Record(o.Bytes)
	}
	if o.Level == tiers.Storage {
		s.tookAt(timedRead+timed(o.Op), o.At, o.IO())
	} else {
		s.took(h.io, o.IO())
	}
	s.took(h.device, o.Device)
	s.took(h.host, o.Host)
	s.took(h.bySize[sizeClass(o.Bytes)], o.IO())
	if o.Bytes >= normalFrom {
		s.took(h.normal, per100MiB(o))
	}
	if o.Bytes > 0 && o.IO() > 0 { // a null tier takes no time, so it has no rate
		s.hists.at(h.rate).Record(int64(float64(o.Bytes) / o.IO().Seconds()))
	}
}

// moved counts a completed operation of a request, on whatever tier. blocks is the number of blocks of
// a run; 0 and 1: one entry.
func (s *shard) moved(op tiers.Op, ph tiers.Phase, p workloads.Purpose, bytes int64, blocks int) {
	n, moves := &s.n.Moved, &s.n.Blocks.Reads
	if op == tiers.Write {
		moves = &s.n.Blocks.Writes
		n.WriteOperations++
		n.WriteBytes += bytes
	} else {
		n.ReadOperations++
		n.ReadBytes += bytes
	}
	switch { // as the Python benchmark counts them
	case op == tiers.Write && ph == tiers.Prefill:
		n.PrefillWrites++
	case op == tiers.Read && ph == tiers.Decode:
		n.DecodeReads++
	}
	switch {
	case p == workloads.ForBlock:
		moves.Operations++
		moves.Blocks += int64(max(1, blocks))
	case op == tiers.Read && p == workloads.ForPrefix:
		n.PrefixBytes += bytes
	case op == tiers.Read && p == workloads.ForReread:
		n.OwnFound++
	}
}

// normalFrom is the smallest size of entries whose latency is scaled. For smaller entries the request
// takes longer than its bytes, and the scaled latency of a page would be minutes.
const normalFrom = 1 << 20

// per100MiB scales an operation's latency to entries of 100 MiB.
func per100MiB(o OpSample) time.Duration {
	return time.Duration(float64(o.IO()) * normalBytes / float64(o.Bytes))
}

// round records an operation for the autoscaler.
func (s *shard) round(o OpSample) {
	if s.rounds[o.Op] == nil {
		s.rounds[o.Op] = result.NewHistogram(units.Nanoseconds)
	}
	s.rounds[o.Op].Record(int64(per100MiB(o)))
}

// read counts first reads of entries and later ones separately. A run of blocks is one operation,
// but its bytes are separate.
func (s *shard) read(o OpSample) {
	t := &s.n.Tiers[o.Level]
	kind, n := histLevels[o.Level].reread, &t.ReReads
	if o.First {
		kind, n = histLevels[o.Level].first, &t.FirstReads
		n.Bytes -= o.Again
		t.ReReads.Bytes += o.Again
	}
	n.Operations++
	n.Bytes += o.Bytes
	s.took(kind, o.IO())
	if o.Purpose == workloads.ForPrefix {
		s.took(histPrefix, o.IO())
	}
}

// waits records waiting times: admission and generation of every operation that can have them;
// space and pending only if the operation waited, because most operations do not, and their zeros
// would hide the rest.
func (s *shard) waits(o OpSample) {
	admission := histReadAdmission
	if o.Op == tiers.Write {
		admission = histWriteAdmission
		s.took(histGenerate, o.Generation)
	}
	s.took(admission, o.Slot+o.Admission)
	if o.Space > 0 {
		s.took(histSpace, o.Space)
	}
	if o.Pending > 0 {
		s.took(histPending, o.Pending)
	}
}

// request counts a finished request. A failed request adds no latency.
func (s *shard) request(q RequestSample) {
	n := &s.n.Requests
	if q.Failed {
		n.Failed++
		return
	}
	n.Completed++
	n.GeneratedTokens += int64(q.GenerateTokens)
	n.ContextTokens += int64(q.ContextTokens)
	t := &q.Time
	t.Close()
	n.Time.Add(t)
	n.StorageLatencyNS += int64(q.Storage)
	n.GenerationLatencyNS += t.Generation
	s.n.Completed[q.Class]++
	s.prompt(q.Prompt)
	s.firstToken(&q)
	s.timeline.at(q.At).n[bucketRequests]++
	s.hists.at(histClasses[q.Class]).Record(t.EndToEnd)
	if !s.timeless {
		s.timeline.took(timedEndToEnd, q.At, time.Duration(t.EndToEnd))
	}
	for i, ns := range [...]int64{t.Queue, int64(q.Storage), t.Context, t.Prefill, t.Decode,
		t.Waits(), t.Generation, t.Rest, t.EndToEnd} {
		s.hists.at(histParts[i]).Record(ns)
	}
}

// prompt counts what a request needed and found.
func (s *shard) prompt(parts [workloads.NumPurposes]result.PromptTokens) {
	var all result.PromptTokens
	for i, p := range parts {
		s.n.Prompt[i].Add(p)
		all.Add(p)
	}
	if all.Tokens > 0 {
		s.n.PromptRequests++
	}
	if all.Found > 0 {
		s.n.PromptHits++
	}
}

// firstToken counts how a request came to its first token.
func (s *shard) firstToken(q *RequestSample) {
	t := q.FirstToken
	if t.ComputeAll == 0 {
		return // misses are free, or there was no prompt
	}
	t.TTFT = t.Queue + t.Load + t.GPUWait + t.Compute - t.Overlap
	n := &s.n.FirstToken
	n.Sums.Add(t)
	n.Requests++
	s.hists.at(histTTFTs[q.Class]).Record(t.TTFT)
	if !s.timeless {
		s.timeline.took(timedTTFT, q.At, time.Duration(t.TTFT))
	}
	for i, ns := range [...]int64{t.TTFT, t.Load, t.GPUWait, t.Compute - t.Overlap} {
		s.hists.at(histFirstToken[i]).Record(ns)
	}
	switch {
	case q.Loaded == 0:
	case 2*q.LoadedBelow < q.LoadedBytes: // most bytes are not from the measured tier
		n.FoundAbove.Requests++
		n.FoundAbove.Tokens += q.Loaded
	default:
		n.Found.Add(q.Loaded, q.LoadedBytes, int64(q.Loading), t.ComputeAll-t.Compute)
		class := loadClass(q.Loaded)
		s.n.Loads[class]++
		s.n.LoadingTokens[class] += q.Loaded
		s.hists.at(histLoading[class]).Record(int64(q.Loading) * loadingUnit / q.Loaded)
	}
}

// blocks counts a decision about the blocks of one request, in the sum and in its interval: the hit
// ratio over time shows when a cache was warm.
func (s *shard) blocks(b BlockSample) {
	n, now := &s.n.Blocks, &s.timeline.at(b.At).n
	n.Requests++
	if b.Hits > 0 {
		s.n.BlocksFound++
	}
	n.Blocks += b.Blocks
	n.Unreachable += b.Unreachable
	n.Written += b.Blocks - b.Hits - b.Unreachable
	n.Tokens += b.Tokens
	now[bucketBlocks] += b.Blocks
	if b.Ideal < 0 {
		s.n.NotKnown += b.Blocks
		now[bucketUnknown] += b.Blocks
	} else {
		s.n.BlocksIdeal += int64(b.Ideal)
		now[bucketIdeal] += int64(b.Ideal)
	}
	s.hits(b)
}

// hits adds the hits of a sample, which are negative for LostBlocks.
func (s *shard) hits(b BlockSample) {
	n := &s.n.Blocks
	n.Hits += b.Hits
	n.Pending += b.Pending
	n.HitTokens += b.HitTokens
	n.BytesSaved += b.BytesSaved
	s.timeline.at(b.At).n[bucketHits] += b.Hits
	s.n.Lookups[workloads.ForBlock].Add(result.LookupCount{
		Hits: b.Hits, Pending: b.Pending, Misses: b.Blocks - b.Hits})
}

// counters is all numbers of a shard. Numbers that a result reports are counted in the result's own
// sections, and Build derives the rest of these. All fields are exported for addValue.
type counters struct {
	Requests result.RequestTotals
	Lookups  [workloads.NumPurposes]result.LookupCount
	Blocks   result.BlockCache
	Moved    result.Moved
	Tiers    [tiers.NumKinds]result.Tier

	// The tokens of prompts by purpose (ForPrefill: new tokens). The number of requests with a
	// prompt, and of requests that found at least one token.
	Prompt                     [workloads.NumPurposes]result.PromptTokens
	PromptRequests, PromptHits int64
	FirstToken                 result.FirstToken
	// Requests that loaded tokens, and these tokens, by the class of their number.
	Loads, LoadingTokens [numLoadClasses]int64

	// Completed requests by class; Load has the other outcomes.
	Completed [workloads.NumClasses]int64
	Busy      result.BusyTime // of operations
	// Time that requests to a tier spent in this process, before and after the device had them.
	HandoverNS [tiers.NumKinds]int64
	// Time that requests to a tier waited for threads of the engine that it imitates.
	HeldNS [tiers.NumKinds]int64

	// Decisions about blocks: requests with a cached prefix, hits of an unlimited cache, and blocks
	// for which these hits are unknown.
	BlocksFound, BlocksIdeal, NotKnown int64
	Compared                           result.Comparison
}

// traffic returns the counts of one direction of a level. Bytes count when a chunk completes,
// operations when they end. So a trial whose entries take longer than its window has bytes, too.
func (c *counters) traffic(l tiers.Kind, op tiers.Op) *result.TierTraffic {
	if op == tiers.Read {
		return &c.Tiers[l].Read
	}
	return &c.Tiers[l].Write
}

// unsettled is the bytes that a worker's operation has moved inside the window so far, by level. The
// end of the operation decides whether they were cut off or lost. A worker has one operation at a
// time, except for demotions, which are counted at once.
type unsettled [tiers.NumKinds][tiers.NumOps]int64

// settle adds the unsettled bytes of a worker to a field.
func (c *counters) settle(u *unsettled, field func(*result.TierTraffic) *int64) {
	for l := range u {
		for op, n := range u[l] {
			*field(c.traffic(tiers.Kind(l), tiers.Op(op))) += n
		}
	}
	*u = unsettled{}
}

// The fields for bytes whose operation did not complete.
func cutBytes(t *result.TierTraffic) *int64  { return &t.CutBytes }
func lostBytes(t *result.TierTraffic) *int64 { return &t.LostBytes }

// addEntry counts one entry and its bytes.
func addEntry(n *result.EntryCount, bytes int64) {
	n.Entries++
	n.Bytes += bytes
}

// add adds every int64 of o to the same field of sum, in structures and arrays. Other types do not
// change. It runs a few times per shard, outside of the request path, so reflection is fast enough.
// A new field needs no line here.
func add[T any](sum, o *T) { addValue(reflect.ValueOf(sum).Elem(), reflect.ValueOf(o).Elem()) }

func addValue(sum, o reflect.Value) {
	switch sum.Kind() {
	case reflect.Int64:
		sum.SetInt(sum.Int() + o.Int())
	case reflect.Struct:
		for i := range sum.NumField() {
			addValue(sum.Field(i), o.Field(i))
		}
	case reflect.Array:
		for i := range sum.Len() {
			addValue(sum.Index(i), o.Index(i))
		}
	}
}

// failures counts failed operations by tier, operation and errno, and keeps the first ones. The
// table is bounded; failures beyond it count as "other".
type failures struct {
	mu    sync.Mutex // guards by and first, and ends.failed together with total
	total atomic.Int64
	by    map[result.ErrorCount]int64 // keys have Count 0
	first []result.ErrorSample        // and the first fatal failure
}

// Limits of the table: a failing drive may fail every operation, each with another text.
const (
	maxFailureKinds  = 64
	maxFailureSample = 10
)

// add counts a failure, in the table and in at. It does both with mu, so that the counts agree in a
// result that is built while operations still fail.
func (f *failures) add(e result.ErrorSample, at *ends) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total.Add(1)
	at.failed.Add(1)
	k := result.ErrorCount{Tier: e.Tier, Operation: e.Operation, Errno: e.Errno}
	if _, known := f.by[k]; k.Errno == "" || (!known && len(f.by) >= maxFailureKinds) {
		k.Errno = "other"
	}
	f.by[k]++
	// The failure that ended the trial is kept even if many others came before it.
	fatal := func(e result.ErrorSample) bool { return e.Fatal }
	if len(f.first) < maxFailureSample || e.Fatal && !slices.ContainsFunc(f.first, fatal) {
		f.first = append(f.first, e)
	}
}
