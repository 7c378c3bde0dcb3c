package filetier

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
)

func init() {
	layouts[tiers.LayoutFiles] = func(b base) layout { return &files{base: b} }
	layouts["block"] = layouts[tiers.LayoutFiles]
	layouts[tiers.LayoutNamed] = func(b base) layout { return &files{base: b, exact: true} }
}

// files is the suite's layout of one file per object. The file is preallocated, flushed, and removed
// when its last reader has closed it.
type files struct {
	base
	// exact means that the file has exactly the object's size, without the padding of direct I/O, for
	// readers that open files by name. The flush then includes all metadata.
	exact bool
}

func (l *files) start(context.Context) error {
	// With buffered I/O bytes reach the device with the flush.
	l.t.traits.CountsAtCommit = !l.t.direct
	l.t.dropsCache = l.exact && !l.t.direct && l.t.cfg.Advice == AdviseDrop
	return nil
}

func (l *files) takes(o tiers.Object) int64 { return o.Size }

func (l *files) create(_ context.Context, s *span) (err error) {
	path := l.t.pathOf(s.run[0].o)
	if s.fd, err = l.t.makeFile(path, unix.O_WRONLY); err != nil {
		return err
	}
	s.path = path
	return l.t.preallocate(s)
}

func (l *files) commit(ctx context.Context, s *span) error {
	if err := l.t.flush(ctx, s, l.exact); err != nil {
		return err
	}
	s.closed = true
	return l.calls.close(s.fd, s.path)
}

func (l *files) open(_ context.Context, s *span) (err error) {
	s.path = l.t.pathOf(s.run[0].o)
	s.fd, err = l.t.openRead(s.path)
	return err
}

func (l *files) free(e *entry) error { return l.t.unlink(l.t.pathOf(e.o)) }

// The rest of this file is common to the suite's own layouts.

// pathOf returns the path of an object's file, or of a file that is named after an object.
func (t *Tier) pathOf(o tiers.Object) string {
	dir, name := t.cfg.Dir.Name(o)
	return dir + "/" + name
}

// makeFile creates a file.
func (t *Tier) makeFile(path string, access int) (fd int, err error) {
	fd, err = t.openOwn(path, access|unix.O_CREAT|unix.O_EXCL)
	if t.direct && errors.Is(err, unix.EINVAL) {
		_ = t.unlink(path) // some filesystems create the file and then refuse direct I/O
	}
	return fd, err
}

// openOwn opens a file of the suite's own layouts with the tier's I/O mode.
func (t *Tier) openOwn(path string, flags int) (fd int, err error) {
	fd, err = t.calls.open(path, flags|past(t.direct), 0o644)
	if err == nil && t.direct {
		if err = afterOpen(fd); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	return fd, err
}

// past returns the open flag of direct I/O, or 0.
func past(direct bool) int {
	if direct {
		return openDirect
	}
	return 0
}

// openRead opens a file for reading. With buffered I/O it gives the hint Advice to the kernel. If the
// hint is to drop the file from the page cache, reads come from the device.
func (t *Tier) openRead(path string) (fd int, err error) {
	fd, err = t.openOwn(path, unix.O_RDONLY)
	if err != nil || t.direct {
		return fd, err
	}
	switch t.cfg.Advice {
	case AdviseDrop:
		err = t.dropCache(fd, path)
	case AdviseSequential:
		err = t.calls.call("advise", path, func() error { return sequential(fd) })
	}
	if err != nil {
		_ = t.calls.close(fd, path)
		return -1, err
	}
	return fd, nil
}

func (t *Tier) dropCache(fd int, path string) error {
	return t.calls.call("drop from the page cache", path, func() error { return dropCache(fd) })
}

// preallocate allocates the blocks of a span with direct I/O, if the filesystem can, so that a full disk
// fails before the first byte, and writes do not extend the file. The kernel waits for all direct I/O of
// the file each time. Preallocating 64 places at once was slower nevertheless on ext4, because every
// write then splits one large unwritten extent (medians of five alternating runs: 471 MB/s, and 799 MB/s
// one by one).
func (t *Tier) preallocate(s *span) error {
	if !t.direct {
		return nil
	}
	last := s.run[len(s.run)-1]
	end := max(last.at+last.space, last.at+tiers.AlignUp(last.o.Size, int64(t.traits.Align)))
	_, err := t.calls.allocate(s.fd, s.path, s.at, end-s.at)
	return err
}

// flush makes the bytes of a span durable. With direct I/O it uses fdatasync. Otherwise it uses fsync,
// and drops the file from the page cache if Advice says so. A file of exact size is first truncated to
// remove its padding, and uses fsync.
func (t *Tier) flush(ctx context.Context, s *span, exact bool) error {
	kind := ioengine.Sync
	if t.direct && !exact {
		kind = ioengine.DataSync
	}
	if exact && s.size()%int64(t.traits.Align) != 0 {
		if err := t.calls.size(s.fd, s.path, s.size()); err != nil {
			return err
		}
	}
	s.x.users.n.Add(1)
	err := t.await(ctx, &t.limits.stores, &ioengine.Op{Kind: kind, FD: s.fd}, s.x.users.leaveLater)
	if err != nil {
		return &fs.PathError{Op: "flush", Path: t.calls.path + "/" + s.path, Err: err}
	}
	if t.direct || t.cfg.Advice != AdviseDrop {
		return nil
	}
	return t.dropCache(s.fd, s.path)
}

// Adopt adds an object whose file an earlier run has left, with the work directory's name for it and
// exactly its size. The object can then be opened and removed. Adopt returns ErrNotFound if the file
// does not exist, and an error if the file has another size.
func (t *Tier) Adopt(_ context.Context, o tiers.Object) error {
	path := t.pathOf(o)
	fd, err := t.calls.open(path, unix.O_RDONLY, 0)
	if err != nil {
		return t.error("find", o, -1, err)
	}
	defer func() { _ = t.calls.close(fd, path) }()
	var s unix.Stat_t
	err = t.calls.call("stat", path, func() error { return unix.Fstat(fd, &s) })
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil:
	case s.Size != o.Size:
		err = &fs.PathError{Op: "find", Path: t.calls.path + "/" + path,
			Err: fmt.Errorf("the file has %d bytes, it should have %d", s.Size, o.Size)}
	case t.entries[o.ID()] != nil:
		err = tiers.ErrExists
	}
	if err != nil {
		return t.error("find", o, -1, err)
	}
	t.add(&entry{o: o, space: o.Size, uses: 1, visible: true})
	return nil
}
