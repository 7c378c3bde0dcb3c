package traces

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// TestTraceAccount compares the counts of arrivals with a list of all rows, for random speeds and random
// workers.
func TestTraceAccount(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := traceConfig(
			testdata([]string{"burstgpt-small.csv", "burstgpt-v3-small.csv"}[rng.IntN(2)]),
			testdata("burstgpt-small.csv"))
		cfg.Speedup, cfg.Cycles, cfg.Seed = 10+1000*rng.Float64(), 1+rng.IntN(3), seed
		cfg.PrefixCaching, cfg.Overtaking = rng.IntN(2) == 0, rng.IntN(2) == 0
		if rng.IntN(3) == 0 {
			cfg.Rate, cfg.ConstantRate = 1+20*rng.Float64(), rng.IntN(2) == 0
		}
		if rng.IntN(3) == 0 {
			cfg.MaxRequests = 1 + rng.Int64N(60)
		}
		rows := all(t, openTrace(t, formats.BurstGPT, cfg))
		slices.SortFunc(rows, func(a, b *workloads.Request) int { return int(a.Seq - b.Seq) })

		s := openTrace(t, formats.BurstGPT, cfg)
		var flying []*workloads.Request
		taken := map[int64]bool{}
		now := time.Duration(0)
		for {
			r, st, wake := s.Take(now)
			if st == workloads.Ready {
				want := rows[r.Seq]
				require.Equal(t, lines([]*workloads.Request{want}), lines([]*workloads.Request{r}))
				require.Equal(t, want.History, r.History)
				require.False(t, taken[r.Seq])
				for seq := range r.Seq { // the most urgent first, then the earliest
					require.True(t, taken[seq] || rows[seq].Class < r.Class ||
						!cfg.Overtaking && rows[seq].Turn > 1, "row %d before %d", r.Seq, seq)
				}
				taken[r.Seq] = true
				flying = append(flying, r)
			}
			stuck := st != workloads.Ready && wake == workloads.Never
			for len(flying) > 0 && (stuck || rng.IntN(3) == 0) {
				i := rng.IntN(len(flying))
				s.Written(flying[i])
				s.Done(flying[i], now)
				flying = slices.Delete(flying, i, i+1)
				wake = now
			}
			if st == workloads.Exhausted {
				break
			}
			if st == workloads.Wait && wake > now && wake != workloads.Never {
				now = wake + time.Duration(rng.Int64N(int64(20*time.Second)))
			}
			var want [workloads.NumClasses]workloads.ClassLoad
			for c := range want {
				want[c].Oldest = workloads.Never
			}
			until := now + time.Duration(rng.Int64N(int64(time.Second)))
			if seed%2 == 0 {
				until = now
			}
			until = max(until, s.now)
			now = until
			for _, row := range rows {
				if row.Arrival > until {
					break
				}
				load := &want[row.Class]
				load.Offered++
				load.OfferedTokens += int64(row.Own.Tokens)
				if !taken[row.Seq] {
					load.Queued++
					load.Oldest = min(load.Oldest, row.Arrival)
				}
			}
			require.Equal(t, want[:], s.Account(until), "seed %d at %v", seed, until)
		}
		assert.Len(t, taken, len(rows))
		assert.NoError(t, s.Err())
	}
}

// TestAccountIsBounded: a replay of absurd speed is counted late, so that the backlog does not fill the memory.
func TestAccountIsBounded(t *testing.T) {
	rows := "Timestamp,Request tokens,Response tokens\n" + strings.Repeat("5,10,1\n", 100_000)
	cfg := traceConfig(write(t, "x.csv", rows))
	cfg.Cycles, cfg.Speedup = 0, 1e12
	s := openTrace(t, formats.BurstGPT, cfg)
	assert.LessOrEqual(t, total(s.Account(time.Minute)).Offered, int64(maxWaiting))
}

// total adds the classes. Its Oldest is the oldest of all classes.
func total(loads []workloads.ClassLoad) workloads.ClassLoad {
	all := workloads.ClassLoad{Oldest: workloads.Never}
	for _, l := range loads {
		all.Offered += l.Offered
		all.OfferedTokens += l.OfferedTokens
		all.Queued += l.Queued
		all.Oldest = min(all.Oldest, l.Oldest)
	}
	return all
}
