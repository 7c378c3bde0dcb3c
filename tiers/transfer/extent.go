package transfer

import (
	"cmp"
	"slices"

	"kvbench/tiers"
	"kvbench/tiers/content"
)

// each calls do for the part of each object in [from, to) of the extent, with or without the padding
// after the object: n bytes, at offset at of the range and offset off of the object.
//
// Chunks do not respect the objects' bounds: small objects share a chunk, and a chunk may end in the
// middle of an object. Most extents are one object, which means one call.
func (op *operation) each(from, to int64, padding bool,
	do func(o tiers.Object, off, at, n int64) error) error {
	for i, o := range op.objs {
		begin := op.ext.Start(i)
		end := begin + o.Size
		if padding && i < len(op.objs)-1 {
			end = op.ext.Start(i + 1)
		} else if padding {
			end = to
		}
		lo, hi := max(from, begin), min(to, end)
		if lo >= hi {
			continue
		}
		if err := do(o, lo-begin, lo-from, hi-lo); err != nil {
			return err
		}
	}
	return nil
}

// payload returns how many bytes of objects lie in [from, to), without padding.
func (op *operation) payload(from, to int64) (bytes int64) {
	for i, o := range op.objs {
		begin := op.ext.Start(i)
		bytes += max(0, min(to, begin+o.Size)-max(from, begin))
	}
	return bytes
}

// make generates the bytes of a stream's chunk, if the tier holds bytes, from an offset of the extent
// to the end of the padded chunk. Padding is written to the disk too, and must not be old content of
// the buffer.
func (op *operation) make(l *stream, from int64) {
	if l.buf.B == nil {
		return
	}
	end := l.io.Off + tiers.AlignUp(int64(l.io.N), int64(op.out.traits.Align))
	p := l.buf.B[from-l.io.Off : end-l.io.Off]
	made := op.takeMade(from)
	_ = op.each(from, end, true, func(o tiers.Object, off, at, n int64) error {
		made.stream.Fill(op.t.Content, p[at:at+n], o, off)
		return nil
	})
	made.next = end
	op.mu.Lock()
	defer op.mu.Unlock()
	op.made = append(op.made, made)
}

// made is a content generator and its offset in the extent. Streams share generators, because the next
// chunk is seldom taken by the stream that generated the last one. An entry needs one or two of them,
// of half a KiB each.
type made struct {
	stream content.Stream
	next   int64
}

// takeMade returns the generator that has reached from, or a new one. It drops generators before from:
// chunks are taken in order, so they are not needed any more.
func (op *operation) takeMade(from int64) (m made) {
	op.mu.Lock()
	defer op.mu.Unlock()
	op.made = slices.DeleteFunc(op.made, func(o made) bool {
		if o.next == from {
			m = o
		}
		return o.next <= from
	})
	return m
}

// verify compares a stream's chunk with the expected content.
func (op *operation) verify(l *stream) error {
	if l.buf.B == nil {
		return nil
	}
	return op.check(l.buf.B[:l.io.N], l.io.Off)
}

// check compares p, the bytes of the extent from an offset on, with the expected content.
func (op *operation) check(p []byte, from int64) error {
	if op.t.Verify == content.VerifyNone {
		return nil
	}
	return op.each(from, from+int64(len(p)), false, func(o tiers.Object, off, at, n int64) error {
		if op.t.Verify == content.VerifyFull {
			return op.t.Content.Check(p[at:at+n], o, off)
		}
		for part := range slices.Chunk(p[at:at+n], int(cmp.Or(op.t.Sample, n))) {
			if err := op.t.Content.CheckSample(part, o, off); err != nil {
				return err
			}
			off += int64(len(part))
		}
		return nil
	})
}
