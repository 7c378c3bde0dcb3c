package tiertest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
)

// files returns the tier's files. It skips the test if the tier has no files of whole objects.
func (s *suite) files() tiers.Files {
	if s.own == nil || s.layered() {
		s.Skip("the tier has no files of whole objects")
	}
	return s.own
}

// memory returns a buffer for n bytes with the tier's alignment and with capacity for the padding of
// the last request. For a tier that holds no bytes it returns an empty one.
func (s *suite) memory(n int64) tiers.Buffer {
	traits := s.tier.Traits()
	if !traits.Holds {
		return tiers.Buffer{}
	}
	whole := int(tiers.AlignUp(n, int64(traits.Align)))
	return tiers.Buffer{B: buffer.Aligned(make([]byte, whole+traits.Align), whole,
		traits.Align)[:n]}
}

// do submits one request and waits for it. The channel has capacity for a second completion, so that
// a tier that completes a request twice fails the test and does not block.
func (s *suite) do(to tiers.Submitter, b tiers.Buffer, off, n int64) error {
	done := make(chan error, 2)
	to.Submit(&tiers.IO{Buf: b, Off: off, N: int(n), Done: func(io *tiers.IO) { done <- io.Err }})
	err := <-done
	assert.Empty(s, done, "Done is called once")
	return err
}

// create begins an object and writes its bytes.
func (s *suite) create(o tiers.Object) tiers.Writer {
	w, err := s.files().Create(s.ctx, o)
	require.NoError(s, err)
	b := s.memory(o.Size)
	if b.B != nil {
		Content.Fill(b.B, o, 0)
	}
	require.NoError(s, s.do(w, b, 0, o.Size))
	return w
}

// committed tests the object before and after Commit. A second writer of the same generation fails in
// Create or in Commit.
func (s *suite) committed() {
	o := object("k", 10_000)
	w := s.create(o)
	s.absent(o)
	require.NoError(s, w.Commit(s.ctx))
	assert.NoError(s, w.Abort(), "after Commit it does nothing")
	s.get(o)
	if w, err := s.files().Create(s.ctx, o); err == nil {
		assert.Error(s, w.Commit(s.ctx), "the same generation twice")
	}
	s.get(o)
}

// beyond reads beyond an object's end, where another object may be.
func (s *suite) beyond() {
	if !s.tier.Traits().Holds {
		s.Skip("a tier without bytes has no end")
	}
	o := object("k", 8192)
	files := s.files()
	s.put(o)
	r, err := files.Open(s.ctx, o)
	require.NoError(s, err)
	assert.ErrorContains(s, s.do(r, s.memory(8192), 4096, 8192), "k")
	assert.NoError(s, s.do(r, s.memory(4096), 4096, 4096))
	require.NoError(s, r.Close())
}

// inFlight closes a reader after Submit. Whether the request is still in flight then depends on the
// tier; in both cases it must complete without error and with the right bytes.
func (s *suite) inFlight() {
	o := object("k", 64<<10)
	files := s.files()
	s.put(o)
	r, err := files.Open(s.ctx, o)
	require.NoError(s, err)
	done := make(chan error, 1)
	b := s.memory(o.Size)
	r.Submit(&tiers.IO{Buf: b, N: int(o.Size), Done: func(io *tiers.IO) { done <- io.Err }})
	require.NoError(s, r.Close())
	require.NoError(s, s.tier.Remove(s.ctx, o))
	require.NoError(s, <-done)
	if b.B != nil {
		assert.NoError(s, Content.Check(b.B, o, 0))
	}
	w, err := files.Create(s.ctx, o)
	require.NoError(s, err)
	w.Submit(&tiers.IO{Buf: b, N: int(o.Size), Done: func(io *tiers.IO) { done <- io.Err }})
	require.NoError(s, w.Abort())
	<-done
	s.absent(o)
}

// removedWhileOpen removes an object that is open. Then it writes another object, which would reuse the
// place if the removal freed it.
func (s *suite) removedWhileOpen() {
	o := object("k", 30_000)
	files := s.files()
	s.put(o)
	r, err := files.Open(s.ctx, o)
	require.NoError(s, err)
	require.NoError(s, s.tier.Remove(s.ctx, o))
	s.absent(o)
	s.put(object("other", 30_000)) // must not get the place of o
	b := s.memory(o.Size)
	require.NoError(s, s.do(r, b, 0, o.Size))
	if b.B != nil {
		assert.NoError(s, Content.Check(b.B, o, 0))
	}
	require.NoError(s, r.Close())
	require.NoError(s, r.Close(), "twice")
}

// aborted tests that an aborted object can be written again.
func (s *suite) aborted() {
	o := object("k", 30_000)
	w := s.create(o)
	require.NoError(s, w.Abort())
	require.NoError(s, w.Abort(), "twice")
	s.absent(o)
	if s.tier.Traits().Holds {
		assert.Error(s, w.Commit(s.ctx), "after Abort")
		assert.Error(s, s.do(w, s.memory(4096), 0, 4096), "after Abort")
	}
	s.absent(o)
	s.put(o)
	s.get(o)
}
