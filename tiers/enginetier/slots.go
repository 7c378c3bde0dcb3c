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

// slots is one file of slots of equal size. The slot that became free last is reused first. Nothing
// is created, flushed or deleted for an object, and no object moves.
type slots struct {
	t      *Tier
	calls  *calls
	bytes  int64 // size of an object
	direct bool
	head   int64 // bytes of a slot before the object
	fd     int
	path   string // the path that was opened
	// whole prepares the operation for all bytes of an object: see file.
	whole func(op *ioengine.Op)

	mu   sync.Mutex
	free []int64
	end  int64 // offset of the first slot that was never used
	at   map[tiers.ID]*spot
}

// spot is the slot of an object. It is free when it has no user; the tier counts as one.
type spot struct {
	at   int64 // offset of the slot
	uses int
}

// room returns the size of a slot: whole pages, as in the engines. Direct I/O needs them for the
// file's last object.
func (s *slots) room() int64 { return s.head + tiers.AlignUp(s.bytes, pageSize) }

// size returns the size of the file, which holds the capacity in objects.
func (s *slots) size() int64 {
	return (s.t.cfg.Capacity + s.bytes - 1) / s.bytes * s.room()
}

// made keeps the file, or removes it after an error: a full disk must not keep half a file.
func (s *slots) made(fd int, path string, err error) error {
	if err != nil {
		return errors.Join(err, s.calls.close(fd, path), s.calls.unlink(path))
	}
	s.fd, s.path, s.at = fd, path, make(map[tiers.ID]*spot)
	s.t.traits.Align = pageSize // slots are whole pages, and so are writes to them
	return nil
}

// create reserves a slot for an object.
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

// open finds the slot of an object and adds a user. Engines, too, pin a slot while they read it: a
// reused slot would return the next object's bytes.
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

// leave removes a user of a slot. Callers hold mu.
func (s *slots) leave(p *spot) {
	if p.uses--; p.uses == 0 {
		s.free = append(s.free, p.at)
	}
}

// commit makes no call: no metadata on the disk describes an object.
func (s *slots) commit(context.Context, *file) error { return nil }

// abandon frees the slot and leaves its bytes, as engines do: the next object overwrites them.
func (s *slots) abandon(f *file) error { return s.remove(f.o) }

// done ends the read of a slot.
func (s *slots) done(f *file) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(f.spot)
	return nil
}

// remove frees the slot of an object, without a discard: engines do none.
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

// lookUp makes no call: the engine has its index in memory.
func (s *slots) lookUp([]tiers.Object) error { return nil }

// takes returns the size of a whole slot.
func (s *slots) takes(tiers.Object) int64 { return s.room() }

// close closes the file. The work directory removes it, if it has a name.
func (s *slots) close() error { return s.calls.close(s.fd, s.path) }

// positional makes an operation one pread or pwrite, single one preadv of one piece.
func positional(*ioengine.Op) {}

func single(op *ioengine.Op) { op.Vec = [][]byte{op.Buf.B[:op.N]} }

// vllmSlots is vLLM's disk backend: a sparse file per rank, which does not outlive the rank. A slot
// is a block of the GPU, and a call has one piece of memory per layer.
type vllmSlots struct{ *slots }

// start unlinks the file of an engine that was killed. The file is sparse: as in the engine, a disk
// that is too small fails in the middle of a run.
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

// layers cuts an object into one piece per layer of the model. Direct I/O needs whole pages, so
// pieces are rounded up and may be fewer than the layers.
func (l *vllmSlots) layers(op *ioengine.Op) {
	part := max(1, op.N/max(1, l.t.cfg.Layers))
	if l.direct {
		part = tiers.AlignUp(part, pageSize)
	}
	op.Vec = pieces(op.Buf.B[:op.N], part)
}

// mostPieces is the kernel's limit of pieces in one call (UIO_MAXIOV).
const mostPieces = 1024

// pieces cuts memory into pieces of that size, or larger ones if they would be more than mostPieces.
func pieces(b []byte, part int) (vec [][]byte) {
	part = max(part, tiers.AlignUp((len(b)+mostPieces-1)/mostPieces, pageSize))
	for at := 0; at < len(b); at += part {
		vec = append(vec, b[at:min(len(b), at+part)])
	}
	return vec
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

// allocate preallocates the file, or sets its size where the filesystem has no fallocate.
func (s *slots) allocate(fd int, path string) error {
	s.calls.announce("fallocate %d", s.size())
	err := s.calls.call("allocate", path, func() error { return allocate(fd, s.size()) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return s.calls.size(fd, path, s.size())
	}
	return err
}

// lmcacheRaw is LMCache's raw_block adapter on a file. A slot has a page of header before the chunk;
// the engine writes it first and reads it only after a restart. The suite omits the index, which the
// engine saves once a minute.
type lmcacheRaw struct{ *slots }

// start creates the file, which the engine's user has to provide.
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
	// The fields after the magic are the suite's own: the header is never read.
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

// mooncakeOffset is Mooncake's offset_allocator: records of header, key and value in one
// preallocated file; the value begins at a page. One call writes a record and three calls read it.
type mooncakeOffset struct{ *slots }

// recordHeader is the bytes before a record's key.
const recordHeader = 24

// start truncates an existing file, as the engine does unless it is set to persist.
func (l *mooncakeOffset) start(context.Context) error {
	const path = "kv_cache.data"
	l.head = pageSize
	fd, err := l.calls.open(path, unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return l.made(fd, path, l.allocate(fd, path))
}

// create prepares the bytes before the value: header, key and padding.
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

// open reads header and key, which the engine compares with the key that it looks for.
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
