package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/objecttier/s3test"
	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/tiertest"
)

// counts is an observer that keeps all events.
type counts struct {
	mu       sync.Mutex
	attempts []store.Attempt
	requests []store.Request
	connects int
}

func (c *counts) Attempt(a store.Attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts = append(c.attempts, a)
}
func (c *counts) Request(r store.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
}
func (c *counts) Connected(string, time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connects++
}

// setting is a client of a server.
type setting struct {
	*store.Client
	counts *counts
	server *s3test.Server
}

var inMemory = s3test.Config{InMemory: true}

// start makes a server with n endpoints and a client of it.
func start(t *testing.T, n int, config s3test.Config, change func(*store.Config)) setting {
	t.Helper()
	config.Buckets = append(config.Buckets, "bucket")
	server := s3test.Start(t, config, n)
	clk := tiertest.Wall()
	s := setting{counts: &counts{}, server: server}
	cfg := store.Config{Bucket: "bucket", URLs: server.URLs(), Balance: store.RoundRobin, Region: "us-east-1",
		Credentials: s3test.Credentials("key"), Payload: store.Unsigned,
		Retries: 3, Timeout: 30 * time.Second, ConnectTimeout: 5 * time.Second,
		Connections: 16, Clock: clk, Observer: s.counts, Random: func() float64 { return 1 }}
	if config.InMemory {
		cfg.Dial = server.DialContext
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	s.Client, err = store.New(cfg)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// data is the bytes of an object.
func data(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7919 >> 3)
	}
	return b
}

func body(b []byte) store.Body {
	return func() io.ReadSeeker { return bytes.NewReader(b) }
}

func (s setting) put(t *testing.T, key string, b []byte) {
	t.Helper()
	_, err := s.Put(t.Context(), key, int64(len(b)), body(b))
	require.NoError(t, err)
}

// get reads an object in pieces of 1000 bytes.
func (s setting) get(ctx context.Context, key string, size int) ([]byte, error) {
	got := make([]byte, 0, size)
	_, err := s.Get(ctx, key, store.Range{N: int64(size), Size: int64(size)}, make([]byte, 1000),
		func(p []byte, off int64, _ bool) error {
			if int64(len(got)) != off {
				return fmt.Errorf("a piece at %d, %d bytes came before", off, len(got))
			}
			got = append(got, p...)
			return nil
		})
	return got, err
}

// list returns the keys that begin with a prefix.
func (s setting) list(t *testing.T, prefix string, folders bool) (keys []string) {
	t.Helper()
	require.NoError(t, s.List(t.Context(), prefix, folders, func(key string) bool {
		keys = append(keys, key)
		return true
	}))
	return keys
}

