package record

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
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

// counters is all the numbers of a shard. What a result reports is counted in its own sections, of
// which Build fills in the rest; the other fields are what these are derived from. All fields are
// exported for the sake of add.
type counters struct {
	Requests result.RequestTotals
	Lookups  [workloads.NumPurposes]result.LookupCount
	Blocks   result.BlockCache
	Tiers    [tiers.NumKinds]result.Tier

	// The prompts of requests: by purpose, ForPrefill being what is new; of how many, and how many
	// of these found anything.
	Prompt                     [workloads.NumPurposes]result.PromptTokens
	PromptRequests, PromptHits int64
	// How requests came to their first token, how many of them, and those that loaded any, by the
	// class of the number of tokens, with their tokens.
	FirstToken           result.FirstTokenTime
	FirstTokens          int64
	Loads, LoadingTokens [numLoadClasses]int64
	Found                result.FoundParts
	FoundAbove           result.FoundAbove

	// Requests of each class; Load has what became of them.
	Completed [workloads.NumClasses]int64
	Stages    [len(stageNames)]time.Duration
	Busy      result.BusyTime // of operations
	// Time that requests to a tier spent in this process: until the device had them, and after.
	HandoverNS [tiers.NumKinds]int64
	// Time that requests to a tier waited for threads of the engine that it imitates.
	HeldNS [tiers.NumKinds]int64

	// What operations of requests were for: by phase as the Python benchmark distinguishes prefill
	// writes from decode reads, and by the purpose.
	ByPhase   [tiers.NumOps][tiers.NumPhases]int64
	ByPurpose [workloads.NumPurposes][tiers.NumOps]struct {
		result.BlockMoves
		Bytes int64
	}

	// Of the decisions about blocks: requests with a cached prefix, hits of a cache without bounds,
	// and blocks for which these are unknown.
	BlocksFound, BlocksIdeal, NotKnown int64
	Compared                           result.Comparison
}

// traffic is one direction of a level. Bytes count as chunks complete, operations as a whole: a
// trial whose entries are larger than its window moved bytes all the same.
func (c *counters) traffic(l tiers.Kind, op tiers.Op) *result.TierTraffic {
	if op == tiers.Read {
		return &c.Tiers[l].Read
	}
	return &c.Tiers[l].Write
}

// underway is what a worker's operation has moved inside the window so far, by level: which count
// it belongs to is known when it ends. A worker has one operation at a time, but for demotions,
// which are counted at once.
type underway [tiers.NumKinds][tiers.NumOps]int64

// settle counts what was in flight, in the field that becomes of it, and returns how much it was.
func (c *counters) settle(u *underway, field func(*result.TierTraffic) *int64) (bytes int64) {
	for l := range u {
		for op, n := range u[l] {
			*field(c.traffic(tiers.Kind(l), tiers.Op(op))) += n
			bytes += n
		}
	}
	*u = underway{}
	return bytes
}

// What becomes of bytes whose operation did not complete.
func cutBytes(t *result.TierTraffic) *int64  { return &t.CutBytes }
func lostBytes(t *result.TierTraffic) *int64 { return &t.LostBytes }

// addEntry counts one entry and its bytes, as it comes into or leaves a level.
func addEntry(n *result.EntryCount, bytes int64) {
	n.Entries++
	n.Bytes += bytes
}

// add adds every number of o to the same one of sum, in structures and arrays. Pointers and texts,
// which Build fills in, stay as they are. It runs a few times for each shard after the window, so
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

// failures counts failed operations by tier, operation and errno, and keeps the first ones.
// Bounded, because errno strings are few; what exceeds the bound is counted as "other".
type failures struct {
	mu    sync.Mutex // of what follows, and of the counts of failures in ends
	total atomic.Int64
	by    map[result.ErrorCount]int64 // keys without their count
	first []result.ErrorSample        // and the first fatal one, should it come later
}

// A drive that dies fails every operation in its own words; more than these are of no use.
const (
	maxFailureKinds  = 64
	maxFailureSample = 10
)

// add also counts the failure in ends, so that all counts and the table are of one moment for the
// holder of the lock: a result may be built while operations still fail.
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
	// What ended the trial is kept even when it came after many that did not.
	fatal := func(e result.ErrorSample) bool { return e.Fatal }
	if len(f.first) < maxFailureSample || e.Fatal && !slices.ContainsFunc(f.first, fatal) {
		f.first = append(f.first, e)
	}
}
