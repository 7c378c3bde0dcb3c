package checkpoint

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
)

// partStore takes objects in parts of a chunk, some at a time, each after a while and perhaps at
// the second attempt only.
type partStore struct {
	tiers.Tier
	clock  clock.Clock
	takes  time.Duration
	atOnce int
	twice  func(part int) bool // the first attempt is cut off half-way
	fail   func(part int) error

	mu   sync.Mutex
	got  map[int][]byte
	late []io.Reader // abandoned attempts
}

func (s *partStore) Put(ctx context.Context, c *tiers.Call, objs []tiers.Object,
	src tiers.Source) error {
	o := objs[0]
	body := func(off, n int64) io.ReadSeeker { return io.NewSectionReader(filled{src, o}, off, n) }
	var all sync.WaitGroup
	var mu sync.Mutex
	var failure error
	parts := make(chan int)
	for range s.atOnce {
		all.Go(func() {
			for i := range parts {
				off := int64(i) * testChunk
				n := min(testChunk, o.Size-off)
				data, err := s.part(body(off, n), i, n, func() io.ReadSeeker {
					return body(off, n)
				})
				_ = s.clock.Sleep(ctx, s.takes)
				if s.fail != nil {
					err = errors.Join(err, s.fail(i))
				}
				mu.Lock()
				if err != nil {
					failure = errors.Join(failure, err)
				} else {
					s.mu.Lock()
					s.got[i] = data
					s.mu.Unlock()
					c.Observe(tiers.Chunk{Op: tiers.Write, Bytes: n, Off: off})
				}
				mu.Unlock()
			}
		})
	}
	for i := range int((o.Size + testChunk - 1) / testChunk) {
		parts <- i
	}
	close(parts)
	all.Wait()
	return failure
}

// filled reads an object from its source.
type filled struct {
	tiers.Source
	o tiers.Object
}

func (f filled) ReadAt(p []byte, off int64) (int, error) {
	if err := f.Fill(f.o, off, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// part reads one, from the start again if it is to fail once.
func (s *partStore) part(r io.ReadSeeker, i int, n int64, again func() io.ReadSeeker) ([]byte,
	error) {
	if s.twice != nil && s.twice(i) {
		if _, err := io.ReadFull(r, make([]byte, n/2)); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.late = append(s.late, r)
		s.mu.Unlock()
		r = again()
	}
	return io.ReadAll(r)
}

// sent moves an object through a pipeline to a store, in virtual time.
func sent(t *testing.T, s *partStore, o tiers.Object, data *content.Content, buffers int) (
	*line, error) {
	c := s.clock
	var bufs []tiers.Buffer
	for range buffers {
		bufs = append(bufs, tiers.Buffer{B: make([]byte, testChunk)})
	}
	pipe := &pipeline{clock: c, fill: data.Fill, chunk: testChunk, producers: 2, writers: s.atOnce}
	pipe.add(bufs)
	end := pipe.start(t.Context())
	l := pipe.lines[0]
	l.busy, l.done = &clock.Busy{}, func(tiers.Chunk) {}
	s.got = map[int][]byte{}
	err := l.send(t.Context(), o, s)
	end()
	return l, err
}

// TestPartsAreSentFromTheirBuffers: with two buffers and parts that are sent twice, each part has
// the bytes of its place; an abandoned attempt reads no bytes of another part.
func TestPartsAreSentFromTheirBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := content.New([16]byte{7}, 0)
		o := tiers.Object{Key: "global_epoch1_step1/f", Size: 40*testChunk - 5000}
		s := &partStore{clock: clock.NewWall(), takes: time.Millisecond, atOnce: 2,
			twice: func(i int) bool { return i%3 == 1 }}
		l, err := sent(t, s, o, data, 2)
		require.NoError(t, err)
		require.Len(t, s.got, 40)
		total := 0
		for i, p := range s.got {
			require.NoError(t, data.Check(p, o, int64(i)*testChunk))
			total += len(p)
		}
		assert.EqualValues(t, o.Size, total)
		assert.EqualValues(t, 40, l.p.chunks.Load())
		// Two at a time, a millisecond each; the completion is not reported here.
		assert.Equal(t, 20*time.Millisecond, l.p.io.Total())
		assert.Zero(t, l.p.closing.Total())
		require.Len(t, s.late, 13)
		for _, r := range s.late {
			_, err := r.Read(make([]byte, 10))
			assert.Error(t, err)
		}
		assert.False(t, slices.ContainsFunc(l.slots, func(b *slot) bool { return b.stuck }))
	})
}

// TestAFailedPartEndsTheObject: the buffers of parts that the store has not acknowledged are free, and
// a late attempt reads nothing from them.
func TestAFailedPartEndsTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("503")
		o := tiers.Object{Key: "f", Size: 6 * testChunk}
		s := &partStore{clock: clock.NewWall(), takes: time.Millisecond, atOnce: 2}
		s.twice = func(i int) bool { return i == 3 }
		s.fail = func(i int) error {
			if i == 3 {
				return broken
			}
			return nil
		}
		l, err := sent(t, s, o, content.New([16]byte{7}, 0), 6)
		assert.ErrorIs(t, err, broken)
		assert.False(t, slices.ContainsFunc(l.slots, func(b *slot) bool { return b.stuck }))
		require.Len(t, s.late, 1)
		n, err := s.late[0].Read(make([]byte, 10))
		assert.Zero(t, n)
		assert.ErrorIs(t, err, broken)
	})
}