// Every request with every protection of bodies: the counts agree with the server's log.
func TestEveryRequest(t *testing.T) {
	for _, payload := range []store.Payload{store.Unsigned, store.Signed, store.CRC32C,
		store.CRC64NVME} {
		s := start(t, 1, s3test.Config{}, func(c *store.Config) { c.Payload = payload })
		ctx, all := t.Context(), data(300_001)
		for _, n := range []int{1, 1000, 300_001} {
			s.put(t, "a/b c+d", all[:n])
			got, err := s.get(ctx, "a/b c+d", n)
			require.NoError(t, err)
			assert.Equal(t, all[:n], got)
		}
		size, err := s.Head(ctx, "a/b c+d")
		require.NoError(t, err)
		assert.EqualValues(t, 300_001, size)
		var part []byte
		_, err = s.Get(ctx, "a/b c+d", store.Range{Off: 100, N: 2500, Size: 300_001},
			make([]byte, 1000),
			func(p []byte, _ int64, _ bool) error { part = append(part, p...); return nil })
		require.NoError(t, err)
		assert.Equal(t, all[100:2600], part)

		id, err := s.Create(ctx, "up")
		require.NoError(t, err)
		var parts []store.Part
		for i, b := range [][]byte{all[:100_000], all[100_000:]} {
			p, _, err := s.PutPart(ctx, "up", id, i+1, int64(len(b)), body(b))
			require.NoError(t, err)
			parts = append(parts, p)
		}
		uploads, err := s.Uploads(ctx, "u")
		require.NoError(t, err)
		assert.Equal(t, []store.Upload{{Key: "up", ID: id}}, uploads)
		_, err = s.Complete(ctx, "up", id, int64(len(all)), parts)
		require.NoError(t, err)
		got, err := s.get(ctx, "up", len(all))
		require.NoError(t, err)
		assert.Equal(t, all, got)
		id, err = s.Create(ctx, "up2")
		require.NoError(t, err)
		require.NoError(t, s.Abort(ctx, "up2", id))
		require.NoError(t, s.Abort(ctx, "up2", id), "again")

		assert.Equal(t, []string{"a/b c+d", "up"}, s.list(t, "", false))
		assert.ElementsMatch(t, []string{"a/", "up"}, s.list(t, "", true))
		var gone []string
		require.NoError(t, s.DeleteAll(ctx, []string{"a/b c+d", "up"},
			func(k string) { gone = append(gone, k) }))
		assert.ElementsMatch(t, []string{"a/b c+d", "up"}, gone)
		require.NoError(t, s.Delete(ctx, "none"))
		_, err = s.Head(ctx, "up")
		assert.ErrorIs(t, err, store.ErrNoKey)
		_, err = s.get(ctx, "up", 10)
		assert.ErrorIs(t, err, store.ErrNoKey)
		versioned, err := s.Versioned(ctx)
		require.NoError(t, err)
		assert.False(t, versioned)

		sent := 0
		for _, a := range s.counts.attempts {
			sent += a.Sent
		}
		assert.Len(t, s.server.Log(), sent)
		assert.LessOrEqual(t, s.counts.connects, 2, "connections are used again")
	}
}

// The kernel's counters confirm that the bytes went through the network.
func TestNetwork(t *testing.T) {
	s := start(t, 1, s3test.Config{}, nil)
	all := data(1 << 20)
	s.put(t, "k", all)
	before := s.Network()
	if !before.Known {
		t.Skip("this kernel has no TCP_INFO")
	}
	assert.InEpsilon(t, len(all), before.Acked, 0.01)
	for range 4 {
		_, err := s.get(t.Context(), "k", len(all))
		require.NoError(t, err)
	}
	s.Close() // the counters of closed connections are kept
	after := s.Network().Since(before)
	assert.InEpsilon(t, 4<<20, after.Received, 0.01)
	assert.Equal(t, 1, s.counts.connects)
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{"2": 2 * time.Second, "60": 5 * time.Second,
		"-1": 200 * time.Millisecond, "soon": 200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, 1, inMemory, nil)
			require.NoError(t, s.server.SetRules(s3test.Rule{Times: 1, Fault: s3test.Fault{
				Kind: s3test.Status, RetryAfter: text}}))
			s.put(t, "k", data(10))
			assert.Equal(t, want, s.counts.requests[0].Backoff, text)
		})
	}
}

// After an early end of a body the next attempt continues at the missing byte, and no byte comes twice.
func TestAGetIsResumed(t *testing.T) {
	for _, kind := range []s3test.Kind{s3test.Cut, s3test.Hang} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, 1, inMemory, nil)
			all := data(10_000)
			s.put(t, "k", all)
			s.server.ClearLog()
			require.NoError(t, s.server.SetRules(
				s3test.Rule{Op: s3test.Get, Nth: 1, Fault: s3test.Fault{Kind: kind, At: 2500}},
				// The rule counts only requests to which the first rule does not apply.
				s3test.Rule{Op: s3test.Get, Nth: 1, Fault: s3test.Fault{Kind: kind, At: 3000}}))
			got, err := s.get(t.Context(), "k", len(all))
			require.NoError(t, err)
			assert.Equal(t, all, got)
			var ranges []string
			for _, e := range s.server.Log() {
				ranges = append(ranges, e.Range)
			}
			assert.Equal(t, []string{"", "bytes=2500-9999", "bytes=5500-9999"}, ranges, kind)
			moved := int64(0)
			for _, a := range s.counts.attempts {
				if a.Op == store.Get {
					moved += a.Bytes
				}
			}
			assert.EqualValues(t, 10_000, moved)
		})
	}
}

