package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/privtest"
	"kvbench/tracing"
)

// TestSeveralDirectories runs on two devices, of which one is slow: the traffic of each directory is
// what its device counted, their sum is the storage tier's, and the next start removes in both what
// kill -9 left, and no file of the user.
func TestSeveralDirectories(t *testing.T) {
	t.Parallel()
	binary(t)
	b := newBench(t)
	fast := privtest.LoopFS(t, 128, privtest.LoopOptions{PreferDirectIO: true})
	slow := privtest.LoopFS(t, 128, privtest.LoopOptions{PreferDirectIO: true})
	dirs := []string{filepath.Join(fast.Dir, "user/cache"), filepath.Join(slow.Dir, "user/cache")}
	before := map[string]map[string]string{}
	for _, dir := range dirs {
		root := userFiles(t, dir)
		before[root] = tree(t, root)
	}
	throttle := privtest.ThrottleLoop(t, slow, 20<<20)
	b.command = []string{"sh", "-c", throttle + ` && exec "$0" "$@"`, binary(t), "-test.run=^$"}
	load := append(b.micro(), "-storage-capacity-gb=0.06", "-cache-dir", dirs[0],
		"-cache-dir", dirs[1], "-results-dir", b.results, "-num-users=8", "-division=open")

	// Killed while both of them have files.
	p := b.start(append(load, "-test.bench=PrefillOnly", "-test.benchtime=10m")...)
	eventually(t, "entries in both", func() bool {
		for _, dir := range dirs {
			if files, _ := filepath.Glob(filepath.Join(dir, "rank_0/*/*")); len(files) < 3 {
				return false
			}
		}
		return true
	})
	require.NoError(t, p.Process.Kill())
	p.end()

	o := b.ok(append(load, "-test.bench=MultiTurn", "-summary=long", "-test.benchtime=4s", "-warmup=0s",
		"-arrival=closed-loop", "-enable-latency-tracing")...)
	for root, want := range before {
		assert.Equal(t, want, tree(t, root), "the next run removes what was left, and nothing else")
	}
	r := theResult(t, b.results)
	warned := strings.Join(r.Warnings, "\n")
	for _, dir := range dirs {
		assert.Regexp(t, `reclaimed \d+ files .*, in `+dir, warned)
	}
	require.Len(t, r.IO.Roots, 2, o.stderr)
	read, write := r.StorageTraffic()
	var sum [4]int64
	var used int64
	for i, root := range r.IO.Roots {
		assert.Equal(t, dirs[i], root.Directory)
		assert.Equal(t, "ext4", root.Filesystem)
		assert.Equal(t, []string{"ext4", filepath.Dir(filepath.Dir(dirs[i]))},
			[]string{root.Mount.Type, root.Mount.MountPoint})
		require.NotNil(t, root.BlockDevice)
		assert.Equal(t, root.Device, root.BlockDevice.Name)
		require.NotNil(t, root.DeviceReadBytes, root.DeviceReason)
		assert.Positive(t, root.Read.Requests)
		assert.Positive(t, root.Entries)
		// Entries are padded to whole pages. The filesystem's own writes, and requests in flight at
		// an edge, are added.
		for _, d := range []struct {
			app    result.RootTraffic
			device int64
		}{{root.Read, *root.DeviceReadBytes}, {root.Write, *root.DeviceWriteBytes}} {
			const edge = 4 << 20
			assert.GreaterOrEqual(t, d.device, d.app.Bytes-edge, root.Device)
			assert.LessOrEqual(t, d.device, d.app.Bytes+4096*d.app.Requests+edge, root.Device)
		}
		for k, n := range []int64{root.Read.Bytes, root.Write.Bytes, *root.DeviceReadBytes,
			*root.DeviceWriteBytes} {
			sum[k] += n
		}
		used += root.UsedBytes
	}
	assert.Equal(t, []int64{read.Bytes, write.Bytes}, sum[:2], "the sums are the tier's")
	assert.InDelta(t, r.Tiers[len(r.Tiers)-1].UsedBytes, used, 4<<20)
	w := r.DeviceCounters
	require.NotNil(t, w.ReadBytes, w.Reason)
	assert.Equal(t, r.IO.Roots[0].Device+"+"+r.IO.Roots[1].Device, w.Device)
	assert.InDelta(t, sum[2], *w.ReadBytes, 4<<20, "so are those of the devices")
	assert.InDelta(t, sum[3], *w.WriteBytes, 4<<20)
	assert.Contains(t, o.stdout+o.stderr, "\nroots ")

	// The kernel's trace covers both devices.
	var trace tracing.Trace
	require.NoError(t, json.Unmarshal(r.DeviceLatencyTracing, &trace))
	if c := trace.Capture; c.Status == tracing.StatusTraced { // a kernel may refuse it
		assert.ElementsMatch(t, []string{r.IO.Roots[0].Device, r.IO.Roots[1].Device}, c.Members)
		assert.NotContains(t, strings.Join(c.Warnings, "\n"), "not all directories")
		assert.InDelta(t, sum[2], c.Read.Bytes, 4<<20)
		assert.InDelta(t, sum[3], c.Write.Bytes, 4<<20)
	} else {
		t.Log("no trace here: ", c.Reason)
	}

	fast.Remount(t, true)
	assert.Regexp(t, `-cache-dir: must be.*the ext4 filesystem of.*is mounted read-only`,
		b.refused("-test.bench=Synthetic", "-results-dir", b.results, "-cache-dir", dirs[0]))
}
