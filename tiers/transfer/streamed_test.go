package transfer_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/tiertest"
)

// A tier that reads half of each part twice, in descending order and concurrently, still gets the
// bytes of the object, and each byte is reported once.
func TestStreamsAreAskedForWhatTheyNeed(t *testing.T) {
	for _, verify := range []content.Verify{content.VerifyNone, content.VerifySample,
		content.VerifyFull} {
		x := tiertest.Transfer(t, chunk, 3)
		x.Verify = verify
		tier := tiertest.NewStream(tiertest.Memory(t, 8<<20))
		objs := []tiers.Object{{Key: "a", Gen: 1, Size: 4*tiertest.Part + 77},
			{Key: "b", Gen: 1, Size: 9}}
		done, sums := counted()
		n, _, err := x.Write(t.Context(), tier, done, objs...)
		require.NoError(t, err)
		assert.Equal(t, 1, n, "one at a time")
		assert.Equal(t, objs[0].Size, sums[tiers.Write].Load())
		n, _, err = x.Read(t.Context(), tier, done, objs...)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		assert.Equal(t, objs[0].Size, sums[tiers.Read].Load())

		// With other expected content verification fails.
		x.Content = content.New([16]byte{9}, 0)
		_, _, err = x.Read(t.Context(), tier, nil, objs[0])
		if verify == content.VerifyNone {
			assert.NoError(t, err)
		} else {
			assert.ErrorAs(t, err, new(*content.MismatchError))
		}
	}
}

// timed is a store that returns its own Timing.
type timed struct {
	*tiertest.Stream
	took time.Duration
	wait func(time.Duration)
}

func (s timed) Put(_ context.Context, o tiers.Object, body func(off, n int64) io.ReadSeeker,
	_ tiers.ChunkFunc) (tiers.Timing, error) {
	_, err := io.Copy(io.Discard, body(0, o.Size))
	s.wait(s.took + 2*time.Second)
	return tiers.Timing{Device: s.took}, err
}

func (s timed) Get(_ context.Context, o tiers.Object, bufs []tiers.Buffer,
	sink func(p []byte, off int64) error, _ tiers.ChunkFunc) (tiers.Timing, error) {
	s.wait(s.took + 3*time.Second)
	return tiers.Timing{Device: s.took}, nil
}

func (s timed) Streams(tiers.Object) int { return 1 }

func TestTheTimeOfAStreamIsTheTiersAndTheRestIsNamed(t *testing.T) {
	x := tiertest.Transfer(t, chunk, 2)
	tier := timed{Stream: tiertest.NewStream(tiertest.Memory(t, 1<<20)), took: time.Minute}
	upper := tiertest.Memory(t, 1<<20)
	o := tiers.Object{Key: "k", Size: 10}
	synctest.Test(t, func(t *testing.T) {
		x.Clock = clock.NewWall()
		tier.wait = func(d time.Duration) { <-time.After(d) }
		_, tm, err := x.Write(t.Context(), tier, nil, o)
		require.NoError(t, err)
		assert.Equal(t, tiers.Timing{Device: time.Minute, Generation: 2 * time.Second}, tm)
		_, tm, err = x.Read(t.Context(), tier, nil, o)
		require.NoError(t, err)
		assert.Equal(t, tiers.Timing{Device: time.Minute, Host: 3 * time.Second}, tm)
		_, _, err = x.Write(t.Context(), upper, nil, o)
		require.NoError(t, err)
		_, wr, err := x.Move(t.Context(), upper, tier, o, nil, nil)
		require.NoError(t, err)
		assert.Equal(t, tiers.Timing{Device: time.Minute}, wr)
	})
}

// Reads of a body after the end of its operation are not reported.
func TestNobodyIsToldOfAMoveThatHasReturned(t *testing.T) {
	x := tiertest.Transfer(t, chunk, 1)
	upper := tiertest.Memory(t, 1<<20)
	o := tiers.Object{Key: "k", Size: 100}
	_, _, err := x.Write(t.Context(), upper, nil, o)
	require.NoError(t, err)
	late := &keeps{Stream: tiertest.NewStream(tiertest.Memory(t, 1<<20))}
	done, sums := counted()
	_, _, err = x.Move(t.Context(), upper, late, o, done, done)
	require.ErrorIs(t, err, context.Canceled)
	reported := sums[tiers.Read].Load()
	_, _ = late.body.Read(make([]byte, 50))
	assert.Equal(t, reported, sums[tiers.Read].Load())
}

// keeps is a store that continues to read a body after it has returned.
type keeps struct {
	*tiertest.Stream
	body io.ReadSeeker
}

func (s *keeps) Put(_ context.Context, o tiers.Object, body func(off, n int64) io.ReadSeeker,
	_ tiers.ChunkFunc) (tiers.Timing, error) {
	s.body = body(0, o.Size)
	_, err := s.body.Read(make([]byte, 50))
	return tiers.Timing{}, errors.Join(err, context.Canceled)
}