// Another object under the same key is an error, before the first attempt and between attempts.
func TestAnswersThatAreNotTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 1, inMemory, nil)
		s.put(t, "k", data(10_000))
		require.NoError(t, s.server.SetRules(s3test.Rule{Op: s3test.Get, Nth: 1,
			Fault: s3test.Fault{Kind: s3test.Cut, At: 2500}}))
		changed := false
		_, err := s.Get(t.Context(), "k", store.Range{N: 10_000, Size: 10_000}, make([]byte, 1000),
			func([]byte, int64, bool) error {
				if !changed {
					changed = true
					s.put(t, "k", data(10_001)[1:])
				}
				return nil
			})
		assert.ErrorContains(t, err, "412")
		require.NoError(t, s.server.SetRules())
		for _, r := range []store.Range{{N: 9_999, Size: 9_999}, {N: 10_001, Size: 10_001},
			{Off: 5, N: 10, Size: 9_000}} {
			_, err := s.Get(t.Context(), "k", r, make([]byte, 1000),
				func([]byte, int64, bool) error { t.Error("a piece"); return nil })
			assert.ErrorContains(t, err, "instead of")
		}
		require.NoError(t, s.server.SetRules(s3test.Rule{Fault: s3test.Fault{
			Kind: s3test.WrongLength, At: 7}}))
		_, err = s.get(t.Context(), "k", 10_000)
		assert.ErrorContains(t, err, "200 with 9993 bytes instead of 200 with 10000 bytes")
	})
}

// Requests to a dead host need another attempt. Then the host gets a pause, and later requests again.
func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 3, inMemory, nil)
		s.server.Endpoints()[1].Kill()
		for i := range 30 {
			s.put(t, fmt.Sprint("k", i), data(100))
		}
		// tried returns the number of attempts at the second endpoint from an index of the log on.
		tried := func(from int) (n int) {
			for _, a := range s.counts.attempts[from:] {
				if a.Endpoint == 1 {
					n++
				}
			}
			return n
		}
		assert.Equal(t, 3, tried(0), "then it backs off")
		assert.Len(t, s.counts.requests, 30)
		before := len(s.counts.attempts)
		require.NoError(t, s.server.Endpoints()[1].Return())
		<-time.After(31 * time.Second)
		for i := range 30 {
			s.put(t, fmt.Sprint("l", i), data(100))
		}
		assert.InDelta(t, 10, tried(before), 1)
	})
}

// down returns for how long no endpoint had answered when a request failed.
func down(t *testing.T, err error) time.Duration {
	t.Helper()
	e, ok := errors.AsType[*store.Error](err)
	require.True(t, ok, err)
	return e.Down
}

func TestNoEndpointAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 2, inMemory, nil)
		for _, e := range s.server.Endpoints() {
			e.Kill()
		}
		_, err := s.Head(t.Context(), "k")
		assert.ErrorContains(t, err, "4 attempts")
		assert.ErrorContains(t, err, "check that the store runs")
		assert.Equal(t, 1400*time.Millisecond, down(t, err))
		assert.NotErrorIs(t, err, store.ErrDown, "it may come back")
		<-time.After(30 * time.Second)
		_, err = s.Head(t.Context(), "k")
		assert.ErrorIs(t, err, store.ErrDown)
		require.NoError(t, s.server.Endpoints()[0].Return())
		_, err = s.Head(t.Context(), "k")
		assert.NotErrorIs(t, err, store.ErrDown)
	})
}

