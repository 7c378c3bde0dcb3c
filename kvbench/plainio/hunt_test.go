package plainio

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/buffer"
)

// curved is a storage by a formula: what so many requests of a size move, of 1.
type curved func(size int64, n int) float64

// bend is a storage of a bandwidth of 1 that takes a time for a request and bends more or less
// softly from the one to the other: at 8 and more like a drive with a limit, at 2 for three
// doublings. It has a bound of requests/s, too, 0 = none.
func bend(latency float64, softness float64, requests float64) curved {
	return func(size int64, n int) float64 {
		b := float64(size) / (1 << 20) // a MiB takes 1
		alone := float64(n) * b / (latency + b)
		most := 1.0
		if requests > 0 {
			most = min(most, requests*b)
		}
		return math.Pow(math.Pow(alone, -softness)+math.Pow(most, -softness), -1/softness)
	}
}

// peaked is one that goes down where many requests are in flight, as memory does.
func peaked(size int64, n int) float64 {
	return bend(1.0/64, 8, 0)(size, n) / (1 + math.Pow(float64(size)*float64(n)/(4<<20), 2))
}

var storages = map[string]curved{
	"hard":             bend(0.25, 12, 0),
	"requests":         bend(1.0/16, 12, 4),
	"soft":             bend(0.25, 3, 0),
	"very soft":        bend(1.0/16, 2, 0),
	"far":              bend(64, 8, 0),
	"peaked":           peaked,
	"soft of requests": bend(0.5, 4, 2),
}

// least is the fewest bytes in flight of those within 2 % of the fastest, and that.
func (c curved) least() (least int64, best float64) {
	var all []*pair
	for size := int64(pageSize); size <= KneeSize; size *= kneeStep {
		for n := 1; n <= kneeMost && size*int64(n) <= KneeFlight; n *= 2 {
			all = append(all, &pair{size: size, n: n, looks: []float64{c(size, n)}})
		}
	}
	best, least = fastest(all)
	return least, best
}

// hunter searches a storage of 1 GiB/s with a noise in a time of its own, of which each measurement
// takes what it has to. Some come to half only, because the storage stands still.
func hunter(c curved, noise, stalls float64, seed uint64) *hunt {
	rng := rand.New(rand.NewPCG(seed, 1))
	clock := time.Duration(0)
	return &hunt{least: pageSize, most: KneeSize, now: func() time.Duration { return clock },
		limit: kneeLimit * 3 / 4, // the rest is the filling's
		measure: func(_ context.Context, p *pair, least time.Duration) (float64, error) {
			clock += least
			rate := c(p.size, p.n) * (1 << 30) * (1 + noise*rng.NormFloat64())
			if rng.Float64() < stalls {
				rate /= 2
			}
			return rate, nil
		}}
}

