package record

import (
	"math/bits"
	"sync"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// shard is one part of a Recorder and, merged, the whole of it. Its mutex guards everything in it.
type shard struct {
	mu       sync.Mutex
	n        counters
	hists    histograms
	oldest   int64 // ns that the longest cancelled operation had spent
	timeline timeline
	round    [tiers.NumOps]*result.Histogram // since the last TakeRound, per 100 MiB
}

// merge adds all of o, without its round. Neither is locked here.
func (s *shard) merge(o *shard) {
	s.n.merge(&o.n)
	s.hists.merge(&o.hists)
	s.oldest = max(s.oldest, o.oldest)
	s.timeline.merge(&o.timeline)
}

func (s *shard) ofOp(l tiers.Kind, op tiers.Op, k opHist, v int64) {
	record(&s.hists.op[l][op][k], k.unit(), v)
}

func (s *shard) ofLevel(l tiers.Kind, k levelHist, v int64) {
	record(&s.hists.level[l][k], units.Nanoseconds, v)
}

func (s *shard) ofAll(k hist, v int64) { record(&s.hists.all[k], units.Nanoseconds, v) }

// addStages adds where an operation spent its time, cut off or not.
func (s *shard) addStages(o OpSample) {
	for i, d := range [numStages]time.Duration{
		stageDevice: o.Device, stageHost: o.Host, stageGenerate: o.Generation,
		stageAdmission: o.Admission, stageSpace: o.Space, stagePending: o.Pending,
	} {
		s.n.stage[i] += int64(d)
	}
	s.n.sum[sumBuffersNS] += int64(o.Buffers)
}

// partial counts an operation that the deadline cut off.
func (s *shard) partial(o OpSample) {
	s.addStages(o)
	s.n.op[o.Level][o.Op][opCancelled]++
	s.oldest = max(s.oldest, int64(o.IO()+o.Generation+o.Admission+o.Space+o.Pending))
}

// operation counts a completed one. Where operations take no time (timeless), it has no latencies.
func (s *shard) operation(o OpSample, timeless bool) {
	n := &s.n.op[o.Level][o.Op]
	if !timeless {
		s.addStages(o)
		s.waits(o)
	}
	if o.Phase == tiers.Evict {
		// A demotion is no operation of a request: it stays out of the tier's latency, except that
		// its write loads the device as any other and therefore shows in the lower tier's device
		// histogram.
		n[opDemotion]++
		if !timeless {
			s.ofOp(o.Level, o.Op, histDemotion, int64(o.IO()))
			if o.Op == tiers.Write {
				s.ofOp(o.Level, o.Op, histDevice, int64(o.Device))
			}
		}
		return
	}
	n[opDone]++
	n[opDoneBytes] += o.Bytes
	s.purpose(o)
	if o.Op == tiers.Write || o.First || !timeless {
		s.ofOp(o.Level, o.Op, histSize, o.Bytes)
	}
	if o.Op == tiers.Read {
		s.read(o, timeless)
	}
	if timeless {
		return
	}
	io := int64(o.IO())
	n[opDeviceNS] += int64(o.Device)
	s.ofOp(o.Level, o.Op, histIO, io)
	s.ofOp(o.Level, o.Op, histDevice, int64(o.Device))
	s.ofOp(o.Level, o.Op, histHost, int64(o.Host))
	s.ofOp(o.Level, o.Op, histBySize+opHist(sizeClass(o.Bytes)), io)
	if o.Bytes > 0 {
		s.ofOp(o.Level, o.Op, histNormal, per100MiB(o))
		if io > 0 { // a null tier takes no time, and nothing has an infinite rate
			s.ofOp(o.Level, o.Op, histRate, int64(float64(o.Bytes)/o.IO().Seconds()))
		}
	}
}

// per100MiB scales an operation's latency to entries of 100 MiB.
func per100MiB(o OpSample) int64 {
	return int64(float64(o.IO()) * normalBytes / float64(o.Bytes))
}

// purpose counts what an operation was for.
func (s *shard) purpose(o OpSample) {
	switch {
	case o.Op == tiers.Write && o.Phase == tiers.Prefill:
		s.n.sum[sumPrefillWrites]++
	case o.Op == tiers.Read && o.Phase == tiers.Decode:
		s.n.sum[sumDecodeReads]++
	}
	switch o.Purpose {
	case workloads.ForReread:
		s.n.sum[sumRereads]++
	case workloads.ForPrefix:
		s.n.sum[sumPrefixBytes] += o.Bytes
	case workloads.ForBlock:
		s.n.moves[o.Op][0]++
		s.n.moves[o.Op][1] += int64(max(1, o.Blocks))
	}
}

// read tells first reads of entries from the others. A run of blocks is one operation, but its
// bytes are told apart.
func (s *shard) read(o OpSample, timeless bool) {
	kind := histReread
	if o.First {
		kind = histFirst
		s.n.tally(o.Level, levelFirst, o.Bytes-o.Again)
		s.n.level[o.Level][levelRereadBytes] += o.Again
	} else {
		s.n.tally(o.Level, levelReread, o.Bytes)
	}
	if timeless {
		return
	}
	s.ofLevel(o.Level, kind, int64(o.IO()))
	if o.Purpose == workloads.ForPrefix {
		s.ofAll(histPrefix, int64(o.IO()))
	}
}

// waits keeps the waits: admission and generation of every operation that could have them, space
// and pending of those that waited, because nearly all do not and their zeros would hide the rest.
func (s *shard) waits(o OpSample) {
	if o.Op == tiers.Write {
		s.ofAll(histWriteAdmission, int64(o.Admission))
		s.ofAll(histGenerate, int64(o.Generation))
	} else {
		s.ofAll(histReadAdmission, int64(o.Admission))
	}
	if o.Space > 0 {
		s.ofAll(histSpace, int64(o.Space))
	}
	if o.Pending > 0 {
		s.ofAll(histPending, int64(o.Pending))
	}
}

func (s *shard) request(q RequestSample) {
	if q.Failed {
		s.n.sum[sumFailedRequests]++
		return
	}
	s.n.sum[sumRequests]++
	s.n.class[q.Class]++
	s.n.sum[sumTokens] += int64(q.GenerateTokens)
	s.n.sum[sumContextTokens] += int64(q.ContextTokens)
	s.n.sum[sumStorageNS] += int64(q.Storage)
	s.n.sum[sumGenerationNS] += int64(q.Generation)
	s.timeline.at(q.At).n[bucketRequests]++
	s.ofAll(histQueue, int64(q.Queue))
	s.ofAll(histEndToEnd, int64(q.EndToEnd))
	s.ofAll(histClass+hist(q.Class), int64(q.EndToEnd))
	s.ofAll(histStorage, int64(q.Storage))
	s.ofAll(histGeneration, int64(q.Generation))
	if q.Prefill > 0 {
		s.ofAll(histPrefill, int64(q.Prefill))
	}
	if q.Decode > 0 {
		s.ofAll(histDecode, int64(q.Decode))
	}
}

// blocks counts a decision about blocks.
func (s *shard) blocks(b BlockSample) {
	n, now, lookup := &s.n.block, &s.timeline.at(b.At).n, &s.n.lookup[workloads.ForBlock]
	n[blockRequests]++
	if b.Hits > 0 {
		n[blockFound]++
	}
	n[blocksAsked] += int64(b.Blocks)
	n[blockHits] += int64(b.Hits)
	n[blockPending] += int64(b.Pending)
	n[blockKept] += int64(b.Kept)
	n[blockTokens] += int64(b.Tokens)
	n[blockHitTokens] += int64(b.HitTokens)
	n[blockHitBytes] += b.HitBytes
	now[bucketBlocks] += int64(b.Blocks)
	now[bucketHits] += int64(b.Hits)
	if b.Ideal < 0 {
		n[blockUnknown] += int64(b.Blocks)
		now[bucketUnknown] += int64(b.Blocks)
	} else {
		n[blockIdeal] += int64(b.Ideal)
		now[bucketIdeal] += int64(b.Ideal)
	}
	lookup[Hit] += int64(b.Hits - b.Pending)
	lookup[Pending] += int64(b.Pending)
	lookup[Miss] += int64(b.Blocks - b.Hits)
}

// numSizeClasses: below 1 MiB, then powers of four, 1–4 MiB, … 1–4 GiB, and all above.
const numSizeClasses = 8

// sizeClass returns 0 for less than 1 MiB, 1 for [1 MiB, 4 MiB), and so on.
func sizeClass(bytes int64) int {
	return min((bits.Len64(uint64(max(bytes, 0)>>20))+1)/2, numSizeClasses-1)
}

// sizeClassBounds returns the bounds [from, to) of a class; the last has no end.
func sizeClassBounds(c int) (from int64, to *int64) {
	if c > 0 {
		from = 1 << (20 + 2*(c-1))
	}
	if c < numSizeClasses-1 {
		to = new(int64(1) << (20 + 2*c))
	}
	return from, to
}