// A request that the caller ends is no failure of the store, and has no further attempt.
func TestTheCallersOwnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 1, inMemory, nil)
		s.put(t, "k", data(5000))
		stop := errors.New("the window is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		require.NoError(t, s.server.SetRules(s3test.Rule{Fault: s3test.Fault{
			Kind: s3test.Hang, At: -1}}))
		time.AfterFunc(time.Second, func() { cancel(stop) })
		_, err := s.get(ctx, "k", 5000)
		assert.ErrorIs(t, err, stop)
		assert.ErrorIs(t, err, context.Canceled)
		begun := len(s.counts.attempts)
		assert.True(t, s.counts.attempts[begun-1].Cancelled)
		_, err = s.get(ctx, "k", 5000)
		assert.ErrorIs(t, err, stop)
		assert.Len(t, s.counts.attempts, begun, "it was never in flight")

		require.NoError(t, s.server.SetRules())
		broken := errors.New("broken")
		_, err = s.Get(t.Context(), "k", store.Range{N: 5000, Size: 5000}, make([]byte, 100),
			func([]byte, int64, bool) error { return broken })
		assert.ErrorIs(t, err, broken)
		assert.ErrorContains(t, err, "object k, ETag ")
		assert.ErrorContains(t, err, "10.0.0.1:9000")
		_, err = s.Put(t.Context(), "l", 5000, func() io.ReadSeeker {
			return struct {
				io.Reader
				io.Seeker
			}{io.MultiReader(bytes.NewReader(data(100)), failing{broken}), bytes.NewReader(nil)}
		})
		assert.Same(t, broken, err)
		<-time.After(time.Minute)
		s.server.Endpoints()[0].Kill()
		_, err = s.Head(t.Context(), "k")
		assert.Equal(t, 1400*time.Millisecond, down(t, err), "the failures before were no endpoint's")
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// If the answer to a Complete is lost, the object exists and the next attempt finds no upload.
func TestALostAnswerOfComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 1, inMemory, nil)
		require.NoError(t, s.server.SetRules(s3test.Rule{Op: s3test.Complete, Nth: 1,
			Fault: s3test.Fault{Kind: s3test.Lost}}))
		id, err := s.Create(t.Context(), "k")
		require.NoError(t, err)
		p, _, err := s.PutPart(t.Context(), "k", id, 1, 100, body(data(100)))
		require.NoError(t, err)
		r, err := s.Complete(t.Context(), "k", id, 100, []store.Part{p})
		require.NoError(t, err)
		assert.Equal(t, 2, r.Attempts)
		got, err := s.get(t.Context(), "k", 100)
		require.NoError(t, err)
		assert.Equal(t, data(100), got)
	})
}

// An answer of 200 may contain an error, which is the cause then.
func TestAnErrorInTheAnswerOfComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 1, inMemory, func(c *store.Config) { c.Retries = 0 })
		require.NoError(t, s.server.SetRules(s3test.Rule{Op: s3test.Complete,
			Fault: s3test.Fault{Kind: s3test.Status, Status: 200, Code: "InternalError"}}))
		id, err := s.Create(t.Context(), "k")
		require.NoError(t, err)
		p, _, err := s.PutPart(t.Context(), "k", id, 1, 100, body(data(100)))
		require.NoError(t, err)
		_, err = s.Complete(t.Context(), "k", id, 100, []store.Part{p})
		var e *store.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, "InternalError", e.Cause)
	})
}

// The time limit is for the wait between two pieces of an answer: here a byte each 0.2 s, for 20 s and longer.
func TestAnswersThatTakeLongerThanTheTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 1, inMemory, func(c *store.Config) { c.Timeout, c.Retries = time.Second, 0 })
		drip := s3test.Fault{Kind: s3test.Delay, BytesPerSec: 5}
		require.NoError(t, s.server.SetRules(s3test.Rule{Op: s3test.Complete, Fault: drip},
			s3test.Rule{Op: s3test.List, Fault: drip}))
		id, err := s.Create(t.Context(), "k")
		require.NoError(t, err)
		p, _, err := s.PutPart(t.Context(), "k", id, 1, 100, body(data(100)))
		require.NoError(t, err)
		begun := time.Now()
		r, err := s.Complete(t.Context(), "k", id, 100, []store.Part{p})
		require.NoError(t, err)
		assert.Equal(t, 1, r.Attempts)
		assert.Greater(t, time.Since(begun), 20*time.Second)
		assert.Equal(t, []string{"k"}, s.list(t, "", false))
		require.NoError(t, s.server.SetRules(s3test.Rule{Op: s3test.Complete,
			Fault: s3test.Fault{Kind: s3test.Hang, At: 50}}))
		id, err = s.Create(t.Context(), "l")
		require.NoError(t, err)
		p, _, err = s.PutPart(t.Context(), "l", id, 1, 100, body(data(100)))
		require.NoError(t, err)
		_, err = s.Complete(t.Context(), "l", id, 100, []store.Part{p})
		assert.ErrorContains(t, err, "no bytes moved within -s3-timeout (1s)")
	})
}

