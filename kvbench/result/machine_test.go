package result

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing/host"
)

// rootOf is a machine made of files.
func rootOf(t *testing.T, files map[string]string) host.Root {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return host.Root(root)
}

func TestEnvironmentOfAFabricatedMachine(t *testing.T) {
	m := rootOf(t, map[string]string{
		"/proc/meminfo": "MemTotal:       16777216 kB\n",
		"/proc/cpuinfo": "processor\t: 0\nmodel name\t: " +
			"AMD EPYC 9654\nflags\t\t: aes\n",
		"/proc/sys/kernel/osrelease": "6.8.0-31-generic\n",
		"/proc/sys/vm/nr_hugepages":  "64\n",

		"/proc/sys/kernel/random/boot_id": "b34e\n",

		"/etc/os-release": "NAME=x\nPRETTY_NAME=\"Ubuntu 24.04 LTS\"\n",

		"/sys/kernel/mm/transparent_hugepage/enabled":           "always [madvise] never\n",
		"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
	})
	e := machine(m)
	assert.Equal(t, "Ubuntu 24.04 LTS", e.OS)
	assert.Equal(t, "6.8.0-31-generic", e.Kernel)
	assert.Equal(t, "b34e", e.BootID)
	assert.Equal(t, "AMD EPYC 9654", e.CPUModel)
	assert.Equal(t, "madvise", e.HugePages)
	assert.EqualValues(t, 64, *e.HugePagePool)
	assert.Equal(t, "powersave", e.CPUGovernor)
	assert.Equal(t, int64(16<<30), e.MemoryBytes)
	assert.NotEmpty(t, e.GoVersion)
}

func TestEnvironmentDescribesDevices(t *testing.T) {
	m := rootOf(t, map[string]string{
		"nvme0n1/size": "2000\n", "nvme0n1/device/model": "SAMSUNG MZQL2  \n",
		"nvme0n1/device/firmware_rev": "GDC5602Q\n",
		"nvme0n1/queue/rotational":    "0\n", "nvme0n1/queue/scheduler": "[none] mq-deadline\n",
		"nvme0n1/queue/write_cache":  "write back\n",
		"nvme0n1/queue/max_segments": "127\n", "nvme0n1/queue/max_sectors_kb": "1280\n",
		"nvme0n1/queue/nr_requests":        "1023\n",
		"nvme0n1/queue/logical_block_size": "512\n",
		"sda/size":                         "100\n", "sda/device/vendor": "SEAGATE \n",
		"sda/device/model": "ST16000NM\n", "sda/device/rev": "E002\n",
		"sda/queue/rotational": "1\n", "sda/sda3/partition": "3\n",
		"vda/device/vendor": "0x1af4\n",
		"dm-0/size":         "5000\n",
	})
	dir := func(name string) string { return m.Path(name) }
	require.NoError(t, os.MkdirAll(dir("dm-0/slaves"), 0o755))
	require.NoError(t, os.Symlink(dir("sda/sda3"), dir("dm-0/slaves/sda3")))
	require.NoError(t, os.Symlink(dir("nvme0n1"), dir("dm-0/slaves/nvme0n1")))

	t.Run("an NVMe drive", func(t *testing.T) {
		var e Environment
		directory(&e, host.Device{
			Disk:       host.Disk{Name: "nvme0n1", SysPath: dir("nvme0n1"), Partition: "nvme0n1p1"},
			Filesystem: "xfs",
			Mount: host.Mount{Point: "/mnt/kv", Source: "/dev/nvme0n1p1",
				Options: []string{"rw", "noatime"}, SuperOptions: []string{"rw", "inode64"}},
		})
		require.NotNil(t, e.Device)
		assert.Equal(t, "SAMSUNG MZQL2", e.Device.Model)
		assert.Equal(t, "GDC5602Q", e.Device.Firmware)
		assert.EqualValues(t, 2000*512, *e.Device.SizeBytes)
		assert.False(t, *e.Device.Rotational)
		assert.Equal(t, "none", e.Device.Queue.Scheduler)
		assert.Equal(t, "write back", e.Device.Queue.WriteCache)
		assert.EqualValues(t, 127, *e.Device.Queue.MaxSegments)
		assert.EqualValues(t, 1280, *e.Device.Queue.MaxSectorsKB)
		assert.EqualValues(t, 1023, *e.Device.Queue.Requests)
		assert.Nil(t, e.Device.Queue.PhysicalBlockSize,
			"what sysfs does not show is unknown, not zero")
		assert.Equal(t, Filesystem{
			Type: "xfs", MountPoint: "/mnt/kv", Source: "/dev/nvme0n1p1",
			Options: []string{"rw", "noatime"}, SuperOptions: []string{"rw", "inode64"},
		}, e.Filesystem)
	})
	t.Run("a stacked device shows the drives below", func(t *testing.T) {
		var e Environment
		directory(&e, host.Device{Disk: host.Disk{Name: "dm-0", SysPath: dir("dm-0")},
			Members: []string{"nvme0n1", "sda3"}, Note: "stacked"})
		require.Len(t, e.Device.Members, 2)
		assert.Equal(t, "SAMSUNG MZQL2", e.Device.Members[0].Model)
		assert.Equal(t, "SEAGATE ST16000NM", e.Device.Members[1].Model)
		assert.Equal(t, "E002", e.Device.Members[1].Firmware)
		assert.Equal(t, "sda3", e.Device.Members[1].Partition)
		assert.True(t, *e.Device.Members[1].Rotational)
		assert.Empty(t, e.Device.Model)
		assert.Equal(t, "stacked", e.Device.Note)
	})
	t.Run("virtio has no model name", func(t *testing.T) {
		assert.Empty(t, BlockDevice(dir("vda")).Model)
	})
	t.Run("a network mount has transfer sizes", func(t *testing.T) {
		var e Environment
		directory(&e, host.Device{Filesystem: "nfs4", Mount: host.Mount{Type: "nfs4",
			SuperOptions: []string{"rsize=1048576", "wsize=262144"}}})
		assert.EqualValues(t, 1<<20, *e.Filesystem.ReadSizeBytes)
		assert.EqualValues(t, 256<<10, *e.Filesystem.WriteSizeBytes)
	})
	t.Run("no device", func(t *testing.T) {
		var e Environment
		directory(&e, host.Device{Filesystem: "tmpfs", Reason: "in memory"})
		text, err := json.Marshal(e)
		require.NoError(t, err)
		assert.Contains(t, string(text), `"device":null,"device_reason":"in memory"`)
	})
}

