package filetier

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
)

func init() {
	layouts[tiers.LayoutSlots] = func(b base) layout { return &ownSlots{slots{base: b, lowest: true}} }
	layouts["kvbm-slots"] = func(b base) layout { return &kvbmSlots{engineSlots(b, 0, "", 0)} }
}

// slots is one file of slots of equal size, for the suite's layout and for engines'. No call creates,
// flushes or deletes an object, and no object moves. The file has as many slots as were ever in use at
// a time, and may exceed the preallocated size.
type slots struct {
	base
	most int64 // size of the largest object
	head int64 // bytes of a slot before the object
	slot int64 // bytes of a slot: whole pages, which direct I/O needs for the file's last object
	fd   int
	path string // of the file
	// flags are additional ones of the call that opens the file.
	flags int
	// whole prepares the operation for all bytes of an object: see span.
	whole func(op *ioengine.Op)

	// Guarded by Tier.mu.
	unused offsets // slots that were used and are free again
	lowest bool    // take the lowest unused slot; otherwise the slot that became free last
	end    int64   // offset of the first slot that was never used
}

// engineSlots returns the slots of an engine, with so many bytes before each object.
func engineSlots(b base, head int64, path string, flags int) *slots {
	bytes := b.t.cfg.Layout.Bytes
	return &slots{base: b, most: bytes, head: head, slot: head + tiers.AlignUp(bytes, pageSize),
		path: path, flags: flags}
}

// start creates a preallocated file.
func (l *slots) start(context.Context) error {
	fd, err := l.calls.open(l.path, unix.O_RDWR|unix.O_CREAT|l.flags|past(l.t.direct), 0o644)
	if err != nil {
		return err
	}
	return l.keep(fd, l.path, l.allocate(fd, l.path))
}

// size returns the size of an engine's file, which holds the capacity in objects.
func (l *slots) size() int64 { return (l.t.cfg.Capacity + l.most - 1) / l.most * l.slot }

// allocate preallocates the file, or sets its size where the filesystem cannot.
func (l *slots) allocate(fd int, path string) error {
	done, err := l.calls.allocate(fd, path, 0, l.size())
	if err == nil && !done {
		err = l.calls.size(fd, path, l.size())
	}
	return err
}

// keep keeps the open file, or removes it if err is not nil: a full disk must not keep half a file.
func (l *slots) keep(fd int, path string, err error) error {
	if err != nil {
		return errors.Join(err, l.calls.close(fd, path), l.calls.unlink(path))
	}
	l.fd, l.path = fd, path
	if l.t.imitates() {
		l.t.traits.Align = pageSize // slots are whole pages, and so are writes to them
	}
	return nil
}

func (l *slots) takes(tiers.Object) int64 { return l.slot }

func (l *slots) place(e *entry, run []*entry) error {
	if e.o.Size > l.most {
		return fmt.Errorf("%d bytes do not fit into a slot of %d", e.o.Size, l.most)
	}
	at, next := l.end, len(l.unused)-1
	if l.lowest {
		next = min(next, 0)
	}
	if next >= 0 {
		at = l.unused[next]
	}
	e.at = at + l.head
	switch {
	case len(run) > 0 && !l.t.follows(run, e): // the next slot is not searched for adjacent ones
		return errApart
	case next < 0:
		l.end += l.slot
	case l.lowest:
		heap.Pop(&l.unused)
	default:
		l.unused = l.unused[:next]
	}
	return nil
}

func (l *slots) create(_ context.Context, s *span) error {
	s.fd, s.path, s.whole = l.fd, l.path, l.whole
	return nil
}

// open makes no call. The slot is not reused while it is read; engines pin it for the same reason.
func (l *slots) open(ctx context.Context, s *span) error { return l.create(ctx, s) }

// done makes no call: the file stays open.
func (l *slots) done(*span) error { return nil }

// abandon frees the slots and leaves their bytes, as engines do: the next object overwrites them.
func (l *slots) abandon(s *span) error {
	for _, e := range s.run {
		_ = l.free(e) // never fails
	}
	return nil
}

// free frees a slot without a discard, as engines do.
func (l *slots) free(e *entry) error {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if at := e.at - l.head; l.lowest {
		heap.Push(&l.unused, at)
	} else {
		l.unused = append(l.unused, at)
	}
	return nil
}

// close closes the file. The work directory removes it, if it has a name.
func (l *slots) close() error { return l.calls.close(l.fd, l.path) }

// single makes an operation one preadv or pwritev of one piece.
func single(op *ioengine.Op) { op.Vec = [][]byte{op.Buf.B[:op.N]} }

// ownSlots is the suite's layout of slots: one preallocated file. An object takes the lowest free slot,
// so that objects that are written together are adjacent if the free slots are.
type ownSlots struct{ slots }

func (l *ownSlots) start(context.Context) error {
	t, bytes := l.t, l.t.cfg.Layout.Bytes
	if bytes < 1 {
		return fmt.Errorf("make slots of %d bytes: the size must be positive", bytes)
	}
	l.slot = tiers.AlignUp(bytes, int64(max(t.traits.Align, pageSize)))
	l.most = l.slot
	t.adjacent, t.traits.Extent = t.cfg.Extent, t.cfg.Extent
	t.traits.Description = fmt.Sprintf(", one file of slots of %d KiB", l.slot>>10)
	if !t.direct {
		t.warn("slots are written without a flush: with buffered I/O that measures the page cache")
	}
	path := t.pathOf(tiers.Object{Key: "slots"})
	fd, err := t.makeFile(path, unix.O_RDWR)
	if err != nil {
		return err
	}
	_, err = l.calls.allocate(fd, path, 0, tiers.AlignUp(t.cfg.Capacity, l.slot))
	return l.keep(fd, path, err)
}

// offsets is a min-heap.
type offsets []int64

func (h offsets) Len() int           { return len(h) }
func (h offsets) Less(i, j int) bool { return h[i] < h[j] }
func (h offsets) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *offsets) Push(x any) { *h = append(*h, x.(int64)) }

// Pop implements heap.Interface.
func (h *offsets) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// kvbmSlots is Dynamo's disk pool: a preallocated file per rank, which is unlinked as soon as it is
// open.
type kvbmSlots struct{ *slots }

// start sets O_DIRECT after the open, as the engine does: mkostemp does not accept that flag.
func (l *kvbmSlots) start(context.Context) error {
	path := fmt.Sprintf("dynamo-kvbm-disk-cache-%06x", os.Getpid()&0xffffff)
	fd, err := l.calls.open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if l.t.direct {
		l.calls.announce("fcntl F_SETFL O_DIRECT")
		err = setDirect(fd)
	}
	if err == nil {
		err = l.allocate(fd, path)
	}
	if err = l.keep(fd, path, err); err != nil {
		return err
	}
	return l.calls.unlink(path)
}