func TestListsAndDeletionsOfThousands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 2, inMemory, nil)
		var keys []string
		for i := range 2500 {
			keys = append(keys, fmt.Sprintf("p/%05d", i))
			require.NoError(t, s.server.SetObject("bucket", keys[i], "x"))
		}
		require.NoError(t, s.server.SetObject("bucket", "q", "x"))
		require.NoError(t, s.server.SetRules(
			s3test.Rule{Op: s3test.List, Nth: 2, Fault: s3test.Fault{Kind: s3test.Status}},
			s3test.Rule{Op: s3test.List, Fault: s3test.Fault{Kind: s3test.ShortPage, At: 300}}))
		assert.Equal(t, keys, s.list(t, "p/", false), "short pages, and one that fails")
		for _, status := range []int{400, 501} {
			s.server.ClearLog()
			require.NoError(t, s.server.SetRules(s3test.Rule{Op: s3test.DeleteBatch,
				Fault: s3test.Fault{Kind: s3test.Status, Status: status}}))
			gone, n := 0, len(keys)
			require.NoError(t, s.DeleteAll(t.Context(), keys[n-10:], func(string) { gone++ }))
			keys = keys[:n-10]
			assert.Equal(t, 10, gone)
			assert.Len(t, s.server.Log(), 11, "one by one")
		}
		require.NoError(t, s.server.SetRules(s3test.Rule{Op: s3test.DeleteBatch, Nth: 1,
			Fault: s3test.Fault{Kind: s3test.Lost}}))
		s.server.ClearLog()
		require.NoError(t, s.DeleteAll(t.Context(), keys, func(string) {}))
		assert.Len(t, s.server.Log(), 4, "three thousands, one of them twice")
		assert.Equal(t, []string{"q"}, s.list(t, "", false))
	})
}

func TestTLS(t *testing.T) {
	s := start(t, 1, s3test.Config{TLS: true}, nil)
	_, err := s.Head(t.Context(), "k")
	assert.ErrorContains(t, err, "-s3-ca-file")
	assert.Len(t, s.counts.attempts, 1, "it would be the same the next time")
	for _, change := range []func(*store.Config){
		func(c *store.Config) { c.URLs, c.RootCAs = s.server.URLs(), s.server.Roots() },
		func(c *store.Config) { c.URLs, c.SkipVerify = s.server.URLs(), true },
	} {
		start(t, 1, s3test.Config{}, change).put(t, "k", []byte("https"))
	}
	got, err := s.server.Object("bucket", "k")
	require.NoError(t, err)
	assert.Equal(t, "https", string(got))

	plain := s3test.Start(t, s3test.Config{Buckets: []string{"bucket"}}, 1)
	s = start(t, 1, s3test.Config{}, func(c *store.Config) {
		c.URLs = []string{strings.Replace(plain.URLs()[0], "http", "https", 1)}
	})
	_, err = s.Head(t.Context(), "k")
	assert.ErrorContains(t, err, "write http:// in -s3-endpoint")
}

// In virtual-hosted style the bucket is in the host, also if the address has a port.
func TestVirtualHostedStyle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 1, s3test.Config{InMemory: true, Domain: "s3.test:9000"},
			func(c *store.Config) {
				c.Addressing, c.URLs = store.Virtual, []string{"http://s3.test:9000"}
				dial := c.Dial
				c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					assert.Equal(t, "bucket.s3.test:9000", address)
					return dial(ctx, network, "10.0.0.1:9000")
				}
			})
		s.put(t, "a/k", data(1000))
		got, err := s.get(t.Context(), "a/k", 1000)
		require.NoError(t, err)
		assert.Equal(t, data(1000), got)
		assert.Equal(t, []string{"a/k"}, s.server.Keys("bucket", ""))
	})
}