func TestReadHere(t *testing.T) {
	e := ReadEnvironment(t.TempDir())
	assert.NotEmpty(t, e.Kernel)
	assert.NotEmpty(t, e.Arch)
	assert.Positive(t, e.Cores)
	assert.Positive(t, e.MemoryBytes)
	if e.Device == nil {
		assert.NotEmpty(t, e.DeviceReason, "no device, so there is a reason")
	}
	missing := ReadEnvironment(filepath.Join(t.TempDir(), "missing"))
	assert.NotEmpty(t, missing.DeviceReason)
	assert.NotEmpty(t, missing.Kernel, "the machine is described all the same")
}

func TestCPUModel(t *testing.T) {
	of := func(cpuinfo string) string {
		return cpuModel(rootOf(t, map[string]string{"/proc/cpuinfo": cpuinfo}))
	}
	assert.Equal(t, "ARM implementer 0x41 part 0xd0c",
		of("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"))
	assert.Empty(t, of("processor : 0\n"))
}

// TestTransport: a device's place in sysfs, and its controller, tell what leads to it.
func TestTransport(t *testing.T) {
	const pci = "/sys/devices/pci0000:00/0000:00:17.0/"
	for dir, want := range map[string]struct {
		files     map[string]string
		transport string
	}{
		pci + "nvme/nvme0/nvme0n1":                  {map[string]string{"device/transport": "pcie\n"}, "pcie"},
		"/sys/devices/virtual/nvme-fabrics/nvme1n1": {map[string]string{"device/transport": "tcp\n"}, "tcp"},
		"/sys/devices/virtual/nvme-subsystem/nvme2n1": {map[string]string{
			"device/nvme2/transport": "rdma\n", "device/nvme3/transport": "rdma\n"}, "rdma"},
		"/sys/devices/virtual/nvme-subsystem/nvme4n1": {map[string]string{
			"device/nvme4/transport": "rdma\n", "device/nvme5/transport": "tcp\n"}, ""},
		pci + "ata1/host0/target0:0:0/0:0:0:0/block/sda":                    {nil, "sata"},
		pci + "host1/port-1:0/end_device-1:0/target1:0:0/1:0:0:0/block/sdb": {nil, "sas"},
		pci + "host1/port-1:1/end_device-1:1/target1:0:1/1:0:1:0/block/sdc": {
			map[string]string{"device/vendor": "ATA     \n"}, "sata"},
		pci + "host2/rport-2:0-1/target2:0:0/2:0:0:0/block/sdd":              {nil, "fc"},
		"/sys/devices/platform/host3/session1/target3:0:0/3:0:0:0/block/sde": {nil, "iscsi"},
		pci + "usb1/1-1/1-1:1.0/host4/target4:0:0/4:0:0:0/block/sdf":         {nil, "usb"},
		pci + "virtio3/block/vda":                                            {nil, "virtio"},
		"/sys/devices/virtual/block/loop0":                                   {nil, ""},
	} {
		files := map[string]string{dir + "/size": "8\n"}
		for name, text := range want.files {
			files[dir+"/"+name] = text
		}
		assert.Equal(t, want.transport, BlockDevice(rootOf(t, files).Path(dir)).Transport, dir)
	}
}
