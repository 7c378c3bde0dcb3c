package params

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/buffer"
	"kvbench/tracing/host"
)

func TestCapacity(t *testing.T) {
	const gib = int64(1) << 30
	disk := host.Filesystem{Type: "xfs", Free: 800 * gib, Total: 1000 * gib}
	with := func(change func(*host.Filesystem)) host.Filesystem { f := disk; change(&f); return f }
	for _, c := range []struct {
		name      string
		fs        host.Filesystem
		given     int64
		ranks     int
		byDefault bool
		want      [2]int64 // capacity and floor
		errors    []string
	}{
		{name: "95 % of an empty filesystem",
			fs:   with(func(f *host.Filesystem) { f.Free = f.Total }),
			want: [2]int64{950 * gib, 45 * gib}},
		{name: "5 % of the filesystem stay free",
			fs:   with(func(f *host.Filesystem) { f.Free = 100 * gib }),
			want: [2]int64{50 * gib, 45 * gib}},
		{name: "10 GiB stay free",
			fs:   host.Filesystem{Type: "ext4", Free: 30 * gib, Total: 40 * gib},
			want: [2]int64{20 * gib, 9 * gib}},
		{name: "ranks share", fs: with(func(f *host.Filesystem) { f.Free = 400 * gib }), ranks: 4,
			want: [2]int64{350 * gib / 4, 45 * gib}},
		{name: "too full", fs: host.Filesystem{Type: "ext4", Free: 9 * gib, Total: 40 * gib},
			errors: []string{"-storage-capacity-gb: must be given", "ext4", "9 GiB free",
				"10 GiB"}},
		{name: "full", fs: host.Filesystem{Type: "ext4", Total: 40 * gib},
			errors: []string{"-cache-dir: ", "ext4 filesystem of /cache is full", "free space there"}},
		{name: "root", fs: with(func(f *host.Filesystem) { f.Root = true }),
			errors: []string{"must be given", "root filesystem", "800 GiB", "/cache"}},
		{name: "network", fs: with(func(f *host.Filesystem) { f.Shared, f.Type = true, "nfs4" }),
			errors: []string{"must be given", "network filesystem", "nfs4"}},
		{name: "given and just fitting", fs: disk, given: 400 * gib, ranks: 2,
			want: [2]int64{400 * gib}},
		{name: "given and too large", fs: disk, given: 801 * gib,
			errors: []string{"at most 800 ", "given 801", "xfs", "/cache"}},
		{name: "given and of little", fs: host.Filesystem{Type: "tmpfs", Free: 1 << 20},
			given: gib, errors: []string{"at most 0.0009 ", "has 1 MiB free", "given 1"}},
		{name: "a product that overflows", fs: disk, given: math.MaxInt64 / 2, ranks: 4,
			errors: []string{"at most 200 ", "4 ranks)"}},
		{name: "a default shrinks", fs: with(func(f *host.Filesystem) { f.Free = 3 * gib }),
			given: 4 * gib, byDefault: true, want: [2]int64{3 * gib / 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bytes, floor, err := ChooseCapacity(c.fs, "/cache", c.given, c.ranks, c.byDefault)
			if len(c.errors) == 0 {
				require.NoError(t, err)
				assert.InDelta(t, c.want[0], bytes, 1e3) // 0.95 is no binary fraction
				assert.InDelta(t, c.want[1], floor, 1e3)
				return
			}
			for _, what := range c.errors {
				assert.ErrorContains(t, err, what)
			}
		})
	}
}

func TestMostBuffers(t *testing.T) {
	const gib = int64(1) << 30
	for _, c := range []struct{ available, ranks, want int64 }{
		{0, 1, 0}, {24, 1, 3}, {24, 0, 3}, {1024, 1, 128}, {1024, 64, 2},
	} {
		l := host.Limits{MemoryAvailable: c.available * gib}
		assert.Equal(t, c.want*gib, MostBuffers(int(c.ranks), l), "%+v", c)
	}
}

func TestMemory(t *testing.T) {
	const mib, gib = int64(1) << 20, int64(1) << 30
	run := buffer.Use{Chunk: int(mib), Depth: 1, Workers: 32} // 64 MiB of buffers
	const harness = harnessMemory + 2*shardMemory
	need := 4*gib + 64*mib + harness
	for _, l := range []host.Limits{
		{},
		{MemoryAvailable: need, MemoryAvailableSource: "/proc/meminfo"},
		{MemoryAvailable: 100 * gib, MemoryLimit: need, MemoryLimitSource: "cgroup"},
		{MemoryLimit: need},
	} {
		assert.NoError(t, CheckMemory(EstimateMemory(run.Bytes(), 4*gib, 2), run.Workers, 1, l),
			"%+v", l)
	}
	for _, l := range []host.Limits{
		{MemoryAvailable: 2 * gib, MemoryAvailableSource: "the source"},
		{MemoryAvailable: 100 * gib, MemoryAvailableSource: "another", MemoryLimit: 2 * gib,
			MemoryLimitSource: "the source"},
	} {
		err := CheckMemory(EstimateMemory(run.Bytes(), 4*gib, 2), run.Workers, 1, l)
		for _, what := range []string{"-cpu-mem-gb: must be at most 1.75", "given 4.00",
			"needs 4.25 GiB", "2.00 are available", "the source"} {
			assert.ErrorContains(t, err, what)
		}
		assert.NoError(t, CheckMemory(EstimateMemory(run.Bytes(), 2*gib-64*mib-harness, 2),
			run.Workers, 1, l), "the setting that it names does fit")
	}
	assert.Error(t, CheckMemory(EstimateMemory(run.Bytes(), 4*gib, 2), run.Workers, 1,
		host.Limits{MemoryAvailable: need - 1}))

	err := CheckMemory(EstimateMemory(run.Bytes(), 4*gib, 2), run.Workers, 1,
		host.Limits{MemoryAvailable: 200 * mib, MemoryAvailableSource: "the source"})
	assert.ErrorContains(t, err, "fewer -workers (now 32)", "no cpu tier would fit")
	err = CheckMemory(EstimateMemory(run.Bytes(), 0, 64), run.Workers, 1,
		host.Limits{MemoryAvailable: 256 * mib, MemoryAvailableSource: "the source"})
	assert.ErrorContains(t, err, "0.79 harness", "of a machine with 64 processors")
}
