package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/objecttier/credentials"
	"kvbench/tiers/objecttier/endpoint"
	"kvbench/tiers/objecttier/s3double"
	"kvbench/tiers/objecttier/s3double/testnet"
	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/tiertest"
)

// counts is an observer that adds up.
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

// sent is how many headers of an operation went out.
func (c *counts) sent() map[string]int {
	n := map[string]int{}
	for _, a := range c.attempts {
		n[a.Op.String()] += a.Sent
	}
	return n
}

// setting is a client of a double.
type setting struct {
	*store.Client
	counts *counts
	set    *endpoint.Set
	double *s3double.Double
}

// start makes a double and a client of it. Change sees both configurations before that.
func start(t *testing.T, n int, d s3double.Config, change func(*store.Config)) setting {
	t.Helper()
	d.Buckets = append(d.Buckets, "bucket")
	double := s3double.Start(t, d, n)
	clk := tiertest.Wall()
	set, err := endpoint.NewSet(double.URLs(), endpoint.RoundRobin, 0, clk.Now)
	require.NoError(t, err)
	s := setting{counts: &counts{}, set: set, double: double}
	cfg := store.Config{Bucket: "bucket", Endpoints: set, Region: "us-east-1", Payload: store.Unsigned,
		Credentials: credentials.Credentials{ID: "key", Secret: credentials.NewSecret("secret")},
		Retries:     3, Timeout: 30 * time.Second, ConnectTimeout: 5 * time.Second,
		Connections: 16, Clock: clk, Observer: s.counts, Random: func() float64 { return 1 }}
	if d.Network != nil {
		cfg.Dial = d.Network.DialContext
	}
	if change != nil {
		change(&cfg)
	}
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
	_, _, err := s.Put(t.Context(), key, int64(len(b)), body(b), store.Condition{})
	require.NoError(t, err)
}

// get reads an object in pieces of 1000 bytes.
func (s setting) get(ctx context.Context, key string, size int) ([]byte, error) {
	got := make([]byte, 0, size)
	_, err := s.Get(ctx, key, store.Range{N: int64(size), Of: int64(size)}, make([]byte, 1000),
		func(p []byte, off int64) error {
			if int64(len(got)) != off {
				return fmt.Errorf("a piece at %d, %d bytes came before", off, len(got))
			}
			got = append(got, p...)
			return nil
		})
	return got, err
}

