package filetier

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

func init() { layouts[tiers.LayoutPacked] = func(b base) layout { return &packed{base: b} } }

// packed is the suite's layout of several objects in a file, in the order of Create. A place is used
// once: after the object's removal a hole frees its blocks. The file is removed with its last object.
type packed struct {
	base
	unit    int64  // the size of a place is a multiple of this block size, which a hole frees
	current *pack  // the file for the next objects; nil: the next object begins a file
	packs   uint64 // files made so far
}

// pack is a file of several objects. Guarded by Tier.mu, except fd and err, which once guards.
type pack struct {
	path    string
	end     int64 // offset of the next place
	free    int   // places without an object yet
	writers int   // spans being written
	live    int   // objects whose place is not freed

	once sync.Once // the first writer creates the file, without the lock
	fd   int       // -1: no more writes follow
	err  error
}

func (l *packed) start(ctx context.Context) error {
	places := l.t.cfg.Layout.Places
	if places < 2 {
		return fmt.Errorf("make files of %d entries: there must be at least 2", places)
	}
	l.unit = l.t.holeUnit(max(int64(l.t.traits.Align), pageSize))
	l.t.adjacent, l.t.traits.Extent = l.t.cfg.Extent, l.t.cfg.Extent
	l.t.traits.CountsAtCommit = !l.t.direct // as in files
	l.t.traits.Description = fmt.Sprintf(", files of %d entries", places)
	return l.t.probeHoles(ctx, l.unit)
}

func (l *packed) takes(o tiers.Object) int64 { return tiers.AlignUp(o.Size, l.unit) }

func (l *packed) place(e *entry, run []*entry) error {
	f := l.current
	if f == nil && len(run) == 0 {
		// Each file has its own generation.
		f = &pack{path: l.t.pathOf(tiers.Object{Key: "pack", Gen: l.packs}), free: l.t.cfg.Layout.Places}
		l.packs++
	}
	if f == nil {
		return errApart
	}
	e.file, e.at = f, f.end
	if len(run) > 0 && !l.t.follows(run, e) {
		return errApart
	}
	if len(run) == 0 {
		f.writers++
	}
	f.end += e.space
	f.free--
	f.live++
	l.current = f
	if f.free == 0 {
		l.fill(f)
	}
	return nil
}

// fill stops a file from taking objects. Callers hold Tier.mu.
func (l *packed) fill(f *pack) {
	f.free = 0
	if l.current == f {
		l.current = nil
	}
}

// create creates the file for its first object. If that fails the file takes no more objects, and the
// next object tries another file.
func (l *packed) create(_ context.Context, s *span) error {
	f := s.run[0].file.(*pack)
	f.once.Do(func() { f.fd, f.err = l.t.makeFile(f.path, unix.O_WRONLY) })
	if f.err != nil {
		l.t.mu.Lock()
		defer l.t.mu.Unlock()
		l.fill(f)
		return f.err
	}
	s.fd, s.path = f.fd, f.path
	return l.t.preallocate(s)
}

func (l *packed) commit(ctx context.Context, s *span) error {
	if err := l.t.flush(ctx, s, false); err != nil {
		return err
	}
	return l.written(s)
}

// written ends the writing of a span, and of the whole file if no more writes follow.
func (l *packed) written(s *span) error {
	f := s.run[0].file.(*pack)
	s.closed = true
	l.t.mu.Lock()
	f.writers--
	l.t.mu.Unlock()
	return l.seal(f)
}

// seal closes a file for writing, once, if no more writes follow. NFS and others report delayed failures
// here.
func (l *packed) seal(f *pack) error {
	l.t.mu.Lock()
	if f.free > 0 || f.writers > 0 || f.fd < 0 {
		l.t.mu.Unlock()
		return nil
	}
	fd := f.fd
	f.fd = -1
	l.t.mu.Unlock()
	return l.calls.close(fd, f.path)
}

func (l *packed) abandon(s *span) (err error) {
	if !s.closed {
		err = l.written(s)
	}
	for _, e := range s.run {
		if failed := l.free(e); !errors.Is(failed, unix.ENOENT) { // create may have failed
			err = errors.Join(err, failed)
		}
	}
	return err
}

func (l *packed) open(_ context.Context, s *span) (err error) {
	s.path = s.run[0].file.(*pack).path
	s.fd, err = l.t.openRead(s.path)
	return err
}

// free frees the place of an object: the last place of a file by removing the file, any other place by
// a hole. When it returns, the space is free. Remove, the Close of the last reader, and Abort call free,
// possibly concurrently for one file.
func (l *packed) free(e *entry) (err error) {
	f := e.file.(*pack)
	l.t.mu.Lock()
	f.live--
	last := f.live == 0
	if last {
		l.fill(f)
	}
	l.t.mu.Unlock()
	if last {
		return errors.Join(l.seal(f), l.t.unlink(f.path))
	}
	if err = l.hole(e); errors.Is(err, unix.ENOENT) {
		return nil // the last place was freed concurrently
	}
	return err
}

// hole frees the blocks of a place. It opens the file without direct I/O, because the descriptors may
// be closed.
func (l *packed) hole(e *entry) error {
	if l.t.leaves.Load() {
		return nil
	}
	path := e.file.(*pack).path
	fd, err := l.calls.open(path, unix.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = l.calls.close(fd, path) }()
	return l.calls.call("punch a hole into", path, func() error { return punch(fd, e.at, e.space) })
}

// close closes the file that takes objects.
func (l *packed) close() error {
	f := l.current
	if f == nil {
		return nil
	}
	l.fill(f)
	return l.seal(f)
}
