package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Buffers lie on the node of the device: the nearest that is told on the way up from it, and none
// where there is nothing to choose or nobody knows.
func TestStorageNodes(t *testing.T) {
	const drive = "/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/nvme/nvme1/nvme1n1"
	for _, c := range []struct {
		name    string
		of, and string // the numa_node of the slot, and of the root port
		nodes   []string
		want    []int
	}{
		{"of the slot", "1", "0", []string{"node0", "node1"}, []int{1}},
		{"of the port, where the slot does not tell", "-1", "2", []string{"node0", "node2"}, []int{2}},
		{"one node", "0", "0", []string{"node0"}, nil},
		{"nobody tells", "-1", "-1", []string{"node0", "node1"}, nil},
		{"no such file", "", "", []string{"node0", "node1"}, nil},
		{"no NUMA", "0", "0", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeMachine(t, "", identity{path: "/data", major: 259, minor: 1}, nil)
			f.disk(drive, "259:1", someStat)
			f.link("/sys/class/block/nvme1n1", drive)
			f.write(drive+"/mq/0/cpu_list", "0\n")
			for dir, node := range map[string]string{
				"/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0": c.of,
				"/sys/devices/pci0000:80/0000:80:01.0":              c.and} {
				if node != "" {
					f.write(dir+"/numa_node", node+"\n")
				}
			}
			f.write("/sys/devices/system/node/possible", "0-3\n")
			for _, n := range c.nodes {
				f.write("/sys/devices/system/node/"+n+"/cpulist", "0\n")
			}
			dir := t.TempDir()
			assert.Equal(t, c.want, f.storageNodes([]string{dir, dir + "/sub/that is not there"}))
		})
	}
}
