package workdir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// The names that Name gives: nothing is deleted whose name differs from them in a single character.
var (
	fanName  = regexp.MustCompile(`^[0-9a-f]{2}$`)
	fileName = regexp.MustCompile(`^[0-9a-f]{30}-[0-9a-f]{16}$`)
)

// Name returns where an entry lies: a directory of two hexadecimal digits (256 of them: none grows
// large) and a name of thirty more, both from the key's hash, with the generation: versions of a
// key never share a file, so a reader of an old one is safe.
func Name(o tiers.Object) (fan, name string) {
	sum := sha256.Sum256([]byte(o.Key))
	text := hex.EncodeToString(sum[:16])
	return text[:2], fmt.Sprintf("%s-%016x", text[2:], o.Gen)
}

// Fan returns the descriptor of one of the two-digit directories, which it makes when it is
// first needed.
func (d *Dir) Fan(name string) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return -1, tiers.ErrClosed
	}
	if fd, ok := d.fans[name]; ok {
		return fd, nil
	}
	fd, _, _, err := ownDir(d.fd, name, d.path+"/"+name)
	if err != nil {
		return -1, err
	}
	d.fans[name] = fd
	return fd, nil
}

// sweep removes every file of the suite, and its directories that are empty then.
func (d *Dir) sweep() (swept Reclaimed, err error) {
	names, err := readNames(d.fd)
	if err != nil {
		return swept, fail("list", d.path, err)
	}
	for _, name := range names {
		if !fanName.MatchString(name) {
			continue
		}
		fd, err := OpenAt(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) ||
			errors.Is(err, unix.ENOENT) {
			continue // no directory: a user's
		}
		if err != nil {
			return swept, fail("open", d.path+"/"+name, err)
		}
		err = sweepFan(fd, &swept)
		sticky, _ := stickyDir(fd, false)
		unix.Close(fd)
		if err != nil {
			return swept, fail("in", d.path+"/"+name, err)
		}
		if sticky {
			// It fails when something of the user's is in it.
			_ = unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR)
		}
	}
	return swept, nil
}

// sweepFan removes the suite's files from one of its directories. What carries such a name and is
// no regular file, a link above all, is somebody else's.
func sweepFan(fd int, swept *Reclaimed) error {
	names, err := readNames(fd)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for _, name := range names {
		var s unix.Stat_t
		if !fileName.MatchString(name) ||
			unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW) != nil ||
			s.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		err := Retry(func() error { return unix.Unlinkat(fd, name, 0) })
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
		swept.Files++
		swept.Bytes += s.Size
	}
	return nil
}

// readNames lists a directory. It reads through a descriptor of its own: dir's has one position
// for all who use it.
func readNames(dir int) ([]string, error) {
	fd, err := OpenAt(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	return f.Readdirnames(-1)
}

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
