package record

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads"
)

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
