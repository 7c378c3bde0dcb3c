//go:build linux && (amd64 || arm64)

package collector

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/privtest"
	"kvbench/tracing"
	"kvbench/tracing/bpf"
	"kvbench/tracing/host"
)

// TestBucketsInTheKernel runs the C function for values around each power of two and expects the
// result of its mirror in Go.
func TestBucketsInTheKernel(t *testing.T) {
	spec, err := bpf.LoadTrace()
	require.NoError(t, err)
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool {
		return name != bpf.TraceProgBucket
	})
	coll, err := ebpf.NewCollection(spec)
	privtest.Need(t, err)
	defer coll.Close()
	p := coll.Programs[bpf.TraceProgBucket]
	for e := range 40 {
		for _, v := range []uint64{1<<e - 1, 1 << e, 1<<e + 1, 1<<e + 1<<e/3} {
			got, err := p.Run(&ebpf.RunOptions{Context: [1]uint64{v}})
			privtest.Need(t, err)
			assert.EqualValues(t, bucketOf(v, buckets), got, "bucket of %d", v)
		}
	}
}

// TestMaps: if a tracing program uses a map without preallocated memory, kernels before 6.1 log a warning
// with a stack trace (seen on 5.10 and 5.15). A pinned map would outlive the process.
func TestMaps(t *testing.T) {
	spec, err := bpf.LoadTrace()
	require.NoError(t, err)
	const noPrealloc = 1
	for name, m := range spec.Maps {
		assert.Zero(t, m.Flags&noPrealloc, name)
		assert.Equal(t, ebpf.PinNone, m.Pinning, name)
	}
}

// startFor starts a collector, or skips the test with the reason.
func startFor(t testing.TB, opt Options) *Collector {
	t.Helper()
	c, err := Start(t.Context(), opt)
	require.NoError(t, err)
	if u := c.Unavailable(); u != nil {
		privtest.Need(t, fmt.Errorf("%w: %w", u, u.Err))
	}
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// TestNothingIsLeft looks for a collector's programs by their ids in the kernel after Close. Without a pin
// they also end with their process (TestMaps).
func TestNothingIsLeft(t *testing.T) {
	privtest.Root(t)
	c := startFor(t, Options{Level: tracing.LevelFile, Comm: "kv-none"})
	var ids []ebpf.ProgramID
	for _, p := range c.programs.(*kernelPrograms).coll.Programs {
		info, err := p.Info()
		require.NoError(t, err)
		id, ok := info.ID()
		require.True(t, ok)
		ids = append(ids, id)
	}
	remains := func(id ebpf.ProgramID) bool {
		p, err := ebpf.NewProgramFromID(id)
		if err == nil {
			p.Close()
		}
		return err == nil
	}
	require.True(t, slices.ContainsFunc(ids, remains))
	require.NoError(t, c.Close())
	assert.Eventually(t, func() bool { return !slices.ContainsFunc(ids, remains) }, 5*time.Second,
		10*time.Millisecond, "the kernel frees them a moment after their last user")
}

// TestOlderKernels configures the programs for a kernel without block_io_start. They then see a request
// first at its dispatch, and queueing begins at the request's allocation.
func TestOlderKernels(t *testing.T) {
	privtest.Root(t)
	d, file := rawLoop(t, 64)
	ts, reason := d.Disks()
	require.Empty(t, reason)
	tracedBy(t, d, ts, kernelFacts{}, file, "--rw=randrw", "--bs=16k", "--ioengine=psync",
		"--size=64M", "--io_size=32M")
	// On a kernel before 5.11 the request is the second argument. The events of this kernel have only
	// one argument, so the programs cannot be attached, but the verifier accepts them.
	_, err := load(Options{}, ts, kernelFacts{oldArguments: true}, &tracing.Capture{})
	require.ErrorContains(t, err, "argument")
	detached(t, map[string]any{bpf.TraceVarOldArguments: uint32(1)})
}

// TestDevicesByName filters by name, which the hidden paths of an NVMe multipath head need.
func TestDevicesByName(t *testing.T) {
	privtest.Root(t)
	d, file := rawLoop(t, 64)
	ts, reason := d.Disks()
	require.Empty(t, reason)
	ts[0].Hidden = true
	ts[0].Major, ts[0].Minor = 0, 0
	facts, err := thisKernel()
	require.NoError(t, err)
	tracedBy(t, d, ts, facts, file, "--rw=randread", "--bs=64k", "--ioengine=psync", "--size=64M")
}

// tracedBy loads the programs in the given way, runs fio in a window and compares.
func tracedBy(t *testing.T, d host.Device, ts []host.Disk, facts kernelFacts, file string,
	args ...string) {
	c := &Collector{device: d, targets: ts}
	k, err := load(Options{Device: d}, ts, facts, &c.common)
	privtest.Need(t, err)
	c.programs = k
	defer func() { assert.NoError(t, c.Close()) }()
	var read, write fioSide
	tr := inWindow(t, c, func() { read, write = runFio(t, file, args...) })
	agree(t, tr, read, write)
	assert.Equal(t, tr.Capture.Requests(),
		tr.Capture.Read.Q2DSamples+tr.Capture.Write.Q2DSamples)
}
