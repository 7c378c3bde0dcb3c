package record

import (
	"reflect"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads"
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

// counters is all the numbers of a shard. What a result tells is counted in its own sections, of
// which Build fills in the rest; the other fields are what these are derived from. All fields are
// exported for the sake of add.
type counters struct {
	Requests            result.RequestTotals
	FirstReads, ReReads result.EntryCount
	Lookups             [workloads.NumPurposes]result.LookupCount
	Blocks              result.BlockCache
	Tiers               [tiers.NumKinds]result.Tier

	Completed [workloads.NumClasses]int64
	// of completed operations, as the next
	DoneBytes             [tiers.NumKinds][tiers.NumOps]int64
	Demotions             [tiers.NumKinds][tiers.NumOps]int64 // halves of them
	Stages                [numStages]time.Duration
	BuffersNS             int64 // waits of operations for buffers
	PrefillWrites         int64
	DecodeReads           int64
	Rereads, PrefixBytes  int64 // operations that read again; bytes read as a prefix
	BlocksFound           int64 // requests with a cached prefix
	BlocksIdeal, NotKnown int64 // hits of a cache without bounds; blocks whose ideal nobody knows
}

// traffic is one direction of a level.
func (c *counters) traffic(l tiers.Kind, op tiers.Op) *result.TierTraffic {
	if op == tiers.Read {
		return &c.Tiers[l].Read
	}
	return &c.Tiers[l].Write
}

// total returns what f tells of each level in one direction, added up.
func (c *counters) total(op tiers.Op, f func(*result.TierTraffic) int64) (sum int64) {
	for l := range tiers.NumKinds {
		sum += f(c.traffic(l, op))
	}
	return sum
}

// demotions returns the number of halves of demotions, of all levels.
func (c *counters) demotions(op tiers.Op) (sum int64) {
	for l := range c.Demotions {
		sum += c.Demotions[l][op]
	}
	return sum
}

// addEntry counts one entry and its bytes.
func addEntry(n *result.EntryCount, bytes int64) {
	n.Entries++
	n.Bytes += bytes
}

// add adds every number of o to the same one of sum, in structures and arrays.
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
