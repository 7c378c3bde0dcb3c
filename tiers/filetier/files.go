package filetier

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
)

// making is the state of a file while it is written.
type making struct {
	once sync.Once
	fd   int
	err  error
}

// Keys of files with more than one object. Each packed file has its own generation.
const (
	packKey  = "pack"
	slotsKey = "slots"
)

// object returns the object whose name in the work directory is the name of f.
func (f *file) object(p policy) tiers.Object {
	switch {
	case p.slot > 0:
		return tiers.Object{Key: slotsKey}
	case p.places > 1:
		return tiers.Object{Key: packKey, Gen: f.gen}
	}
	return *f.first
}

// makeFile creates f for its first object. If that fails the file takes no objects, and the next object
// tries another file.
func (t *Tier) makeFile(f *file) error {
	m := f.making
	m.once.Do(func() {
		var err error
		m.fd, err = t.openFile(f, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, t.direct)
		if err == nil {
			return
		}
		m.err = t.error("create", *f.first, f, -1, err)
		if t.direct && errors.Is(err, unix.EINVAL) {
			_ = t.unlink(f) // some filesystems create the file and then refuse direct I/O
		}
	})
	if m.err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.close(f)
		f.gone = true
	}
	return m.err
}

// call makes a call on f that may hang in the device.
func (t *Tier) call(what string, f *file, do func() error) error {
	return t.engine.Call(what, t.path(f), do)
}

// openFile opens f on disk. It opens directories and files by descriptor and name and follows no
// symbolic links, so that no write leaves the work directory, whatever happens to the path.
func (t *Tier) openFile(f *file, flags int, direct bool) (fd int, err error) {
	what := "open"
	if flags&unix.O_CREAT != 0 {
		what = "create"
	}
	if direct {
		flags |= openDirect
	}
	dir, name := t.dir.Name(f.object(t.policy))
	err = t.engine.Call(what, t.below(dir, name), func() error {
		at, err := t.dir.Fan(dir)
		if err != nil {
			return err
		}
		fd, err = workdir.OpenAt(at, name, flags, 0o644)
		if err == nil && direct {
			if err = setDirect(fd); err != nil {
				unix.Close(fd)
			}
		}
		return err
	})
	return fd, err
}

// open opens f for reading o. With buffered I/O it drops f from the page cache, so that reads come from
// the device.
func (t *Tier) open(f *file, o tiers.Object) (fd int, err error) {
	fd, err = t.openFile(f, unix.O_RDONLY, t.direct)
	if err != nil {
		return -1, t.error("open", o, f, -1, notFound(err))
	}
	if !t.direct {
		err := t.call("drop from the page cache", f, func() error { return t.advise(fd) })
		if err != nil {
			t.closeRead(f, fd)
			return -1, t.error("drop from the page cache", o, f, -1, err)
		}
	}
	return fd, nil
}

