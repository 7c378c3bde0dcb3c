package enginetier

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
)

// calls are the system calls that a layout makes itself, all of them relative to the directory of
// its files. Those that move bytes are the engine's; it is told of these, too, because the device
// may not answer them either.
type calls struct {
	root   int    // descriptor of the directory
	path   string // its
	engine ioengine.Engine
	note   func(string) // is told of each call before it is made; nil: nobody is
}

// announce reports a call to note, before it is made: its outcome is not compared.
func (c *calls) announce(format string, args ...any) {
	if c.note != nil {
		c.note(fmt.Sprintf(format, args...))
	}
}

// call makes one, again where a signal has interrupted it. Its error names the file.
func (c *calls) call(what, path string, do func() error) error {
	full := c.path + "/" + path
	err := c.engine.Call(what, full, func() error { return workdir.Retry(do) })
	if errors.Is(err, unix.ENAMETOOLONG) {
		err = fmt.Errorf("%w (%d bytes, the filesystem takes %d)", err, len(filepath.Base(path)),
			nameMax(c.root))
	}
	if err != nil {
		err = &fs.PathError{Op: what, Path: full, Err: err}
	}
	return err
}

// open opens a file. Links are not followed: whatever lies there, nothing is written outside of the
// directory.
func (c *calls) open(path string, flags int, mode uint32) (fd int, err error) {
	c.announce("openat %s %s %#o", path, flagNames(flags), mode)
	what := "open"
	if flags&unix.O_CREAT != 0 {
		what = "create"
	}
	err = c.call(what, path, func() (err error) {
		fd, err = workdir.OpenAt(c.root, path, flags, mode)
		return err
	})
	return fd, err
}

// access says whether a path is there: os.access.
func (c *calls) access(path string) (there bool, err error) {
	c.announce("faccessat %s", path)
	return found(c.call("look-up", path, func() error {
		return unix.Faccessat(c.root, path, unix.F_OK, 0)
	}))
}

// stat likewise, as os.stat and os.path.exists.
func (c *calls) stat(path string) (there bool, err error) {
	c.announce("newfstatat %s", path)
	return found(c.call("look-up", path, func() error {
		var s unix.Stat_t
		return unix.Fstatat(c.root, path, &s, 0)
	}))
}

// found makes an answer of an error: a directory that is missing on the way is one, too.
func found(err error) (bool, error) {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

// mkdir makes a directory, and says whether it was not there already.
func (c *calls) mkdir(path string) (made bool, err error) {
	c.announce("mkdirat %s", path)
	err = c.call("mkdir", path, func() error {
		return unix.Mkdirat(c.root, path, workdir.TreeMode)
	})
	if errors.Is(err, unix.EEXIST) {
		return false, nil
	}
	return err == nil, err
}

// rename gives a file its name, in the place of one that may have it.
func (c *calls) rename(from, to string) error {
	c.announce("renameat %s %s", from, to)
	return c.call("rename", from, func() error { return unix.Renameat(c.root, from, c.root, to) })
}

// unlink removes a name; whoever has the file open keeps it.
func (c *calls) unlink(path string) error {
	c.announce("unlinkat %s", path)
	return c.call("remove", path, func() error { return unix.Unlinkat(c.root, path, 0) })
}

// close closes a file. Interrupted, it is closed all the same.
func (c *calls) close(fd int, path string) error {
	c.announce("close")
	return c.call("close", path, func() error {
		if err := unix.Close(fd); !errors.Is(err, unix.EINTR) {
			return err
		}
		return nil
	})
}

// size gives a file its size.
func (c *calls) size(fd int, path string, n int64) error {
	c.announce("ftruncate %d", n)
	return c.call("truncate", path, func() error { return unix.Ftruncate(fd, n) })
}

// write puts a short text into a file at its position, that of a configuration or an index: those
// are so few that they need no engine.
func (c *calls) write(fd int, path string, p []byte) error {
	c.announce("write %d", len(p))
	n := 0
	err := c.call("write", path, func() (err error) { n, err = unix.Write(fd, p); return err })
	if err == nil && n < len(p) {
		err = unix.ENOSPC
	}
	return err
}

// scan reads the whole directory: os.scandir, with the 32 KiB that the C library asks for.
func (c *calls) scan() error {
	const path = "."
	fd, err := c.open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	buf := make([]byte, 32<<10)
	for n := 1; n > 0 && err == nil; {
		c.announce("getdents64")
		err = c.call("list", path, func() (err error) {
			n, err = unix.ReadDirent(fd, buf)
			return err
		})
	}
	return errors.Join(err, c.close(fd, path))
}

// flagNames are the names of the flags of an open call.
func flagNames(flags int) string {
	text := map[int]string{unix.O_RDONLY: "O_RDONLY", unix.O_WRONLY: "O_WRONLY",
		unix.O_RDWR: "O_RDWR"}[flags&unix.O_ACCMODE]
	for _, f := range []struct {
		bit  int
		name string
	}{
		{unix.O_CREAT, "O_CREAT"}, {unix.O_EXCL, "O_EXCL"}, {unix.O_TRUNC, "O_TRUNC"},
		{unix.O_NONBLOCK, "O_NONBLOCK"}, {openDirect, "O_DIRECT"},
		{unix.O_DIRECTORY, "O_DIRECTORY"},
	} {
		if f.bit != 0 && flags&f.bit == f.bit {
			text += "|" + f.name
		}
	}
	return text
}
