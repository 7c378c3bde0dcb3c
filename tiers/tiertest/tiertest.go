package tiertest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/content"
)

// Content is the content of all objects in tests.
var Content = content.New([16]byte{7}, 0)

// Run tests that a tier does what tiers.Tier, Writer and Reader promise. Open returns an empty tier
// with a capacity of at least 16 MiB.
func Run(t *testing.T, open func(testing.TB) tiers.Tier) {
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"an object is there from Commit to Remove", (*suite).visibility},
		{"sizes need not be aligned", (*suite).padding},
		{"neighbours share a Writer and a Reader", (*suite).severalObjects},
		{"a request beyond the end is refused", (*suite).beyond},
		{"a cancelled context stops no removal", (*suite).cancelled},
		{"closing does not wait for requests in flight", (*suite).inFlight},
		{"a reader keeps what is removed", (*suite).removedWhileRead},
		{"an aborted writer leaves nothing", (*suite).aborted},
		{"Remove continues after a missing object", (*suite).removesTheRest},
		{"objects move as streams", (*suite).streams},
		{"a stream that fails leaves nothing", (*suite).brokenStreams},
		{"traits", (*suite).traits},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, tier: open(t), ctx: t.Context()}
			c.test(s)
			require.NoError(t, s.tier.Close())
			require.NoError(t, s.tier.Close(), "twice")
		})
	}
}

// suite is one test on a tier of its own.
type suite struct {
	*testing.T
	tier tiers.Tier
	ctx  context.Context
}

