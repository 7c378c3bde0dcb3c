package policy

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/cache"
	"kvbench/tiers/evict"
	"kvbench/workloads/formats"
	"kvbench/workloads/model"
	"kvbench/workloads/reuse"
	"kvbench/workloads/traces"
)

// talks is requests of conversations that come again a few times and grow; most of what comes again
// comes soon.
func talks(n int) (rows []formats.Row) {
	rng := rand.New(rand.NewPCG(1, 4))
	next := int64(0)
	var live [][]int64
	for len(rows) < n {
		at := len(live)
		if at > 0 && rng.IntN(3) > 0 {
			if at -= 1 + int(rng.ExpFloat64()*float64(n)/12); at < 0 {
				at = rng.IntN(len(live))
			}
		} else {
			live = append(live, nil)
		}
		for range 1 + rng.IntN(12) {
			live[at] = append(live[at], next)
			next++
		}
		ids := slices.Clone(live[at])
		rows = append(rows, formats.Row{Blocks: ids, BlockTokens: 16, Context: 16 * len(ids)})
	}
	return rows
}

// read gives rows, a second apart, to a sample.
func (s *Sample) read(rows []formats.Row) *Sample {
	for i := range rows {
		s.Add(&rows[i], time.Duration(i)*time.Second)
	}
	return s
}

// exactly is the curve of rows, and its points at every doubling above the largest request.
func exactly(t *testing.T, cfg reuse.Config, rows []formats.Row) (s reuse.Summary,
	of []reuse.Point) {
	c := reuse.New(cfg)
	for i := range rows {
		require.NoError(t, c.Add(&rows[i], time.Duration(i)*time.Second))
	}
	s = c.Summary()
	for i := 0; i < len(s.Points); i += 8 {
		if s.Points[i].Capacity > 4*s.LargestRequest {
			of = append(of, s.Points[i])
		}
	}
	require.Greater(t, len(of), 2)
	return s, of
}

func config(order string) Config {
	return Config{Policy: cache.Policy{Evict: evict.Orders[order]},
		Curve: reuse.Config{Sizer: model.Sizer{BytesPerToken: 3}}}
}

// A cache of least recent use does what the exact curve says, to the last byte and minute.
func TestLRUIsTheExactCurve(t *testing.T) {
	for _, warmup := range []time.Duration{0, 200 * time.Second} {
		c := config("lru")
		c.Curve.Warmup = warmup
		rows := talks(800)
		exact, of := exactly(t, c.Curve, rows)
		e, err := c.Estimate(t.Context(), new(Sample).read(rows), &exact, of)
		require.NoError(t, err)
		assert.Equal(t, of, e.Points)
		assert.Equal(t, Estimate{Points: of, Share: 1, Requests: 800, Joined: 1}, e)
	}
}

// Blocks that are asked for together find together what they find alone.
func TestJoinedBlocks(t *testing.T) {
	rows := talks(2000)
	for _, order := range []string{"fifo", "lfu", "s3-fifo"} {
		c := config(order)
		exact, of := exactly(t, c.Curve, rows)
		want, err := c.Estimate(t.Context(), new(Sample).read(rows), &exact, of)
		require.NoError(t, err)
		s := Sample{MostJoined: int(exact.Blocks) / 4}
		got, err := c.Estimate(t.Context(), s.read(rows), &exact, of)
		require.NoError(t, err)
		assert.Greater(t, got.Joined, 1)
		assert.EqualValues(t, 1, got.Share)
		for i, p := range got.Points {
			assert.InDelta(t, ratio(want.Points[i], &exact), ratio(p, &exact), 0.002, order)
			assert.Equal(t, exact.Blocks, p.Hits+p.Written+p.Unreachable)
		}
	}
}

func ratio(p reuse.Point, of *reuse.Summary) float64 {
	return float64(p.Hits) / float64(of.Blocks)
}

// A sample of half of the beginnings is within half a point, whichever half, though the tool's are
// ten times as large.
func TestSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("half a million blocks for forty caches")
	}
	rows := talks(30_000)
	for _, order := range []string{"fifo", "lfu", "s3-fifo"} {
		c := config(order)
		exact, of := exactly(t, c.Curve, rows)
		of = of[len(of)-3:]
		joined := Sample{MostJoined: int(exact.Blocks) / 4}
		want, err := c.Estimate(t.Context(), joined.read(rows), &exact, of)
		require.NoError(t, err)
		require.EqualValues(t, 1, want.Share)
		for seed := range uint64(3) {
			s := Sample{Seed: seed, Most: int(exact.Blocks) * 3 / 4,
				MostJoined: int(exact.Blocks) / 4}
			got, err := c.Estimate(t.Context(), s.read(rows), &exact, of)
			require.NoError(t, err)
			assert.InDelta(t, 0.5, got.Share, 0)
			for i, p := range got.Points {
				assert.InDelta(t, ratio(want.Points[i], &exact), ratio(p, &exact), 0.005,
					"%s, seed %d, capacity %d", order, seed, p.Capacity)
				assert.Equal(t, exact.Blocks, p.Hits+p.Written+p.Unreachable)
				t.Logf("%s seed %d capacity %d: %+.3f points, lru off by up to %.3f", order, seed,
					p.Capacity, 100*(ratio(p, &exact)-ratio(want.Points[i], &exact)), 100*got.Off)
			}
		}
	}
}

