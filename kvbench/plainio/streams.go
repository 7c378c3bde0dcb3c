package plainio

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kvbench/tiers"
)

// errEnough ends a stream after enough bytes.
var errEnough = errors.New("enough has been read")

// get is read of a tier that streams, from the object's start.
func (m *mover) get(ctx context.Context, buf leased, o tiers.Object, count counter) error {
	more := true // one buffer is one request at a time, so that no other call runs meanwhile
	_, err := m.store.Get(ctx, o, []tiers.Buffer{buf.Buffer}, func([]byte, int64) error {
		if !more {
			return errEnough
		}
		return nil
	}, func(c tiers.Chunk) { more = count(c) })
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// put is write for a tier that streams: all bytes are the buffer's, stamped while they are sent. An
// object cannot be cut short: the end of ctx ends the call. The store's client may read on for a
// moment after that: see tiers.Streamer.
func (m *mover) put(ctx context.Context, buf leased, o tiers.Object, count counter) error {
	blocks := uint64(o.Size/stampedBlock) + 1
	all := stamped{buf, m.stamp.Add(blocks) - blocks + 1}
	body := func(off, n int64) io.ReadSeeker { return io.NewSectionReader(all, off, n) }
	_, err := m.store.Put(ctx, o, body, func(c tiers.Chunk) { count(c) })
	return err
}

// stampedBlock is the block size in which drives and filesystems deduplicate.
const stampedBlock = 4096

// stamped is an object of any size: the bytes of a buffer again and again, in blocks that begin
// with numbers of their own. Each read of a byte returns the same value, in whatever pieces.
type stamped struct {
	leased
	first uint64 // number of the first block
}

// ReadAt implements io.ReaderAt. It returns an error when the buffer has been freed.
func (s stamped) ReadAt(p []byte, off int64) (n int, err error) {
	if !s.of.take() {
		return 0, fmt.Errorf("send an abandoned object: %w", tiers.ErrClosed)
	}
	for n < len(p) {
		n += copy(p[n:], s.B[(off+int64(n))%int64(len(s.B)):])
	}
	end := off + int64(n)
	for block := off / stampedBlock; block*stampedBlock < end; block++ {
		var stamp [8]byte
		binary.LittleEndian.PutUint64(stamp[:], s.first+uint64(block))
		// The read may begin or end inside the number.
		at := block * stampedBlock
		if from, to := max(at, off), min(at+int64(len(stamp)), end); from < to {
			copy(p[from-off:], stamp[from-at:to-at])
		}
	}
	return n, s.of.free()
}
