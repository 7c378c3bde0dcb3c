package filetier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
)

// FileOptions say how the file tier does its I/O.
type FileOptions struct {
	// Direct bypasses the page cache: O_DIRECT, blocks preallocated, one fdatasync per entry. Without it entries
	// are written through the page cache, flushed and dropped from it, and dropped again before they are read.
	Direct bool
	// SpareProcs is by how much GOMAXPROCS exceeds the cores while the tier works: so many direct reads and
	// writes may keep their processor while they block, which saves most of the scheduler's CPU. 0 = none.
	SpareProcs int
}

// FileTier keeps each entry in a file of its own in an owned directory. The directory stays the caller's to close,
// after the tier.
type FileTier struct {
	dir      *workdir.Dir
	direct   bool
	traits   tiers.Traits
	warnings []string

	calls         ioengine.SpareCalls
	noPreallocate atomic.Bool // the filesystem cannot, asked once, or the layout does not
	unflushed     bool        // Commit closes a file without flushing it: of layouts over this tier

	mu      sync.Mutex
	writing map[tiers.ID]struct{} // not to be opened yet
}

var _ tiers.Tier = (*FileTier)(nil)

// NewFileTier tries out direct I/O if that is asked for; where the filesystem refuses it the tier is buffered and
// says so in Traits and Warnings.
func NewFileTier(dir *workdir.Dir, opt FileOptions) (*FileTier, error) {
	info, err := host.FilesystemOf(dir.Path())
	if err != nil {
		return nil, err
	}
	t := &FileTier{dir: dir, direct: opt.Direct, writing: make(map[tiers.ID]struct{})}
	if info.Memory {
		t.warn("the cache directory %s lies in %s: this measures memory, not storage", dir.Path(), info.Type)
	}
	align := 1
	if t.direct {
		if align, err = t.probeDirect(); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
			t.direct, align = false, 1
			t.warn("%v; using buffered I/O instead", &tiers.UnsupportedError{
				Feature: "direct I/O in " + dir.Path(), Need: "a filesystem that accepts O_DIRECT",
				Reason: fmt.Sprintf("%s refuses it (%v)", info.Type, err),
			})
		} else if err != nil {
			return nil, fmt.Errorf("try direct I/O: %w", err)
		} else if why := directIgnored(info); why != "" {
			t.warn("direct I/O in %s is accepted but means nothing: %s", dir.Path(), why)
		}
	}
	if t.direct && !info.Network { // a server that does not answer must not hold processors
		t.calls.Left.Store(int64(opt.SpareProcs))
	}
	mode := "buffered I/O"
	if t.direct {
		mode = "direct I/O"
	}
	t.traits = tiers.Traits{BytesAtCommit: !t.direct, Align: align, Description: mode + " on " + info.Type}
	return t, nil
}

func (t *FileTier) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// Traits are fixed when the tier is made.
func (t *FileTier) Traits() tiers.Traits { return t.traits }

// Direct says whether the tier does direct I/O, which it may have been asked for in vain.
func (t *FileTier) Direct() bool { return t.direct }

// Warnings are things that a reader of the results must know: what was asked for and could not be had.
func (t *FileTier) Warnings() []string { return append(t.dir.Warnings(), t.warnings...) }

// Close does nothing: no file is open between operations, and the directory is the caller's.
func (t *FileTier) Close() error { return nil }

// probeDirect writes and reads a block of a file with O_DIRECT, because some filesystems refuse only then, and
// returns the alignment needed. The file has one of our names: killed here, it is reclaimed like any other.
func (t *FileTier) probeDirect() (align int, err error) {
	o := tiers.Object{Key: "probe", Gen: ^uint64(0), Size: 1}
	f, err := t.create(o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Abort()) }()
	align = directAlign(f.fd)
	block := buffer.Aligned(make([]byte, 2*align), align, align)
	if _, err := t.calls.PwriteFull(f.fd, block, 0); err != nil {
		return 0, t.error("write", f.file, 0, err)
	}
	r, err := t.open(o)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if _, err := t.calls.PreadFull(r.fd, block, align, 0); err != nil {
		return 0, t.error("read", r.file, 0, err)
	}
	return align, nil
}

// file is an entry's place.
type file struct {
	o         tiers.Object
	fan, name string
	fd        int
	closed    atomic.Bool
}

func newFile(o tiers.Object) *file {
	fan, name := workdir.Name(o)
	return &file{o: o, fan: fan, name: name, fd: -1}
}

