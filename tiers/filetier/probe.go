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

// probeDirect determines the tier's I/O mode. It probes direct I/O with a block of a file, because some
// filesystems refuse only the read or write.
func (t *Tier) probeDirect(want bool) error {
	info, err := host.FilesystemOf(t.dir.Path())
	if err != nil {
		return err
	}
	if info.Memory {
		t.warn("the cache directory %s lies in %s: this measures memory, not storage", t.dir.Path(),
			info.Type)
	}
	t.traits.Align, t.traits.Description = 1, "buffered I/O on "+info.Type
	if !want {
		return nil
	}
	// Open files for direct I/O from here on, unless the probe fails.
	t.direct = true
	align := 0
	err = t.tryFile(func(f *file, fd int) (err error) {
		align = directAlign(fd)
		block := buffer.Aligned(make([]byte, 2*align), align, align)
		if err := t.try(ioengine.Write, f, fd, block); err != nil {
			return err
		}
		in, err := t.open(f, *f.first)
		if err != nil {
			return err
		}
		defer t.closeRead(f, in)
		return t.try(ioengine.Read, f, in, block)
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		t.direct = false
		t.warn("%v; using buffered I/O instead", &tiers.UnsupportedError{
			Feature: "direct I/O in " + t.dir.Path(), Need: "a filesystem that accepts O_DIRECT",
			Reason: fmt.Sprintf("%s refuses it (%v)", info.Type, err),
		})
		return nil
	}
	if err != nil {
		return fmt.Errorf("try direct I/O: %w", err)
	}
	if why := directIgnored(info); why != "" {
		t.warn("direct I/O in %s is accepted but means nothing: %s", t.dir.Path(), why)
	}
	t.traits.Align, t.traits.Description = align, "direct I/O on "+info.Type
	return nil
}

// tryFile calls do with a temporary file. Its name is one of the work directory's names, so that it is
// reclaimed after a kill.
func (t *Tier) tryFile(do func(f *file, fd int) error) (err error) {
	p := t.policy
	t.policy = policy{places: 1} // one file per object
	defer func() { t.policy = p }()
	f := &file{first: &tiers.Object{Key: "probe", Gen: ^uint64(0), Size: 1}, making: &making{}}
	if err := t.makeFile(f); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.seal(f), t.unlink(f)) }()
	return do(f, f.making.fd)
}

// try writes or reads one block at the start of a file and waits.
func (t *Tier) try(kind ioengine.Kind, f *file, fd int, block []byte) error {
	op := &ioengine.Op{Kind: kind, FD: fd, Buf: tiers.Buffer{B: block}, N: len(block)}
	if err := t.await(context.Background(), op, func() {}); err != nil {
		return t.error(kind.String(), *f.first, f, 0, err)
	}
	return nil
}

// maxUnit limits the filesystem block to which places are rounded up. Network filesystems report their
// transfer size instead, and holes of that size free no more.
const maxUnit = 64 << 10

// holeUnit returns the unit that a hole frees: a block of the filesystem.
func (t *Tier) holeUnit(least int64) int64 {
	var s unix.Statfs_t
	err := workdir.Retry(func() error { return unix.Statfs(t.dir.Path(), &s) })
	if err != nil || int64(s.Bsize) > maxUnit {
		return least
	}
	return tiers.AlignUp(least, max(1, int64(s.Bsize)))
}

// probeHoles punches a hole into a file and checks that it frees space.
func (t *Tier) probeHoles() error {
	return t.tryFile(func(f *file, fd int) error {
		data := buffer.Aligned(make([]byte, 4*t.unit), int(3*t.unit), t.traits.Align)
		for i := range data {
			data[i] = byte(i) | 1 // not zero: a filesystem could store zeros as a hole
		}
		if err := t.try(ioengine.Write, f, fd, data); err != nil {
			return err
		}
		var before, after int64
		err := t.call("punch a hole into", f, func() (err error) {
			if before, err = blocks(fd); err == nil {
				err = punch(fd, t.unit, t.unit)
			}
			if err == nil {
				after, err = blocks(fd)
			}
			return err
		})
		switch freed := 512 * (before - after); {
		case unsupported(err):
			return &tiers.UnsupportedError{
				Feature: "several blocks in a file in " + t.dir.Path(),
				Need: "one that can (ext4, xfs, btrfs, tmpfs, NFS 4.2 on Linux), or a layout " +
					"whose files hold no more than one block (-layout block) or that frees none " +
					"(slots)",
				Reason: fmt.Sprintf("this filesystem cannot free a part of a file, which "+
					"deleting one of them means (punch a hole: %v)", err),
			}
		case err != nil:
			return t.error("punch a hole into", *f.first, f, t.unit, err)
		case freed < t.unit:
			t.warn("a hole of %d bytes freed %d in %s, says the filesystem: deletions may free "+
				"less than they count", t.unit, freed, t.dir.Path())
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
