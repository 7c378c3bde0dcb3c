package filetier

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
)

// Probe writes and reads one object before the run, in the layout of an engine; New has probed the
// suite's own layouts. Engines do not probe. With the probe, a file name that is too long, or direct I/O that
// fails after the open, ends the run before it measures anything.
func (t *Tier) Probe(ctx context.Context) error {
	if !t.imitates() {
		return nil
	}
	err := t.probe(ctx, min(t.cfg.Layout.Bytes, pageSize), nil)
	// Buffer and offset are page-aligned: EINVAL means that the filesystem has no direct I/O.
	if t.direct && errors.Is(err, unix.EINVAL) {
		need := "a filesystem that accepts it, or another -layout"
		if t.spec.Either {
			need = "a filesystem that accepts it, or -io buffered"
		}
		return &tiers.UnsupportedError{Feature: "direct I/O of layout " + t.spec.Name,
			Reason: err.Error(), Need: need}
	}
	return err
}

// probe writes an object, reads it back and removes it. It calls also, if not nil, with the written file before the
// commit.
func (t *Tier) probe(ctx context.Context, size int64, also func(s *span) error) error {
	o := tiers.Object{Key: "probe", Gen: ^uint64(0), Layer: t.traits.Layers, Size: size}
	w, err := t.begin(ctx, ioengine.Write, []tiers.Object{o})
	if err != nil {
		return err
	}
	s := &w.(*extent).spans[0]
	if t.direct && !t.imitates() {
		t.traits.Align = directAlign(s.fd)
	}
	whole := int(tiers.AlignUp(size, int64(max(pageSize, t.traits.Align))))
	page := tiers.Buffer{B: buffer.Aligned(make([]byte, 2*whole), whole, max(pageSize, t.traits.Align))}
	for i := range page.B {
		page.B[i] = byte(i) | 1 // not zero: a filesystem could store zeros as a hole
	}
	move := func(to file) error {
		done := make(chan error, 1)
		to.Submit(&tiers.IO{Buf: page, N: int(size), Done: func(io *tiers.IO) { done <- io.Err }})
		return <-done
	}
	err = move(w)
	if err == nil && also != nil {
		err = also(s)
	}
	if err == nil {
		err = w.Commit(ctx)
	}
	if err = errors.Join(err, w.Abort()); err != nil {
		return err
	}
	r, err := t.begin(ctx, ioengine.Read, []tiers.Object{o})
	if err == nil {
		err = errors.Join(move(r), r.Close())
	}
	return errors.Join(err, t.Remove(ctx, o))
}

// probeFile calls probe with the layout of one file per entry. If this run is killed, the next run recognizes the
// file by its name and removes it.
func (t *Tier) probeFile(ctx context.Context, size int64, also func(s *span) error) error {
	defer func(l layout) { t.layout = l }(t.layout)
	t.layout = layouts[tiers.LayoutFiles](base{t, &t.calls})
	return t.probe(ctx, size, also)
}

// probeDirect determines the I/O mode of a layout of this suite. It writes and reads one page of a file with direct
// I/O, because some filesystems accept the open and refuse the read or write.
func (t *Tier) probeDirect(ctx context.Context, filesystem string) error {
	if !t.direct {
		return nil
	}
	err := t.probeFile(ctx, pageSize, nil)
	if refused(err) {
		t.direct, t.traits.Align = false, 1
		t.warn("%v; using buffered I/O instead", &tiers.UnsupportedError{
			Feature: "direct I/O in " + t.calls.path, Need: "a filesystem that accepts O_DIRECT",
			Reason: fmt.Sprintf("%s refuses it (%v)", filesystem, err),
		})
		return nil
	}
	if err != nil {
		return fmt.Errorf("try direct I/O: %w", err)
	}
	return nil
}

// whyCached returns why the filesystem accepts direct I/O without doing it, or "". It does not report a refusal of
// direct I/O.
func (t *Tier) whyCached(info host.Filesystem) (why string, err error) {
	if why = directIgnored(info); why != "" || !t.direct {
		return why, nil
	}
	const pages = 1024 // the kernel's counter lags by up to 125 pages per processor
	page := unix.Getpagesize()
	b := buffer.Aligned(make([]byte, (pages+1)*page), pages*page, page)
	path := t.pathOf(tiers.Object{Key: "probe", Gen: ^uint64(0)})
	fd, err := t.makeFile(path, unix.O_WRONLY)
	if err == nil {
		cached := false
		err = t.calls.call("write", path, func() (err error) {
			cached, err = cachedWrites(pages, dirtied, func() error {
				err := unix.Ftruncate(fd, 0) // the counter ignores a page that is dirty already
				if err == nil {
					_, err = unix.Pwrite(fd, b, 0)
				}
				return err
			})
			return err
		})
		err = errors.Join(err, t.calls.close(fd, path), t.unlink(path))
		if cached {
			why = "writes pass through the page cache (nr_dirtied of /proc/vmstat counts them). Direct writes need " +
				"chattr +C on the empty directory (btrfs), a mount without data=journal (ext4), or losetup " +
				"--direct-io=on (loop)"
		}
	}
	if refused(err) {
		err = nil
	}
	return why, err
}

// refused reports that a filesystem refuses direct I/O.
func refused(err error) bool { return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) }

// maxUnit is the largest reported block size that is used as the unit of a hole. Network filesystems report their
// transfer size instead of a block size, and holes rounded up to it do not free more space.
const maxUnit = 64 << 10

// holeUnit returns the unit that a hole frees: a block of the filesystem.
func (t *Tier) holeUnit(least int64) int64 {
	var s unix.Statfs_t
	err := workdir.Retry(func() error { return unix.Statfs(t.calls.path, &s) })
	if err != nil || int64(s.Bsize) > maxUnit {
		return least
	}
	return tiers.AlignUp(least, max(1, int64(s.Bsize)))
}

// probeHoles punches a hole of unit bytes into a file and checks that it frees space.
func (t *Tier) probeHoles(ctx context.Context, unit int64) error {
	return t.probeFile(ctx, 3*unit, func(s *span) error {
		var before, after int64
		err := t.calls.call("punch a hole into", s.path, func() (err error) {
			if before, err = blocks(s.fd); err == nil {
				err = punch(s.fd, unit, unit)
			}
			if err == nil {
				after, err = blocks(s.fd)
			}
			return err
		})
		switch freed := 512 * (before - after); {
		case unsupported(err):
			return &tiers.UnsupportedError{
				Feature: "several blocks in a file in " + t.calls.path,
				Need: "one that can (ext4, xfs, btrfs, tmpfs, NFS 4.2 on Linux), or a layout " +
					"whose files hold no more than one block (-layout block) or that frees none " +
					"(slots)",
				Reason: fmt.Sprintf("this filesystem cannot free a part of a file, which "+
					"deleting one of them means (punch a hole: %v)", errors.Unwrap(err)),
			}
		case err != nil:
			return err
		case freed < unit:
			t.warn("a hole of %d bytes freed %d in %s, says the filesystem: deletions may free "+
				"less than they count", unit, freed, t.calls.path)
		}
		return nil
	})
}

// blocks flushes a file and returns how many blocks of 512 bytes it takes.
func blocks(fd int) (n int64, err error) {
	var s unix.Stat_t
	err = errors.Join(workdir.Retry(func() error { return unix.Fsync(fd) }), unix.Fstat(fd, &s))
	return s.Blocks, err
}