// The knee has the fewest bytes in flight of those within 2 % of the fastest, whatever the noise,
// and whoever was lucky: of a hundred measurements with a noise of 5 % the luckiest is 12 % above.
func TestTheKneeDespiteNoise(t *testing.T) {
	searches := map[bool]int{true: 100, false: 300}[testing.Short() || buffer.RaceEnabled]
	for name, c := range storages {
		least, best := c.least()
		for _, noise := range []float64{0, 0.005, 0.02, 0.05} {
			var times []int64 // the least's
			good, fair, inside := 0, 0, 0
			for seed := range uint64(searches) {
				k, err := hunter(c, noise, 0.02, seed).run(t.Context())
				require.NoError(t, err)
				if !k.Known() { // and says so
					continue
				}
				rate := c(k.RequestBytes, k.InFlight) / best
				good += count(rate >= kneeWithin)
				fair += count(rate >= 0.95)
				inside += count(k.LeastBytes <= least && least <= k.MostBytes)
				times = append(times, k.Bytes()/least)
			}
			slices.Sort(times)
			found := len(times)
			p90 := times[found*9/10]
			t.Logf("%-16s noise %3.1f %%: within 2 %% %3d %%, 5 %% %3d %%; × least p50 %d p90 %d "+
				"p99 %d; in range %d %%, found %d %%", name, noise*100, good*100/found, fair*100/found,
				times[found/2], p90, times[found*99/100], inside*100/found, found*100/searches)
			assert.LessOrEqual(t, p90, int64(4), "%s, %g", name, noise)
			assert.GreaterOrEqual(t, fair, found*9/10, "%s, %g", name, noise)
			if noise <= 0.02 {
				assert.GreaterOrEqual(t, good, found*9/10, "%s, %g", name, noise)
			}
			assert.GreaterOrEqual(t, inside, found/2, "%s, %g", name, noise)
			assert.GreaterOrEqual(t, found, searches*8/10, "%s, %g", name, noise)
		}
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// measured is a pair that was looked at once, and measured again.
func measured(size int64, n int, look float64, rates ...float64) *pair {
	p := newPair(size, n)
	p.looks, p.rates = []float64{look}, rates
	return p
}

// known is a search that has measured this.
func known(rounds int, all ...*pair) *hunt {
	return &hunt{all: all, rounds: rounds, why: result.KneePlateau}
}

// A pair that comes to the limit only now and then is not the knee, were it by the median.
func TestTheKneeHasRoomToSpare(t *testing.T) {
	k := known(kneeRounds,
		measured(4096, 1, 52),
		measured(4096, 4, 200, 199, 201, 180, 200, 171),
		measured(4096, 16, 199, 200, 150, 200, 201, 200),
		measured(4<<20, 4, 200, 200, 199, 202, 200, 200)).answer(true)
	assert.EqualValues(t, 4096, k.RequestBytes)
	assert.Equal(t, 16, k.InFlight)
	assert.EqualValues(t, 200, k.Rate)
	assert.Len(t, k.Points, 4)
	// Where all vary as much, the least in flight of them is the knee.
	k = known(kneeRounds, measured(4096, 4, 200, 150, 199, 180, 190, 160),
		measured(4<<20, 4, 150, 201, 160, 190, 180, 200)).answer(true)
	assert.Equal(t, int64(4096), k.RequestBytes)
	assert.Equal(t, int64(16<<10), k.LeastBytes)
	assert.Equal(t, int64(16<<20), k.MostBytes)
}

// Who was measured less often, and was lucky, is not the knee; and that time has ended it is said.
func TestTheKneeIsOfThoseMeasuredEquallyOften(t *testing.T) {
	h := known(kneeRounds,
		measured(4096, 4, 210, 205, 206),
		measured(4096, 8, 230),
		measured(4096, 16, 199, 200, 201, 200),
		measured(4<<20, 4, 200, 200, 199, 202))
	k := h.answer(false)
	assert.Equal(t, 16, k.InFlight)
	assert.Equal(t, result.KneeTime, k.EndedBy)
	assert.EqualValues(t, 3, k.Points[2].Rounds, "without the look")
	for limit := time.Duration(0); limit < 16*time.Second; limit += time.Second {
		h := hunter(storages["hard"], 0.02, 0, 1)
		h.limit = limit
		k, err := h.run(t.Context())
		require.NoError(t, err)
		assert.NotZero(t, k.InFlight)
		if limit < 10*time.Second {
			assert.Equal(t, result.KneeTime, k.EndedBy, limit)
		}
	}
}

// Who is known to be slower makes room for the next ones, and never comes back.
func TestLosersOfASearchMakeRoom(t *testing.T) {
	lost := []float64{95, 95, 95, 95, 95}
	h := known(kneeRounds, measured(4096, 1, 99, lost...), measured(4096, 2, 99, lost...),
		measured(4096, 4, 99, lost...), measured(4096, 8, 99, lost...),
		measured(4096, 16, 99, lost...), measured(4096, 32, 93),
		measured(4096, 64, 100, 100, 100, 100, 100, 100))
	require.NotNil(t, h.next())
	assert.Equal(t, 32, h.next().n)
	h.all[5].rates = []float64{100, 99.9, 100, 100, 100}
	assert.Nil(t, h.next(), "it is the knee")
	assert.Equal(t, 32, h.answer(true).InFlight)
}

// A storage that stands still while it is looked at for the first time has its knee all the same:
// here the one size that is fast.
func TestAStallHidesNoKnee(t *testing.T) {
	c := curved(func(size int64, n int) float64 {
		if size != 64<<10 {
			return storages["hard"](size, n) / 2
		}
		return storages["hard"](size, n)
	})
	least, _ := c.least()
	h, seen := hunter(c, 0, 0, 1), false
	measure := h.measure
	h.measure = func(ctx context.Context, p *pair, d time.Duration) (float64, error) {
		rate, err := measure(ctx, p, d)
		if p.size == 64<<10 && p.inFlight() == least && !seen {
			seen = true
			rate /= 4
		}
		return rate, err
	}
	k, err := h.run(t.Context())
	require.NoError(t, err)
	assert.True(t, seen)
	assert.Equal(t, least, k.Bytes())
}

// What a limit saves while slow pairs are measured is no rate of the ones behind them.
func TestNoPairHasWhatALimitHasSaved(t *testing.T) {
	c := storages["hard"]
	least, _ := c.least()
	h, saved := hunter(c, 0.005, 0, 1), 0.0
	measure, spent := h.measure, 0
	h.measure = func(ctx context.Context, p *pair, d time.Duration) (float64, error) {
		rate, err := measure(ctx, p, d)
		b := float64(p.size) / (1 << 20)
		alone := float64(p.n) * b / (0.25 + b) * (1 << 30) // without a limit
		more := max(0, min(saved, (alone-rate)*d.Seconds()))
		saved += max(0, 1<<30-rate)*d.Seconds() - more
		if d == kneeSpend {
			spent++
		}
		return rate + more/d.Seconds(), err
	}
	k, err := h.run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, least, k.Bytes())
	assert.InEpsilon(t, 1<<30, k.Best, 0.01)
	assert.Positive(t, spent)
	assert.Equal(t, newPair(4096, 32), newPair(4096, 2).spender())
	assert.Equal(t, newPair(1<<20, 8), newPair(1<<20, 8).spender(), "enough by itself")
}

// A pair that just comes to the limit is not the knee, unless it is the first of its size.
func TestTheKneeWouldMoveMoreWithoutALimit(t *testing.T) {
	at := []float64{200, 200, 200, 200, 200}
	for one, knee := range map[float64]int{110: 4, 130: 2} {
		k := known(kneeRounds, measured(4096, 1, one), measured(4096, 2, 200, at...),
			measured(4096, 4, 200, at...), measured(4<<20, 1, 200, at...)).answer(true)
		assert.Equal(t, knee, k.InFlight, one)
		assert.Equal(t, int64(4096), k.RequestBytes)
	}
	k := known(kneeRounds, measured(4096, 1, 200, at...),
		measured(4096, 2, 200, at...)).answer(true)
	assert.Equal(t, 1, k.InFlight)
}
