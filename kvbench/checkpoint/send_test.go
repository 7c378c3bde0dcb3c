package checkpoint

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

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
	late []func() error // reads of abandoned attempts
}

func (s *partStore) Put(ctx context.Context, c *tiers.Call, objs []tiers.Object,
	src tiers.Source) error {
	o := objs[0]
	var group errgroup.Group
	group.SetLimit(s.atOnce)
	for i := range int((o.Size + testChunk - 1) / testChunk) {
		group.Go(func() error {
			off := int64(i) * testChunk
			data := make([]byte, min(testChunk, o.Size-off))
			if s.twice(i) {
				half := data[:len(data)/2]
				if err := src.Fill(o, off, half); err != nil {
					return err
				}
				s.mu.Lock()
				s.late = append(s.late, func() error {
					return src.Fill(o, off+int64(len(half)), make([]byte, 10))
				})
				s.mu.Unlock()
			}
			err := src.Fill(o, off, data)
			_ = s.clock.Sleep(ctx, s.takes)
			if s.fail != nil {
				err = errors.Join(err, s.fail(i))
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if err != nil {
				return err
			}
			s.got[i] = data
			c.Observe(tiers.Chunk{Op: tiers.Write, Bytes: int64(len(data)), Off: off})
			if s.twice(i) && !errors.Is(src.Fill(o, off, make([]byte, 10)), errAcknowledged) {
				return errors.New("an abandoned attempt has read bytes after the acknowledgement")
			}
			return nil
		})
	}
	return group.Wait()
}

// sent moves an object through a pipeline to a store, in virtual time. Before: it is generated before.
func sent(t *testing.T, s *partStore, o tiers.Object, data *content.Content, buffers int,
	before bool) (*line, error) {
	c := s.clock
	var bufs []tiers.Buffer
	for range buffers {
		bufs = append(bufs, tiers.Buffer{B: make([]byte, testChunk)})
	}
	pipe := &pipeline{clock: c, fill: data.Fill, chunk: testChunk, producers: 2, writers: s.atOnce}
	pipe.add(bufs)
	end := func() {}
	if before {
		require.NoError(t, pipe.prepare(t.Context(), func(int) []tiers.Object { return []tiers.Object{o} }))
	} else {
		end = pipe.start(t.Context())
	}
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
	partsAreSent(t, 2, false)
	partsAreSent(t, 40, true)
}

func partsAreSent(t *testing.T, buffers int, before bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		data := content.New([16]byte{7}, 0)
		o := tiers.Object{Key: "global_epoch1_step1/f", Size: 40*testChunk - 5000}
		s := &partStore{clock: clock.NewWall(), takes: time.Millisecond, atOnce: 2,
			twice: func(i int) bool { return i%3 == 1 }}
		l, err := sent(t, s, o, data, buffers, before)
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
		for _, read := range s.late {
			assert.Error(t, read())
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
		l, err := sent(t, s, o, content.New([16]byte{7}, 0), 6, false)
		assert.ErrorIs(t, err, broken)
		assert.False(t, slices.ContainsFunc(l.slots, func(b *slot) bool { return b.stuck }))
		require.Len(t, s.late, 1)
		assert.ErrorIs(t, s.late[0](), broken)
	})
}
