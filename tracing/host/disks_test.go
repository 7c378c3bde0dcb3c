package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTargets(t *testing.T) {
	f := newFakeMachine(t, "", identity{}, nil)
	disk := func(dir, number string) {
		f.disk(dir, number, someStat)
		f.write(dir+"/mq/0/cpu_list", "0\n")
	}
	const virtual = "/sys/devices/virtual/block/"
	disk("/sys/devices/pci/sda", "8:0")
	disk("/sys/devices/pci/sdb", "8:16")
	f.partition("/sys/devices/pci/sda/sda3", "8:3")
	f.link("/sys/class/block/sda3", "/sys/devices/pci/sda/sda3")
	f.disk(virtual+"md0", "9:0", someStat)
	f.write(virtual+"md0/slaves/sda3/dev", "8:3\n")
	f.write(virtual+"md0/slaves/sdb/dev", "8:16\n")
	f.disk(virtual+"dm-0", "252:0", someStat)
	f.write(virtual+"dm-0/slaves/md0/dev", "9:0\n")
	f.disk(virtual+"zram0", "253:0", someStat)
	const head = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1"
	f.disk(head, "259:2", someStat)
	f.link("/sys/class/block/nvme0n1", head)
	for _, p := range []string{"nvme0c0n1", "nvme0c1n1"} { // hidden: no number
		f.write("/sys/devices/pci/"+p+"/mq/0/cpu_list", "0\n")
		f.link("/sys/block/"+p, "/sys/devices/pci/"+p)
	}

	for _, c := range []struct {
		name   string
		device Device
		want   []string
		reason string
	}{
		{"a disk is itself", Device{Disk: Disk{Name: "sda"}}, []string{"sda"}, ""},
		{"device mapper over RAID over a partition and a disk",
			Device{Disk: Disk{Name: "dm-0"}, Members: []string{"md0"}}, []string{"sda", "sdb"}, ""},
		{"the paths of an NVMe multipath head", Device{Disk: Disk{Name: "nvme0n1"}},
			[]string{"nvme0c0n1", "nvme0c1n1"}, ""},
		{"btrfs on two devices", Device{Members: []string{"sda3", "sdb"}, Reason: "spread"},
			[]string{"sda", "sdb"}, ""},
		{"a RAM disk sees no requests", Device{Disk: Disk{Name: "zram0"}}, nil,
			"zram0 handles bios without requests"},
		{"no device", Device{Reason: "tmpfs keeps its files in memory"}, nil, "tmpfs keeps"},
		{"one that is gone", Device{Disk: Disk{Name: "sdz"}}, nil, "sdz cannot be examined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, reason := f.disks(c.device)
			var names []string
			for _, d := range got {
				names = append(names, d.Name)
			}
			assert.Equal(t, c.want, names)
			assert.Contains(t, reason, c.reason)
			assert.Equal(t, c.reason == "", reason == "")
		})
	}
	several := append(make([]string, 0, 4), "md0")
	_, _ = f.disks(Device{Members: several})
	assert.Empty(t, several[:2][1], "others read the same members")
	paths, _ := f.disks(Device{Disk: Disk{Name: "nvme0n1"}})
	assert.True(t, paths[0].Hidden)
}
