package workdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// Names are those of a run's files, in directories one below the work directory. They are safe for
// concurrent use.
type Names interface {
	// Of says where an object lies, which is a file that is the run's.
	Of(o tiers.Object) (dir, file string)
	// Dir and File say whether a directory, and a file in it, are the run's, by their names alone.
	// Nothing is deleted that is not.
	Dir(name string) bool
	File(dir, name string) bool
}

// entryNames are those that Name gives.
type entryNames struct{}

// Of implements Names.
func (entryNames) Of(o tiers.Object) (dir, file string) { return Name(o) }

// Dir implements Names.
func (entryNames) Dir(name string) bool { return fanName.MatchString(name) }

// File implements Names.
func (entryNames) File(_, name string) bool { return fileName.MatchString(name) }

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

// Name returns where an object of the run lies.
func (d *Dir) Name(o tiers.Object) (dir, file string) { return d.names.Of(o) }

// Fan returns the descriptor of one of the directories below, which it makes when it is first
// needed.
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

// Sync makes the names of the files durable that lie in one of the directories below.
func (d *Dir) Sync(name string) error {
	fd, err := d.Fan(name)
	if err == nil {
		err = d.call("flush", d.path+"/"+name, func() error {
			return Retry(func() error { return unix.Fsync(fd) })
		})
	}
	if err != nil && !errors.Is(err, unix.EINVAL) { // which filesystems say that cannot do it
		return fail("flush the directory", d.path+"/"+name, err)
	}
	return nil
}

// sweep removes every file of the suite, and its directories that are empty then. When ctx ends it
// stops between two files, or two steps of a large one, and returns why.
func (d *Dir) sweep(ctx context.Context, names Names) (swept Amount, err error) {
	stopped := stopped(ctx)
	d.removal.ends.Store(false)
	// Counted first: whoever waits for the removal wants to know how much of it there is.
	of, err := count(d.fd, d.path, names,
		func() error { d.removal.moves(d.path, names); return stopped() })
	if err != nil {
		return swept, err
	}
	d.removal.set(d.path, names, true, of)
	remove := func(fd int, name string, size int64) error {
		cut := func() error { return shorten(fd, name, size-step) }
		for size > step && ctx.Err() == nil && d.removal.step(cut) == nil {
			size -= step
			swept.Bytes += step
			d.removal.Removed(Amount{Bytes: step})
		}
		if err := stopped(); err != nil {
			return err
		}
		err := d.removal.step(func() error {
			return Retry(func() error { return unix.Unlinkat(fd, name, 0) })
		})
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
		swept.Files++
		swept.Bytes += size
		d.removal.Removed(Amount{1, size})
		return nil
	}
	err = fans(d.fd, d.path, names, func(dir string, fd int) error {
		err := ours(fd, dir, names, func(name string, size int64) error {
			return remove(fd, name, size)
		})
		if sticky, _ := stickyDir(fd, false); err == nil && sticky {
			// It fails when something of the user's is in it.
			_ = unix.Unlinkat(d.fd, dir, unix.AT_REMOVEDIR)
		}
		return err
	})
	if err == nil {
		err = engineTree(d.fd, d.path, true, remove)
	}
	return swept, err
}

// step is how many bytes of a file are given up at once. On a disk mounted discard the removal of
// 1 GiB was seen to take 1.4 s in one call, which nothing can interrupt: the process could not end
// meanwhile, and nobody would see that it goes on. In steps of twice this size no call took longer
// than 0.2 s, and all of them no longer than the one.
const step = 32 << 20

// shorten cuts a file of ours to a size. One to which somebody has made a link of their own, it
// leaves: that would lose its content.
func shorten(dir int, name string, size int64) error {
	fd, err := OpenAt(dir, name, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) // nothing was written that could fail here
	var s unix.Stat_t
	if unix.Fstat(fd, &s) != nil || s.Mode&unix.S_IFMT != unix.S_IFREG || s.Nlink != 1 {
		return unix.EMLINK
	}
	return Retry(func() error { return unix.Ftruncate(fd, size) })
}

// count adds up the files of the suite in a work directory.
func count(dir int, path string, names Names, stopped func() error) (n Amount, err error) {
	err = each(dir, path, names, func(_ int, _ string, size int64) error {
		n.Files++
		n.Bytes += size
		return stopped()
	})
	return n, err
}

// each calls do with every file of the suite in a work directory, until that fails.
func each(dir int, path string, names Names, do func(dir int, name string, size int64) error,
) error {
	err := fans(dir, path, names, func(in string, fd int) error {
		return ours(fd, in, names, func(name string, size int64) error {
			return do(fd, name, size)
		})
	})
	if err == nil {
		err = engineTree(dir, path, false, do)
	}
	return err
}

// fans calls do with each of the run's directories in a work directory, until that fails.
func fans(dir int, path string, run Names, do func(name string, fd int) error) error {
	names, err := readNames(dir)
	if err != nil {
		return fail("list", path, err)
	}
	for _, name := range names {
		if !run.Dir(name) {
			continue
		}
		fd, err := OpenAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) ||
			errors.Is(err, unix.ENOENT) {
			continue // no directory: a user's
		}
		if err != nil {
			return fail("open", path+"/"+name, err)
		}
		err = do(name, fd)
		unix.Close(fd)
		if err != nil {
			return fail("in", path+"/"+name, err)
		}
	}
	return nil
}

// ours calls do with each of the suite's files in one of its directories. What carries such a name
// and is no regular file, a link above all, is somebody else's.
func ours(fd int, dir string, run Names, do func(name string, size int64) error) error {
	names, err := readNames(fd)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for _, name := range names {
		var s unix.Stat_t
		if !run.File(dir, name) ||
			unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW) != nil ||
			s.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if err := do(name, s.Size); err != nil {
			return err
		}
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
