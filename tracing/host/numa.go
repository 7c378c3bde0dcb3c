package host

import (
	"path/filepath"
	"slices"
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
	// A fixed pattern: no error possible.
	if nodes, _ := filepath.Glob(m.Path("/sys/devices/system/node/node[0-9]*")); len(nodes) < 2 {
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
		disks, _ := d.Disks()
		for _, disk := range disks {
			if n := disk.node(); n >= 0 && !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
	}
	slices.Sort(nodes)
	return nodes
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
