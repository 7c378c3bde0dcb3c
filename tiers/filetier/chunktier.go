package filetier

import (
	"context"
	"errors"
	"fmt"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/workdir"
)

// ChunkTier keeps an entry in several files of one size, the last one shorter, as
// LMCache's disk backend keeps blocks that are larger than its chunks: a file per
// chunk, created, written and closed, without preallocation and without a flush.
// Nothing lies side by side, so no request covers two files. Direct I/O is what
// makes a write reach the device without a flush; where the filesystem refuses it
// the tier says so in its Warnings. The directory stays the caller's to close,
// after the tier.
type ChunkTier struct {
	*FileTier
	file int64 // bytes per file, a multiple of the alignment
}

var _ tiers.Tier = (*ChunkTier)(nil)

// NewChunkTier cuts entries into files of at least size bytes, rounded up to
// whole pages of 4 KiB (to the alignment of direct I/O where that is more).
func NewChunkTier(dir *workdir.Dir, opt FileOptions, size int64) (*ChunkTier, error) {
	if size < 1 {
		return nil, fmt.Errorf("make a tier of files of %d bytes: the size must be positive", size)
	}
	ft, err := NewFileTier(dir, opt)
	if err != nil {
		return nil, err
	}
	t := &ChunkTier{FileTier: ft, file: tiers.AlignUp(size, max(int64(ft.traits.Align), buffer.PageSize))}
	ft.leaveUnflushed("chunk files")
	ft.traits.Description += fmt.Sprintf(", files of %d KiB without a flush", t.file>>10)
	return t, nil
}

// leaveUnflushed turns off preallocation and flush of the tier's files.
func (t *FileTier) leaveUnflushed(what string) {
	t.unflushed = true
	t.noPreallocate.Store(true)
	t.traits.BytesAtCommit = false
	if !t.direct {
		t.warn("%s are written without a flush: with buffered I/O that measures the page cache", what)
	}
}

// parts is how many files an entry has.
func (t *ChunkTier) parts(o tiers.Object) int { return int((o.Size + t.file - 1) / t.file) }

// part is the entry's file number i as FileTier knows it.
func (t *ChunkTier) part(o tiers.Object, i int) tiers.Object {
	from := int64(i) * t.file
	return tiers.Object{Key: fmt.Sprintf("%s#%d", o.Key, i), Gen: o.Gen, Size: min(t.file, o.Size-from)}
}

// Create makes all files of the entry.
func (t *ChunkTier) Create(_ context.Context, o tiers.Object) (tiers.Writer, error) {
	w := &chunkWriter{chunkFiles: chunkFiles{t, o}}
	for i := range t.parts(o) {
		f, err := t.create(t.part(o, i))
		if err != nil {
			return nil, errors.Join(err, w.Abort())
		}
		w.files = append(w.files, f)
	}
	return w, nil
}

// Open opens all files of the entry.
func (t *ChunkTier) Open(ctx context.Context, o tiers.Object) (tiers.Reader, error) {
	r := &chunkReader{chunkFiles: chunkFiles{t, o}}
	for i := range t.parts(o) {
		f, err := t.FileTier.Open(ctx, t.part(o, i))
		if err != nil {
			r.Close()
			return nil, err
		}
		r.files = append(r.files, f)
	}
	return r, nil
}

// Remove unlinks all files of the entry, also those behind one that fails.
func (t *ChunkTier) Remove(ctx context.Context, o tiers.Object) error {
	var errs []error
	for i := range t.parts(o) {
		errs = append(errs, t.FileTier.Remove(ctx, t.part(o, i)))
	}
	return errors.Join(errs...)
}

// chunkFiles finds the files of an entry's bytes.
type chunkFiles struct {
	tier *ChunkTier
	o    tiers.Object
}

// each calls do for the stretch of p in each file that it covers. All stretches
// but the last end at a file's end and are aligned as p is.
func (c chunkFiles) each(p []byte, off int64, do func(file int, p []byte, off int64) error) error {
	if off < 0 || off+int64(len(p)) > c.o.Size {
		return &tiers.OpError{Op: "transfer", Path: c.tier.dir.Path(), Key: c.o.Key, Offset: off, Err: fmt.Errorf("%d bytes reach beyond the entry's %d", len(p), c.o.Size)}
	}
	for len(p) > 0 {
		file, at := int(off/c.tier.file), off%c.tier.file
		n := min(int64(len(p)), c.tier.file-at)
		if err := do(file, p[:n], at); err != nil {
			return err
		}
		p, off = p[n:], off+n
	}
	return nil
}

type chunkWriter struct {
	chunkFiles
	files []*fileWriter
}

func (w *chunkWriter) WriteAt(ctx context.Context, p []byte, off int64) error {
	return w.each(p, off, func(file int, p []byte, off int64) error { return w.files[file].WriteAt(ctx, p, off) })
}

// Commit closes all files, after which the entry can be opened.
func (w *chunkWriter) Commit(ctx context.Context) error {
	for i, f := range w.files {
		if err := f.Commit(ctx); err != nil {
			errs := []error{err, w.Abort()}
			for _, done := range w.files[:i] {
				errs = append(errs, w.tier.FileTier.Remove(ctx, done.o))
			}
			return errors.Join(errs...)
		}
	}
	return nil
}

func (w *chunkWriter) Abort() error {
	var errs []error
	for _, f := range w.files {
		errs = append(errs, f.Abort())
	}
	return errors.Join(errs...)
}

type chunkReader struct {
	chunkFiles
	files []tiers.Reader
}

func (r *chunkReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	return r.each(p, off, func(file int, p []byte, off int64) error { return r.files[file].ReadAt(ctx, p, off) })
}

func (r *chunkReader) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
