package kvbench

import (
	"math/bits"
	"sync"
	"time"

	"kvbench/tiers"
	"kvbench/workloads"
)

const numPurposes = workloads.NumPurposes

// tally is a number of things and their bytes.
type tally struct{ n, bytes int64 }

func (t *tally) add(bytes int64) { t.n++; t.bytes += bytes }

func (t *tally) merge(o tally) { t.n += o.n; t.bytes += o.bytes }

// shard is one part of a Recorder and, merged, the whole of it. Its mutex guards everything in it.
type shard struct {
	mu sync.Mutex

	bytes     [tiers.NumLevels][tiers.NumOps][tiers.NumPhases]int64
	ops       [tiers.NumLevels][tiers.NumOps]tally // completed, demotions not among them
	demotions [tiers.NumLevels][tiers.NumOps]tally // the reads and writes of demotions
	phases    [tiers.NumOps][tiers.NumPhases]int64 // completed operations by phase
	cancelled [tiers.NumLevels][tiers.NumOps]tally
	oldest    time.Duration // time that the longest cancelled operation had spent
	firsts    [tiers.NumLevels]tally
	rereads   [tiers.NumLevels]tally
	purposes  [numPurposes]tally // completed operations by purpose
	stages    [numStages]time.Duration
	device    [tiers.NumLevels][tiers.NumOps]time.Duration // of completed operations, demotions not among them
	buffers   time.Duration

	lookups                [numPurposes][numLookupResults]int64
	evictions, deletions   [tiers.NumLevels]tally
	demotedFrom, demotedTo [tiers.NumLevels]tally
	retries                [tiers.NumLevels][tiers.NumOps]int64

	blocks         blockTotals
	moved          [tiers.NumOps]runs // of blocks
	requests       int64
	failedRequests int64
	tokens         int64
	contextTokens  int64
	storage        time.Duration
	generation     time.Duration
	byClass        [workloads.NumClasses]int64
	byKind         [3]int64

	hists    map[histID]*Histogram
	timeline timeline
	round    [tiers.NumOps]*Histogram // since the last TakeRound, per 100 MiB
}

// stage is a place where an operation or a request spends time, for naming the slowest.
type stage uint8

const (
	stageDevice stage = iota
	stageHost
	stageGenerate
	stageAdmission
	stageSpace
	stagePending
	numStages
)

var stageNames = [numStages]string{
	"device I/O", "host (copying and verifying)", "data generation", "admission (write limit and buffers)",
	"waiting for space", "waiting for another's write",
}

func (s *shard) addStages(o OpSample) {
	s.stages[stageDevice] += o.Device
	s.stages[stageHost] += o.Host
	s.stages[stageGenerate] += o.Generation
	s.stages[stageAdmission] += o.Admission
	s.stages[stageSpace] += o.Space
	s.stages[stagePending] += o.Pending
	s.buffers += o.Buffers
}

func (s *shard) partial(o OpSample) {
	s.addStages(o)
	s.cancelled[o.Level][o.Op].add(o.Bytes)
	s.oldest = max(s.oldest, o.IO()+o.Generation+o.Admission+o.Space+o.Pending)
}

// count is what is left of operation when nothing takes time.
func (s *shard) count(o OpSample) {
	s.phases[o.Op][o.Phase]++
	if o.Phase == tiers.Evict {
		s.demotions[o.Level][o.Op].add(o.Bytes)
		return
	}
	s.countOp(o)
	switch {
	case o.Op == tiers.Write:
		s.record(histID{level: o.Level, op: o.Op}.of(histSize), o.Bytes)
	case o.First:
		s.record(histID{level: o.Level, op: o.Op}.of(histSize), o.Bytes)
		s.first(o)
	default:
		s.rereads[o.Level].add(o.Bytes)
	}
}

// countOp counts a completed operation that was no demotion.
func (s *shard) countOp(o OpSample) {
	s.ops[o.Level][o.Op].add(o.Bytes)
	if int(o.Purpose) < numPurposes {
		s.purposes[o.Purpose].add(o.Bytes)
	}
	if o.Purpose == workloads.ForBlock {
		s.moved[o.Op].n++
		s.moved[o.Op].blocks += int64(max(1, o.Blocks))
	}
}

// runs is a number of operations and of the blocks that they moved.
type runs struct{ n, blocks int64 }

// first counts a read of something that had not been read. A run is one operation, but its bytes are told apart.
func (s *shard) first(o OpSample) {
	s.firsts[o.Level].add(o.Bytes - o.Again)
	s.rereads[o.Level].bytes += o.Again
}

