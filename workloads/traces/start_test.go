package traces

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
)

// secondsAzure has a request at each of the given seconds; its context tells which.
func secondsAzure(t *testing.T, at ...int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	for _, s := range at {
		fmt.Fprintf(&b, "2023-11-16 18:%02d:%02d.0000000,%d,5\n", s/60, s%60, 1000+s)
	}
	return write(t, "a.csv", b.String())
}

// timesOf are the requests as "context@arrival".
func timesOf(rs []*workloads.Request) string {
	var parts []string
	for _, r := range rs {
		parts = append(parts, fmt.Sprintf("%d@%v", r.ContextTokens, r.Arrival))
	}
	return strings.Join(parts, " ")
}

func TestStartPassesOverWhatWasBefore(t *testing.T) {
	path := secondsAzure(t, 100, 110, 130, 160) // 0, 10, 30 and 60 s into the trace
	for _, c := range []struct {
		what  string
		start time.Duration
		more  func(*Config)
		want  string
	}{
		{"none", 0, nil, "1100@0s 1110@10s 1130@30s 1160@1m0s"},
		{"between two requests", 20 * time.Second, nil, "1130@10s 1160@40s"},
		{"at a request", 30 * time.Second, nil, "1130@0s 1160@30s"},
		{"before the speed-up", 20 * time.Second, func(c *Config) { c.Speedup = 2 }, "1130@5s 1160@20s"},
		{"as fast as possible", 20 * time.Second, func(c *Config) { c.Speedup = 0 }, "1130@0s 1160@0s"},
		{"at a rate", 20 * time.Second, func(c *Config) { c.Rate, c.ConstantRate = 4, true }, "1130@0s 1160@250ms"},
		{"limited", 5 * time.Second, func(c *Config) { c.MaxRequests = 2 }, "1110@5s 1130@25s"},
		// A cycle ends with its last request; the next begins a mean distance (20 s) later, at the
		// same place of the trace.
		{"in every cycle", 20 * time.Second, func(c *Config) { c.Cycles = 2 }, "1130@10s 1160@40s 1130@1m10s 1160@1m40s"},
	} {
		cfg := traceConfig(path)
		cfg.Speedup, cfg.Start = 1, c.start
		if c.more != nil {
			c.more(&cfg)
		}
		s := openTrace(t, NewAzure, cfg)
		rs := all(t, s)
		assert.Equal(t, c.want, timesOf(rs), c.what)
		report := s.Report()
		if c.start >= 20*time.Second {
			assert.EqualValues(t, 2, report.Skipped, c.what)
			assert.EqualValues(t, 4, report.Rows, "the rows of the file, counted once")
			assert.Contains(t, rs[0].Own.Key, "/3.", "keys keep the row's number in the file")
		}
		loads := s.Account(time.Hour)
		assert.EqualValues(t, len(rs), loads[workloads.Responsive].Offered, "%s: what was passed over was never offered", c.what)
		assert.Zero(t, loads[workloads.Responsive].Queued)
	}
}

// Several files are one trace: its clock does not jump where one ends.
func TestStartInALaterFile(t *testing.T) {
	cfg := traceConfig(secondsAzure(t, 0, 10, 20), secondsAzure(t, 500, 510)) // 0, 10, 20 and, 10 s on average later, 30, 40
	cfg.Speedup, cfg.Start = 1, 25*time.Second
	assert.Equal(t, "1500@5s 1510@15s", timesOf(all(t, openTrace(t, NewAzure, cfg))))
	cfg.Start = 15 * time.Second
	assert.Equal(t, "1020@5s 1500@15s 1510@25s", timesOf(all(t, openTrace(t, NewAzure, cfg))))
}

func TestStartBeyondTheEnd(t *testing.T) {
	for _, speedup := range []float64{0, 1} {
		cfg := traceConfig(secondsAzure(t, 0, 60))
		cfg.Cycles, cfg.Speedup, cfg.Start = 0, speedup, 2*time.Minute
		_, err := NewAzure(cfg)
		require.ErrorContains(t, err, "the trace is over 1m0s after its first request, before the start of the replay at 2m0s")
	}
}

// The ideal is that of the replayed part: blocks of before are not known to it.
func TestStartOfABlockTrace(t *testing.T) {
	path := write(t, "m.jsonl", `{"timestamp": 0, "input_length": 1000, "output_length": 5, "hash_ids": [1, 2]}
{"timestamp": 5000, "input_length": 1000, "output_length": 5, "hash_ids": [1, 2]}
{"timestamp": 9000, "input_length": 1000, "output_length": 5, "hash_ids": [1, 2]}
`)
	cfg := traceConfig(path)
	cfg.Speedup, cfg.Start = 1, 4*time.Second
	rs := all(t, openTrace(t, NewBlockTrace, cfg))
	require.Len(t, rs, 2)
	assert.Equal(t, []int{0, 2}, []int{rs[0].IdealBlocks, rs[1].IdealBlocks})
	assert.Equal(t, "1000@1s 1000@5s", timesOf(rs))
}

// A conversation whose first turns were passed over begins with its first turn in the replay.
func TestStartOfASession(t *testing.T) {
	path := write(t, "b.csv", `Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type,Session ID,Elapsed time
10,ChatGPT,100,10,110,Conversation log,s1,1
20,ChatGPT,200,10,210,Conversation log,s1,1
30,ChatGPT,300,10,310,Conversation log,s1,1
`)
	cfg := traceConfig(path)
	cfg.Speedup, cfg.Start = 1, 10*time.Second
	rs := all(t, openTrace(t, NewBurstGPT, cfg))
	require.Len(t, rs, 2)
	assert.Equal(t, []int{1, 2}, []int{rs[0].Turn, rs[1].Turn})
	assert.Empty(t, rs[0].History)
	assert.Len(t, rs[1].History, 1)
}

func TestConversationsHaveNoStart(t *testing.T) {
	cfg := traceConfig(testdata("sharegpt-small.json"))
	cfg.Start = time.Second
	_, err := NewShareGPT(cfg, ShareGPTConfig{})
	require.ErrorContains(t, err, "have no times")
}