// object returns an object of generation 1.
func object(key string, size int64) tiers.Object {
	return tiers.Object{Key: key, Gen: 1, Size: size}
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

// fill writes all bytes of a writer's objects.
func (s *suite) fill(w tiers.Writer, objs []tiers.Object) {
	last := w.Len() - 1
	size := w.Start(last) + objs[last].Size
	b := s.memory(size)
	for i, o := range objs[:w.Len()] {
		if b.B != nil {
			Content.Fill(b.B[w.Start(i):w.Start(i)+o.Size], o, 0)
		}
	}
	require.NoError(s, s.do(w, b, 0, size))
}

// put writes objects and returns how many of them one Writer took.
func (s *suite) put(objs ...tiers.Object) int {
	w, err := s.tier.Create(s.ctx, objs...)
	require.NoError(s, err)
	s.fill(w, objs)
	require.NoError(s, w.Commit(s.ctx))
	assert.NoError(s, w.Abort(), "after Commit it does nothing")
	return w.Len()
}

// check reads the objects of a reader and compares them.
func (s *suite) check(r tiers.Reader, objs []tiers.Object) {
	last := r.Len() - 1
	size := r.Start(last) + objs[last].Size
	b := s.memory(size)
	require.NoError(s, s.do(r, b, 0, size))
	for i, o := range objs[:r.Len()] {
		if b.B != nil {
			assert.NoError(s, Content.Check(b.B[r.Start(i):r.Start(i)+o.Size], o, 0))
		}
	}
}

// get reads objects and returns how many of them one Reader took.
func (s *suite) get(objs ...tiers.Object) int {
	r, err := s.tier.Open(s.ctx, objs...)
	require.NoError(s, err)
	s.check(r, objs)
	require.NoError(s, r.Close())
	require.NoError(s, r.Close(), "twice")
	return r.Len()
}

// absent tests that an object does not exist, and that the errors name it.
func (s *suite) absent(o tiers.Object) {
	s.Helper()
	_, err := s.tier.Open(s.ctx, o)
	assert.ErrorIs(s, err, tiers.ErrNotFound)
	assert.ErrorContains(s, err, o.Key)
	assert.ErrorIs(s, s.tier.Remove(s.ctx, o), tiers.ErrNotFound)
}

// visibility writes an object, another generation of it, and the first one again after its removal.
// A tier must refuse a second writer of the same generation, in Create or in Commit.
func (s *suite) visibility() {
	o := object("k", 10_000)
	s.absent(o)
	w, err := s.tier.Create(s.ctx, o)
	require.NoError(s, err)
	s.absent(o)
	s.fill(w, []tiers.Object{o})
	s.absent(o)
	require.NoError(s, w.Commit(s.ctx))
	s.get(o)
	s.absent(tiers.Object{Key: "k", Gen: 2, Size: o.Size})
	if w, err = s.tier.Create(s.ctx, o); err == nil {
		assert.Error(s, w.Commit(s.ctx), "the same generation twice")
	}
	s.get(o)
	s.put(tiers.Object{Key: "k", Gen: 2, Size: o.Size})
	require.NoError(s, s.tier.Remove(s.ctx, o))
	s.absent(o)
	s.get(tiers.Object{Key: "k", Gen: 2, Size: o.Size})
	s.put(o)
	s.get(o)
}

// padding tests sizes around the boundaries of blocks and pages, to the byte.
func (s *suite) padding() {
	for i, size := range []int64{1, 15, 4095, 4096, 4097, 65535, 65536, 100_001} {
		o := object(fmt.Sprint("k", i), size)
		s.put(o)
		s.get(o)
	}
}

// severalObjects tests calls with several objects. The tier decides how many of them share a writer.
// After Commit exactly these objects exist.
func (s *suite) severalObjects() {
	var objs []tiers.Object
	for i, size := range []int64{4096, 5000, 1, 8192, 4096, 4096} {
		objs = append(objs, tiers.Object{Key: fmt.Sprint("k", i), Gen: 1, Size: size})
	}
	for at := 0; at < len(objs); {
		n := s.put(objs[at:]...)
		require.Positive(s, n)
		for _, o := range objs[at+n:] {
			s.absent(o)
		}
		at += n
	}
	for at := 0; at < len(objs); {
		at += s.get(objs[at:]...)
	}
	_, err := s.tier.Open(s.ctx, object("none", 1), objs[0])
	assert.ErrorIs(s, err, tiers.ErrNotFound, "the first one counts")
	assert.Equal(s, 1, s.get(objs[0], object("none", 1)), "a missing neighbour is no error")
	require.NoError(s, s.tier.Remove(s.ctx, objs...))
	for _, o := range objs {
		s.absent(o)
	}
}

// beyond reads beyond the end, where another object may lie.
func (s *suite) beyond() {
	if !s.tier.Traits().Holds {
		s.Skip("a tier without bytes has no end")
	}
	o := object("k", 8192)
	s.put(o)
	r, err := s.tier.Open(s.ctx, o)
	require.NoError(s, err)
	assert.ErrorContains(s, s.do(r, s.memory(8192), 4096, 8192), "k")
	assert.NoError(s, s.do(r, s.memory(4096), 4096, 4096))
	require.NoError(s, r.Close())
}

// cancelled removes with a context that has ended. Eviction has already counted the bytes as free: a
// removal that did not happen would leave an object that the cache does not know.
func (s *suite) cancelled() {
	o := object("k", 5000)
	s.put(o)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	require.NoError(s, s.tier.Remove(ctx, o))
	s.absent(o)
}

// inFlight closes a reader after Submit. Whether the request is still in flight then depends on the
// tier; in both cases it must complete without error and with the right bytes.
func (s *suite) inFlight() {
	o := object("k", 64<<10)
	s.put(o)
	r, err := s.tier.Open(s.ctx, o)
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
	w, err := s.tier.Create(s.ctx, o)
	require.NoError(s, err)
	w.Submit(&tiers.IO{Buf: b, N: int(o.Size), Done: func(io *tiers.IO) { done <- io.Err }})
	require.NoError(s, w.Abort())
	<-done
	s.absent(o)
}

// removedWhileRead writes other objects after the removal, which would reuse the place of the removed
// object if it were free.
func (s *suite) removedWhileRead() {
	o := object("k", 30_000)
	s.put(o)
	r, err := s.tier.Open(s.ctx, o)
	require.NoError(s, err)
	require.NoError(s, s.tier.Remove(s.ctx, o))
	s.absent(o)
	for i := range 4 {
		s.put(object(fmt.Sprint("other", i), 30_000)) // does not get its place
	}
	s.check(r, []tiers.Object{o})
	require.NoError(s, r.Close())
}

// aborted tests that an aborted object can be written again.
func (s *suite) aborted() {
	o := object("k", 30_000)
	w, err := s.tier.Create(s.ctx, o)
	require.NoError(s, err)
	s.fill(w, []tiers.Object{o})
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

// removesTheRest removes a missing object between two others. Object stores delete a thousand keys in
// one request; a missing key must not keep the others.
func (s *suite) removesTheRest() {
	a, b := object("a", 100), object("b", 100)
	s.put(a)
	s.put(b)
	assert.ErrorIs(s, s.tier.Remove(s.ctx, a, object("none", 1), b), tiers.ErrNotFound)
	s.absent(a)
	s.absent(b)
}

// traits tests the traits that callers divide by or print. A tier of unknown capacity must return
// errors.ErrUnsupported, which callers match.
func (s *suite) traits() {
	traits := s.tier.Traits()
	assert.Positive(s, traits.Align)
	assert.NotEmpty(s, traits.Description)
	if space, err := s.tier.Space(s.ctx); err == nil {
		assert.Positive(s, space.Total)
		assert.LessOrEqual(s, space.Free, space.Total)
	} else {
		assert.ErrorContains(s, err, "unsupported")
	}
}
