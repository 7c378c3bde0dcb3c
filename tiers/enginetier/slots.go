package enginetier

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/ioengine"
)

// slots is one file of places of one size. A place is used again, the one that became free last
// first; nothing is made, flushed or deleted for an object, and none moves.
type slots struct {
	t      *Tier
	calls  *calls
	bytes  int64 // of an object
	direct bool
	head   int64 // bytes of a slot before the object's
	fd     int
	path   string // what it was opened as
	// whole shapes the request for all bytes of an object: see file.
	whole func(op *ioengine.Op)

	mu   sync.Mutex
	free []int64
	end  int64 // where no slot has been yet
	at   map[tiers.ID]*spot
}

// spot is the slot of an object, free when it has no user any more: the tier is one user.
type spot struct {
	at   int64 // of the slot
	uses int
}

// room is the bytes of a slot: whole pages, which is what the engines ask for, and what lets direct
// I/O write the last object of all.
func (s *slots) room() int64 { return s.head + tiers.AlignUp(s.bytes, pageSize) }

// size is that of the file, which holds the capacity in objects.
func (s *slots) size() int64 {
	return (s.t.cfg.Capacity + s.bytes - 1) / s.bytes * s.room()
}

// made keeps the file, or gives it up: no half-made one is left where a disk is too small for it.
func (s *slots) made(fd int, path string, err error) error {
	if err != nil {
		return errors.Join(err, s.calls.close(fd, path), s.calls.unlink(path))
	}
	s.fd, s.path, s.at = fd, path, make(map[tiers.ID]*spot)
	s.t.traits.Align = pageSize // slots are whole pages, and so is what is written to them
	return nil
}