func TestEveryRequestOnRealSockets(t *testing.T) {
	for _, payload := range []store.Payload{store.Unsigned, store.Signed, store.CRC32C,
		store.CRC64NVME} {
		s := start(t, 1, s3double.Config{MinPart: 1}, func(c *store.Config) { c.Payload = payload })
		ctx, all := t.Context(), data(300_001)
		for _, n := range []int{1, 999, 1000, 1001, 300_001} {
			s.put(t, "a/b c+d", all[:n])
			got, err := s.get(ctx, "a/b c+d", n)
			require.NoError(t, err)
			assert.Equal(t, all[:n], got)
		}
		info, err := s.Head(ctx, "a/b c+d")
		require.NoError(t, err)
		assert.EqualValues(t, 300_001, info.Size)
		assert.NotEmpty(t, info.ETag)

		var part []byte
		_, err = s.Get(ctx, "a/b c+d", store.Range{Off: 100, N: 2500, Of: 300_001},
			make([]byte, 1000),
			func(p []byte, _ int64) error { part = append(part, p...); return nil })
		require.NoError(t, err)
		assert.Equal(t, all[100:2600], part)

		_, _, err = s.Put(ctx, "a/b c+d", 1, body(all[:1]), store.Condition{Absent: true})
		assert.ErrorIs(t, err, store.ErrExists)
		_, _, err = s.Put(ctx, "a/b c+d", 2, body(all[:2]), store.Condition{ETag: info.ETag})
		assert.NoError(t, err)
		_, _, err = s.Put(ctx, "a/b c+d", 2, body(all[:2]), store.Condition{ETag: info.ETag})
		assert.ErrorIs(t, err, store.ErrExists, "it has changed")

		id, _, err := s.Create(ctx, "up")
		require.NoError(t, err)
		var parts []store.Part
		for i, off := range []int{0, 100_000, 200_000} {
			b := all[off:min(off+100_000, len(all))]
			if i == 2 {
				b = all[off:]
			}
			p, _, err := s.PutPart(ctx, "up", id, i+1, int64(len(b)), body(b))
			require.NoError(t, err)
			parts = append(parts, p)
		}
		ups, err := s.Uploads(ctx, "u")
		require.NoError(t, err)
		assert.Equal(t, []store.Upload{{Key: "up", ID: id}}, ups)
		_, err = s.Complete(ctx, "up", id, int64(len(all)), parts)
		require.NoError(t, err)
		got, err := s.get(ctx, "up", len(all))
		require.NoError(t, err)
		assert.Equal(t, all, got)
		id, _, err = s.Create(ctx, "up2")
		require.NoError(t, err)
		require.NoError(t, s.Abort(ctx, "up2", id))
		require.NoError(t, s.Abort(ctx, "up2", id), "again")

		var listed []string
		list := func(i store.Info) bool { listed = append(listed, i.Key); return true }
		require.NoError(t, s.List(ctx, "", list))
		assert.Equal(t, []string{"a/b c+d", "up"}, listed)
		var gone []string
		require.NoError(t, s.DeleteAll(ctx, listed, func(k string) { gone = append(gone, k) }))
		assert.ElementsMatch(t, listed, gone)
		require.NoError(t, s.Delete(ctx, "none"))
		_, err = s.Head(ctx, "up")
		assert.ErrorIs(t, err, store.ErrNoKey)
		_, err = s.get(ctx, "up", 10)
		assert.ErrorIs(t, err, store.ErrNoKey)
		status, err := s.Versioning(ctx)
		require.NoError(t, err)
		assert.Empty(t, status)
		assert.Equal(t, []string{"s3double"}, s.Servers())

		// What it counted is what the store saw, request by request, over few connections.
		logged := map[string]int{}
		for _, e := range s.double.Log() {
			name := string(e.Op)
			switch {
			case e.Op == s3double.Get && e.Range != "":
				name = "get_range"
			case e.Op == s3double.ListUploads:
				name = "list"
			case e.Op == s3double.Versioning:
				name = "bucket"
			}
			logged[name]++
		}
		assert.Equal(t, logged, s.counts.sent())
		assert.LessOrEqual(t, s.counts.connects, 2, "connections are used again")
	}
}

// The kernel's counters say that the bytes went through the network, and how often was dialled.
func TestTheNetworkIsTheWitness(t *testing.T) {
	s := start(t, 1, s3double.Config{}, nil)
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
	s.Close() // counts stay when connections go
	after := s.Network().Since(before)
	assert.InDelta(t, 1.0, after.ReadRatio(4<<20), 0.01)
	assert.Zero(t, after.Dials)
	assert.EqualValues(t, 1, s.Network().Dials)
}

func TestAStoreSaysWhenToComeBack(t *testing.T) {
	for text, want := range map[string]time.Duration{"2": 2 * time.Second, "60": 5 * time.Second,
		"-1": 200 * time.Millisecond, "soon": 200 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, 1, s3double.Config{Network: &testnet.Network{}}, nil)
			require.NoError(t, s.double.SetRules(s3double.Rule{Times: 1, Fault: s3double.Fault{
				Kind: s3double.Status, RetryAfter: text}}))
			s.put(t, "k", data(10))
			assert.Equal(t, want, s.counts.requests[0].Backoff, text)
		})
	}
}

// A body that breaks off is gone on with where it broke off, and nothing comes twice.
func TestAGetGoesOnAtTheFirstMissingByte(t *testing.T) {
	for _, kind := range []s3double.Kind{s3double.Cut, s3double.Reset, s3double.Hang} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, 1, s3double.Config{Network: &testnet.Network{}}, nil)
			all := data(10_000)
			s.put(t, "k", all)
			s.double.ClearLog()
			first := s3double.Rule{Op: s3double.Get, Nth: 1,
				Fault: s3double.Fault{Kind: kind, At: 2500}}
			second := first // counts from where the first did not act
			second.At = 3000
			require.NoError(t, s.double.SetRules(first, second))
			got, err := s.get(t.Context(), "k", len(all))
			require.NoError(t, err)
			assert.Equal(t, all, got)
			var ranges []string
			for _, e := range s.double.Log() {
				ranges = append(ranges, e.Range)
			}
			require.Len(t, ranges, 3, kind)
			assert.Empty(t, ranges[0])
			assert.Equal(t, "bytes=2500-9999", ranges[1])
			assert.Equal(t, "bytes=5500-9999", ranges[2])
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

