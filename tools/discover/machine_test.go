package discover

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tools/golden"
	"kvbench/tracing/collector"
	"kvbench/tracing/host"
	"kvbench/tracing/nvml"
)

// fake is the machine of testdata/server.txtar.
func fake(t *testing.T) machine {
	t.Helper()
	page = 4096
	if !linux() {
		t.Skip("the fabricated machine has the directory tree of Linux")
	}
	root := t.TempDir()
	files, err := txtar.ParseFile("testdata/server.txtar")
	require.NoError(t, err)
	require.NoError(t, txtar.Write(files, root))
	for line := range strings.Lines(string(files.Comment)) {
		from, to, is := strings.Cut(strings.TrimSpace(line), " -> ")
		if !is {
			continue
		}
		from, to = filepath.Join(root, from), filepath.Join(root, to)
		require.NoError(t, os.MkdirAll(filepath.Dir(from), 0o755))
		require.NoError(t, os.Symlink(to, from))
	}
	return machine{
		Root: host.Root(root),
		environment: func(string) result.Environment {
			return result.Environment{Hostname: "lab7", OS: "Ubuntu 24.04 LTS",
				Kernel: "6.8.0-31-generic", Arch: "amd64", CPUModel: "AMD EPYC 9654",
				Cores: 8, CPUGovernor: "powersave", MemoryBytes: 128 << 30, HugePages: "never",
				Filesystem: result.Filesystem{Type: "xfs", MountPoint: "/mnt/kv",
					Options: []string{"rw", "noatime"}},
				Device: &result.Device{Name: "nvme0n1"}}
		},
		untraced: func() string { return "" },
		limits: func() host.Limits {
			return host.Limits{Cores: 6, CoresSource: "/sys/fs/cgroup/cpu.max",
				MemoryAvailable: 100 << 30, MemoryAvailableSource: "/proc/meminfo MemAvailable"}
		},
		filesystem: func(string) (host.Filesystem, error) {
			return host.Filesystem{Type: "xfs", Free: 3000 << 30, Total: 3500 << 30}, nil
		},
		cards: func() ([]nvml.Card, error) {
			return []nvml.Card{{Address: "0000:81:00.0", MemoryBytes: new(int64(144384 << 20)),
				Driver: "580.95.05", Source: "NVML"}}, nil
		},
	}
}

func TestServer(t *testing.T) {
	m := fake(t)
	golden.Check(t, "server.golden", m.hardware("/").Text())
	out := golden.JSON(t, m.hardware("/"))
	golden.Check(t, "server.golden.json", out)

	path := filepath.Join(t.TempDir(), "lab7.json")
	require.NoError(t, os.WriteFile(path, []byte(out), 0o644))
	h, err := ReadFile(path)
	require.NoError(t, err)
	again, err := json.Marshal(h)
	require.NoError(t, err)
	assert.JSONEq(t, out, string(again), "what is written is read back whole")
}

// TestChunksThatADriveDoesNotTake: the advice has no value that the queue would refuse.
func TestChunksThatADriveDoesNotTake(t *testing.T) {
	h := fake(t).hardware("/")
	i := slices.IndexFunc(h.Devices, func(d Device) bool { return d.Name == "nvme0n1" })
	h.Devices[i].Queue.MaxSectorsKB = new(int64(128))
	h.Devices[i].Queue.MaxHWSectorsKB = new(int64(256))
	var a advice
	h.device(h.Devices[i], &a)
	h.Advice = a
	assert.True(t, advised(h, "-chunk-size 128KiB"))
	assert.False(t, advised(h, "echo 1024 > /sys/block/nvme0n1/queue/max_sectors_kb"))
}

func advised(h Hardware, what string) bool {
	for _, r := range h.Advice {
		if r.What == what && r.Reason != "" {
			return true
		}
	}
	return false
}

func TestDirectoriesThatCannotBeMeasured(t *testing.T) {
	m := fake(t)
	m.filesystem = func(string) (host.Filesystem, error) {
		return host.Filesystem{Type: "tmpfs", Free: 1 << 30, Total: 1 << 30, Memory: true}, nil
	}
	m.environment = func(string) result.Environment {
		return result.Environment{Filesystem: result.Filesystem{Type: "tmpfs"},
			DeviceReason: "tmpfs keeps its files in memory"}
	}
	h := m.hardware("/dev/shm")
	assert.True(t, advised(h, "-cache-dir <a directory on a disk>"))
	assert.False(t, advised(h, "-io direct"))

	m.filesystem = func(string) (host.Filesystem, error) {
		return host.Filesystem{Type: "ext4", Free: 100 << 30, Total: 200 << 30, Root: true}, nil
	}
	assert.True(t, advised(m.hardware("/tmp"), "-storage-capacity-gb 50"))
	m.filesystem = func(string) (host.Filesystem, error) {
		return host.Filesystem{Type: "nfs4", Free: 1 << 40, Total: 1 << 41, Shared: true}, nil
	}
	assert.True(t, advised(m.hardware("/nfs"), "-storage-capacity-gb 512"))
}

func TestGPUsOfWhichLessIsKnown(t *testing.T) {
	m := fake(t)
	m.cards = func() ([]nvml.Card, error) { return []nvml.Card{{Address: "0000:99:00.0", Name: "another"}}, nil }
	h := m.hardware("/")
	require.Len(t, h.GPUs, 2, "the driver has a card that is not on the bus here")
	assert.Nil(t, h.GPUs[0].MemoryBytes, "unknown is not 0")
	assert.Equal(t, "/proc/driver/nvidia", h.GPUs[0].Source)
	assert.Equal(t, "another", h.GPUs[1].Name)
	m.cards = func() ([]nvml.Card, error) { return nil, errors.New("not found") }
	require.NoError(t, os.RemoveAll(m.Path("proc/driver")))
	h = m.hardware("/")
	require.Len(t, h.GPUs, 1)
	assert.Equal(t, "NVIDIA device 0x2335", h.GPUs[0].Name)
	assert.Equal(t, 5, h.GPUs[0].Link.Generation)
	assert.Equal(t, "memory is unknown: not found", h.GPUNote)
	require.NoError(t, os.RemoveAll(m.Path("sys/bus")))
	h = m.hardware("/")
	assert.Empty(t, h.GPUs)
	assert.Equal(t, "no NVIDIA card is on the PCI bus", h.GPUNote)
}

// TestTracingIsTried: the description agrees with a trace on this machine.
func TestTracingIsTried(t *testing.T) {
	c, err := collector.Start(t.Context(), collector.Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	assert.Equal(t, c.Unavailable() == nil, tryTracing() == "")
	m := machine{untraced: func() string { return "a seccomp filter" }}
	assert.Equal(t, Tracing{Verdict: "no: a seccomp filter"}, m.tracing())
}

func TestReadFileRefusesOtherThings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	for _, text := range []string{"", "{", "{}", `{"schema_version":"2.0"}`} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := ReadFile(path)
		assert.ErrorContains(t, err, path)
	}
}
