package filetier

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/workdir"
)

// PackOptions say how a PackTier fills its files.
type PackOptions struct {
	// Places is how many entries a file takes, at least 2.
	Places int
	// Grouped gives each run of entries a file of its own, which ends where the place in the request is a multiple of
	// Places, and leaves it unflushed: LMCache's chunks, where a chunk has several blocks. Otherwise entries go into one
	// open file, wherever they come from, until it is full, and every run is flushed (fdatasync; fsync and dropped pages
	// without direct I/O).
	Grouped bool
}

// PackTier keeps several entries in a file, side by side in the order in which
// they were begun, so that those written together are read together. A place is
// used once: when its entry goes, its blocks are given back by punching a hole,
// and the file goes with its last entry. So the space is that of the entries at
// every moment, and costs an open, a hole and a close per deletion where a file
// each costs an unlink.
//
// It needs a filesystem that can free a part of a file. The directory stays the
// caller's to close, after the tier.
type PackTier struct {
	*FileTier
	opt  PackOptions
	unit int64 // places are whole ones

	mu      sync.Mutex
	entries map[tiers.ID]*packEntry
	current *pack // takes the next entries; nil: none does
	made    uint64
	held    int64 // bytes of entries
	used    int64 // bytes of their places
	ended   bool
}

var _ tiers.RunTier = (*PackTier)(nil)

// packKey names the files of a PackTier, with a generation each.
const packKey = "pack"

// maxUnit is the largest block of a filesystem that places are rounded up to. Network filesystems name their transfer
// size instead, which frees nothing more.
const maxUnit = 64 << 10

// NewPackTier tries out direct I/O, if that is asked for, and holes. A
// filesystem without holes is an *UnsupportedError.
func NewPackTier(dir *workdir.Dir, opt FileOptions, pack PackOptions) (*PackTier, error) {
	if pack.Places < 2 {
		return nil, fmt.Errorf("make files of %d entries: there must be at least 2", pack.Places)
	}
	ft, err := NewFileTier(dir, opt)
	if err != nil {
		return nil, err
	}
	t := &PackTier{FileTier: ft, opt: pack, unit: max(int64(ft.traits.Align), buffer.PageSize), entries: make(map[tiers.ID]*packEntry)}
	var s unix.Statfs_t
	if err := workdir.Retry(func() error { return unix.Statfs(dir.Path(), &s) }); err == nil && int64(s.Bsize) <= maxUnit {
		t.unit = tiers.AlignUp(t.unit, max(1, int64(s.Bsize)))
	}
	if err := t.probeHoles(); err != nil {
		return nil, err
	}
	flushed := ""
	if pack.Grouped {
		ft.leaveUnflushed("files of several entries")
		flushed = " without a flush"
	}
	ft.traits.Description += fmt.Sprintf(", files of %d entries%s", pack.Places, flushed)
	return t, nil
}

// probeHoles makes a hole in a file and looks whether that frees space. The file has one of our names: killed here, it
// is reclaimed like any other.
func (t *PackTier) probeHoles() (err error) {
	f, err := t.create(tiers.Object{Key: "probe", Gen: ^uint64(0), Size: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Abort()) }()
	data := buffer.Aligned(make([]byte, 4*t.unit), int(3*t.unit), t.traits.Align)
	for i := range data {
		data[i] = byte(i) | 1 // no filesystem may take it for a hole
	}
	if _, err := t.calls.PwriteFull(f.fd, data, 0); err != nil {
		return t.error("write", f.file, 0, err)
	}
	blocks := func() (n int64, err error) {
		var s unix.Stat_t
		err = errors.Join(workdir.Retry(func() error { return unix.Fsync(f.fd) }), unix.Fstat(f.fd, &s))
		return s.Blocks, err
	}
	before, err := blocks()
	if err != nil {
		return t.error("flush", f.file, -1, err)
	}
	err = punch(f.fd, t.unit, t.unit)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return &tiers.UnsupportedError{
			Feature: "several blocks in a file in " + t.dir.Path(),
			Need: "one that can (ext4, xfs, btrfs, tmpfs, NFS 4.2 on Linux), or a layout whose files hold no more than one block " +
				"(-layout block; lmcache with blocks of 256 tokens and more) or that frees none (slots)",
			Reason: fmt.Sprintf("this filesystem cannot free a part of a file, which deleting one of them means (punch a hole: %v)", err),
		}
	}
	if err != nil {
		return t.error("punch a hole into", f.file, t.unit, err)
	}
	after, err := blocks()
	if err != nil {
		return t.error("flush", f.file, -1, err)
	}
	if freed := 512 * (before - after); freed < t.unit {
		t.warn("a hole of %d bytes freed %d in %s, says the filesystem: deletions may free less than they count", t.unit, freed, t.dir.Path())
	}
	return nil
}

// Footprint returns the bytes of the entries, and what their places take beyond.
func (t *PackTier) Footprint() (held, waste int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held, t.used - t.held
}

// Close lets go of the file that takes entries; the directory removes it.
func (t *PackTier) Close() error {
	t.mu.Lock()
	p := t.current
	t.current, t.ended = nil, true
	done := false
	if p != nil {
		p.free = 0
		done = p.settle()
	}
	t.mu.Unlock()
	if done {
		return t.seal(p)
	}
	return nil
}