// The whole Mooncake trace, where somebody has it, with blocks joined though there is no need to.
func TestJoinedBlocksOfTheWholeMooncakeTrace(t *testing.T) {
	path := os.Getenv("KVTEST_MOONCAKE")
	if path == "" {
		t.Skip("KVTEST_MOONCAKE does not name mooncake's synthetic trace")
	}
	in, err := traces.OpenRows(formats.Blocks, traces.Config{Paths: []string{path}, Cycles: 1,
		Speedup: 1})
	require.NoError(t, err)
	defer in.Close()
	var rows []formats.Row
	require.NoError(t, in.Each(func(row *formats.Row, _ time.Duration) error {
		kept := *row
		kept.Blocks = slices.Clone(row.Blocks)
		rows = append(rows, kept)
		return nil
	}))
	for _, order := range []string{"fifo", "lfu", "s3-fifo"} {
		c := config(order)
		exact, of := exactly(t, c.Curve, rows)
		want, err := c.Estimate(t.Context(), new(Sample).read(rows), &exact, of)
		require.NoError(t, err)
		s := Sample{MostJoined: int(exact.Blocks) * 2 / 3}
		got, err := c.Estimate(t.Context(), s.read(rows), &exact, of)
		require.NoError(t, err)
		for i, p := range got.Points {
			t.Logf("%s joined %d capacity %d: %.5f, %+.3f points", order, got.Joined, p.Capacity,
				ratio(want.Points[i], &exact), 100*(ratio(p, &exact)-ratio(want.Points[i], &exact)))
			assert.InDelta(t, ratio(want.Points[i], &exact), ratio(p, &exact), 0.005)
		}
	}
}

// What a tier above the storage does to the storage: by hand. Two requests of one block each, of
// which the cpu tier holds one: the first goes down when the second comes, and is found there.
func TestATierAboveTheStorage(t *testing.T) {
	row := func(id int64) formats.Row {
		return formats.Row{Blocks: []int64{id}, BlockTokens: 16, Context: 16}
	}
	rows := []formats.Row{row(1), row(2), row(1)}
	c := config("lru")
	c.Above = 60 + 10 // of which four fifths are used: one block of 48 bytes
	exact, _ := exactly(t, c.Curve, append(talks(200), rows...))
	serve := func() reuse.Point {
		e, err := c.Estimate(t.Context(), new(Sample).read(rows), &exact,
			[]reuse.Point{{Capacity: 1000}})
		require.NoError(t, err)
		return e.Points[0]
	}
	p := serve()
	assert.Equal(t, []int64{1, 2, 48, 48}, []int64{p.Hits, p.Written, p.ReadBytes, p.WriteBytes})
	c.Policy.After = 2 // nobody has asked for it twice when it has to go
	p = serve()
	assert.Equal(t, []int64{0, 3, 0, 0}, []int64{p.Hits, p.Written, p.ReadBytes, p.WriteBytes})
	c.Policy.After, c.Policy.Place = 0, cache.WriteThrough
	p = serve()
	assert.Equal(t, []int64{1, 2, 48, 96}, []int64{p.Hits, p.Written, p.ReadBytes, p.WriteBytes})
	c.Policy.Promote = cache.OnHit
	rows = append(rows, row(1)) // now in the cpu tier
	p = serve()
	assert.Equal(t, []int64{2, 2, 48, 96}, []int64{p.Hits, p.Written, p.ReadBytes, p.WriteBytes})
	c.Policy = cache.Policy{TTL: time.Second / 2}
	p = serve()
	assert.Equal(t, []int64{0, 4}, []int64{p.Hits, p.Written})
}

func TestASampleAfterTheWarmUp(t *testing.T) {
	rows := talks(1000)
	c := config("fifo")
	exact, of := exactly(t, c.Curve, rows)
	c.Curve.Warmup = time.Hour
	_, err := c.Estimate(t.Context(), new(Sample).read(rows), &exact, of)
	assert.ErrorIs(t, err, ErrEmpty)
}
