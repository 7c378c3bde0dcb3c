package filetier

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
)

// disk is a file as the filesystem has it: one, or one for each part of an object.
type disk struct {
	once sync.Once // makes it
	out  []int     // for writing; taken by seal
	in   []int     // for reading, of slots, which stay open
	err  error     // it could not be made
}

// Keys of the files that hold more than one object; packs have a generation each.
const (
	packKey  = "pack"
	slotsKey = "slots"
)

// object is the name of a part of f, as the work directory knows names.
func (f *file) object(p policy, part int) tiers.Object {
	switch {
	case p.slot > 0:
		return tiers.Object{Key: slotsKey}
	case p.places > 1:
		return tiers.Object{Key: packKey, Gen: f.gen}
	case p.part > 0:
		return tiers.Object{Key: fmt.Sprintf("%s#%d", f.first.Key, part), Gen: f.first.Gen}
	}
	return f.first
}

// parts is how many files on disk f is.
func (f *file) parts(p policy) int {
	if p.part == 0 {
		return 1
	}
	return int((f.first.Size + p.part - 1) / p.part)
}

// makeFile makes f when its first object needs it; all parts or none.
func (t *Tier) makeFile(f *file) error {
	f.once.Do(func() {
		for i := range f.parts(t.policy) {
			fd, err := t.create(f, i)
			if err != nil {
				closeAll(f.out)
				for k := range f.out {
					err = errors.Join(err, t.unlinkPart(f, k))
				}
				f.out, f.err = nil, err
				return
			}
			f.out = append(f.out, fd)
		}
	})
	if f.err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if f.free = 0; t.current == f {
			t.current = nil
		}
	}
	return f.err
}

// create makes a part of f, which must not exist.
func (t *Tier) create(f *file, part int) (fd int, err error) {
	o := f.object(t.policy, part)
	dir, name := workdir.Name(o)
	at, err := t.dir.Fan(dir)
	if err != nil {
		return -1, t.error("create", f.first, f, part, -1, err)
	}
	fd, err = t.openFile(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err == nil {
		return fd, nil
	}
	if t.direct && errors.Is(err, unix.EINVAL) {
		_ = unix.Unlinkat(at, name, 0) // some filesystems make the file and then refuse direct I/O
	}
	return -1, t.error("create", f.first, f, part, -1, err)
}

// openFile opens a file as the tier does its I/O.
func (t *Tier) openFile(dir int, name string, flags int) (fd int, err error) {
	if t.direct {
		flags |= openDirect
	}
	fd, err = workdir.OpenAt(dir, name, flags, 0o644)
	if err == nil && t.direct {
		if err = setDirect(fd); err != nil {
			unix.Close(fd)
		}
	}
	return fd, err
}

// open opens all parts of f for reading o, and without direct I/O drops them from the page cache,
// so that what is read comes from the device.
func (t *Tier) open(f *file, o tiers.Object) (fds []int, err error) {
	defer func() {
		if err != nil {
			closeAll(fds)
		}
	}()
	for i := range f.parts(t.policy) {
		dir, name := workdir.Name(f.object(t.policy, i))
		at, err := t.dir.Fan(dir)
		fd := -1
		if err == nil {
			fd, err = t.openFile(at, name, unix.O_RDONLY)
		}
		if err != nil {
			return fds, t.error("open", o, f, i, -1, notFound(err))
		}
		fds = append(fds, fd)
		if t.direct {
			continue
		}
		if err := dropCache(fd); err != nil {
			return fds, t.error("drop from the page cache", o, f, i, -1, err)
		}
	}
	return fds, nil
}

// preallocate gives the places of a run their blocks, where the layout wants that and the
// filesystem can.
func (t *Tier) preallocate(f *file, run []*entry) error {
	if !t.direct || !t.policy.preallocate || t.noPreallocate.Load() {
		return nil
	}
	last := run[len(run)-1]
	end := max(last.at+last.room, last.at+tiers.AlignUp(last.o.Size, int64(t.traits.Align)))
	can, err := preallocate(f.out[0], run[0].at, end-run[0].at)
	if err != nil {
		return t.error("preallocate", run[0].o, f, 0, -1, err)
	}
	if !can {
		t.noPreallocate.Store(true)
	}
	return nil
}

// seal closes f for writing. NFS and others report delayed failures here.
func (t *Tier) seal(f *file) error {
	t.mu.Lock()
	out := f.out
	f.out = nil
	t.mu.Unlock()
	var errs []error
	for i, fd := range out {
		// interrupted, it is closed all the same
		if err := unix.Close(fd); err != nil && !errors.Is(err, unix.EINTR) {
			errs = append(errs, t.error("close", f.first, f, i, -1, err))
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
	dir, name := workdir.Name(f.object(t.policy, part))
	at, err := t.dir.Fan(dir)
	if err == nil {
		err = workdir.Retry(func() error { return unix.Unlinkat(at, name, 0) })
	}
	if err != nil {
		return t.error("remove", f.first, f, part, -1, notFound(err))
	}
	return nil
}

// vacate frees the places of objects that nobody uses, of one file and side by side: their slots
// are used again, or they go with the file when it holds nothing else, or by a hole in it. Their
// space is free when it returns.
func (t *Tier) vacate(run ...*entry) error {
	if t.policy.slot > 0 {
		t.vacateSlots(run)
		return nil
	}
	f := run[0].in
	t.mu.Lock()
	f.live -= len(run)
	f.busy++
	last := t.drop(f, 1)
	t.mu.Unlock()
	var err error
	if !last && f.err == nil {
		end := run[len(run)-1]
		err = t.hole(f, run[0], end.at+end.room-run[0].at)
	}
	t.mu.Lock()
	f.busy--
	last = last || t.drop(f, 0) // others had been at it
	t.mu.Unlock()
	if last && f.err == nil {
		err = errors.Join(err, t.seal(f), t.unlink(f))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unbook(run)
	return err
}

// hole gives the blocks of a stretch of f back to the filesystem.
func (t *Tier) hole(f *file, e *entry, size int64) error {
	dir, name := workdir.Name(f.object(t.policy, 0))
	at, err := t.dir.Fan(dir)
	fd := -1
	if err == nil {
		fd, err = workdir.OpenAt(at, name, unix.O_WRONLY, 0)
	}
	if err != nil {
		return t.error("remove from", e.o, f, 0, e.at, notFound(err))
	}
	defer unix.Close(fd) // nothing was written that could fail here
	if err := punch(fd, e.at, size); err != nil {
		return t.error("punch a hole into", e.o, f, 0, e.at, err)
	}
	return nil
}

// makeSlots makes the one file of all slots.
func (t *Tier) makeSlots(capacity int64) (err error) {
	if capacity < 1 {
		return fmt.Errorf("the capacity must be positive")
	}
	f := &file{free: t.policy.places, first: tiers.Object{Key: slotsKey}}
	if err := t.makeFile(f); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.seal(f), t.unlink(f))
		}
	}()
	if _, err := preallocate(f.out[0], 0, tiers.AlignUp(capacity, t.policy.slot)); err != nil {
		return t.error("preallocate", f.first, f, 0, -1, err)
	}
	f.in, err = t.open(f, f.first)
	t.current = f
	return err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// notFound lets ENOENT match tiers.ErrNotFound too.
func notFound(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w: %w", tiers.ErrNotFound, err)
	}
	return err
}
