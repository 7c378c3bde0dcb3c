package filetier

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
)

// calls makes the system calls of a layout, except reads and writes of objects, which the I/O engine
// makes. The calls run through Engine.Call, because they may hang in the device, too.
//
// A path is relative to the directory of an engine's files. In the suite's own layouts it is relative
// to the work directory, and begins with one of its directories.
type calls struct {
	dir    *workdir.Dir
	root   int    // descriptor of the engine's directory; -1 for the suite's own layouts
	path   string // of the directory
	engine ioengine.Engine
	note   func(string) // receives each call before it is made; may be nil
}

// announce passes the text of a call to note, before the call is made.
func (c *calls) announce(format string, args ...any) {
	if c.note != nil {
		c.note(fmt.Sprintf(format, args...))
	}
}

// call makes a system call, and repeats it after EINTR. Its error names the file.
func (c *calls) call(what, path string, do func() error) error {
	full := c.path + "/" + path
	err := c.engine.Call(what, full, do)
	for errors.Is(err, unix.EINTR) {
		err = c.engine.Call(what, full, do)
	}
	if err != nil {
		err = &fs.PathError{Op: what, Path: full, Err: err}
	}
	return err
}

// place returns the descriptor of a path's directory and the name in that directory, for system calls.
func (c *calls) place(path string) (dir int, name string, err error) {
	if c.root >= 0 {
		return c.root, path, nil
	}
	top, name, _ := strings.Cut(path, "/")
	dir, err = c.dir.Fan(top)
	return dir, name, err
}

// open opens a file. It follows no symbolic links, so that no write leaves the directory.
func (c *calls) open(path string, flags int, mode uint32) (fd int, err error) {
	c.announce("openat %s %v %#o", path, openFlags(flags), mode)
	what := "open"
	if flags&unix.O_CREAT != 0 {
		what = "create"
	}
	err = c.call(what, path, func() error {
		dir, name, err := c.place(path)
		if err == nil {
			fd, err = workdir.OpenAt(dir, name, flags, mode)
		}
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// access reports whether a path exists, by the system call of os.access.
func (c *calls) access(path string) (there bool, err error) {
	return c.find("faccessat", path, func() error { return unix.Faccessat(c.root, path, unix.F_OK, 0) })
}

// stat reports whether a path exists, by the system call of os.stat and os.path.exists.
func (c *calls) stat(path string) (there bool, err error) {
	var s unix.Stat_t
	return c.find("newfstatat", path, func() error { return unix.Fstatat(c.root, path, &s, 0) })
}

// find returns false, without an error, if the path or a directory above it is missing.
func (c *calls) find(name, path string, do func() error) (there bool, err error) {
	c.announce("%s %s", name, path)
	err = c.call("look-up", path, do)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

// mkdir makes a directory. It returns false if the directory exists already.
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

// rename renames a file and replaces a file of that name.
func (c *calls) rename(from, to string) error {
	c.announce("renameat %s %s", from, to)
	return c.call("rename", from, func() error { return unix.Renameat(c.root, from, c.root, to) })
}

// unlink removes a file's name. Open descriptors stay valid.
func (c *calls) unlink(path string) error {
	c.announce("unlinkat %s", path)
	return c.call("remove", path, func() error {
		dir, name, err := c.place(path)
		if err == nil {
			err = unix.Unlinkat(dir, name, 0)
		}
		return err
	})
}

// close closes a file. After EINTR the file is closed, too.
func (c *calls) close(fd int, path string) error {
	c.announce("close")
	return c.call("close", path, func() error {
		if err := unix.Close(fd); err != unix.EINTR {
			return err
		}
		return nil
	})
}

// size sets the size of a file.
func (c *calls) size(fd int, path string, n int64) error {
	c.announce("ftruncate %d", n)
	return c.call("truncate", path, func() error { return unix.Ftruncate(fd, n) })
}

// allocate preallocates the blocks of a range. It does nothing and returns false if the filesystem does
// not support that.
func (c *calls) allocate(fd int, path string, off, n int64) (done bool, err error) {
	c.announce("fallocate %d", n)
	err = c.call("preallocate", path, func() error { return allocate(fd, off, n) })
	if unsupported(err) {
		return false, nil
	}
	return err == nil, err
}

// unsupported reports that the filesystem lacks the operation.
func unsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)
}

// write writes a small file, such as a configuration or an index, at the file's position, without the
// I/O engine.
func (c *calls) write(fd int, path string, p []byte) error {
	c.announce("write %d", len(p))
	n := 0
	err := c.call("write", path, func() (err error) { n, err = unix.Write(fd, p); return err })
	if err == nil && n < len(p) {
		err = unix.ENOSPC
	}
	return err
}

// scan reads the whole directory as os.scandir does, with the C library's buffer of 32 KiB.
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

// openFlags are the flags of an open call. Tests print their names.
type openFlags int
