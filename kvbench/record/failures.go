package record

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"kvbench/kvbench/result"
)

// failures counts failed operations by tier, operation and errno, and keeps the first ones.
// Bounded, because errno strings are few; what exceeds the bound is counted as "other".
type failures struct {
	total atomic.Int64
	mu    sync.Mutex
	by    map[result.ErrorCount]int64 // keys without their count
	first []result.ErrorSample        // and the first fatal one, should it come later
}

// A drive that dies fails every operation in its own words; nobody reads more than these.
const (
	maxFailureKinds  = 64
	maxFailureSample = 10
)

func (f *failures) add(e result.ErrorSample) {
	f.total.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	k := result.ErrorCount{Tier: e.Tier, Operation: e.Operation, Errno: e.Errno}
	if _, known := f.by[k]; k.Errno == "" || (!known && len(f.by) >= maxFailureKinds) {
		k.Errno = "other"
	}
	f.by[k]++
	// What ended the trial is told even when it came after many that did not.
	fatal := func(e result.ErrorSample) bool { return e.Fatal }
	if len(f.first) < maxFailureSample || e.Fatal && !slices.ContainsFunc(f.first, fatal) {
		f.first = append(f.first, e)
	}
}

// errors copies the failure table, most frequent first, ties in the order of their names.
func (b *builder) errors() {
	f := &b.rec.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := []result.ErrorCount{}
	for k, n := range f.by {
		k.Count = n
		counts = append(counts, k)
	}
	slices.SortFunc(counts, func(x, y result.ErrorCount) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Tier, y.Tier),
			cmp.Compare(x.Operation, y.Operation), cmp.Compare(x.Errno, y.Errno))
	})
	b.r.Errors, b.r.ErrorSamples = counts, append([]result.ErrorSample{}, f.first...)
}