// Another object under the same key is not what was begun to be read.
func TestAGetDoesNotGoOnInAnotherObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 1, s3double.Config{Network: &testnet.Network{}}, nil)
		s.put(t, "k", data(10_000))
		require.NoError(t, s.double.SetRules(s3double.Rule{Op: s3double.Get, Nth: 1,
			Fault: s3double.Fault{Kind: s3double.Cut, At: 2500}}))
		changed := false
		_, err := s.Get(t.Context(), "k", store.Range{N: 10_000, Of: 10_000}, make([]byte, 1000),
			func([]byte, int64) error {
				if !changed {
					changed = true
					other := data(10_001)[1:]
					s.put(t, "k", other)
				}
				return nil
			})
		assert.ErrorIs(t, err, store.ErrExists)
	})
}

func TestAnswersThatAreNotTheObjectAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 1, s3double.Config{Network: &testnet.Network{}}, nil)
		s.put(t, "k", data(10_000))
		for _, r := range []store.Range{{N: 9_999, Of: 9_999}, {N: 10_001, Of: 10_001},
			{Off: 5, N: 10, Of: 9_000}} {
			_, err := s.Get(t.Context(), "k", r, make([]byte, 1000),
				func([]byte, int64) error { t.Error("a piece"); return nil })
			assert.ErrorContains(t, err, "instead of")
		}
		require.NoError(t, s.double.SetRules(s3double.Rule{Fault: s3double.Fault{
			Kind: s3double.WrongLength, At: 7}}))
		_, err := s.get(t.Context(), "k", 10_000)
		assert.ErrorContains(t, err, "9993 bytes instead of 10000")
	})
}

// The answer to a HEAD has nothing but its header, and nothing but 204 means that a DELETE is done.
func TestAnswersToHeadAndDelete(t *testing.T) {
	for _, c := range []struct {
		rule         s3double.Rule
		head, delete string
		tries        int
	}{
		{page(200), "web page", "web page", 1},
		{page(404), "web page", "web page", 1},
		{status(403, "AccessDenied"), "403: Forbidden; key ****", "403 AccessDenied", 1},
		{status(404, "NoSuchBucket"), "404 NoSuchKey", "the bucket bucket must exist", 1},
		{status(503, "SlowDown"), "503", "503 SlowDown", 4},
		{breaks(s3double.Reset), "reset", "reset", 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, 1, s3double.Config{Network: &testnet.Network{}}, nil)
			made := time.Now()
			s.put(t, "k", data(1000))
			*s.counts = counts{}
			require.NoError(t, s.double.SetRules(c.rule))
			_, err := s.Head(t.Context(), "k")
			assert.ErrorContains(t, err, c.head)
			assert.Len(t, s.counts.attempts, c.tries)
			assert.ErrorContains(t, s.Delete(t.Context(), "k"), c.delete)
			assert.Len(t, s.counts.attempts, 2*c.tries)
			require.NoError(t, s.double.SetRules())
			info, err := s.Head(t.Context(), "k")
			require.NoError(t, err, "it is still there")
			assert.EqualValues(t, 1000, info.Size)
			assert.WithinDuration(t, made, info.Modified, time.Second)
			require.NoError(t, s.Delete(t.Context(), "k"))
			assert.Empty(t, s.double.Keys("bucket", ""))
		})
	}
}

