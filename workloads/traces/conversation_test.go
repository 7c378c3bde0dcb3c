package traces

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// TestOrderedConversations: a turn waits for the entry of the turn before, and other requests overtake it.
func TestOrderedConversations(t *testing.T) {
	text := "Timestamp,Request tokens,Response tokens,Session ID\n1,10,1,a\n2,10,1,a\n3,10,1,b\n" +
		"4,10,1,a\n5,10,1,\n"
	s := openTrace(t, formats.BurstGPT, traceConfig(write(t, "x.csv", text)))
	take := func() *workloads.Request {
		r, st, _ := s.Take(0)
		require.Equal(t, workloads.Ready, st)
		return r
	}
	a1, b1, free := take(), take(), take()
	assert.Equal(t, []int64{0, 2, 4}, []int64{a1.Seq, b1.Seq, free.Seq})
	_, st, wake := s.Take(0)
	assert.Equal(t, workloads.Wait, st)
	assert.Equal(t, workloads.Never, wake)
	s.Written(free)
	s.Written(b1)
	_, st, _ = s.Take(0)
	assert.Equal(t, workloads.Wait, st)
	s.Written(a1)
	a2 := take()
	assert.Equal(t, int64(1), a2.Seq)
	_, st, _ = s.Take(0)
	assert.Equal(t, workloads.Wait, st)
	s.Written(a2)
	assert.Equal(t, int64(3), take().Seq)
	_, st, _ = s.Take(0)
	assert.Equal(t, workloads.Exhausted, st)

	cfg := traceConfig(write(t, "x.csv", text))
	cfg.Overtaking = true
	s = openTrace(t, formats.BurstGPT, cfg)
	for seq := range int64(5) {
		assert.Equal(t, seq, take().Seq)
	}
}

// TestDeferredTurnsAreBounded: one session has more turns than may wait at a time.
func TestDeferredTurnsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("Timestamp,Request tokens,Response tokens,Session ID\n")
	const rows = maxWaiting + 3000
	for i := range rows {
		fmt.Fprintf(&b, "%d,10,1,a\n", i)
	}
	cfg := traceConfig(write(t, "x.csv", b.String()))
	cfg.Profile.MaxTurns = rows
	s := openTrace(t, formats.BurstGPT, cfg)
	for seq := range int64(rows) {
		r, st, _ := s.Take(0)
		require.Equal(t, workloads.Ready, st)
		require.Equal(t, seq, r.Seq)
		_, st, wake := s.Take(0)
		if seq < rows-1 {
			require.Equal(t, workloads.Wait, st)
			require.Equal(t, workloads.Never, wake)
		}
		require.LessOrEqual(t, s.queue.len(), maxWaiting)
		s.Written(r)
		s.Done(r, 0)
	}
	_, st, _ := s.Take(0)
	assert.Equal(t, workloads.Exhausted, st)
}
