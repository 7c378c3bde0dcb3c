package filetier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
)

// making is a file as long as it is written: descriptors of the one that it is on the disk, or of
// one for each part of its object.
type making struct {
	once sync.Once
	fds  []int
	err  error
}

// Keys of the files that hold more than one object; packs have a generation each.
const (
	packKey  = "pack"
	slotsKey = "slots"
)

// object is the name of a part of f, as the work directory knows names.
func (f *file) object(p policy, part int) tiers.Object {
	switch {
	case f.shell != nil:
		return f.shell.object()
	case p.slot > 0:
		return tiers.Object{Key: slotsKey}
	case p.places > 1:
		return tiers.Object{Key: packKey, Gen: f.gen}
	case p.part > 0:
		return tiers.Object{Key: fmt.Sprintf("%s#%d", f.first.Key, part), Gen: f.first.Gen}
	}
	return *f.first
}

// object is the name of a file, as the work directory knows names: by number, so that files lie in
// all of its directories.
func (s *shell) object() tiers.Object { return tiers.Object{Key: fmt.Sprint("shell ", s.number)} }

// parts is how many files on disk f is.
func (f *file) parts(p policy) int {
	return 1 + int((f.first.Size-1)/cmp.Or(p.part, math.MaxInt64))
}

// makeFile makes f when its first object needs it; all parts or none. A file that could not be made
// takes no objects: the next one tries another.
func (t *Tier) makeFile(f *file) error {
	m := f.making
	m.once.Do(func() {
		var failed int
		var err error
		flags := unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL
		if t.policy.recycle {
			if m.err = t.takeShell(f); m.err != nil {
				return
			}
			if f.shell.made {
				flags = unix.O_WRONLY
			}
		}
		m.fds, failed, err = t.openParts(f, flags)
		if err == nil {
			if f.shell != nil {
				f.shell.made = true
			}
			return
		}
		m.err = t.error("create", *f.first, f, failed, -1, err)
		if f.shell != nil {
			m.err = errors.Join(m.err, t.discard(f))
			return
		}
		if t.direct && errors.Is(err, unix.EINVAL) {
			_ = t.unlinkPart(f, failed) // some make the file and then refuse direct I/O
		}
		for i := range failed {
			m.err = errors.Join(m.err, t.unlinkPart(f, i))
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

// openParts opens all files that f is on disk or none, and says which one could not be.
func (t *Tier) openParts(f *file, flags int) (fds []int, failed int, err error) {
	for i := range f.parts(t.policy) {
		fd, err := t.openPart(f, i, flags, t.direct)
		if err != nil {
			t.closeAll(f, fds)
			return nil, i, err
		}
		fds = append(fds, fd)
	}
	return fds, 0, nil
}

// call makes a call that the device may not answer, on a part of f.
func (t *Tier) call(what string, f *file, part int, do func() error) error {
	return t.engine.Call(what, t.path(f, part), do)
}

// openPart opens a file on disk. Directories and files are opened by descriptor and name, and links
// are not followed: whatever happens to the path meanwhile, nothing is written outside of the work
// directory.
func (t *Tier) openPart(f *file, part, flags int, direct bool) (fd int, err error) {
	what := "open"
	if flags&unix.O_CREAT != 0 {
		what = "create"
	}
	if direct {
		flags |= openDirect
	}
	dir, name := t.dir.Name(f.object(t.policy, part))
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

// open opens all parts of f for reading o, and without direct I/O drops them from the page cache,
// so that what is read comes from the device.
func (t *Tier) open(f *file, o tiers.Object) (fds []int, err error) {
	fds, failed, err := t.openParts(f, unix.O_RDONLY)
	if err != nil {
		return nil, t.error("open", o, f, failed, -1, notFound(err))
	}
	for i := 0; i < len(fds) && !t.direct; i++ {
		err := t.call("drop from the page cache", f, i, func() error { return t.advise(fds[i]) })
		if err != nil {
			t.closeAll(f, fds)
			return nil, t.error("drop from the page cache", o, f, i, -1, err)
		}
	}
	return fds, nil
}

// Adopt makes an object of a file that an earlier run left, with the name that the work directory
// has for it and of exactly its size: it can be opened and removed from now on. ErrNotFound where
// there is no such file; one of another size is an error.
func (t *Tier) Adopt(_ context.Context, o tiers.Object) error {
	f := &file{first: &o}
	fd, err := t.openPart(f, 0, unix.O_RDONLY, false)
	if err != nil {
		return t.error("find", o, f, 0, -1, notFound(err))
	}
	defer t.closeAll(f, []int{fd})
	var s unix.Stat_t
	if err := t.call("stat", f, 0, func() error { return unix.Fstat(fd, &s) }); err != nil {
		return t.error("look at", o, f, 0, -1, err)
	}
	if s.Size != o.Size {
		return t.error("find", o, f, 0, -1, fmt.Errorf("the file has %d bytes, it should have %d",
			s.Size, o.Size))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[o.ID()] != nil {
		return t.error("find", o, f, 0, -1, tiers.ErrExists)
	}
	t.take(&entry{o: o, in: f, room: o.Size, uses: 1, visible: true})
	return nil
}

// advise tells the kernel what is to become of a file that is going to be read.
func (t *Tier) advise(fd int) error {
	switch t.advice {
	case AdviseDrop:
		return dropCache(fd)
	case AdviseSequential:
		return sequential(fd)
	}
	return nil
}

// preallocate gives the places of a run their blocks, where the layout wants that and the
// filesystem can. Each time the kernel waits for the direct I/O of the whole file; doing it for 64
// places ahead was slower all the same on ext4 (BenchmarkWritersOfOnePack, medians of five
// alternating runs: 799 MB/s so, 471 MB/s ahead), since it then splits one large unwritten extent
// with every write.
func (t *Tier) preallocate(f *file, run []*entry) error {
	if f.shell != nil {
		return t.grow(f)
	}
	if !t.direct || !t.policy.preallocate {
		return nil
	}
	last := run[len(run)-1]
	end := max(last.at+last.room, last.at+tiers.AlignUp(last.o.Size, int64(t.traits.Align)))
	err := t.call("preallocate", f, 0, func() error {
		return allocate(f.making.fds[0], run[0].at, end-run[0].at)
	})
	if err != nil && !unsupported(err) {
		return t.error("preallocate", run[0].o, f, 0, -1, err)
	}
	return nil
}

// seal closes f for writing, once, if nothing will be written to it any more. NFS and others report
// delayed failures here.
func (t *Tier) seal(f *file) error {
	t.mu.Lock()
	m := f.making
	if m == nil || f.free > 0 || f.writers > 0 {
		t.mu.Unlock()
		return nil
	}
	f.making = nil
	t.mu.Unlock()
	var errs []error
	for i, fd := range m.fds {
		err := t.call("close", f, i, func() error { return unix.Close(fd) })
		// interrupted, it is closed all the same
		if err != nil && !errors.Is(err, unix.EINTR) {
			errs = append(errs, t.error("close", *f.first, f, i, -1, err))
		}
	}
	return errors.Join(errs...)
}

// unlink removes all parts of f, also those behind one that fails.
func (t *Tier) unlink(f *file) error {
	var errs []error
	for i := range f.parts(t.policy) {
		errs = append(errs, t.unlinkPart(f, i))
	}
	return errors.Join(errs...)
}

func (t *Tier) unlinkPart(f *file, part int) error {
	if t.leaves.Load() {
		return nil
	}
	dir, name := t.dir.Name(f.object(t.policy, part))
	err := t.engine.Call("remove", t.below(dir, name), func() error {
		at, err := t.dir.Fan(dir)
		if err != nil {
			return err
		}
		return workdir.Retry(func() error { return unix.Unlinkat(at, name, 0) })
	})
	if err != nil {
		return t.error("remove", *f.first, f, part, -1, notFound(err))
	}
	return nil
}

// free keeps the file of an object that is gone for the next one, or removes it, where files are
// not used again or nobody knows what it has.
func (t *Tier) free(f *file) error {
	err := t.seal(f)
	switch {
	case f.shell == nil:
		return errors.Join(err, t.unlink(f))
	case err != nil || f.shell.spoiled:
		return errors.Join(err, t.discard(f))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spare(f.shell)
	return nil
}

// discard removes a file that nobody has. One that cannot be removed stays counted, because its
// blocks are still taken; that it is gone already is what was wanted.
func (t *Tier) discard(f *file) error {
	if err := t.unlink(f); err != nil && !errors.Is(err, tiers.ErrNotFound) {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files -= f.shell.size
	return nil
}

// hole gives the blocks of a place back to the filesystem. The file's descriptors may be closed,
// and a hole needs no direct I/O.
func (t *Tier) hole(e *entry) error {
	if t.leaves.Load() {
		return nil
	}
	fd, err := t.openPart(e.in, 0, unix.O_WRONLY, false)
	if err != nil {
		return t.error("remove from", e.o, e.in, 0, e.at, notFound(err))
	}
	defer t.closeAll(e.in, []int{fd})
	err = t.call("punch a hole into", e.in, 0, func() error { return punch(fd, e.at, e.room) })
	if err != nil {
		return t.error("punch a hole into", e.o, e.in, 0, e.at, err)
	}
	return nil
}

// makeSlots makes the one file of all slots.
func (t *Tier) makeSlots(capacity int64) (err error) {
	f := &file{free: int32(t.policy.places), first: &tiers.Object{Key: slotsKey},
		making: &making{}}
	if err := t.makeFile(f); err != nil {
		return err
	}
	err = t.call("preallocate", f, 0, func() error {
		return allocate(f.making.fds[0], 0, tiers.AlignUp(capacity, t.policy.slot))
	})
	if err != nil && !unsupported(err) {
		err = t.error("preallocate", *f.first, f, 0, -1, err)
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

// closeAll closes parts of a file to which nothing was written that could fail here.
func (t *Tier) closeAll(f *file, fds []int) {
	for i, fd := range fds {
		_ = t.call("close", f, i, func() error { return unix.Close(fd) })
	}
}

// notFound lets ENOENT match tiers.ErrNotFound too.
func notFound(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w: %w", tiers.ErrNotFound, err)
	}
	return err
}

// unsupported says that the filesystem cannot do what was asked for.
func unsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS)
}
