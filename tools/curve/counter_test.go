package curve

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads/formats"
	"kvbench/workloads/model"
)

// reported returns the counts of a report, without a model and a drive.
func reported(c *counter) *Report {
	r := &Report{kept: 1}
	c.report(r)
	return r
}

// A block that is requested twice within a minute, computed by hand.
func TestRatesOfACapacity(t *testing.T) {
	c := newCounter(model.Sizer{BytesPerToken: 1}, []int64{50, 30, 100}, 0)
	add := func(at time.Duration, ids ...int64) {
		require.NoError(t, c.add(&formats.Row{Blocks: ids, BlockTokens: 10,
			Context: 10 * len(ids)}, at))
	}
	add(0, 1, 2)
	add(90*time.Second, 3)
	add(100*time.Second, 1, 2, 4)
	add(200*time.Second, 5)
	r := reported(c)
	assert.EqualValues(t, 50, r.FootprintBytes)
	assert.EqualValues(t, 30, r.LargestRequestBytes)
	at := func(capacity int64) Point {
		i := slices.IndexFunc(r.Points, func(p Point) bool { return p.CapacityBytes == capacity })
		require.GreaterOrEqual(t, i, 0, capacity)
		return r.Points[i]
	}
	p := at(30)
	assert.Equal(t, Point{CapacityBytes: 30, Tokens: 30, Asked: true, Fits: true, Hits: 2, Written: 5,
		HitRatio: new(2.0 / 7), OfIdeal: new(1.0), TokenHitRatio: new(2.0 / 7),
		PrefixHitRatio: new(0.25), ReadBytes: 20, WriteBytes: 50, Read: new(0.1), Write: new(0.25),
		PeakRead: new(20.0 / 60), PeakWrite: new(20.0 / 60), DriveWrites: new(0.25 * 24 * 3600 / 30)}, p)
}

func TestWarmUpFillsAndDoesNotCount(t *testing.T) {
	all := newCounter(model.Sizer{BytesPerToken: 1}, nil, 0)
	tail := newCounter(model.Sizer{BytesPerToken: 1}, nil, 100*time.Second)
	head := newCounter(model.Sizer{BytesPerToken: 1}, nil, 0)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		first := 20 * rng.Int64N(9) // of a conversation that has grown to any length
		var ids []int64
		for id := range 1 + rng.Int64N(20) {
			ids = append(ids, first+id)
		}
		row, at := formats.Row{Blocks: ids, BlockTokens: 8, Context: 8 * len(ids)}, time.Duration(i)*time.Second
		require.NoError(t, all.add(&row, at))
		require.NoError(t, tail.add(&row, at))
		if i < 100 {
			require.NoError(t, head.add(&row, at))
		}
	}
	a, b, h := reported(all), reported(tail), reported(head)
	assert.Equal(t, a.Requests, b.Requests+h.Requests)
	assert.EqualValues(t, 199, b.DurationS)
	assert.Equal(t, a.ideal, b.ideal+h.ideal)
	assert.Positive(t, b.ideal)
}

// BenchmarkCurve computes a curve with its counts. blocks/s must be above five millions.
func BenchmarkCurve(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	row, blocks := formats.Row{BlockTokens: 512}, int64(0)
	c := newCounter(model.Sizer{BytesPerToken: 128}, nil, 0)
	at := time.Duration(0)
	for b.Loop() {
		talk := min(rng.IntN(4000), rng.IntN(4000))
		row.Blocks = row.Blocks[:0]
		for i := range 100 + rng.IntN(200) {
			row.Blocks = append(row.Blocks, int64(talk*300+i))
		}
		row.Context = 512 * len(row.Blocks)
		at += time.Second
		require.NoError(b, c.add(&row, at))
		blocks += int64(len(row.Blocks))
	}
	b.ReportMetric(float64(blocks)/b.Elapsed().Seconds(), "blocks/s")
}
