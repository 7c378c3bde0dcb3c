//go:build linux && (amd64 || arm64)

package collector

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers/privtest"
	"kvbench/tracing"
	"kvbench/tracing/host"
)

// machineDevices are devices of testdata/kernels.sh whose content may be overwritten:
// "name=node=members=copies", with commas between members; copies is how often each byte is written.
const machineDevices = "KVTEST_TRACE_DEVICES"

// TestDevicesOfTheMachine traces a filesystem on devices of each kind. It expects exactly the requests
// that the devices behind the filesystem counted themselves.
func TestDevicesOfTheMachine(t *testing.T) {
	list := strings.Fields(os.Getenv(machineDevices))
	if len(list) == 0 {
		t.Skipf("%s names no devices; testdata/kernels.sh makes some", machineDevices)
	}
	privtest.Root(t)
	for _, item := range list {
		part := strings.Split(item, "=")
		require.Len(t, part, 4, "%s", item)
		var copies int64
		_, err := fmt.Sscan(part[3], &copies)
		require.NoError(t, err)
		t.Run(part[0], func(t *testing.T) {
			dir := t.TempDir()
			out, err := exec.Command("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E",
				"lazy_itable_init=0,nodiscard", part[1]).CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.NoError(t, unix.Mount(part[1], dir, "ext4", unix.MS_NOATIME, ""))
			t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, 0)) })
			file := dir + "/data"
			runFio(t, file, "--rw=write", "--bs=1M", "--size=32M", "--end_fsync=1")
			unix.Sync()
			d, err := host.BackingDevice(dir)
			require.NoError(t, err)
			require.Empty(t, d.Reason)
			ts, reason := d.Disks()
			var names []string
			for _, d := range ts {
				names = append(names, d.Name)
			}
			assert.Equal(t, part[2], strings.Join(names, ","), "%s", reason)
			var read, write fioSide
			tr := traced(t, Options{Device: d}, func() {
				read, write = runFio(t, file, "--rw=randrw", "--bssplit=4k/50:64k/50",
					"--norandommap", "--iodepth=8",
					"--ioengine=libaio", "--size=32M", "--io_size=16M", "--fsync=16")
			})
			balances(t, tr, read, write, copies)
		})
	}
}

// onMatrix reports whether the test runs on a kernel that has all features.
func onMatrix() bool { return os.Getenv(machineDevices) != "" }

// balances compares the trace with the devices' own counters. The filesystem's own writes are in
// both.
func balances(t *testing.T, tr *tracing.Trace, read, write fioSide, copies int64) {
	t.Helper()
	p := tr.Capture
	require.NotNil(t, p.Stat)
	t.Logf("read %d requests (stat %d), write %d + %d flush waits (stat %d), flushes %d (%d), "+
		"losses %+v", p.Read.Requests, p.Stat.ReadIOs,
		p.Write.Requests, p.FlushWaits, p.Stat.WriteIOs, p.Flushes, p.Stat.FlushIOs, p.Losses)
	assert.InDelta(t, read.IOBytes, p.Stat.ReadBytes, 16<<10,
		"the devices moved what fio did, and a block of metadata")
	assert.GreaterOrEqual(t, p.Stat.WriteBytes, copies*write.IOBytes)
	assert.Equal(t, p.Stat.ReadIOs, p.Read.Requests+p.Read.Stale)
	assert.Equal(t, p.Stat.WriteIOs, p.Write.Requests+p.Write.Stale+p.FlushWaits)
	if p.Read.Stale+p.Write.Stale == 0 {
		assert.Equal(t, p.Stat.ReadBytes, p.Read.Bytes)
		assert.Equal(t, p.Stat.WriteBytes, p.Write.Bytes)
	}
	assert.Equal(t, p.Stat.FlushIOs, p.Flushes)
	assert.Zero(t, p.Read.Imbalance())
	assert.Zero(t, p.Write.Imbalance())
	assert.Equal(t, tracing.Losses{Partial: p.Losses.Partial, Merged: p.Losses.Merged}, p.Losses)
}
