package collector

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing"
	"kvbench/tracing/host"
)

func TestRecovering(t *testing.T) {
	idle := "1 0 8 0 1 0 8 0 0 0 0"
	busy := "1 0 8 0 1 0 8 0 2 0 0"
	for _, c := range []struct {
		name       string
		stat       string
		inFlight   [2]int64
		first      uint64 // dispatched when, 0 = nothing is lost
		asked      bool
		unobserved int64
	}{
		{"nothing in flight", idle, [2]int64{}, 0, false, 0},
		{"the device is at work", busy, [2]int64{1, 0}, 300, false, 0},
		{"dispatched after the look", idle, [2]int64{0, 1}, 0, true, 0},
		{"lost in the window", idle, [2]int64{1, 0}, 300, true, 200},
		{"lost before the window", idle, [2]int64{1, 1}, 50, true, 400},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "stat"), []byte(c.stat), 0o644))
		f := &fakePrograms{first: c.first,
			edges: []edge{{now: 100}, {now: 500, inFlight: c.inFlight}}}
		col := &Collector{programs: f, targets: []host.Disk{{SysPath: dir}}}
		require.NoError(t, col.OpenWindow())
		assert.Equal(t, c.first != 0 && c.asked, col.recoverLost(), c.name)
		if c.asked {
			assert.Equal(t, []uint64{500}, f.recovered, c.name)
		} else {
			assert.Empty(t, f.recovered, c.name)
		}
		assert.Equal(t, c.unobserved, col.window.unobserved, c.name)
	}
}

func TestRecoveredRequestsBalance(t *testing.T) {
	f := &fakePrograms{lost: lostInFlight{counted: [2]int64{0, 1}, recovered: [2]int64{4, 0}}}
	f.edges = []edge{{now: 1000}, {now: 9000, inFlight: [2]int64{0, 1}, first: 1500}}
	c := &Collector{programs: f}
	require.NoError(t, c.OpenWindow())
	f.counts.directions[dirRead].Issued, f.counts.directions[dirRead].Requests = 10, 6
	f.counts.directions[dirWrite].Issued, f.counts.directions[dirWrite].Requests = 3, 2
	require.NoError(t, c.CloseWindow())
	tr, err := c.Snapshot()
	require.NoError(t, err)
	for _, d := range []tracing.Direction{tr.Capture.Read, tr.Capture.Write} {
		assert.Zero(t, d.Imbalance())
		assert.Zero(t, d.InFlightAfter)
	}
	assert.EqualValues(t, 4, tr.Capture.Read.Stale)
	assert.EqualValues(t, 1, tr.Capture.Write.Stale)
}
