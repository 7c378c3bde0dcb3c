package host

import (
	"fmt"
	"strings"
)

// whyNone explains to a storage engineer why no block device stands behind a mount without one.
func whyNone(m Mount) string {
	switch kind, _, _ := strings.Cut(m.Type, "."); kind {
	case "":
		return "the directory belongs to no mount that this process can see"
	case "tmpfs", "ramfs", "devtmpfs", "hugetlbfs":
		return m.Type + " keeps its files in memory: no block device sees these bytes"
	case "overlay":
		where := "another filesystem"
		if upper, ok := m.SuperOption("upperdir"); ok {
			where = upper
		}
		return fmt.Sprintf("overlay (a container's own layer) stores its files in %s and hides the device: use a mounted volume to see it", where)
	case "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "lustre", "gpfs", "beegfs", "beegfs_nodev", "afs", "pvfs2", "glusterfs", "wekafs":
		return fmt.Sprintf("%s is a network filesystem (%s): its disks are not on this host", m.Type, m.Source)
	case "9p", "virtiofs":
		return fmt.Sprintf("%s passes the bytes to the host of this virtual machine (%s): its disks cannot be seen from inside", m.Type, m.Source)
	case "fuse":
		return fmt.Sprintf("%s is served by a process in user space (%s): the kernel knows no device behind it", m.Type, m.Source)
	case "zfs":
		return fmt.Sprintf("zfs spreads %s over the devices of its pool: `zpool iostat` shows what they do", m.Source)
	default:
		return fmt.Sprintf("%s (%s) has no block device of its own", m.Type, m.Source)
	}
}