// Adopt adds an object whose file an earlier run has left, under the work directory's name for it and
// with exactly its size. The object can then be opened and removed. Adopt returns ErrNotFound if the
// file does not exist, and an error if it has another size.
func (t *Tier) Adopt(_ context.Context, o tiers.Object) error {
	f := &file{first: &o}
	fd, err := t.openFile(f, unix.O_RDONLY, false)
	if err != nil {
		return t.error("find", o, f, -1, notFound(err))
	}
	defer t.closeRead(f, fd)
	var s unix.Stat_t
	if err := t.call("stat", f, func() error { return unix.Fstat(fd, &s) }); err != nil {
		return t.error("look at", o, f, -1, err)
	}
	if s.Size != o.Size {
		return t.error("find", o, f, -1, fmt.Errorf("the file has %d bytes, it should have %d",
			s.Size, o.Size))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[o.ID()] != nil {
		return t.error("find", o, f, -1, tiers.ErrExists)
	}
	t.take(&entry{o: o, in: f, room: o.Size, uses: 1, visible: true})
	return nil
}

// advise passes the hint for a file that is going to be read to the kernel.
func (t *Tier) advise(fd int) error {
	switch t.advice {
	case AdviseDrop:
		return dropCache(fd)
	case AdviseSequential:
		return sequential(fd)
	}
	return nil
}

// preallocate allocates the blocks of a run, if the layout has it and the filesystem can. The kernel
// waits for all direct I/O of the file each time. Preallocating 64 places at once was slower
// nevertheless on ext4, because every write then splits one large unwritten extent (medians of five
// alternating runs: 471 MB/s, and 799 MB/s one by one).
func (t *Tier) preallocate(f *file, run []*entry) error {
	if !t.direct || !t.policy.preallocate {
		return nil
	}
	last := run[len(run)-1]
	end := max(last.at+last.room, last.at+tiers.AlignUp(last.o.Size, int64(t.traits.Align)))
	err := t.call("preallocate", f, func() error {
		return allocate(f.making.fd, run[0].at, end-run[0].at)
	})
	if err != nil && !unsupported(err) {
		return t.error("preallocate", run[0].o, f, -1, err)
	}
	return nil
}

// seal closes f for writing, once, if no more writes follow. NFS and others report delayed failures
// here.
func (t *Tier) seal(f *file) error {
	t.mu.Lock()
	m := f.making
	if m == nil || f.free > 0 || f.writers > 0 {
		t.mu.Unlock()
		return nil
	}
	f.making = nil
	t.mu.Unlock()
	if m.err != nil {
		return nil // it was never open
	}
	err := t.call("close", f, func() error { return unix.Close(m.fd) })
	if err != nil && !errors.Is(err, unix.EINTR) { // after EINTR the file is closed, too
		return t.error("close", *f.first, f, -1, err)
	}
	return nil
}

// unlink removes f.
func (t *Tier) unlink(f *file) error {
	if t.leaves.Load() {
		return nil
	}
	dir, name := t.dir.Name(f.object(t.policy))
	err := t.engine.Call("remove", t.below(dir, name), func() error {
		at, err := t.dir.Fan(dir)
		if err != nil {
			return err
		}
		return workdir.Retry(func() error { return unix.Unlinkat(at, name, 0) })
	})
	if err != nil {
		return t.error("remove", *f.first, f, -1, notFound(err))
	}
	return nil
}

// hole frees the blocks of a place. It opens the file, whose descriptors may be closed, without direct
// I/O.
func (t *Tier) hole(e *entry) error {
	if t.leaves.Load() {
		return nil
	}
	fd, err := t.openFile(e.in, unix.O_WRONLY, false)
	if err != nil {
		return t.error("remove from", e.o, e.in, e.at, notFound(err))
	}
	defer t.closeRead(e.in, fd)
	err = t.call("punch a hole into", e.in, func() error { return punch(fd, e.at, e.room) })
	if err != nil {
		return t.error("punch a hole into", e.o, e.in, e.at, err)
	}
	return nil
}

// makeSlots creates the file of slots.
func (t *Tier) makeSlots(capacity int64) (err error) {
	f := &file{free: int32(t.policy.places), first: &tiers.Object{Key: slotsKey},
		making: &making{}}
	if err := t.makeFile(f); err != nil {
		return err
	}
	err = t.call("preallocate", f, func() error {
		return allocate(f.making.fd, 0, tiers.AlignUp(capacity, t.policy.slot))
	})
	if err != nil && !unsupported(err) {
		err = t.error("preallocate", *f.first, f, -1, err)
	} else {
		t.in, err = t.open(f, *f.first)
	}
	if err != nil {
		f.free = 0
		return errors.Join(err, t.seal(f), t.unlink(f))
	}
	t.current = f
	return nil
}

// closeRead closes a descriptor that was not written through, so that the close cannot fail.
func (t *Tier) closeRead(f *file, fd int) {
	_ = t.call("close", f, func() error { return unix.Close(fd) })
}

// notFound makes ENOENT also match tiers.ErrNotFound.
func notFound(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w: %w", tiers.ErrNotFound, err)
	}
	return err
}

// unsupported reports that the filesystem lacks the operation.
func unsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)
}
