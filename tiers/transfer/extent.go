package transfer

import (
	"cmp"
	"slices"

	"kvbench/tiers"
	"kvbench/tiers/content"
)

// each calls do for the part of each object that lies in [from, to) of the extent, padding behind
// it included or not: n bytes that are at in the range, and off in the object.
//
// Chunks are cut from the extent whatever lies there: small objects share one, and a chunk may end
// in the middle of any. Where an extent is one object, as most are, this is one call.
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

// payload is how many bytes of objects lie in [from, to), without what lies between them.
func (op *operation) payload(from, to int64) (bytes int64) {
	for i, o := range op.objs {
		begin := op.ext.Start(i)
		bytes += max(0, min(to, begin+o.Size)-max(from, begin))
	}
	return bytes
}

// make generates the bytes of a stream's chunk, if there are any, from an offset of the extent to
// the end of the padded chunk. What lies between objects goes to the disk too: content that nobody
// else has, not what the buffer held before.
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

// made makes content and has come to an offset of the extent. Streams hand them on, because the
// next chunk is seldom taken by the stream that made the last one: an entry costs one or two of
// them, and each is garbage of half a KiB.
type made struct {
	stream content.Stream
	next   int64
}

// takeMade returns what goes on at from, else what begins there. Chunks are taken in order, so that
// what is behind is of no use to anybody.
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

// verify compares what was read with what was written.
func (op *operation) verify(l *stream) error {
	if l.buf.B == nil {
		return nil
	}
	return op.check(l.buf.B[:l.io.N], l.io.Off)
}

// check compares p, the bytes of the extent from an offset on, with what was written.
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
