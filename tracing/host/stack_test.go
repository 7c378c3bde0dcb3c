package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBackingDeviceOfAPartitionIsItsDisk(t *testing.T) {
	f := newFakeMachine(
		t,
		"30 1 259:1 / /mnt/kv rw,noatime - xfs /dev/nvme0n1p1 rw\n",
		identity{path: "/mnt/kv", major: 259, minor: 1, mountID: 30},
		nil,
	)
	f.disk("/sys/devices/pci/nvme/nvme0/nvme0n1", "259:0", someStat)
	f.partition("/sys/devices/pci/nvme/nvme0/nvme0n1/nvme0n1p1", "259:1")

	d := f.device()
	assert.Equal(t, "nvme0n1", d.Name)
	assert.Equal(t, "nvme0n1p1", d.Partition)
	assert.Equal(t, [2]uint32{259, 0}, [2]uint32{d.Major, d.Minor})
	assert.Equal(t, "xfs", d.Filesystem)
	assert.Empty(t, d.Reason)
	assert.Empty(t, d.Note)
	s, err := d.ReadStat()
	require.NoError(t, err)
	assert.EqualValues(t, 800*512, s.ReadBytes, "the disk's counters, not the partition's")
}

func TestBackingDeviceOfStackedDevices(t *testing.T) {
	t.Run("device mapper names its members", func(t *testing.T) {
		f := newFakeMachine(
			t,
			"30 1 253:0 / /mnt/kv rw - ext4 /dev/mapper/vg-kv rw\n",
			identity{path: "/mnt/kv", major: 253},
			nil,
		)
		f.disk("/sys/devices/virtual/block/dm-0", "253:0", someStat)
		f.write("/sys/devices/virtual/block/dm-0/slaves/sda3/dev", "8:3\n")
		f.write("/sys/devices/virtual/block/dm-0/slaves/sdb1/dev", "8:17\n")
		d := f.device()
		assert.Equal(t, "dm-0", d.Name)
		assert.Equal(t, []string{"sda3", "sdb1"}, d.Members)
		assert.Contains(t, d.Note, "stacked on sda3, sdb1")
		assert.Empty(t, d.Reason)
	})
	t.Run("a loop device names its file", func(t *testing.T) {
		f := newFakeMachine(
			t,
			"30 1 7:3 / /mnt/kv rw - ext4 /dev/loop3 rw\n",
			identity{path: "/mnt/kv", major: 7, minor: 3},
			nil,
		)
		f.disk("/sys/devices/virtual/block/loop3", "7:3", someStat)
		f.write("/sys/devices/virtual/block/loop3/loop/backing_file", "/srv/disk.img\n")
		d := f.device()
		assert.Equal(t, "/srv/disk.img", d.BackingFile)
		assert.Contains(t, d.Note, "loop device over /srv/disk.img")
	})
	t.Run("a plain NVMe drive has no paths", func(t *testing.T) {
		f := newFakeMachine(
			t,
			"30 1 259:0 / /mnt/kv rw - ext4 /dev/nvme0n1 rw\n",
			identity{path: "/mnt/kv", major: 259},
			nil,
		)
		f.disk("/sys/devices/pci/nvme/nvme0/nvme0n1", "259:0", someStat)
		assert.Empty(t, f.device().Members)
	})
}

func TestBackingDeviceOfNVMeMultipath(t *testing.T) {
	const head = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1"
	mount := "30 1 259:2 / /mnt/kv rw - xfs /dev/nvme0n1 rw\n"
	at := identity{path: "/mnt/kv", major: 259, minor: 2}
	paths := func(f fakeMachine) {
		f.disk("/sys/devices/pci/nvme/nvme1/nvme0c1n1", "259:1", someStat)
		f.disk("/sys/devices/pci/nvme/nvme0/nvme0c0n1", "259:0", someStat)
		f.disk("/sys/devices/pci/nvme/nvme2/nvme2c0n1", "259:5", someStat) // another subsystem
	}
	t.Run("a head that counts is read itself", func(t *testing.T) {
		f := newFakeMachine(t, mount, at, nil)
		f.disk(head, "259:2", someStat)
		paths(f)
		d := f.device()
		assert.Equal(t, []string{"nvme0c0n1", "nvme0c1n1"}, d.Members)
		assert.Equal(t, "nvme0n1 is an NVMe multipath head over nvme0c0n1, nvme0c1n1", d.Note)
		s, err := d.ReadStat()
		require.NoError(t, err)
		assert.EqualValues(t, 100, s.ReadIOs)
	})
	t.Run("before Linux 6.4 the paths are summed", func(t *testing.T) {
		f := newFakeMachine(t, mount, at, nil)
		f.disk(head, "259:2", "0 0 0 0 0 0 0 0 0 0 0\n")
		paths(f)
		d := f.device()
		assert.Contains(t, d.Note, "counts only on the paths")
		s, err := d.ReadStat()
		require.NoError(t, err)
		assert.EqualValues(t, 200, s.ReadIOs)
		assert.EqualValues(t, 2*1600*512, s.WriteBytes)
	})
	t.Run("a head that says it does not count", func(t *testing.T) {
		f := newFakeMachine(t, mount, at, nil)
		f.disk(head, "259:2", "0 0 0 0 0 0 0 0 0 0 0\n")
		f.write(head+"/queue/iostats", "0\n")
		paths(f)
		assert.Empty(t, f.device().Reason, "its paths do")
		f.write("/sys/devices/pci/nvme/nvme0/nvme0c0n1/queue/iostats", "0\n")
		f.write("/sys/devices/pci/nvme/nvme0/nvme0c0n1/mq/0/cpu_list", "0\n")
		assert.Contains(t, f.device().Reason, "statistics of nvme0c0n1 are switched off")
	})
}

