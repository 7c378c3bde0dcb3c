package filetier

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
)

// pack is one file of a PackTier. Guarded by PackTier.mu, but for the file itself.
type pack struct {
	gen     uint64
	free    int   // places not given out
	end     int64 // where the next one begins
	writers int   // runs being written
	live    int   // entries whose place is not free again
	busy    int   // places being freed
	sealed  bool  // nothing will be written to it any more
	gone    bool  // somebody unlinks it

	once sync.Once // makes the file
	out  *fileWriter
	err  error
}

// object is the file as FileTier knows it.
func (p *pack) object() tiers.Object { return tiers.Object{Key: packKey, Gen: p.gen} }

// settle says, once, that nothing will be written to the file any more. Callers hold mu.
func (p *pack) settle() bool {
	if p.sealed || p.free > 0 || p.writers > 0 {
		return false
	}
	p.sealed = true
	return true
}

// drop says, once, that the file is empty but for the given number of places that are being freed: then it gets no new
// entries and the caller unlinks it. Callers hold mu.
func (t *PackTier) drop(p *pack, busy int) bool {
	if p.gone || p.live > 0 || p.busy != busy {
		return false
	}
	p.gone, p.sealed, p.free = true, true, 0
	if t.current == p {
		t.current = nil
	}
	return true
}

// file makes the file when the first run needs it.
func (t *PackTier) file(p *pack) (*fileWriter, error) {
	p.once.Do(func() { p.out, p.err = t.create(p.object()) })
	if p.err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if p.free = 0; t.current == p {
			t.current = nil
		}
	}
	return p.out, p.err
}

// seal closes the file for writing. It comes before the last run's entries can be removed, so nobody unlinks meanwhile.
func (t *PackTier) seal(p *pack) error {
	f, err := t.file(p)
	if err != nil || !f.closed.CompareAndSwap(false, true) {
		return nil
	}
	defer t.endWriting(f.o)
	if err := unix.Close(f.fd); err != nil && !errors.Is(err, unix.EINTR) {
		return t.error("close", f.file, -1, err)
	}
	return nil
}

// packEntry is an entry's place in its file. It is free again when the last
// user has gone: the tier itself is one while the entry can be opened.
type packEntry struct {
	o    tiers.Object
	in   *pack
	at   int64
	room int64 // from here to the next place
	uses int   // guarded by PackTier.mu
}

// vacate frees the places of entries that nobody uses, of one file and side by side: by a hole, or with the file when it
// holds nothing else. Their space is free when it returns.
func (t *PackTier) vacate(run ...*packEntry) error {
	p := run[0].in
	var held, room int64
	for _, e := range run {
		held, room = held+e.o.Size, room+e.room
	}
	t.mu.Lock()
	p.live -= len(run)
	p.busy++
	last := t.drop(p, 1)
	t.mu.Unlock()
	var err error
	if !last && p.err == nil {
		err = t.hole(p, run[0].at, room)
	}
	t.mu.Lock()
	p.busy--
	last = last || t.drop(p, 0) // others had been at it
	t.mu.Unlock()
	if last && p.err == nil {
		err = errors.Join(err, t.seal(p), t.FileTier.Remove(context.Background(), p.object()))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held -= held
	t.used -= room
	return err
}

// hole gives the blocks of a stretch of the file back.
func (t *PackTier) hole(p *pack, at, size int64) error {
	f := newFile(p.object())
	fan, err := t.dir.Fan(f.fan)
	fd := -1
	if err == nil {
		fd, err = workdir.OpenAt(fan, f.name, unix.O_WRONLY, 0)
	}
	if err != nil {
		return t.error("remove from", f, at, notFound(err))
	}
	defer unix.Close(fd) // nothing was written that could fail here
	if err := punch(fd, at, size); err != nil {
		return t.error("punch a hole into", f, at, err)
	}
	return nil
}
