package filetier

import (
	"context"
	"encoding/binary"

	"golang.org/x/sys/unix"

	"kvbench/tiers/ioengine"
)

func init() {
	layouts["mooncake-offset"] = func(b base) layout { return &mooncakeOffset{engineSlots(b, pageSize)} }
}

// mooncakeOffset is Mooncake's offset_allocator: records of header, key and value in one
// preallocated file; the value begins at a page. One call writes a record and three calls read it.
type mooncakeOffset struct{ *slots }

// recordHeader is the bytes before a record's key.
const recordHeader = 24

// start truncates an existing file, as the engine does unless it is set to persist.
func (l *mooncakeOffset) start(context.Context) error {
	const path = "kv_cache.data"
	fd, err := l.calls.open(path, unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return l.keep(fd, path, l.allocate(fd, path))
}

// create prepares the bytes before the value: header, key and padding.
func (l *mooncakeOffset) create(ctx context.Context, s *span) error {
	key := hash(s.run[0].o)
	head := make([]byte, pageSize)
	binary.LittleEndian.PutUint64(head, uint64(len(key)))
	binary.LittleEndian.PutUint64(head[8:], uint64(s.run[0].o.Size))
	copy(head[recordHeader:], key)
	err := l.slots.create(ctx, s)
	s.whole = func(op *ioengine.Op) {
		op.Vec = [][]byte{head[:recordHeader], head[recordHeader : recordHeader+len(key)],
			head[recordHeader+len(key):], op.Buf.B[:op.N]}
		op.Off, op.N = op.Off-pageSize, op.N+pageSize
	}
	return err
}

// open reads header and key, which the engine compares with the key that it looks for.
func (l *mooncakeOffset) open(ctx context.Context, s *span) error {
	if err := l.slots.open(ctx, s); err != nil {
		return err
	}
	s.whole = single
	head := make([]byte, recordHeader+hashBytes)
	off := s.at - pageSize
	for _, part := range [][]byte{head[:recordHeader], head[recordHeader:]} {
		op := &ioengine.Op{Kind: ioengine.Read, FD: s.fd, Off: off, N: len(part), Vec: [][]byte{part}}
		if err := l.t.await(ctx, &l.t.limits.loads, op, nil); err != nil {
			return err
		}
		off += recordHeader
	}
	return nil
}