func (t *FileTier) error(op string, f *file, off int64, err error) error {
	return &tiers.OpError{Op: op, Path: t.dir.Path() + "/" + f.fan + "/" + f.name, Key: f.o.Key, Offset: off, Err: err}
}

// Create makes the entry's file, with its blocks under direct I/O: a full disk shows here.
func (t *FileTier) Create(_ context.Context, o tiers.Object) (tiers.Writer, error) {
	w, err := t.create(o)
	if err != nil {
		return nil, err
	}
	if err := t.preallocate(w.file, 0, o.Size); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// preallocate gives size bytes of the file at off their blocks under direct I/O, where the filesystem can.
func (t *FileTier) preallocate(f *file, off, size int64) error {
	if !t.direct || t.noPreallocate.Load() {
		return nil
	}
	can, err := preallocate(f.fd, off, tiers.AlignUp(size, int64(t.traits.Align)))
	if err != nil {
		return t.error("preallocate", f, -1, err)
	}
	if !can {
		t.noPreallocate.Store(true)
	}
	return nil
}

func (t *FileTier) create(o tiers.Object) (*fileWriter, error) {
	w := &fileWriter{tier: t, file: newFile(o)}
	fan, err := t.dir.Fan(w.fan)
	if err != nil {
		return nil, t.error("create", w.file, -1, err)
	}
	if !t.beginWriting(o) {
		return nil, t.error("create", w.file, -1, tiers.ErrExists)
	}
	w.fd, err = workdir.OpenAt(fan, w.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|t.openFlag(), 0o644)
	if err == nil && t.direct {
		if err = setDirect(w.fd); err != nil {
			w.closed.Store(true)
			unix.Close(w.fd)
			_ = w.unlink()
		}
	}
	if err != nil {
		t.endWriting(o)
		if t.direct && errors.Is(err, unix.EINVAL) {
			_ = w.unlink() // some filesystems make the file and then refuse the flag
		}
		return nil, t.error("create", w.file, -1, err)
	}
	return w, nil
}

func (t *FileTier) openFlag() int {
	if t.direct {
		return openDirect
	}
	return 0
}

// beginWriting hides an entry until endWriting; false means that another writer is at it.
func (t *FileTier) beginWriting(o tiers.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.writing[o.ID()]; ok {
		return false
	}
	t.writing[o.ID()] = struct{}{}
	return true
}

func (t *FileTier) endWriting(o tiers.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.writing, o.ID())
}

func (t *FileTier) isWriting(o tiers.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.writing[o.ID()]
	return ok
}

// Open opens a committed entry's file, and without direct I/O drops it from the page cache, so that what is read
// comes from the device.
func (t *FileTier) Open(_ context.Context, o tiers.Object) (tiers.Reader, error) {
	if t.isWriting(o) {
		return nil, t.error("open", newFile(o), -1, tiers.ErrNotFound)
	}
	r, err := t.openCold(o)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// openCold opens a file, out of the page cache.
func (t *FileTier) openCold(o tiers.Object) (*fileReader, error) {
	r, err := t.open(o)
	if err != nil {
		return nil, err
	}
	if !t.direct {
		if err := dropCache(r.fd); err != nil {
			r.Close()
			return nil, t.error("drop from the page cache", r.file, -1, err)
		}
	}
	return r, nil
}

func (t *FileTier) open(o tiers.Object) (*fileReader, error) {
	r := &fileReader{tier: t, file: newFile(o)}
	fan, err := t.dir.Fan(r.fan)
	if err != nil {
		return nil, t.error("open", r.file, -1, err)
	}
	r.fd, err = workdir.OpenAt(fan, r.name, unix.O_RDONLY|t.openFlag(), 0)
	if err == nil && t.direct {
		if err = setDirect(r.fd); err != nil {
			unix.Close(r.fd)
		}
	}
	if err != nil {
		return nil, t.error("open", r.file, -1, notFound(err))
	}
	return r, nil
}

// Remove unlinks a committed entry's file.
func (t *FileTier) Remove(_ context.Context, o tiers.Object) error {
	f := newFile(o)
	if t.isWriting(o) {
		return t.error("remove", f, -1, tiers.ErrNotFound)
	}
	fan, err := t.dir.Fan(f.fan)
	if err == nil {
		err = workdir.Retry(func() error { return unix.Unlinkat(fan, f.name, 0) })
	}
	if err != nil {
		return t.error("remove", f, -1, notFound(err))
	}
	return nil
}

// notFound lets ENOENT match ErrNotFound too.
func notFound(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w: %w", tiers.ErrNotFound, err)
	}
	return err
}
