package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/requests"
	"kvbench/kvbench/result"
	"kvbench/tiers/buffer"
	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/model"
	"kvbench/workloads/profile"
	"kvbench/workloads/reuse"
	"kvbench/workloads/traces"
)

// What a cache finds here it finds in a replay by the benchmarks, to the last block, with each
// order of eviction and each policy of tiers.
func TestEstimatesEqualReplays(t *testing.T) {
	const path = "../../../testdata/mooncake-small.jsonl"
	sizer := model.Sizer{BytesPerToken: 131072}
	input := traces.Config{Paths: []string{path}, Cycles: 1, Profile: profile.Default()}
	seen := map[int64]bool{}
	for _, c := range []struct {
		place, promote, order string
		after                 int
		above                 int64
	}{
		{"waterfall", "never", "lru", 0, 0},
		{"waterfall", "never", "fifo", 0, 0},
		{"waterfall", "never", "lfu", 0, 0},
		{"waterfall", "never", "s3-fifo", 0, 0},
		{"waterfall", "never", "lru", 0, 1 << 30},
		{"waterfall", "never", "lru", 2, 1 << 30},
		{"write-through", "on-hit", "lru", 0, 1 << 30},
		{"write-back", "on-hit", "s3-fifo", 0, 1 << 30},
		{"selective", "never", "fifo", 2, 1 << 30},
	} {
		policy := kvbench.PolicyOf(c.place, c.promote, c.order)
		policy.After = c.after
		for _, capacity := range []int64{1 << 30, 2 << 30, 5 << 30} {
			load, err := requests.New(requests.Config{Workers: 1, EndedBy: result.EndedByInput,
				Planner: workloads.Planner{Sizer: sizer},
				Source: func() (workloads.Source, error) {
					return traces.New(formats.Blocks, input)
				}})
			require.NoError(t, err)
			res, err := kvbench.Simulate(t.Context(), kvbench.Config{
				Info: record.Info{Result: result.Result{Benchmark: "BlockTrace",
					Division: result.DivisionQuick, Count: 1, Ranks: 1}, Sizer: sizer},
				Storage: kvbench.StorageConfig{StorageBytes: capacity, CPUBytes: c.above,
					Policy: policy, Use: buffer.Use{Chunk: 1 << 20, Depth: 1, Workers: 1}},
			}, load, kvbench.SimConfig{})
			require.NoError(t, err)
			require.Equal(t, result.StatusComplete, res.Status, res.Error)

			curve, sample := reuse.New(reuse.Config{Sizer: sizer}), Sample{}
			rows, err := traces.OpenRows(formats.Blocks, input)
			require.NoError(t, err)
			require.NoError(t, rows.Each(func(row *formats.Row, at time.Duration) error {
				sample.Add(row, at)
				return curve.Add(row, at)
			}))
			require.NoError(t, rows.Close())
			exact := curve.Summary()
			cfg := Config{Policy: policy.Policy, Above: c.above, Curve: reuse.Config{Sizer: sizer}}
			e, err := cfg.Estimate(t.Context(), &sample, &exact,
				[]reuse.Point{{Capacity: capacity}})
			require.NoError(t, err)
			p, b := e.Points[0], res.BlockCache
			assert.Equal(t, [...]int64{b.Hits, b.HitTokens, b.Unreachable, b.Written},
				[...]int64{p.Hits, p.HitTokens, p.Unreachable, p.Written}, "%+v, %d", c, capacity)
			seen[p.Hits] = true
		}
	}
	assert.Greater(t, len(seen), 9, "they differ in what they hit")
}
