package tiertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/content"
	"kvbench/tiers/transfer"
)

// Content is the content of all objects in tests.
var Content = content.New([16]byte{7}, 0)

// Verified is a sink that verifies all bytes.
var Verified = &content.Verifier{Content: Content, Verify: content.VerifyFull}

// Run tests that a tier meets the contract of tiers.Tier and, if it has files, of tiers.Files, Writer
// and Reader. open returns an empty tier with a capacity of at least 16 MiB.
func Run(t *testing.T, open func(testing.TB) tiers.Tier) {
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"an object is there from Put to Remove", (*suite).visibility},
		{"sizes need not be aligned", (*suite).sizes},
		{"neighbours move together", (*suite).severalObjects},
		{"a failed write leaves nothing", (*suite).brokenWrites},
		{"a failed read leaves the object", (*suite).brokenReads},
		{"a read keeps what is removed", (*suite).removedWhileRead},
		{"a cancelled context stops no removal", (*suite).cancelled},
		{"Remove continues after a missing object", (*suite).removesTheRest},
		{"an object exists from Commit on", (*suite).committed},
		{"a request beyond the end is refused", (*suite).beyond},
		{"closing does not wait for requests in flight", (*suite).inFlight},
		{"an open reader keeps what is removed", (*suite).removedWhileOpen},
		{"an aborted writer leaves nothing", (*suite).aborted},
		{"traits", (*suite).traits},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, tier: open(t), ctx: t.Context()}
			// Other tiers have no files, or files with other objects than the tier.
			if x, ok := s.tier.(*transfer.Tier); ok {
				s.own = x.Files()
			}
			c.test(s)
			require.NoError(t, s.tier.Close())
			require.NoError(t, s.tier.Close(), "twice")
		})
	}
}

// RunFiles is Run for files.
func RunFiles(t *testing.T, open func(testing.TB) tiers.Files) {
	Run(t, func(t testing.TB) tiers.Tier {
		files := open(t)
		chunk := max(Chunk, int(files.Traits().Chunk))
		if !files.Traits().Holds {
			chunk = Chunk
		}
		return transfer.New(files, Transfer(t, chunk, 3).Settings)
	})
}

// suite is one test with its own tier.
type suite struct {
	*testing.T
	tier tiers.Tier
	own  tiers.Files // the files of a transfer.Tier; nil for other tiers
	ctx  context.Context
}

// object returns an object of generation 1.
func object(key string, size int64) tiers.Object {
	return tiers.Object{Key: key, Gen: 1, Size: size}
}

// layered reports whether the tier stores each layer of an object as a separate object.
func (s *suite) layered() bool { return s.tier.Traits().Layers > 1 }

// put writes objects in one Put and returns how many it wrote. It checks that each byte is reported
// once.
func (s *suite) put(objs ...tiers.Object) int {
	s.Helper()
	var sum int64
	c := tiers.Call{Observe: func(c tiers.Chunk) { sum += c.Bytes + c.Memory }}
	require.NoError(s, s.tier.Put(s.ctx, &c, objs, Content.Source()))
	require.Positive(s, c.Done)
	assert.Equal(s, bytesOf(objs[:c.Done]), sum)
	assert.GreaterOrEqual(s, min(c.Timing.Device, c.Timing.Generation), time.Duration(0))
	return c.Done
}

// get reads and verifies objects in one Get and returns how many it read.
func (s *suite) get(objs ...tiers.Object) int {
	s.Helper()
	var sum int64
	c := tiers.Call{Observe: func(c tiers.Chunk) { sum += c.Bytes + c.Memory }}
	dst := &counting{Sink: Verified}
	require.NoError(s, s.tier.Get(s.ctx, &c, objs, dst))
	require.Positive(s, c.Done)
	assert.Equal(s, bytesOf(objs[:c.Done]), sum)
	if s.tier.Traits().Holds {
		assert.Equal(s, sum, dst.taken.Load())
	}
	assert.GreaterOrEqual(s, min(c.Timing.Device, c.Timing.Host), time.Duration(0))
	return c.Done
}

func bytesOf(objs []tiers.Object) (n int64) {
	for _, o := range objs {
		n += o.Size
	}
	return n
}

// counting counts the bytes that the sink takes.
type counting struct {
	tiers.Sink
	taken atomic.Int64
}

func (c *counting) Take(o tiers.Object, off int64, p []byte) error {
	c.taken.Add(int64(len(p)))
	return c.Sink.Take(o, off, p)
}

// absent tests that an object does not exist, and that the error of Get names it.
func (s *suite) absent(o tiers.Object) {
	s.Helper()
	err := s.tier.Get(s.ctx, &tiers.Call{}, []tiers.Object{o}, Verified)
	assert.ErrorIs(s, err, tiers.ErrNotFound)
	assert.ErrorContains(s, err, o.Key)
	assert.ErrorIs(s, s.tier.Remove(s.ctx, o), tiers.ErrNotFound)
}

// visibility writes an object, another generation of it, and the first one again after its removal. A
// tier refuses a second Put of the same key and generation: otherwise a concurrent reader could read a
// mix of old and new bytes.
func (s *suite) visibility() {
	o, next := object("k", 10_000), tiers.Object{Key: "k", Gen: 2, Size: 10_000}
	s.absent(o)
	s.put(o)
	s.get(o)
	s.absent(next)
	assert.Error(s, s.tier.Put(s.ctx, &tiers.Call{}, []tiers.Object{o}, Content.Source()))
	s.get(o)
	s.put(next)
	require.NoError(s, s.tier.Remove(s.ctx, o))
	s.absent(o)
	s.get(next)
	s.put(o)
	s.get(o)
}