// A host that dies fails requests over to the others, which none of them sees but by its time.
func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 3, s3double.Config{Network: &testnet.Network{}}, nil)
		s.double.Endpoints()[1].Kill()
		for i := range 30 {
			s.put(t, fmt.Sprint("k", i), data(100))
		}
		var st []endpoint.Stats
		for _, e := range s.set.All() {
			st = append(st, e.Stats())
		}
		assert.EqualValues(t, 3, st[1].Failed, "then it rests")
		assert.EqualValues(t, 1, st[1].Rests)
		assert.EqualValues(t, 30, st[0].Requests+st[1].Requests+st[2].Requests)
		require.NoError(t, s.double.Endpoints()[1].Return())
		<-time.After(31 * time.Second)
		for i := range 30 {
			s.put(t, fmt.Sprint("l", i), data(100))
		}
		assert.InDelta(t, 10, s.set.All()[1].Stats().Requests-st[1].Requests, 1)
	})
}

func TestNobodyListensAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 2, s3double.Config{Network: &testnet.Network{}}, nil)
		for _, e := range s.double.Endpoints() {
			e.Kill()
		}
		_, err := s.Head(t.Context(), "k")
		assert.ErrorContains(t, err, "4 attempts")
		assert.ErrorContains(t, err, "is the store running")
		assert.Equal(t, 1400*time.Millisecond, s.set.Failing())
		assert.NotErrorIs(t, err, store.ErrDown, "it may come back")
		<-time.After(30 * time.Second)
		_, err = s.Head(t.Context(), "k")
		assert.ErrorIs(t, err, store.ErrDown)
		require.NoError(t, s.double.Endpoints()[0].Return())
		_, err = s.Head(t.Context(), "k")
		assert.NotErrorIs(t, err, store.ErrDown)
		assert.Zero(t, s.set.Failing())
	})
}

// What the caller ends is no failure of the store, and no attempt follows.
func TestTheCallersOwnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 1, s3double.Config{Network: &testnet.Network{}}, nil)
		s.put(t, "k", data(5000))
		stop := errors.New("the window is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		require.NoError(t, s.double.SetRules(s3double.Rule{Fault: s3double.Fault{
			Kind: s3double.Hang, At: -1}}))
		time.AfterFunc(time.Second, func() { cancel(stop) })
		_, err := s.get(ctx, "k", 5000)
		assert.ErrorIs(t, err, stop)
		assert.ErrorIs(t, err, context.Canceled)
		last := s.counts.attempts[len(s.counts.attempts)-1]
		assert.True(t, last.Cancelled)
		begun := len(s.counts.attempts)
		_, err = s.get(ctx, "k", 5000)
		assert.ErrorIs(t, err, stop)
		assert.ErrorIs(t, err, context.Canceled)
		assert.Len(t, s.counts.attempts, begun, "it was never under way")

		require.NoError(t, s.double.SetRules())
		broken := errors.New("broken")
		_, err = s.Get(t.Context(), "k", store.Range{N: 5000, Of: 5000}, make([]byte, 100),
			func([]byte, int64) error { return broken })
		assert.ErrorIs(t, err, broken)
		assert.ErrorContains(t, err, "object k, ETag ")
		assert.ErrorContains(t, err, "10.0.0.1:9000")
		_, _, err = s.Put(t.Context(), "l", 5000, func() io.ReadSeeker {
			return struct {
				io.Reader
				io.Seeker
			}{io.MultiReader(bytes.NewReader(data(100)), failing{broken}), bytes.NewReader(nil)}
		}, store.Condition{})
		assert.Same(t, broken, err)
		assert.Zero(t, s.set.All()[0].Stats().Failed)
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A complete whose answer is lost has made the object, and the next attempt hears of no upload.
func TestALostAnswerOfCompleteIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 1, s3double.Config{Network: &testnet.Network{}, MinPart: 1}, nil)
		for _, kind := range []s3double.Kind{s3double.Lost, s3double.Error200} {
			require.NoError(t, s.double.SetRules(s3double.Rule{Op: s3double.Complete, Nth: 1,
				Fault: s3double.Fault{Kind: kind, Code: "InternalError"}}))
			id, _, err := s.Create(t.Context(), "k")
			require.NoError(t, err)
			p, _, err := s.PutPart(t.Context(), "k", id, 1, 100, body(data(100)))
			require.NoError(t, err)
			r, err := s.Complete(t.Context(), "k", id, 100, []store.Part{p})
			require.NoError(t, err, kind)
			assert.Equal(t, 2, r.Attempts)
			got, err := s.get(t.Context(), "k", 100)
			require.NoError(t, err)
			assert.Equal(t, data(100), got)
		}
	})
}

