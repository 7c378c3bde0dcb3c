package host

import (
	"path/filepath"
	"slices"
	"strings"
)

// StorageNodes lists the NUMA nodes of the devices behind directories, ordered and without duplicates.
// Buffers should be on these nodes. For a directory that does not exist yet it uses the nearest existing one
// above it. The list is empty on a machine with one node, and for devices without a node: loop devices,
// virtual disks, network filesystems.
func StorageNodes(dirs ...string) []int {
	if noKernelStatistics != "" {
		return nil
	}
	return thisMachine().storageNodes(dirs)
}

func (m machine) storageNodes(dirs []string) (nodes []int) {
	if len(m.nodes()) < 2 {
		return nil
	}
	for _, dir := range dirs {
		at, err := existing(dir)
		if err != nil {
			continue // the caller that opens it reports the error
		}
		d, err := m.backingDevice(at)
		if err != nil {
			continue
		}
		disks, _ := m.disks(d)
		for _, disk := range disks {
			if n := disk.node(); n >= 0 && !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
	}
	slices.Sort(nodes)
	return nodes
}

// nodes lists the directories of the machine's NUMA nodes.
func (m machine) nodes() (names []string) {
	for _, name := range m.Names("/sys/devices/system/node") {
		if number, is := strings.CutPrefix(name, "node"); is &&
			strings.Trim(number, "0123456789") == "" {
			names = append(names, name)
		}
	}
	return names
}

// node returns the NUMA node of the device, -1 if unknown. In sysfs a namespace is below its controller,
// and the controller below its slot, which has the node.
func (d Disk) node() int {
	for dir := d.SysPath; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if n := Root(dir).Integer("numa_node"); n != nil && *n >= 0 {
			return int(*n)
		}
	}
	return -1
}
