//go:build linux && (amd64 || arm64)

package collector

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/features"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/privtest"
	"kvbench/tracing"
	"kvbench/tracing/host"
)

// loopFile makes a file of mib MiB on the filesystem of an idle loop device, and writes all of it.
func loopFile(t testing.TB, mib int) (host.Device, string) {
	t.Helper()
	needFio(t)
	l := privtest.LoopFS(t, mib+mib/8+16,
		privtest.LoopOptions{NoJournal: true, PreferDirectIO: true})
	file := filepath.Join(l.Dir, "data")
	runFio(t, file, "--rw=write", "--bs=1M", fmt.Sprintf("--size=%dM", mib), "--end_fsync=1")
	require.NoError(t, exec.Command("sync", "-f", l.Dir).Run())
	d, err := host.BackingDevice(l.Dir)
	require.NoError(t, err)
	return d, file
}

// TestCalls expects exactly the read and write calls of fio, for each of its engines.
func TestCalls(t *testing.T) {
	privtest.Root(t)
	d, file := loopFile(t, 32)
	for _, way := range waysOfCalls {
		t.Run(way, func(t *testing.T) {
			// Where the kernel lacks the way, no engine is tried.
			require.NoError(t, startCalls(t, Options{Device: d, fileAttach: way}).Close())
			for _, engine := range []string{"psync", "vsync", "io_uring", "libaio",
				"libaio --iodepth=32 --iodepth_batch_submit=8 --iodepth_batch_complete_max=32"} {
				t.Run(engine, func(t *testing.T) { callsOfFio(t, d, file, way, engine) })
			}
		})
	}
}

// callsOfFio compares the traced calls of an engine, for one way of attaching, with fio's own counts.
func callsOfFio(t *testing.T, d host.Device, file, way, engine string) {
	var read, write fioSide
	tr := tracedCalls(t, Options{Device: d, fileAttach: way, Comm: "fio"}, func() {
		read, write = runFio(t, file, append([]string{"--rw=randrw", "--bs=16k", "--size=16M",
			"--fsync=10"}, strings.Fields("--ioengine="+engine)...)...)
	})
	assert.Zero(t, tr.Capture.Losses.Calls)
	if engine == "io_uring" && strings.Contains(strings.Join(tr.Capture.NotBetter, "\n"), engine) {
		version, err := features.LinuxVersionCode()
		require.NoError(t, err)
		assert.Less(t, version, uint32(6<<16|4<<8), "%q", tr.Capture.NotBetter)
		assert.Zero(t, tr.VFSRead.Count+tr.VFSWrite.Count, "unknown is not guessed")
		return
	}
	if engine == "vsync" { // joins adjacent requests
		assert.EqualValues(t, read.IOBytes, tr.VFSReadSize.Sum*1024)
		return
	}
	assert.Equal(t, read.TotalIOs, tr.VFSRead.Count)
	assert.Equal(t, write.TotalIOs, tr.VFSWrite.Count)
	assert.EqualValues(t, read.IOBytes, tr.VFSReadSize.Sum*1024)
	assert.EqualValues(t, write.IOBytes, tr.VFSWriteSize.Sum*1024)
	assert.Equal(t, []tracing.Bucket{{Range: [2]float64{16, 17}, Count: read.TotalIOs,
		Value: 16}}, tr.VFSReadSize.Buckets)
	assert.Equal(t, write.Syncs, tr.Fsync.Count)
	assert.Positive(t, tr.WriteToFsync.Count)
	assert.LessOrEqual(t, tr.WriteToFsync.Count, tr.Fsync.Count, "none after reads alone")
	assert.Greater(t, *tr.VFSRead.Mean, *tr.D2CRead.Mean, "a call lasts longer than its request")
	assert.Equal(t, way, tr.Capture.FileAttach)
}

// TestProcessFilter traces the requests of one fio, and only counts those of another fio that runs at
// the same time.
func TestProcessFilter(t *testing.T) {
	privtest.Root(t)
	d, file := rawLoop(t, 128)
	for _, engine := range []string{"psync", "libaio", "io_uring", "posixaio"} {
		t.Run(engine, func(t *testing.T) {
			other := exec.Command("fio", "--name=other", "--filename="+file, "--direct=1",
				"--rw=randread", "--bs=8k", "--runtime=60", "--time_based", "--size=64M",
				"--output=/dev/null")
			require.NoError(t, other.Start())
			t.Cleanup(func() { _ = other.Process.Signal(os.Interrupt); _ = other.Wait() })
			idle, err := d.ReadStat()
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				s, err := d.ReadStat()
				return err == nil && s.Sub(idle).ReadIOs > 100
			}, 10*time.Second, 10*time.Millisecond, "the other one runs")
			sh := copied(t, "sh", "watched-shell")
			tr := traced(t, Options{Device: d, Filter: tracing.FilterProcess,
				Comm: "watched-shell"}, func() {
				command(t, sh, "-c", "fio --name=own --direct=1 --rw=randread --bs=64k "+
					"--size=64M --io_size=32M --iodepth=4 --output=/dev/null --filename="+file+
					" --ioengine="+engine+"; exit $?")
			})
			d := tr.Capture.Read
			assert.EqualValues(t, 512, d.Requests+d.Stale)
			assert.EqualValues(t, 512*64<<10, d.Bytes+d.Stale*64<<10)
			assert.Positive(t, d.ForeignRequests)
			assert.Equal(t, d.ForeignRequests*8<<10, d.ForeignBytes)
		})
	}
}
