package record

import (
	"kvbench/tiers"
	"kvbench/workloads"
)

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

// levelCounter is counted for each level: entries, and after each kind of them their bytes.
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
	numCounters                      //
)

// blockCounter is counted of the decisions about blocks.
type blockCounter uint8

const (
	blockRequests    blockCounter = iota
	blockFound                    // requests with a cached prefix
	blocksAsked                   //
	blockHits                     //
	blockPending                  // of the hits
	blockKept                     // there, but behind a missing one
	blockIdeal                    // hits of a cache without bounds
	blockUnknown                  // blocks of requests whose ideal nobody knows
	blockTokens                   //
	blockHitTokens                //
	blockHitBytes                 //
	numBlockCounters              //
)

// stage is a place where an operation spends time, for naming the slowest.
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
	"admission (write limit and buffers)", "waiting for space", "waiting for another's write",
}

// counters is all the numbers of a shard: arrays indexed by what they count, so that a new number is
// a constant, and adding up two shards a loop.
type counters struct {
	op     [tiers.NumKinds][tiers.NumOps][numOpCounters]int64
	level  [tiers.NumKinds][numLevelCounters]int64
	sum    [numCounters]int64
	class  [workloads.NumClasses]int64 // completed requests
	lookup [workloads.NumPurposes][numLookupResults]int64
	stage  [numStages]int64 // ns
	block  [numBlockCounters]int64
	moves  [tiers.NumOps][2]int64 // operations that moved blocks, and those blocks
}

// merge adds all of o.
func (c *counters) merge(o *counters) {
	more := o.parts()
	for i, sum := range c.parts() {
		addTo(sum, more[i])
	}
}

// parts lists the arrays, always in the same order.
func (c *counters) parts() [][]int64 {
	all := [][]int64{c.sum[:], c.class[:], c.stage[:], c.block[:]}
	for l := range c.op {
		for op := range c.op[l] {
			all = append(all, c.op[l][op][:])
		}
		all = append(all, c.level[l][:])
	}
	for p := range c.lookup {
		all = append(all, c.lookup[p][:])
	}
	for op := range c.moves {
		all = append(all, c.moves[op][:])
	}
	return all
}

func addTo(sum, more []int64) {
	for i, n := range more {
		sum[i] += n
	}
}

// tally counts one entry and its bytes.
func (c *counters) tally(l tiers.Kind, n levelCounter, bytes int64) {
	c.level[l][n]++
	c.level[l][n+1] += bytes
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
