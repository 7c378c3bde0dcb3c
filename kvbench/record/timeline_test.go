package record

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tracing"
	"kvbench/workloads"
)

func TestTimelineInterval(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{
		300 * time.Second: time.Second, 30 * time.Second: 300 * time.Millisecond,
		2 * time.Second:        20 * time.Millisecond,
		100 * time.Millisecond: 10 * time.Millisecond, workloads.Never: 10 * time.Millisecond,
		0: 10 * time.Millisecond,
	} {
		assert.Equal(t, want, TimelineInterval(window), window)
	}
}

func TestTimelineStaysBoundedAndLosesNothing(t *testing.T) {
	r := New(2)
	r.Open(0, workloads.Never)
	const n = 9000 // buckets of 10 ms, far more than fit
	for i := range n {
		at := time.Duration(i) * 10 * time.Millisecond
		// The second shard stops early, so that the two have doubled differently.
		shard := 0
		if i < 1000 {
			shard = i % 2
		}
		chunk(r, at, shard, tiers.Storage, tiers.Read, tiers.Decode, 1)
		r.Request(RequestSample{At: at, Shard: shard})
		r.Gauge(at, Gauge{Queued: int64(i)})
	}
	end := time.Duration(n-1) * 10 * time.Millisecond
	r.SetEnd(end)
	tl := Build(infoOf(result.Result{}), r).Timeline
	assert.LessOrEqual(t, len(tl.Requests), maxBuckets)
	assert.Equal(t, 40*time.Millisecond, time.Duration(tl.IntervalNS))
	var requests, bytes int64
	for i := range tl.Requests {
		requests += tl.Requests[i]
		bytes += tl.ReadBytes["storage"][i]
	}
	assert.EqualValues(t, n, requests)
	assert.EqualValues(t, n, bytes)
	assert.EqualValues(t, 4, tl.Requests[1])
	assert.EqualValues(t, 7, *tl.Queued[1], "the last reading of the interval")
	assert.NotContains(t, tl.ReadBytes, "gpu")
}

// The first row has all times below 1.4 µs, the last all of half a day and more.
func TestRowsOfTimes(t *testing.T) {
	var tl timeline
	tl.interval = time.Second
	for _, d := range []time.Duration{-time.Second, 0, 1999, 2000, 100 * time.Hour} {
		tl.took(timedRead, 0, d)
	}
	assert.Equal(t, timeRows{0: 3, 2: 1, 71: 1}, *tl.buckets[0].times[timedRead])
}

// What shards have counted in the same interval is one, and rows are those between the fastest and
// the slowest.
func TestTimesOverTime(t *testing.T) {
	r := openRecorder(2, time.Second)
	at := []time.Duration{5 * time.Millisecond, 6 * time.Millisecond, 995 * time.Millisecond}
	for i, took := range []time.Duration{100 * time.Microsecond, 100 * time.Microsecond,
		3 * time.Millisecond} {
		q := RequestSample{At: at[i], Shard: i}
		q.Time.EndToEnd = int64(took)
		r.Request(q)
	}
	times := Build(Info{}, r).Timeline.TimesUS
	g := times["request_end_to_end"]
	require.Len(t, g.Counts, 100)
	require.Len(t, g.From, 11)
	assert.InDelta(t, 90.51, g.From[0], 0.01)
	assert.InDelta(t, 2896, g.From[10], 1)
	assert.Equal(t, tracing.Counts{2}, g.Counts[0])
	assert.Nil(t, g.Counts[50])
	assert.Equal(t, tracing.Counts{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, g.Counts[99])
	assert.Len(t, times, 1, "nothing was read or written")

	c := Build(Info{}, r).Timeline.Course() // of a second build, which finds all as it was
	require.NotNil(t, c)
	assert.InDelta(t, 1, c.At[99], 1e-9)
	assert.Equal(t, g, c.Histograms["request_end_to_end"])
}

func TestTimelineOfTheWindow(t *testing.T) {
	r := openRecorder(1, time.Second)
	r.Request(RequestSample{At: time.Second}) // at the very end
	r.Gauge(500*time.Millisecond, Gauge{InFlight: 3})
	tl := Build(Info{}, r).Timeline
	assert.Len(t, tl.Requests, 100)
	assert.EqualValues(t, 1, tl.Requests[99])
	assert.Nil(t, tl.InFlight[49])
	assert.EqualValues(t, 3, *tl.InFlight[50])
	assert.EqualValues(t, 3, *tl.InFlight[99], "a reading holds until the next")
	assert.Equal(t, int64(10*time.Millisecond), tl.LastNS)
}

// What left a tier stands in the interval in which it left, and adds up to the tier's totals.
func TestTimelineOfEvictionsAndDemotions(t *testing.T) {
	rec := openRecorder(1, time.Second)
	rec.Evict(15*time.Millisecond, 0, tiers.Storage, 3<<20)
	rec.Evict(905*time.Millisecond, 0, tiers.Storage, 1<<20)
	rec.Demote(15*time.Millisecond, 0, tiers.CPU, tiers.Storage, 2<<20)
	chunk(rec, 20*time.Millisecond, 0, tiers.CPU, tiers.Write, tiers.Prefill, 1)
	chunk(rec, 20*time.Millisecond, 0, tiers.Storage, tiers.Write, tiers.Prefill, 1)
	tl := Build(infoOf(result.Result{}), rec).Timeline
	require.NotNil(t, tl)
	for _, c := range []struct {
		at   int
		list []int64
		want int64
	}{{1, tl.EvictedBytes["storage"], 3 << 20}, {90, tl.EvictedBytes["storage"], 1 << 20},
		{1, tl.DemotedBytes["cpu"], 2 << 20}, {1, tl.DemotedBytes["storage"], 0}} {
		require.Len(t, c.list, len(tl.Requests))
		assert.Equal(t, c.want, c.list[c.at])
	}
}