func (s *shard) operation(o OpSample) {
	s.addStages(o)
	s.phases[o.Op][o.Phase]++
	at := histID{level: o.Level, op: o.Op}
	if o.Phase == tiers.Evict {
		// A demotion is no operation of a request: it stays out of the tier's latency, except that its write loads the
		// device as any other and therefore shows in the lower tier's device histogram.
		s.demotions[o.Level][o.Op].add(o.Bytes)
		s.record(at.of(histDemotion), int64(o.IO()))
		if o.Op == tiers.Write {
			s.record(at.of(histDevice), int64(o.Device))
		}
		s.recordWaits(o)
		return
	}
	io := int64(o.IO())
	s.device[o.Level][o.Op] += o.Device
	s.countOp(o)
	s.record(at.of(histIO), io)
	s.record(at.of(histDevice), int64(o.Device))
	s.record(at.of(histHost), int64(o.Host))
	s.record(at.of(histSize), o.Bytes)
	if o.Bytes > 0 {
		s.record(at.of(histNormal), int64(float64(io)*float64(normalBytes)/float64(o.Bytes)))
		if io > 0 { // a null tier takes no time, and nothing has an infinite rate
			s.record(at.of(histRate), int64(float64(o.Bytes)/o.IO().Seconds()))
		}
	}
	bySize := at.of(histBySize)
	bySize.class = uint8(sizeClass(o.Bytes))
	s.record(bySize, io)
	if o.Op == tiers.Read {
		if o.First {
			s.first(o)
			s.record(histID{kind: histFirst, level: o.Level}, io)
		} else {
			s.rereads[o.Level].add(o.Bytes)
			s.record(histID{kind: histReread, level: o.Level}, io)
		}
		if o.Purpose == workloads.ForPrefix {
			s.record(histID{kind: histPrefix}, io)
		}
	}
	s.recordWaits(o)
}

// recordWaits keeps the waits: admission and generation of every operation that could have them, space and pending of
// those that waited, because nearly all do not and their zeros would hide the rest.
func (s *shard) recordWaits(o OpSample) {
	s.record(histID{kind: histAdmission, op: o.Op}, int64(o.Admission))
	if o.Op == tiers.Write {
		s.record(histID{kind: histGenerate}, int64(o.Generation))
	}
	if o.Space > 0 {
		s.record(histID{kind: histSpace}, int64(o.Space))
	}
	if o.Pending > 0 {
		s.record(histID{kind: histPending}, int64(o.Pending))
	}
}

func (s *shard) request(q RequestSample) {
	if q.Failed {
		s.failedRequests++
		return
	}
	s.requests++
	s.timeline.at(q.At).requests++
	s.tokens += int64(q.GenerateTokens)
	s.contextTokens += int64(q.ContextTokens)
	s.storage += q.Storage
	s.generation += q.Generation
	s.byClass[q.Class]++
	if int(q.Kind) < len(s.byKind) {
		s.byKind[q.Kind]++
	}
	s.record(histID{kind: histQueue}, int64(q.Queue))
	s.record(histID{kind: histEndToEnd}, int64(q.EndToEnd))
	s.record(histID{kind: histClass, class: uint8(q.Class)}, int64(q.EndToEnd))
	s.record(histID{kind: histStorage}, int64(q.Storage))
	s.record(histID{kind: histGeneration}, int64(q.Generation))
	if q.Prefill > 0 {
		s.record(histID{kind: histPrefill}, int64(q.Prefill))
	}
	if q.Decode > 0 {
		s.record(histID{kind: histDecode}, int64(q.Decode))
	}
}

func (s *shard) record(id histID, v int64) {
	h := s.hists[id]
	if h == nil {
		if s.hists == nil {
			s.hists = make(map[histID]*Histogram)
		}
		h = NewHistogram(id.unit())
		s.hists[id] = h
	}
	h.Record(v)
}

// Size classes: below 1 MiB, then powers of four, 1–4 MiB, … 1–4 GiB, and all above.
const numSizeClasses = 8

// sizeClass returns 0 for less than 1 MiB, 1 for [1 MiB, 4 MiB), and so on.
func sizeClass(bytes int64) int {
	return min((bits.Len64(uint64(max(bytes, 0)>>20))+1)/2, numSizeClasses-1)
}

// sizeClassBounds returns the bounds [lo, hi) of a class; hi is 0 for the last.
func sizeClassBounds(c int) (lo, hi int64) {
	if c > 0 {
		lo = 1 << (20 + 2*(c-1))
	}
	if c < numSizeClasses-1 {
		hi = 1 << (20 + 2*c)
	}
	return lo, hi
}
