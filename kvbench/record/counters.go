package record

import (
	"kvbench/tiers"
	"kvbench/workloads"
)

// The numbers of a trial are arrays indexed by what they count: for each level and operation, for
// each level, and for the whole. So adding up two shards is a loop, and a new number is a constant.
// Where things are counted with their bytes, the bytes follow the things (see counters.tally).

// opCounter is counted for each level and operation.
type opCounter uint8

const (
	opMoved       opCounter = iota // bytes of chunks, those of demotions among them
	opMovedDown                    // bytes of demotions' chunks
	opDone                         // completed operations, demotions not among them
	opDoneBytes                    //
	opDemotion                     // completed halves of demotions
	opCancelled                    // cut off at the deadline
	opRetry                        // repetitions after transient errors
	opDeviceNS                     // device time of completed operations, demotions not among them
	numOpCounters                  //
)

// levelCounter is counted for each level.
type levelCounter uint8

const (
	levelFirst levelCounter = iota // first reads of entries
	levelFirstBytes
	levelReread
	levelRereadBytes
	levelEvicted
	levelEvictedBytes
	levelDeleted
	levelDeletedBytes
	levelDemotedOut
	levelDemotedOutBytes
	levelDemotedIn
	levelDemotedInBytes
	numLevelCounters
)

// counter is counted for the whole trial.
type counter uint8

const (
	sumRequests       counter = iota // completed
	sumFailedRequests                //
	sumTokens                        // generated
	sumContextTokens                 //
	sumStorageNS                     // of requests, as the next
	sumGenerationNS                  //
	sumBuffersNS                     // waits of operations for buffers
	sumPrefillWrites                 //
	sumDecodeReads                   //
	sumRereads                       // operations that read again
	sumPrefixBytes                   // read as a prefix
	sumClass                         // completed requests, by class

	sumStage      = sumClass + counter(workloads.NumClasses) // ns, by stage
	sumLookup     = sumStage + counter(numStages)            // by purpose and result
	sumBlockMoves = sumLookup + numPurposes*counter(numLookupResults)
	sumBlocks     = sumBlockMoves + 2*counter(tiers.NumOps) // by blockCounter

	numCounters = sumBlocks + counter(numBlockCounters)
)

// blockCounter is counted of the decisions about blocks.
type blockCounter uint8

const (
	blockRequests  blockCounter = iota
	blockFound                  // requests with a cached prefix
	blocksAsked                 //
	blockHits                   //
	blockPending                // of the hits
	blockKept                   // there, but behind a missing one
	blockIdeal                  // hits of a cache without bounds
	blockUnknown                // blocks of requests whose ideal nobody knows
	blockTokens                 //
	blockHitTokens              //
	blockHitBytes               //
	numBlockCounters
)

// numPurposes is the length of an array indexed by workloads.Purpose.
const numPurposes = workloads.NumPurposes

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
	"device I/O", "host (copying and verifying)", "data generation",
	"admission (write limit and buffers)",
	"waiting for space", "waiting for another's write",
}

func stageSum(s stage) counter           { return sumStage + counter(s) }
func classSum(c workloads.Class) counter { return sumClass + counter(c) }
func blockSum(c blockCounter) counter    { return sumBlocks + counter(c) }
func blockMoves(op tiers.Op) counter     { return sumBlockMoves + 2*counter(op) }
func lookupSum(p workloads.Purpose, r LookupResult) counter {
	return sumLookup + counter(p)*counter(numLookupResults) + counter(r)
}

// counters is all the numbers of a shard.
type counters struct {
	op    [tiers.NumKinds][tiers.NumOps][numOpCounters]int64
	level [tiers.NumKinds][numLevelCounters]int64
	sum   [numCounters]int64
}

// tally counts one thing and its bytes.
func (c *counters) tally(l tiers.Kind, n levelCounter, bytes int64) {
	c.level[l][n]++
	c.level[l][n+1] += bytes
}

// merge adds all of o.
func (c *counters) merge(o *counters) {
	for l := range c.op {
		for op := range c.op[l] {
			addTo(c.op[l][op][:], o.op[l][op][:])
		}
		addTo(c.level[l][:], o.level[l][:])
	}
	addTo(c.sum[:], o.sum[:])
}

func addTo(sum, more []int64) {
	for i, n := range more {
		sum[i] += n
	}
}

// over returns the sum of a counter over all levels and operations, overOp over all levels.
func (c *counters) over(n opCounter) int64 {
	return c.overOp(tiers.Read, n) + c.overOp(tiers.Write, n)
}

func (c *counters) overOp(op tiers.Op, n opCounter) (sum int64) {
	for l := range c.op {
		sum += c.op[l][op][n]
	}
	return sum
}

// blocks counts a decision about blocks.
func (c *counters) blocks(b BlockSample) {
	count := func(n blockCounter, v int64) { c.sum[blockSum(n)] += v }
	count(blockRequests, 1)
	if b.Hits > 0 {
		count(blockFound, 1)
	}
	count(blocksAsked, int64(b.Blocks))
	count(blockHits, int64(b.Hits))
	count(blockPending, int64(b.Pending))
	count(blockKept, int64(b.Kept))
	if b.Ideal < 0 {
		count(blockUnknown, int64(b.Blocks))
	} else {
		count(blockIdeal, int64(b.Ideal))
	}
	count(blockTokens, int64(b.Tokens))
	count(blockHitTokens, int64(b.HitTokens))
	count(blockHitBytes, b.HitBytes)
	c.sum[lookupSum(workloads.ForBlock, Hit)] += int64(b.Hits - b.Pending)
	c.sum[lookupSum(workloads.ForBlock, Pending)] += int64(b.Pending)
	c.sum[lookupSum(workloads.ForBlock, Miss)] += int64(b.Blocks - b.Hits)
}