func TestBackingDeviceOfBtrfs(t *testing.T) {
	const mount = "30 1 0:40 /@kv /mnt/kv rw - btrfs /dev/sdb1 rw,subvol=/@kv\n"
	at := identity{path: "/mnt/kv", minor: 51} // a subvolume's number is not the mount's
	nodes := map[string][2]uint32{"/dev/sdb1": {8, 17}}
	hostWith := func(t *testing.T, nodes map[string][2]uint32, members ...string) fakeMachine {
		f := newFakeMachine(t, mount, at, nodes)
		f.disk("/sys/devices/pci/sdb", "8:16", someStat)
		f.partition("/sys/devices/pci/sdb/sdb1", "8:17")
		for _, m := range members {
			f.write("/sys/fs/btrfs/uuid-1/devices/"+m, "")
		}
		f.write("/sys/fs/btrfs/uuid-2/devices/sdz", "")
		return f
	}
	t.Run("a single device is found through the mount source", func(t *testing.T) {
		d := hostWith(t, nodes, "sdb1").device()
		assert.Equal(t, "sdb", d.Name)
		assert.Equal(t, "sdb1", d.Partition)
		assert.Equal(t, "btrfs", d.Filesystem)
		assert.Contains(t, d.Note, "found through its mount source /dev/sdb1")
		assert.Empty(t, d.Reason)
	})
	t.Run("several devices have no single witness", func(t *testing.T) {
		d := hostWith(t, nodes, "sdb1", "sdc").device()
		assert.Empty(t, d.Name)
		assert.Equal(t, []string{"sdb1", "sdc"}, d.Members)
		assert.Contains(t, d.Reason, "2 devices (sdb1, sdc)")
	})
	t.Run("a source that is not there", func(t *testing.T) {
		d := hostWith(t, nil, "sdb1").device()
		assert.Empty(t, d.Name)
		assert.Contains(t, d.Reason, "/dev/sdb1, cannot be examined here (no such node)")
	})
}

func TestBackingDeviceReasons(t *testing.T) {
	for _, c := range []struct{ name, mount, says string }{
		{"tmpfs", "- tmpfs tmpfs rw,size=1g", "in memory"},
		{"overlay with its upper directory", "- overlay overlay " +
			"rw,lowerdir=/l,upperdir=/var/lib/docker/u/diff,workdir=/w", "/var/lib/docker/u/diff"},
		{"overlay without", "- overlay overlay rw", "another filesystem"},
		{"NFS names the export", "- nfs4 filer:/export/kv rw,rsize=1048576",
			"network filesystem (filer:/export/kv)"},
		{"CIFS", "- cifs //filer/kv rw", "network filesystem"},
		{"FUSE names the program", "- fuse.sshfs me@host: rw",
			"fuse.sshfs is served by a process in user space (me@host:)"},
		{"plain FUSE", "- fuse s3fs rw", "process in user space"},
		{"ZFS", "- zfs tank/kv rw", "zpool iostat"},
		{"a virtual machine's shared folder", "- virtiofs kv rw", "host of this virtual machine"},
		{"anything else without a device", "- bcachefs /dev/sda:/dev/sdb rw",
			"bcachefs (/dev/sda:/dev/sdb) has no block device of its own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeMachine(
				t,
				"30 1 0:99 / /mnt/kv rw "+c.mount+"\n",
				identity{path: "/mnt/kv", minor: 99, mountID: 30},
				nil,
			)
			d := f.device()
			assert.Empty(t, d.Name)
			assert.Contains(t, d.Reason, c.says)
			assert.NotEmpty(t, d.Filesystem)
			_, err := d.ReadStat()
			require.ErrorIs(t, err, ErrNoWitness)
			assert.ErrorContains(t, err, c.says)
		})
	}
	t.Run("no mount at all", func(t *testing.T) {
		d := newFakeMachine(t, "", identity{path: "/mnt/kv"}, nil).device()
		assert.Contains(t, d.Reason, "no mount")
	})
	t.Run("a sandbox without sysfs entries", func(t *testing.T) {
		d := newFakeMachine(t, "", identity{path: "/mnt/kv", major: 8, minor: 1}, nil).device()
		assert.Contains(t, d.Reason, "device 8:1, which /sys/dev/block does not show")
	})
	t.Run("device mapper of older kernels says so and counts", func(t *testing.T) {
		f := newFakeMachine(t, "", identity{path: "/mnt/kv", major: 253}, nil)
		f.disk("/sys/devices/virtual/block/dm-0", "253:0", someStat)
		f.write("/sys/devices/virtual/block/dm-0/queue/iostats", "0\n")
		d := f.device()
		assert.Equal(t, "dm-0", d.Name)
		assert.Empty(t, d.Reason)
	})
	t.Run("statistics switched off", func(t *testing.T) {
		f := newFakeMachine(t, "", identity{path: "/mnt/kv", major: 8}, nil)
		f.disk("/sys/devices/pci/sda", "8:0", someStat)
		f.write("/sys/devices/pci/sda/mq/0/cpu_list", "0\n")
		f.write("/sys/devices/pci/sda/queue/iostats", "0\n")
		d := f.device()
		assert.Equal(t, "sda", d.Name)
		assert.Contains(t, d.Reason, "echo 1 > /sys/block/sda/queue/iostats")
	})
}

func TestReadStatNamesWhatFailed(t *testing.T) {
	dir := t.TempDir()
	sda := Device{Disk: Disk{Name: "sda"}, counted: []Disk{{SysPath: dir}}}
	_, err := sda.ReadStat()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "block device sda")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stat"), []byte("1 2 3\n"), 0o644))
	_, err = sda.ReadStat()
	require.ErrorContains(t, err, "3 columns")
}
