package requests

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/tiers/buffer"
	"kvbench/tiers/privtest"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
)

// groups are conversations of three turns: four users ask at a time, twice each, and once more when
// another group has been. Memory keeps nine entries (of twelve, up to four fifths), so that the
// second turns find the first ones there and the third turns do not.
func groups() (all []*workloads.Request) {
	const users, group = 40, 4
	turn := func(first, n int) {
		for user := first; user < first+group; user++ {
			all = append(all, conversation(user, n, 512, workloads.PrefillOnly)[n-1])
		}
	}
	for first := 0; first < users; first += group {
		turn(first, 1)
		turn(first, 2)
		if first >= group {
			turn(first-group, 3)
		}
	}
	return all
}

// The bytes that a policy moves are the bytes that the device moved: entries of two megabytes, nine
// of them in memory and 32 on a filesystem of the test's own.
func TestTheKernelSawWhatPoliciesMoved(t *testing.T) {
	tiertest.OneThread(t)
	const entry = 512 * unit
	fs := privtest.LoopFS(t, 96, privtest.LoopOptions{DirectIO: true, NoJournal: true})
	selective := kvbench.PolicyOf("selective", "never", "lru")
	selective.After = 2
	asked := int64(len(groups()))
	for _, c := range []struct {
		name    string
		policy  kvbench.Policy
		written int64 // entries, but for those that are in memory at the end
		all     bool  // these, too
		read    int64
	}{
		// The third turns read two each; the second ones find theirs in memory.
		{"waterfall", kvbench.PolicyOf("waterfall", "never", "lru"), asked, false, 72},
		{"write-through", kvbench.PolicyOf("write-through", "never", "lru"), asked, true, 72},
		// The first turns alone are asked for twice while they are in memory.
		{"selective", selective, 40, true, 36},
		// What was promoted has a copy already, and leaves memory without being written again.
		{"write-back", kvbench.PolicyOf("write-back", "on-hit", "lru"), asked, false, 72},
	} {
		cfg := testConfig(nil, newScript(groups()...), 1).finite()
		cfg.Storage = kvbench.StorageConfig{
			CPUBytes: 12 * entry, StorageBytes: 32 * entry, Direct: true,
			Roots: []kvbench.Root{{Dir: fs.Dir + "/cache"}},
			Use:   buffer.Use{Chunk: 1 << 20, Depth: 2, Workers: 1}, Policy: c.policy,
		}
		r := mustRun(t, cfg)
		w := r.DeviceCounters
		require.Equal(t, fs.Name, w.Device, w.Reason)
		memory, storage := r.Tiers[0], r.Tiers[1]
		if !c.all {
			c.written -= memory.Entries
		}
		if c.name == "write-back" { // some of those in memory have copies from before
			c.written = storage.DemotedIn.Entries
			assert.Less(t, c.written, asked)
			assert.Positive(t, r.Policy.Promoted.Entries)
		}
		assert.Equal(t, c.written*entry, storage.Write.Bytes, c.name)
		assert.Equal(t, c.read*entry, storage.Read.Bytes, c.name)
		assert.InDelta(t, 1, *w.WriteRatio, 0.01, "%s: %d of %d bytes", c.name, *w.WriteBytes,
			w.AppWriteBytes)
		assert.InDelta(t, 1, *w.ReadRatio, 0.01, "%s: %d of %d bytes", c.name, *w.ReadBytes,
			w.AppReadBytes)
		assert.Equal(t, storage.Write.Bytes, w.AppWriteBytes, c.name)
		assert.Equal(t, storage.Read.Bytes, w.AppReadBytes, c.name)
		assert.False(t, *w.ServedFromCache, c.name)
		assert.Equal(t, "direct", r.IO.Mode)
	}
}
