package record

import (
	"reflect"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads"
)

// stageNames are the places where an operation spends time. The stages are summed over cancelled
// operations too, unlike the latencies: when nothing completed in the window, they alone tell what
// was too slow.
var stageNames = [...]string{
	"device I/O", "host (copying and verifying)", "data generation",
	"admission (write limit and buffers)", "waiting for space", "waiting for another's write",
}

// counters is all the numbers of a shard. What a result tells is counted in its own sections, of
// which Build fills in the rest; the other fields are what these are derived from. All fields are
// exported for the sake of add.
type counters struct {
	Requests            result.RequestTotals
	FirstReads, ReReads result.ReadKind
	Lookups             [workloads.NumPurposes]result.LookupCount
	Blocks              result.BlockCache
	Tiers               [tiers.NumKinds]result.Tier

	// Requests of each class, of which Load tells what became.
	Completed [workloads.NumClasses]int64
	// Bytes of the entries of completed operations, by which the device time per MiB is reckoned:
	// those of chunks include what the deadline cut off.
	DoneBytes [tiers.NumKinds][tiers.NumOps]int64
	Stages    [len(stageNames)]time.Duration
	HostNS    int64 // of operations, as the next
	BuffersNS int64 // waits for buffers

	// What operations of requests were for: by phase as the Python benchmark tells prefill writes
	// from decode reads, and by what asked for them.
	ByPhase   [tiers.NumOps][tiers.NumPhases]int64
	ByPurpose [workloads.NumPurposes][tiers.NumOps]struct {
		result.BlockMoves
		Bytes int64
	}

	// Of the decisions about blocks: requests with a cached prefix, hits of a cache without bounds,
	// and blocks for which nobody knows these.
	BlocksFound, BlocksIdeal, NotKnown int64
}

// traffic is one direction of a level. Bytes count as chunks complete, operations as a whole: a
// trial whose entries are larger than its window moved bytes all the same.
func (c *counters) traffic(l tiers.Kind, op tiers.Op) *result.TierTraffic {
	if op == tiers.Read {
		return &c.Tiers[l].Read
	}
	return &c.Tiers[l].Write
}

// addEntry counts one entry and its bytes, as it comes into or leaves a level.
func addEntry(n *result.EntryCount, bytes int64) {
	n.Entries++
	n.Bytes += bytes
}

// add adds every number of o to the same one of sum, in structures and arrays. Pointers and texts,
// which Build fills in, stay as they are. It runs once for each shard at the end of a trial, so
// that reflection costs nothing that matters, and a new number needs no line of its own here.
func add(sum, o reflect.Value) {
	switch sum.Kind() {
	case reflect.Int64:
		sum.SetInt(sum.Int() + o.Int())
	case reflect.Struct:
		for i := range sum.NumField() {
			add(sum.Field(i), o.Field(i))
		}
	case reflect.Array:
		for i := range sum.Len() {
			add(sum.Index(i), o.Index(i))
		}
	}
}