// create gives an object a slot.
func (s *slots) create(_ context.Context, o tiers.Object) (*file, error) {
	if o.Size > s.bytes {
		return nil, fmt.Errorf("%d bytes do not fit into a slot of %d", o.Size, s.bytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &spot{at: s.end, uses: 1}
	if n := len(s.free); n > 0 {
		p.at, s.free = s.free[n-1], s.free[:n-1]
	} else {
		s.end += s.room()
	}
	s.at[o.ID()] = p
	return s.file(o, p), nil
}

// open finds the slot of an object and adds a use: engines pin a slot while it is read, or the bytes
// of its next owner would be loaded.
func (s *slots) open(_ context.Context, o tiers.Object) (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.at[o.ID()]
	if p == nil {
		return nil, tiers.ErrNotFound
	}
	p.uses++
	return s.file(o, p), nil
}

func (s *slots) file(o tiers.Object, p *spot) *file {
	return &file{o: o, fd: s.fd, path: s.path, at: p.at + s.head, spot: p, whole: s.whole}
}

// leave ends a use of a slot. Callers hold mu.
func (s *slots) leave(p *spot) {
	if p.uses--; p.uses == 0 {
		s.free = append(s.free, p.at)
	}
}

// commit: an object is there when its bytes are, and nothing on the disk says so.
func (s *slots) commit(context.Context, *file) error { return nil }

// abandon leaves the bytes where they are, as engines do: the next owner of the slot overwrites
// them.
func (s *slots) abandon(f *file) error { return s.remove(f.o) }

// done lets go of a slot that was read.
func (s *slots) done(f *file) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(f.spot)
	return nil
}

// remove takes an object out of its slot. The disk gets nothing back: engines discard nothing.
func (s *slots) remove(o tiers.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.at[o.ID()]
	if p == nil {
		return tiers.ErrNotFound
	}
	delete(s.at, o.ID())
	s.leave(p)
	return nil
}

// lookUp: the engine knows by heart what is where.
func (s *slots) lookUp([]tiers.Object) error { return nil }

// takes: any object has a whole slot.
func (s *slots) takes(tiers.Object) int64 { return s.room() }

// close ends the file's use; those with a name are the directory's to remove.
func (s *slots) close() error { return s.calls.close(s.fd, s.path) }

// positional is one pread or pwrite, single one preadv of one piece.
func positional(*ioengine.Op) {}

func single(op *ioengine.Op) { op.Vec = [][]byte{op.Buf.B[:op.N]} }

// vllmSlots is vLLM's disk backend: a sparse file for each rank, which is gone with it. A slot is a
// block of the GPU, and a call names its layers one by one.
type vllmSlots struct{ *slots }

// start unlinks what a dead engine left. The file is sparse: where the disk is too small that shows
// in the middle of a run, as in the engine.
func (l *vllmSlots) start(context.Context) error {
	rank, _ := l.t.cfg.who()
	path := fmt.Sprintf("slots.rank_%d", rank)
	if err := l.calls.unlink(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	fd, err := l.calls.open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|past(l.direct), 0o600)
	if err != nil {
		return err
	}
	return l.made(fd, path, l.calls.size(fd, path, l.size()))
}

// layers cuts an object into those of the model. Where they are no whole pages each, which direct
// I/O wants, they are as many as are.
func (l *vllmSlots) layers(op *ioengine.Op) {
	part := max(1, op.N/max(1, l.t.cfg.Layers))
	if l.direct {
		part = tiers.AlignUp(part, pageSize)
	}
	op.Vec = pieces(op.Buf.B[:op.N], part)
}

// mostPieces is how much memory one call can name.
const mostPieces = 1024

// pieces cuts memory.
func pieces(b []byte, part int) (vec [][]byte) {
	part = max(part, tiers.AlignUp((len(b)+mostPieces-1)/mostPieces, pageSize))
	for at := 0; at < len(b); at += part {
		vec = append(vec, b[at:min(len(b), at+part)])
	}
	return vec
}

// kvbmSlots is Dynamo's disk pool: a file for each rank, allocated, and without a name as soon as
// it is open.
type kvbmSlots struct{ *slots }

// start asks for direct I/O when the file is open, because mkostemp knows no flag for it.
func (l *kvbmSlots) start(context.Context) error {
	path := fmt.Sprintf("dynamo-kvbm-disk-cache-%06x", os.Getpid()&0xffffff)
	fd, err := l.calls.open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if l.direct {
		l.calls.announce("fcntl F_SETFL O_DIRECT")
		err = setDirect(fd)
	}
	if err == nil {
		err = l.allocate(fd, path)
	}
	if err = l.made(fd, path, err); err != nil {
		return err
	}
	return l.calls.unlink(path)
}

// allocate gives the file its blocks, or where there is no call for it its size.
func (s *slots) allocate(fd int, path string) error {
	s.calls.announce("fallocate %d", s.size())
	err := s.calls.call("allocate", path, func() error { return allocate(fd, s.size()) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return s.calls.size(fd, path, s.size())
	}
	return err
}

// lmcacheRaw is LMCache's raw_block adapter on a file: a slot has a page of header before the
// chunk, which is written first and read only after a restart. Its index, which it saves once a
// minute, is left out.
type lmcacheRaw struct{ *slots }

// start makes the file that its user has to provide.
func (l *lmcacheRaw) start(context.Context) error {
	const path = "raw_block"
	l.head = pageSize
	fd, err := l.calls.open(path, unix.O_RDWR|unix.O_CREAT|past(l.direct), 0o644)
	if err != nil {
		return err
	}
	return l.made(fd, path, l.allocate(fd, path))
}

// create writes the header, with a call of its own, as the engine does.
func (l *lmcacheRaw) create(ctx context.Context, o tiers.Object) (*file, error) {
	f, err := l.slots.create(ctx, o)
	if err != nil {
		return nil, err
	}
	// The header's fields are the suite's own: only the engine reads them, after a
	// restart.
	page := buffer.Aligned(make([]byte, 2*pageSize), pageSize, pageSize)
	copy(page, "LMCBLK01")
	binary.LittleEndian.PutUint64(page[8:], uint64(o.Size))
	copy(page[16:], hash(o))
	err = l.t.request(ctx, &l.t.limits.stores, &ioengine.Op{Kind: ioengine.Write, FD: f.fd,
		Off: f.at - l.head, Buf: tiers.Buffer{B: page}, N: pageSize}, nil)
	if err != nil {
		return nil, errors.Join(err, l.remove(o))
	}
	return f, nil
}

// mooncakeOffset is Mooncake's offset_allocator: records of header, key and value in one allocated
// file, the value at a whole page. A record is written with one call and read with three.
type mooncakeOffset struct{ *slots }

// recordHeader is the bytes before a record's key.
const recordHeader = 24

// start truncates what was there, as the engine does unless it is set to persist.
func (l *mooncakeOffset) start(context.Context) error {
	const path = "kv_cache.data"
	l.head = pageSize
	fd, err := l.calls.open(path, unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return l.made(fd, path, l.allocate(fd, path))
}

// create has the record's head ready: what goes before the value, and the padding between them.
func (l *mooncakeOffset) create(ctx context.Context, o tiers.Object) (*file, error) {
	f, err := l.slots.create(ctx, o)
	if err != nil {
		return nil, err
	}
	key := hash(o)
	head := make([]byte, pageSize)
	binary.LittleEndian.PutUint64(head, uint64(len(key)))
	binary.LittleEndian.PutUint64(head[8:], uint64(o.Size))
	copy(head[recordHeader:], key)
	f.whole = func(op *ioengine.Op) {
		op.Vec = [][]byte{head[:recordHeader], head[recordHeader : recordHeader+len(key)],
			head[recordHeader+len(key):], op.Buf.B[:op.N]}
		op.Off, op.N = op.Off-pageSize, op.N+pageSize
	}
	return f, nil
}

// open reads header and key, which the engine compares with what it asked for.
func (l *mooncakeOffset) open(ctx context.Context, o tiers.Object) (*file, error) {
	f, err := l.slots.open(ctx, o)
	if err != nil {
		return nil, err
	}
	head := make([]byte, recordHeader+len(hash(o)))
	for _, part := range [][]byte{head[:recordHeader], head[recordHeader:]} {
		op := &ioengine.Op{Kind: ioengine.Read, FD: f.fd, Off: f.at - pageSize, N: len(part),
			Vec: [][]byte{part}}
		if len(part) != recordHeader {
			op.Off += recordHeader
		}
		if err := l.t.request(ctx, &l.t.limits.loads, op, nil); err != nil {
			return nil, errors.Join(err, l.done(f))
		}
	}
	f.whole = single
	return f, nil
}