func TestListsAndDeletionsOfThousands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, 2, s3double.Config{Network: &testnet.Network{}}, nil)
		var keys []string
		for i := range 2500 {
			keys = append(keys, fmt.Sprintf("p/%05d", i))
			s.put(t, keys[i], data(1))
		}
		s.put(t, "q", data(1))
		list := func() (got []string) {
			require.NoError(t, s.List(t.Context(), "p/", func(i store.Info) bool {
				got = append(got, i.Key)
				return true
			}))
			return got
		}
		require.NoError(t, s.double.SetRules(
			s3double.Rule{Op: s3double.List, Nth: 2, Fault: s3double.Fault{Kind: s3double.Status}},
			s3double.Rule{Op: s3double.List,
				Fault: s3double.Fault{Kind: s3double.ShortPage, At: 300}}))
		assert.Equal(t, keys, list(), "short pages, and one that fails")
		for _, status := range []int{400, 405, 501} {
			s.double.ClearLog()
			require.NoError(t, s.double.SetRules(s3double.Rule{Op: s3double.DeleteBatch,
				Fault: s3double.Fault{Kind: s3double.Status, Status: status}}))
			var mu sync.Mutex
			gone := 0
			n := len(keys)
			require.NoError(t, s.DeleteAll(t.Context(), keys[n-10:], func(string) {
				mu.Lock()
				defer mu.Unlock()
				gone++
			}))
			keys = keys[:n-10]
			assert.Equal(t, 10, gone)
			assert.Len(t, s.double.Log(), 11, "one by one")
		}
		require.NoError(t, s.double.SetRules(s3double.Rule{Op: s3double.DeleteBatch, Nth: 1,
			Fault: s3double.Fault{Kind: s3double.Lost}}))
		s.double.ClearLog()
		require.NoError(t, s.DeleteAll(t.Context(), keys, func(string) {}))
		assert.Len(t, s.double.Log(), 4, "three thousands, one of them twice")
		assert.Empty(t, list())
		_, err := s.Head(t.Context(), "q")
		assert.NoError(t, err)
	})
}

func TestTLSAndWhatIsWrongWithIt(t *testing.T) {
	cert, err := testnet.NewCertificate("127.0.0.1")
	require.NoError(t, err)
	server, err := cert.Server()
	require.NoError(t, err)
	s := start(t, 1, s3double.Config{TLS: server}, func(c *store.Config) {
		c.RootCAs = cert.Client().RootCAs
	})
	s.put(t, "k", data(1000))
	s = start(t, 1, s3double.Config{TLS: server}, nil)
	_, err = s.Head(t.Context(), "k")
	assert.ErrorContains(t, err, "-s3-ca-file")
	assert.Len(t, s.counts.attempts, 1, "it would be the same the next time")
	s = start(t, 1, s3double.Config{TLS: server}, func(c *store.Config) { c.SkipVerify = true })
	s.put(t, "k", data(1000))

	plain := s3double.Start(t, s3double.Config{Buckets: []string{"bucket"}}, 1)
	s = start(t, 1, s3double.Config{}, func(c *store.Config) {
		c.Endpoints, err = endpoint.NewSet([]string{strings.Replace(plain.URLs()[0], "http", "https", 1)},
			endpoint.RoundRobin, 0, c.Clock.Now)
		require.NoError(t, err)
	})
	_, err = s.Head(t.Context(), "k")
	assert.ErrorContains(t, err, "write http:// in -s3-endpoint")
}

func TestAConfigIsChecked(t *testing.T) {
	_, err := store.New(store.Config{Retries: -1})
	for _, want := range []string{"a bucket", "an endpoint", "a region", "retries (-1)", "time limits",
		"connections", "a clock"} {
		assert.ErrorContains(t, err, want)
	}
	assert.Equal(t, "Op(99)", store.Op(99).String())
}
