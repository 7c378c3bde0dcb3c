package host

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// noKernelStatistics is empty where the kernel can be asked.
const noKernelStatistics = ""

func thisHost() host {
	return host{identify: identify, blockNode: blockNode}
}

// identify asks statx, which gives the mount id too (since Linux 5.8; the mask says whether it did).
func identify(path string) (identity, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return identity{}, err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return identity{}, err
	}
	var st unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, abs, 0, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &st)
	if err == unix.ENOSYS { // before Linux 4.11, and sandboxes that do not know it
		var old unix.Stat_t
		if err := unix.Stat(abs, &old); err != nil {
			return identity{}, &fs.PathError{Op: "stat", Path: abs, Err: err}
		}
		return identity{path: abs, major: unix.Major(old.Dev), minor: unix.Minor(old.Dev)}, nil
	}
	if err != nil {
		return identity{}, &fs.PathError{Op: "statx", Path: abs, Err: err}
	}
	id := identity{path: abs, major: st.Dev_major, minor: st.Dev_minor}
	if st.Mask&unix.STATX_MNT_ID != 0 {
		id.mountID = int(st.Mnt_id)
	}
	return id, nil
}

func blockNode(path string) (major, minor uint32, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return 0, 0, fmt.Errorf("%s is no block device", path)
	}
	return unix.Major(st.Rdev), unix.Minor(st.Rdev), nil
}