// sizes tests sizes around the boundaries of blocks, pages, chunks and parts, to the byte.
func (s *suite) sizes() {
	for i, size := range []int64{1, 15, 4095, 4096, 4097, 65535, 65536, 100_001, 400_005} {
		o := object(fmt.Sprint("k", i), size)
		s.put(o)
		s.get(o)
	}
}

// severalObjects tests calls with several objects. The tier decides how many of them move together. At
// the end exactly these objects exist.
func (s *suite) severalObjects() {
	var objs []tiers.Object
	for i, size := range []int64{4096, 5000, 1, 8192, 4096, 4096} {
		objs = append(objs, object(fmt.Sprint("k", i), size))
	}
	for at := 0; at < len(objs); {
		at += s.put(objs[at:]...)
		for _, o := range objs[at:] {
			s.absent(o)
		}
	}
	for at := 0; at < len(objs); {
		at += s.get(objs[at:]...)
	}
	s.absent(object("none", 1))
	err := s.tier.Get(s.ctx, &tiers.Call{}, []tiers.Object{object("none", 1), objs[0]}, Verified)
	assert.ErrorIs(s, err, tiers.ErrNotFound, "Get must fail if the first object is missing")
	if !s.layered() { // a layered tier moves all objects of a call
		assert.Equal(s, 1, s.get(objs[0], object("none", 1)), "a later missing object is no error")
	}
	require.NoError(s, s.tier.Remove(s.ctx, objs...))
	for _, o := range objs {
		s.absent(o)
	}
}

// hooked calls a function before it fills or takes bytes.
type hooked struct {
	tiers.Source
	tiers.Sink
	hook func() error
}

func (h hooked) Fill(o tiers.Object, off int64, p []byte) error {
	if err := h.hook(); err != nil {
		return err
	}
	return h.Source.Fill(o, off, p)
}

func (h hooked) Take(o tiers.Object, off int64, p []byte) error {
	if err := h.hook(); err != nil {
		return err
	}
	return h.Sink.Take(o, off, p)
}

// brokenWrites tests sources that fail or panic, and contexts that end during a write.
func (s *suite) brokenWrites() {
	if !s.tier.Traits().Holds {
		s.Skip("a tier without bytes needs no source")
	}
	o := object("k", 300_000)
	broken := errors.New("broken")
	ctx, cancel := context.WithCancel(s.ctx)
	put := func(hook func() error) error {
		return s.tier.Put(ctx, &tiers.Call{}, []tiers.Object{o},
			hooked{Source: Content.Source(), hook: hook})
	}
	assert.ErrorIs(s, put(func() error { s.absent(o); return broken }), broken)
	s.absent(o)
	assert.ErrorAs(s, put(func() error { panic("on purpose") }), new(*tiers.PanicError))
	s.absent(o)
	// A store behind a network may complete the object before it sees the end of ctx. Then the object
	// exists.
	if err := put(func() error { cancel(); return nil }); err == nil {
		s.get(o)
		require.NoError(s, s.tier.Remove(s.ctx, o))
	} else {
		assert.ErrorIs(s, err, context.Canceled)
	}
	s.absent(o)
	o.Gen = 2 // a store may still complete the interrupted upload of generation 1
	s.put(o)
	s.get(o)
}

// brokenReads tests sinks that fail or panic, and contexts that have ended.
func (s *suite) brokenReads() {
	if !s.tier.Traits().Holds {
		s.Skip("a tier without bytes needs no sink")
	}
	o := object("k", 300_000)
	s.put(o)
	broken := errors.New("broken")
	ctx, cancel := context.WithCancel(s.ctx)
	get := func(hook func() error) error {
		return s.tier.Get(ctx, &tiers.Call{}, []tiers.Object{o}, hooked{Sink: Verified, hook: hook})
	}
	assert.ErrorIs(s, get(func() error { return broken }), broken)
	assert.ErrorAs(s, get(func() error { panic("on purpose") }), new(*tiers.PanicError))
	cancel()
	assert.ErrorIs(s, get(func() error { return nil }), context.Canceled)
	s.get(o)
}

// removedWhileRead removes an object during its read. A tier that is composed of several tiers may not
// yet have started the read in each of them. Then Get may return ErrNotFound.
func (s *suite) removedWhileRead() {
	if !s.tier.Traits().Holds || s.layered() {
		s.Skip("a tier without bytes needs no sink, and layers are read one after the other")
	}
	o := object("k", 300_000)
	s.put(o)
	remove := sync.OnceValue(func() error { return s.tier.Remove(s.ctx, o) })
	err := s.tier.Get(s.ctx, &tiers.Call{}, []tiers.Object{o}, hooked{Sink: Verified, hook: remove})
	if s.own != nil || !errors.Is(err, tiers.ErrNotFound) {
		require.NoError(s, err)
	}
	s.absent(o)
}

// cancelled removes with a context that has ended. The removal must succeed: eviction has already
// counted the bytes as free, and the cache no longer knows the object.
func (s *suite) cancelled() {
	o := object("k", 5000)
	s.put(o)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	require.NoError(s, s.tier.Remove(ctx, o))
	s.absent(o)
}

// removesTheRest removes a missing object between two existing ones. A missing key must not stop the
// removal of the rest of a batch.
func (s *suite) removesTheRest() {
	a, b := object("a", 100), object("b", 100)
	s.put(a)
	s.put(b)
	assert.ErrorIs(s, s.tier.Remove(s.ctx, a, object("none", 1), b), tiers.ErrNotFound)
	s.absent(a)
	s.absent(b)
}

// traits tests the traits that callers divide by or print.
func (s *suite) traits() {
	traits := s.tier.Traits()
	assert.Positive(s, traits.Align)
	assert.NotEmpty(s, traits.Description)
}
