package reuse

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

// talks makes requests of conversations that grow, branch, and share their beginnings, in blocks of eight
// tokens. The last block may be a part. A part is never requested as a whole block later.
func talks(n int) (rows []formats.Row) {
	rng := rand.New(rand.NewPCG(3, 4))
	next := int64(0)
	live := make([][]int64, 12)
	for range n {
		talk := &live[rng.IntN(len(live))]
		if len(*talk) > 24 {
			*talk = (*talk)[:rng.IntN(4)]
		}
		for range 1 + rng.IntN(4) {
			*talk = append(*talk, next)
			next++
		}
		whole := 8 * len(*talk)
		rows = append(rows, formats.Row{Blocks: slices.Clone(*talk), BlockTokens: 8,
			Context: whole, Scope: "t"})
		if rng.IntN(3) == 0 {
			row := &rows[len(rows)-1]
			row.Blocks, row.Context = append(row.Blocks, next), whole+1+rng.IntN(7)
			next++
		}
	}
	return rows
}

// single serves the rows with one cache of the given capacity, as simply as possible: it searches for the
// block to evict from the end of a list.
func single(rows []formats.Row, capacity, bytesPerToken int64) (p Point) {
	var order naive // newest first
	used := int64(0)
	for _, r := range rows {
		left, reachable := r.Context, true
		var sizes []int64
		for i, id := range r.Blocks {
			tokens := int64(min(left, r.BlockTokens))
			left -= r.BlockTokens
			size := tokens * bytesPerToken
			sizes = append(sizes, size)
			there := order.find("", id) >= 0
			switch {
			case there && reachable:
				p.Hits++
				p.HitTokens += tokens
				p.ReadBytes += size
				if i == 0 {
					p.PrefixHits++
				}
			case there:
				p.Unreachable++
			default:
				p.Written++
				p.WriteBytes += size
				used += size
				reachable = false
			}
		}
		order.request("", r.Blocks, sizes)
		for used > capacity {
			used -= order[len(order)-1].size
			order = order[:len(order)-1]
		}
	}
	return p
}

func TestCurveEqualsSingleCaches(t *testing.T) {
	rows := talks(200)
	asked := []int64{1500, 1999, 2000, 2001, 3000, 5000, 1 << 20}
	c := New(Config{Sizer: model.Sizer{BytesPerToken: 3}, Capacities: asked})
	for i := range rows {
		require.NoError(t, c.Add(&rows[i], time.Duration(i)*time.Second))
	}
	s := c.Summary()
	assert.Zero(t, s.Resized)
	assert.EqualValues(t, 200, s.Requests)
	assert.Equal(t, 199*time.Second, s.Duration)
	seen := 0
	require.Greater(t, len(s.Points), 20)
	for i, p := range s.Points {
		if p.Small {
			continue
		}
		seen++
		want := single(rows, p.Capacity, 3)
		got := Point{Hits: p.Hits, HitTokens: p.HitTokens, Unreachable: p.Unreachable,
			Written: p.Written, PrefixHits: p.PrefixHits, ReadBytes: p.ReadBytes,
			WriteBytes: p.WriteBytes}
		assert.Equal(t, want, got, "capacity %d", p.Capacity)
		assert.Equal(t, s.Blocks, p.Hits+p.Unreachable+p.Written)
		if i > 0 {
			assert.GreaterOrEqual(t, p.Hits, s.Points[i-1].Hits)
			assert.Greater(t, p.Capacity, s.Points[i-1].Capacity)
		}
	}
	assert.Greater(t, seen, 20)
	assert.Equal(t, slices.IndexFunc(s.Points, func(p Point) bool { return p.Capacity == 2001 }),
		1+slices.IndexFunc(s.Points, func(p Point) bool { return p.Capacity == 2000 }))
}

// A block that is requested twice within a minute, computed by hand.
func TestRatesAndFilling(t *testing.T) {
	c := New(Config{Sizer: model.Sizer{BytesPerToken: 1}, Capacities: []int64{50, 30, 100}})
	add := func(at time.Duration, ids ...int64) {
		require.NoError(t, c.Add(&formats.Row{Blocks: ids, BlockTokens: 10,
			Context: 10 * len(ids)}, at))
	}
	add(0, 1, 2)
	add(90*time.Second, 3)
	add(100*time.Second, 1, 2, 4)
	add(200*time.Second, 5)
	s := c.Summary()
	assert.EqualValues(t, 50, s.Footprint)
	assert.EqualValues(t, 30, s.LargestRequest)
	at := func(capacity int64) Point {
		i := slices.IndexFunc(s.Points, func(p Point) bool { return p.Capacity == capacity })
		require.GreaterOrEqual(t, i, 0, capacity)
		return s.Points[i]
	}
	p := at(30)
	assert.Equal(t, Point{Capacity: 30, Asked: true, Hits: 2, HitTokens: 20, Written: 5,
		PrefixHits: 1, ReadBytes: 20, WriteBytes: 50, PeakRead: 20, PeakWrite: 20,
		Full: 100 * time.Second, Beyond: -1}, p)
	p = at(50)
	assert.EqualValues(t, -1, p.Full)
	// From 90 s on, when there were 30 bytes: 20 bytes in 110 s.
	assert.Equal(t, 475*time.Second, at(100).Beyond.Round(time.Second))
}

func TestWarmUpFillsAndDoesNotCount(t *testing.T) {
	rows := talks(300)
	all := New(Config{Sizer: model.Sizer{BytesPerToken: 1}})
	tail := New(Config{Sizer: model.Sizer{BytesPerToken: 1}, Warmup: 100 * time.Second})
	head := New(Config{Sizer: model.Sizer{BytesPerToken: 1}})
	for i := range rows {
		at := time.Duration(i) * time.Second
		require.NoError(t, all.Add(&rows[i], at))
		require.NoError(t, tail.Add(&rows[i], at))
		if i < 100 {
			require.NoError(t, head.Add(&rows[i], at))
		}
	}
	a, b, h := all.Summary(), tail.Summary(), head.Summary()
	assert.Equal(t, a.Requests, b.Requests+h.Requests)
	assert.Equal(t, 199*time.Second, b.Duration)
	last := len(a.Points) - 1
	assert.Equal(t, a.Points[last].Hits,
		b.Points[len(b.Points)-1].Hits+h.Points[len(h.Points)-1].Hits)
}

// BenchmarkCurve computes a curve with its counts. blocks/s must be above five millions.
func BenchmarkCurve(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	row, blocks := formats.Row{BlockTokens: 512}, int64(0)
	c := New(Config{Sizer: model.Sizer{BytesPerToken: 128}})
	at := time.Duration(0)
	for b.Loop() {
		talk := min(rng.IntN(4000), rng.IntN(4000))
		row.Blocks = row.Blocks[:0]
		for i := range 100 + rng.IntN(200) {
			row.Blocks = append(row.Blocks, int64(talk*300+i))
		}
		row.Context = 512 * len(row.Blocks)
		at += time.Second
		require.NoError(b, c.Add(&row, at))
		blocks += int64(len(row.Blocks))
	}
	b.ReportMetric(float64(blocks)/b.Elapsed().Seconds(), "blocks/s")
}
