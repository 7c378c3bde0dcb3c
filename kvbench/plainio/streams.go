package plainio

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"kvbench/tiers"
)

// errEnough ends a stream after enough bytes.
var errEnough = errors.New("enough has been read")

// store returns the tier without the engine's limit of requests in flight.
func (m *mover) store(buf leased) tiers.Tier {
	if s, ok := m.tier.(interface{ Plain(tiers.Buffer) tiers.Tier }); ok {
		return s.Plain(buf.Buffer)
	}
	return m.tier
}

// enough is a sink that drops the bytes. If it is true, it ends the read.
type enough bool

// Take implements tiers.Sink.
func (e *enough) Take(tiers.Object, int64, []byte) error {
	if *e {
		return errEnough
	}
	return nil
}

// get reads an object of a tier without files, from its start.
func (m *mover) get(ctx context.Context, buf leased, o tiers.Object, count counter) error {
	var over enough // one buffer is one request at a time, so that no other call runs meanwhile
	c := tiers.Call{Observe: func(c tiers.Chunk) { over = enough(!count(c)) }}
	err := m.store(buf).Get(ctx, &c, []tiers.Object{o}, &over)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// put writes an object to a tier without files. The bytes are the buffer's, with a stamp in each block.
// Only the end of ctx ends put early.
func (m *mover) put(ctx context.Context, buf leased, o tiers.Object, count counter) error {
	blocks := uint64(o.Size/stampedBlock) + 1
	all := stamped{buf, m.stamp.Add(blocks) - blocks + 1}
	c := tiers.Call{Observe: func(c tiers.Chunk) { count(c) }}
	return m.store(buf).Put(ctx, &c, []tiers.Object{o}, all)
}

// stampedBlock is the block size in which drives and filesystems deduplicate.
const stampedBlock = 4096

// stamped is a source for an object of any size: it repeats the bytes of a buffer. Each block starts
// with a unique number. A byte has the same value in every call of Fill.
type stamped struct {
	leased
	first uint64 // number of the first block
}

// Fill implements tiers.Source. A store's client may read on for a moment after the end of a call: Fill
// returns an error when the buffer has been freed.
func (s stamped) Fill(_ tiers.Object, off int64, p []byte) error {
	if !s.lease.take() {
		return fmt.Errorf("send an abandoned object: %w", tiers.ErrClosed)
	}
	for n := 0; n < len(p); {
		n += copy(p[n:], s.B[(off+int64(n))%int64(len(s.B)):])
	}
	end := off + int64(len(p))
	for block := off / stampedBlock; block*stampedBlock < end; block++ {
		var stamp [8]byte
		binary.LittleEndian.PutUint64(stamp[:], s.first+uint64(block))
		// The read may begin or end inside the number.
		at := block * stampedBlock
		if from, to := max(at, off), min(at+int64(len(stamp)), end); from < to {
			copy(p[from-off:], stamp[from-at:to-at])
		}
	}
	return s.lease.free()
}
