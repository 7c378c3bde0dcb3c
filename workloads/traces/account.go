package traces

import (
	"time"

	"kvbench/workloads"
	"kvbench/workloads/profile"
)

// maxAccountRows bounds the rows that one Account reads ahead, some tens of milliseconds. A replay
// that offers more per call is counted with delay: what is not reached yet is missing from Offered
// and Queued until a later call.
const maxAccountRows = 200_000

// Account implements Source. Rows without a time of their own (Speedup 0) are offered when they are
// taken, so that none ever waits.
func (t *Trace) Account(until time.Duration) []workloads.ClassLoad {
	loads := make([]workloads.ClassLoad, workloads.NumClasses)
	load := &loads[workloads.Responsive]
	*load = t.taken
	for c := range loads {
		loads[c].Oldest = workloads.Never
	}
	if !t.main.times.timed() {
		return loads
	}
	t.accounted = max(t.accounted, t.now, until)
	// The shadow reader follows, and counts the rows that it passes.
	for range maxAccountRows {
		row := t.shadow.peek()
		if row == nil || row.arrival > t.accounted {
			break
		}
		t.offered.Offered++
		t.offered.OfferedTokens += int64(t.writes(row))
		t.shadow.drop()
	}
	if t.offered.Offered > t.taken.Offered { // else it is behind
		load.Offered, load.OfferedTokens = t.offered.Offered, t.offered.OfferedTokens
		load.Queued = load.Offered - t.taken.Offered
	}
	head := t.main.peek()
	switch {
	case len(t.deferred) > 0:
		load.Oldest = t.deferred[0].Arrival
	case head != nil && head.arrival <= t.accounted:
		load.Oldest = head.arrival
	}
	return loads
}

// writes returns the tokens that a row's request offers to write: of a block trace those of its
// blocks, the last of which may be a part. It makes no request, because the shadow reader passes
// many rows for each that is taken.
func (t *Trace) writes(row *traceRow) int {
	if row.BlockTokens > 0 {
		return min(row.Context, len(row.Blocks)*row.BlockTokens)
	}
	_, prefix := t.shape.Prompt(t.stream, row.seq)
	return profile.OwnTokens(row.Context, prefix)
}
