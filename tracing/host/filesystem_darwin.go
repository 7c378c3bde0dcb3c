package host

import "golang.org/x/sys/unix"

func statfs(path string) (Filesystem, error) {
	var s unix.Statfs_t
	if err := uninterrupted(func() error { return unix.Statfs(path, &s) }); err != nil {
		return Filesystem{}, err
	}
	return Filesystem{
		Type:     unix.ByteSliceToString(s.Fstypename[:]),
		Free:     int64(s.Bavail) * int64(s.Bsize),
		Total:    int64(s.Blocks) * int64(s.Bsize),
		Root:     unix.ByteSliceToString(s.Mntonname[:]) == "/",
		ReadOnly: s.Flags&unix.MNT_RDONLY != 0,
	}, nil
}
