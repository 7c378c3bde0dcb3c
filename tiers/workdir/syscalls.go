package workdir

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Files are used by descriptor: os.File would add its poller and locks to every request.

// Retry repeats a call that a signal interrupted.
func Retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// OpenAt opens name in the directory dir. It follows no symbolic link in the last place.
func OpenAt(dir int, name string, flags int, mode uint32) (fd int, err error) {
	err = Retry(func() (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, mode)
		return err
	})
	return fd, err
}
