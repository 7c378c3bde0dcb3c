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
	first := m.stamp.Add(uint64(o.Size/stampedBlock)+1) - uint64(o.Size/stampedBlock)
	body := func(off, n int64) io.ReadSeeker {
		return &stamped{SectionReader: io.NewSectionReader(repeated{buf}, off, n), off: off,
			first: first}
	}
	_, err := m.store.Put(ctx, o, body, func(c tiers.Chunk) { count(c) })
	return err
}

// stampedBlock is the block size in which drives and filesystems deduplicate.
const stampedBlock = 4096

// repeated is an endless repetition of a buffer.
type repeated struct{ leased }

// ReadAt copies bytes of the repeated buffer. It returns an error when the buffer has been freed.
func (b repeated) ReadAt(p []byte, off int64) (n int, err error) {
	if !b.of.take() {
		return 0, fmt.Errorf("send what was given up: %w", tiers.ErrClosed)
	}
	for n < len(p) {
		n += copy(p[n:], b.B[(off+int64(n))%int64(len(b.B)):])
	}
	return n, b.of.free()
}

// stamped is a range of an object whose blocks begin with unique numbers. A block that a read cuts
// has the part of its number in that range, so that a second read, in other pieces, gets the same
// bytes.
type stamped struct {
	*io.SectionReader
	off   int64 // of the range in the object
	first uint64
}

// Read reads on, and stamps.
func (s *stamped) Read(p []byte) (int, error) {
	at, _ := s.Seek(0, io.SeekCurrent) // which cannot fail
	n, err := s.SectionReader.Read(p)
	begin := s.off + at
	end := begin + int64(n)
	for block := begin / stampedBlock; block*stampedBlock < end; block++ {
		var stamp [8]byte
		binary.LittleEndian.PutUint64(stamp[:], s.first+uint64(block))
		from := block * stampedBlock
		if to := from + int64(len(stamp)); from >= begin && to <= end {
			copy(p[from-begin:], stamp[:])
		} else {
			for i, b := range stamp {
				if k := from + int64(i); k >= begin && k < end {
					p[k-begin] = b
				}
			}
		}
	}
	return n, err
}
