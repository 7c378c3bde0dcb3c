package filetier

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
)

// fileWriter writes one entry's file.
type fileWriter struct {
	*file
	tier *FileTier
}

func (w *fileWriter) WriteAt(_ context.Context, p []byte, off int64) error {
	whole := p[:tiers.AlignUp(len(p), w.tier.traits.Align)]
	if n, err := w.tier.calls.PwriteFull(w.fd, whole, off); err != nil {
		return w.tier.error("write", w.file, off+int64(n), err)
	}
	return nil
}

// Commit makes the file durable: fdatasync under direct I/O, else fsync and dropping it from the page cache. An
// unflushed one is only closed.
func (w *fileWriter) Commit(context.Context) error {
	if w.closed.Load() {
		return w.tier.error("flush", w.file, -1, tiers.ErrClosed)
	}
	err := w.flush()
	if err == nil {
		w.closed.Store(true)
		err = unix.Close(w.fd) // NFS and others report delayed failures here
		if errors.Is(err, unix.EINTR) {
			err = nil // closed all the same
		}
		if err == nil {
			w.tier.endWriting(w.o)
			return nil
		}
		w.closed.Store(false)
		w.fd = -1
	}
	return errors.Join(w.tier.error("flush", w.file, -1, err), w.Abort())
}

func (w *fileWriter) flush() error {
	if w.tier.unflushed {
		return nil
	}
	return w.tier.flush(w.fd)
}

func (t *FileTier) flush(fd int) error {
	if t.direct {
		return syncData(fd)
	}
	if err := workdir.Retry(func() error { return unix.Fsync(fd) }); err != nil {
		return err
	}
	return dropCache(fd)
}

// Abort closes and unlinks the file.
func (w *fileWriter) Abort() error {
	if !w.closed.CompareAndSwap(false, true) {
		return nil
	}
	if w.fd >= 0 {
		unix.Close(w.fd)
	}
	err := w.unlink()
	w.tier.endWriting(w.o)
	return err
}

func (w *fileWriter) unlink() error {
	fan, err := w.tier.dir.Fan(w.fan)
	if err == nil {
		err = workdir.Retry(func() error { return unix.Unlinkat(fan, w.name, 0) })
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return w.tier.error("remove the unfinished", w.file, -1, err)
	}
	return nil
}

// fileReader reads one entry's file.
type fileReader struct {
	*file
	tier *FileTier
}

func (r *fileReader) ReadAt(_ context.Context, p []byte, off int64) error {
	whole := p[:tiers.AlignUp(len(p), r.tier.traits.Align)]
	if n, err := r.tier.calls.PreadFull(r.fd, whole, len(p), off); err != nil {
		return r.tier.error("read", r.file, off+int64(n), err)
	}
	return nil
}

func (r *fileReader) Close() error {
	if r.closed.CompareAndSwap(false, true) {
		unix.Close(r.fd) // nothing was written: there is nothing to fail
	}
	return nil
}
