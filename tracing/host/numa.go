package host

import (
	"path/filepath"
	"slices"
	"strings"
)

// StorageNodes lists the NUMA nodes that the devices behind directories are attached to, in order
// and without repetition: where the memory that they read and write should lie. For a directory
// that does not exist yet the nearest one above it answers. None are known where the machine has
// but one, and of devices that belong to none: loop devices, virtual disks, network filesystems.
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

// nodes are the directories of the NUMA nodes that the machine has.
func (m machine) nodes() (names []string) {
	for _, name := range m.Names("/sys/devices/system/node") {
		if number, is := strings.CutPrefix(name, "node"); is &&
			strings.Trim(number, "0123456789") == "" {
			names = append(names, name)
		}
	}
	return names
}

// node is the NUMA node of the device, -1 when unknown. A namespace hangs below its
// controller, and that below its slot, which knows.
func (d Disk) node() int {
	for dir := d.SysPath; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if n := Root(dir).Integer("numa_node"); n != nil && *n >= 0 {
			return int(*n)
		}
	}
	return -1
}
