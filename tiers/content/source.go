package content

import (
	"cmp"
	"crypto/cipher"
	"slices"
	"sync"

	"kvbench/tiers"
)

// mostStreams is how many streams a Source keeps: more than an object has pieces in flight.
const mostStreams = 32

// Source generates objects that are written, see tiers.Source. A piece that follows another one costs
// no allocation, so each write has a Source of its own.
type Source struct {
	content *Content

	mu      sync.Mutex
	streams []stream // not in use, the latest last: 0.5 KiB each
}

// stream generates the bytes of an object from an offset on. Only one goroutine at a time may use it.
type stream struct {
	id   tiers.ID
	next int64
	ctr  cipher.Stream
}

// Source returns the source of one write.
func (c *Content) Source() tiers.Source { return &Source{content: c} }

// Fill implements tiers.Source.
func (s *Source) Fill(o tiers.Object, off int64, p []byte) error {
	ctr := s.take(o.ID(), off)
	if ctr == nil {
		ctr = s.content.stream(o, off)
	}
	fill(ctr, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) == mostStreams {
		s.streams = slices.Delete(s.streams, 0, 1)
	}
	s.streams = append(s.streams, stream{o.ID(), off + int64(len(p)), ctr})
	return nil
}

// take removes and returns the stream that has reached an offset of an object, if there is one. Any
// goroutine may generate the next piece, so that streams belong to offsets.
func (s *Source) take(id tiers.ID, off int64) cipher.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range slices.Backward(s.streams) {
		if m.next == off && m.id == id {
			s.streams = slices.Delete(s.streams, i, i+1)
			return m.ctr
		}
	}
	return nil
}

// Verifier compares objects that are read, see tiers.Sink.
type Verifier struct {
	*Content
	Verify Verify
	// Sample is the number of bytes in which VerifySample compares one block; 0 = each piece.
	Sample int64
}

// Take implements tiers.Sink.
func (v *Verifier) Take(o tiers.Object, off int64, p []byte) error {
	switch v.Verify {
	case VerifyNone:
		return nil
	case VerifyFull:
		return v.Check(p, o, off)
	}
	for part := range slices.Chunk(p, int(cmp.Or(v.Sample, int64(len(p))))) {
		if err := v.CheckSample(part, o, off); err != nil {
			return err
		}
		off += int64(len(part))
	}
	return nil
}
