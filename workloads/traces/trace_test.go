package traces

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// testdata is the path of a fixture in the repository's own folder.
func testdata(name string) string { return filepath.Join("..", "..", "testdata", name) }

// write makes a file in a new directory.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// traceConfig replays files once, as fast as possible.
func traceConfig(paths ...string) Config {
	return Config{Paths: paths, Cycles: 1, Profile: users.Default(), MultiTurn: true}
}

func openTrace(t *testing.T, format formats.Format, cfg Config) *Trace {
	t.Helper()
	s, err := New(format, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.Empty(t, s.reader.heads, "a file is left open")
	})
	return s
}

// all takes every request when it arrives, and finishes it at once.
func all(t *testing.T, s *Trace) []*workloads.Request {
	t.Helper()
	var rs []*workloads.Request
	now := time.Duration(0)
	for {
		r, st, wake := s.Take(now)
		switch st {
		case workloads.Exhausted:
			return rs
		case workloads.Wait:
			require.Greater(t, wake, now)
			require.NotEqual(t, workloads.Never, wake)
			now = wake
		case workloads.Ready:
			rs = append(rs, r)
			s.Written(r)
			s.Done(r, now)
		}
	}
}

func lines(rs []*workloads.Request) string {
	var b strings.Builder
	for _, r := range rs {
		fmt.Fprintf(&b, "%d %v %s %d+%d\n", r.Seq, r.Arrival, r.Own.Key, r.ContextTokens,
			r.GenerateTokens)
	}
	return b.String()
}

func TestAzure(t *testing.T) {
	cfg := traceConfig(testdata("azure-small.csv"))
	cfg.Speedup = 1
	s := openTrace(t, formats.Azure, cfg)
	rs := all(t, s)
	require.NoError(t, s.Err())
	require.Len(t, rs, 20)
	assert.Equal(t, `0 0s req/azure/1.0 6471+25
1 251.9096ms req/azure/2.0 1545+188
2 1.5741038s req/azure/3.0 8316+110
`, lines(rs[:3]))
	for _, r := range rs {
		assert.Equal(t, -1, r.User)
		assert.Equal(t, -1, r.SystemPrompt)
		assert.Equal(t, 1, r.Turn)
		assert.Equal(t, r.ContextTokens >= 10000, r.Kind == workloads.PrefillOnly)
	}
	assert.Equal(t, workloads.TraceReport{Rows: 20, Cycles: 1}, s.Report())

	cfg.Speedup, cfg.MaxRequests = 10, 3
	assert.Equal(t, `0 0s req/azure/1.0 6471+25
1 25.19096ms req/azure/2.0 1545+188
2 157.41038ms req/azure/3.0 8316+110
`, lines(all(t, openTrace(t, formats.Azure, cfg))))
}

// TestClassesAreDrawnByRow: classes have the users' shares, in any order of taking requests. The most
// urgent arrived request is taken first.
func TestClassesAreDrawnByRow(t *testing.T) {
	const rows = 20000
	text := "Timestamp,Request tokens,Response tokens\n" + strings.Repeat("5,10,1\n", rows)
	path := write(t, "x.csv", text)
	classes := func(seed uint64, speedup float64) (of [rows]workloads.Class, order []int) {
		cfg := traceConfig(path)
		cfg.Seed, cfg.Speedup = seed, speedup
		for _, r := range all(t, openTrace(t, formats.BurstGPT, cfg)) {
			of[r.Seq] = r.Class
			order = append(order, int(r.Class))
		}
		return of, order
	}
	paced, order := classes(42, 1)
	var n [workloads.NumClasses]int
	for _, c := range paced {
		n[c]++
	}
	for c, share := range [...]float64{workloads.Interactive: 0.15, workloads.Responsive: 0.35,
		workloads.Batch: 0.5} {
		assert.InDelta(t, share, float64(n[c])/rows, 0.015, "%v", workloads.Class(c))
	}
	slices.Reverse(order)
	assert.True(t, slices.IsSorted(order), "all arrive at once: interactive ones are first")
	fast, order := classes(42, 0)
	assert.Equal(t, paced, fast, "a class is the row's and the seed's")
	assert.False(t, slices.IsSorted(order), "no request waits, so priorities have no effect")
	other, _ := classes(43, 0)
	assert.NotEqual(t, paced, other)

	cfg := traceConfig(testdata("mooncake-small.jsonl"))
	for i, r := range all(t, openTrace(t, formats.Blocks, cfg)) {
		assert.Equal(t, workloads.Responsive, r.Class, "blocks: order alone decides")
		assert.EqualValues(t, i, r.Seq)
	}
}

// TestAsFastAsPossible: a row arrives when it is taken, and the input is repeated under other keys.
func TestAsFastAsPossible(t *testing.T) {
	cfg := traceConfig(testdata("azure-small.csv"))
	cfg.Cycles = 0
	s := openTrace(t, formats.Azure, cfg)
	keys := map[string]bool{}
	for i := range 50 {
		now := time.Duration(i) * time.Millisecond
		r, st, _ := s.Take(now)
		require.Equal(t, workloads.Ready, st)
		require.Equal(t, now, r.Arrival)
		require.Equal(t, fmt.Sprintf("req/azure/%d.%d", i%20+1, i/20), r.Own.Key)
		keys[r.Own.Key] = true
		load := total(s.Account(now))
		require.Equal(t, int64(i+1), load.Offered)
		require.Zero(t, load.Queued)
		require.Equal(t, workloads.Never, load.Oldest)
	}
	assert.Len(t, keys, 50)
	assert.Equal(t, workloads.TraceReport{Rows: 20, Cycles: 2}, s.Report())
	require.NoError(t, s.Close())
	_, st, _ := s.Take(time.Hour)
	assert.Equal(t, workloads.Exhausted, st)
}

func TestTraceRates(t *testing.T) {
	cfg := traceConfig(testdata("azure-small.csv"))
	cfg.Cycles, cfg.Rate, cfg.Seed = 0, 50, 9
	load := total(openTrace(t, formats.Azure, cfg).Account(200 * time.Second))
	assert.InDelta(t, 10000, load.Offered, 300)
}

func TestTracePrefixes(t *testing.T) {
	cfg := traceConfig(testdata("azure-small.csv"))
	cfg.Cycles, cfg.PrefixCaching, cfg.PrefillOnly, cfg.MaxRequests = 0, true, true, 5000
	prompts := 0
	for _, r := range all(t, openTrace(t, formats.Azure, cfg)) {
		require.Equal(t, workloads.PrefillOnly, r.Kind)
		if r.SystemPrompt >= 0 {
			prompts++
			require.Equal(t,
				users.OwnTokens(r.ContextTokens, cfg.Profile.SystemPromptTokens[r.SystemPrompt]),
				r.Own.Tokens)
		}
	}
	assert.InDelta(t, 1000, prompts, 100)
}
