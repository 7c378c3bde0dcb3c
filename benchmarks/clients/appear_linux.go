package clients

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// appear makes a file that was never there without its text: it has no name before. Where the
// filesystem knows no such files (NFS), it is made as any other.
func appear(path, text string) error {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return write(path, text)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync()); err != nil {
		return err
	}
	// By the descriptor itself it would take a privilege.
	err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path,
		unix.AT_SYMLINK_FOLLOW)
	if err != nil && !errors.Is(err, os.ErrExist) { // such as without /proc
		return write(path, text)
	}
	return err
}
