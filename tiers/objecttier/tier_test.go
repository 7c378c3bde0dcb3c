package objecttier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/content"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/endpoint"
	"kvbench/tiers/objecttier/s3test"
	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/tiertest"
)

// rank numbers the tiers, so that each has its own prefix.
var rank atomic.Int64

// config returns the configuration of a tier with small parts and ranges at a server's endpoints.
func config(t testing.TB, d *s3test.Server) objecttier.Config {
	t.Helper()
	clk := tiertest.Wall()
	set, err := endpoint.NewSet(d.URLs(), endpoint.RoundRobin, 0, clk.Now)
	require.NoError(t, err)
	return objecttier.Config{
		Store: store.Config{Bucket: "bucket", Endpoints: set, Region: "us-east-1",
			Credentials: store.StaticCredentials("key", "secret", ""),
			Payload:     store.Unsigned, Retries: 3, Timeout: 30 * time.Second,
			ConnectTimeout: 5 * time.Second, Connections: 32, Clock: clk,
			Random: func() float64 { return 1 }, Dial: d.DialContext},
		Prefix: "a/b", Rank: int(rank.Add(1)), Names: objecttier.Names{Format: objecttier.Own},
		MultipartAbove: 96 << 10, PartSize: 40 << 10, RangeSize: 36 << 10, Depth: 3, Nonce: "test",
	}
}

// ignore ignores the progress of a removal.
func ignore(int64) {}

// open opens a tier. The end of the test removes everything in it.
func open(t testing.TB, c objecttier.Config) *objecttier.Tier {
	t.Helper()
	tier, err := objecttier.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, tier.Clear(context.Background(), ignore))
		assert.NoError(t, tier.Close())
	})
	return tier
}

// keys returns all keys in the bucket of a server.
func keys(d *s3test.Server) []string { return d.Keys("bucket", "") }

// streams makes writers and readers at offsets from a tier's streams, because the tests of the contract
// need them. A writer keeps the whole object until Commit.
type streams struct{ *objecttier.Tier }

type stream struct {
	tiers.One
	t     *objecttier.Tier
	o     tiers.Object
	bytes []byte
	mu    sync.Mutex
	ended bool
	read  chan error // for a reader: the result of its GET
	close func()
}

func (s streams) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	return &stream{t: s.Tier, o: objs[0], bytes: make([]byte, objs[0].Size)}, nil
}

// Open begins a GET, which holds the object until Close.
func (s streams) Open(ctx context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	o := objs[0]
	r := &stream{t: s.Tier, o: o, bytes: make([]byte, o.Size), read: make(chan error, 1)}
	begun, closed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.close = sync.OnceFunc(func() {
		close(closed)
		r.mu.Lock() // waits for the end of the GET
		defer r.mu.Unlock()
	})
	end := make(chan error, 1)
	r.mu.Lock()
	go func() {
		defer r.mu.Unlock()
		left := o.Size
		_, err := s.Get(context.WithoutCancel(ctx), o, []tiers.Buffer{{B: make([]byte, 4096)}},
			func(p []byte, off int64) error {
				copy(r.bytes[off:], p)
				if left -= int64(len(p)); left == 0 {
					once.Do(func() { close(begun) })
					<-closed
				}
				return nil
			}, func(tiers.Chunk) {})
		end <- err
	}()
	select {
	case <-begun:
		return r, nil
	case err := <-end:
		return nil, err
	}
}

func (s *stream) Submit(io *tiers.IO) {
	if s.ended || io.Off < 0 || io.Off+int64(io.N) > s.o.Size {
		io.End(&tiers.OpError{Op: "move", Key: s.o.Key, Err: errors.New("not in the entry")})
		return
	}
	if s.close == nil {
		copy(s.bytes[io.Off:], io.Buf.B[:io.N])
	} else {
		copy(io.Buf.B[:io.N], s.bytes[io.Off:])
	}
	io.End(nil)
}

func (s *stream) Commit(ctx context.Context) error {
	if s.ended {
		return tiers.ErrClosed
	}
	s.ended = true
	_, err := s.t.Put(ctx, s.o, func(off, n int64) io.ReadSeeker {
		return bytes.NewReader(s.bytes[off : off+n])
	}, func(tiers.Chunk) {})
	return err
}

func (s *stream) Abort() error { s.ended = true; return nil }
func (s *stream) Close() error { s.close(); return nil }

func TestObjectsKeepTheContract(t *testing.T) {
	for name, change := range map[string]func(*objecttier.Config){
		"parts and ranges": func(*objecttier.Config) {},
		"whole objects, lmcache": func(c *objecttier.Config) {
			c.MultipartAbove, c.RangeSize = 5<<30, 0
			c.Names = objecttier.Names{Format: objecttier.LMCache, Model: "org/model", Ranks: 1}
		},
		"vllm": func(c *objecttier.Config) {
			c.AlwaysRange = true
			c.Names = objecttier.Names{Format: objecttier.VLLM, Model: "org/model", Ranks: 1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := s3test.Start(t, s3test.Config{Buckets: []string{"bucket"}}, 2)
			tiertest.Run(t, func(t testing.TB) tiers.Tier {
				cfg := config(t, d)
				change(&cfg)
				return streams{open(t, cfg)}
			})
			assert.Empty(t, keys(d), "nothing is left")
		})
	}
}

// inBubble makes a server with endpoints without sockets, for tests in virtual time.
func inBubble(t *testing.T, n int) (*s3test.Server, objecttier.Config) {
	t.Helper()
	d := s3test.Start(t, s3test.Config{Buckets: []string{"bucket"}, InMemory: true}, n)
	return d, config(t, d)
}

// body returns an object's content as a stream.
func body(o tiers.Object) func(off, n int64) io.ReadSeeker {
	all := make([]byte, o.Size)
	tiertest.Content.Fill(all, o, 0)
	return func(off, n int64) io.ReadSeeker { return bytes.NewReader(all[off : off+n]) }
}

// sums adds up the reported chunks.
func sums() (tiers.ChunkFunc, *[tiers.NumOps]int64) {
	var mu sync.Mutex
	var n [tiers.NumOps]int64
	return func(c tiers.Chunk) {
		mu.Lock()
		defer mu.Unlock()
		n[c.Op] += c.Bytes
	}, &n
}

// check reads an object and compares it.
func check(ctx context.Context, tier *objecttier.Tier, o tiers.Object, done tiers.ChunkFunc) error {
	var bufs []tiers.Buffer
	for range tier.Streams(o) {
		bufs = append(bufs, tiers.Buffer{B: make([]byte, 8192)})
	}
	_, err := tier.Get(ctx, o, bufs, func(p []byte, off int64) error {
		return tiertest.Content.Check(p, o, off)
	}, done)
	return err
}

// Every twentieth request fails, in each way that another attempt repairs. Reads return the written
// bytes, and each byte is reported once.
func TestFaultsOfTheStoreAreRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 3)
		c.Store.Retries = 10
		tier := open(t, c)
		var rules []s3test.Rule
		for i, f := range []s3test.Fault{{Kind: s3test.Status, Status: 500},
			{Kind: s3test.Status, Status: 503, Code: "SlowDown"}, {Kind: s3test.Cut, At: 20_000},
			{Kind: s3test.Reset, At: 9_000}, {Kind: s3test.Hang, At: 30_000},
			{Kind: s3test.Lost}} {
			rules = append(rules, s3test.Rule{Key: "/[0-9a-f]{2}/", Every: 17 + i, Fault: f})
		}
		require.NoError(t, d.SetRules(rules...))
		rng := rand.New(rand.NewPCG(1, 2))
		done, moved := sums()
		var all sync.WaitGroup
		var bytes atomic.Int64
		for i := range 60 {
			o := tiers.Object{Key: fmt.Sprint("k", i), Gen: 1, Size: rng.Int64N(200_000) + 1}
			all.Go(func() {
				_, err := tier.Put(t.Context(), o, body(o), done)
				if !assert.NoError(t, err) {
					return
				}
				bytes.Add(o.Size)
				assert.NoError(t, check(t.Context(), tier, o, done))
			})
		}
		all.Wait()
		assert.Equal(t, bytes.Load(), moved[tiers.Write])
		assert.Equal(t, bytes.Load(), moved[tiers.Read])
		assert.Zero(t, tier.Stats().WastedBytes)
		faults := 0
		for _, e := range d.Log() {
			if e.Fault != "" {
				faults++
			}
		}
		assert.Greater(t, faults, 20)
		require.NoError(t, d.SetRules())
	})
}

// A failed upload is aborted, and its reported bytes are subtracted.
func TestAnUploadThatFailsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		tier := open(t, c)
		o := tiers.Object{Key: "k", Gen: 1, Size: 300_000}
		for _, rule := range []s3test.Rule{
			{Op: s3test.PutPart, Nth: 5,
				Fault: s3test.Fault{Kind: s3test.Status, Status: 403}},
			{Op: s3test.Complete, Fault: s3test.Fault{Kind: s3test.Status, Status: 400, Code: "InvalidPart"}},
			{Op: s3test.Create, Fault: s3test.Fault{Kind: s3test.Status, Status: 507}},
		} {
			require.NoError(t, d.SetRules(rule))
			done, moved := sums()
			before := tier.Stats().WastedBytes
			_, err := tier.Put(t.Context(), o, body(o), done)
			require.Error(t, err)
			assert.Zero(t, moved[tiers.Write])
			if rule.Op != s3test.Create {
				assert.Positive(t, tier.Stats().WastedBytes-before)
			} else {
				assert.ErrorIs(t, err, syscall.ENOSPC)
			}
			assert.Empty(t, d.Uploads("bucket"))
			assert.Empty(t, keys(d))
			assert.ErrorIs(t, check(t.Context(), tier, o, done), tiers.ErrNotFound)
		}
		require.NoError(t, d.SetRules())
		_, err := tier.Put(t.Context(), o, body(o), func(tiers.Chunk) {})
		require.NoError(t, err, "the way is free again")
		broken := tiers.Object{Key: "p", Gen: 1, Size: 200_000}
		_, err = tier.Put(t.Context(), broken, func(off, n int64) io.ReadSeeker {
			return panics{bytes.NewReader(make([]byte, n))}
		}, func(tiers.Chunk) {})
		p, ok := errors.AsType[*tiers.PanicError](err)
		require.True(t, ok, err)
		assert.Equal(t, "on purpose", p.Value)
		assert.Empty(t, d.Uploads("bucket"))
	})
}

type panics struct{ io.ReadSeeker }

func (panics) Read([]byte) (int, error) { panic("on purpose") }

// A PUT may have made an object although all its answers were lost. No such object remains.
func TestAPutWithoutAnswerLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		c.Store.Retries = 1
		tier := open(t, c)
		require.NoError(t, d.SetRules(s3test.Rule{Op: s3test.Put,
			Fault: s3test.Fault{Kind: s3test.Lost}}))
		o := tiers.Object{Key: "k", Gen: 1, Size: 1000}
		_, err := tier.Put(t.Context(), o, body(o), func(tiers.Chunk) {})
		require.Error(t, err)
		assert.Empty(t, keys(d))
		require.NoError(t, d.SetRules())
	})
}

// Reading an object that the store has lost is a failed read, not a miss.
func TestALostObjectIsNoMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		tier := open(t, c)
		o := tiers.Object{Key: "k", Gen: 1, Size: 5000}
		_, err := tier.Put(t.Context(), o, body(o), func(tiers.Chunk) {})
		require.NoError(t, err)
		require.NoError(t, d.SetRules(s3test.Rule{Op: s3test.Get, Fault: s3test.Fault{
			Kind: s3test.Status, Status: 404, Code: "NoSuchKey"}}))
		err = check(t.Context(), tier, o, func(tiers.Chunk) {})
		_, lost := errors.AsType[*objecttier.LostError](err)
		assert.True(t, lost, err)
		assert.NotErrorIs(t, err, tiers.ErrNotFound)
		assert.ErrorContains(t, err, "entry k")
		assert.EqualValues(t, 1, tier.Stats().Lost)

		require.NoError(t, d.SetRules(s3test.Rule{Op: s3test.Get, Fault: s3test.Fault{
			Kind: s3test.Flip, At: 4321}}))
		err = check(t.Context(), tier, o, func(tiers.Chunk) {})
		m, ok := errors.AsType[*content.MismatchError](err)
		require.True(t, ok, err)
		assert.EqualValues(t, 4321, m.Offset)
		assert.ErrorContains(t, err, "ETag ")
		assert.ErrorContains(t, err, "from 10.0.0.1:9000")
	})
}

// The time of a tier is the store's time: generating and comparing bytes do not count.
func TestTimesAreTheStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		tier := open(t, c)
		require.NoError(t, d.SetRules(s3test.Rule{Key: "/[0-9a-f]{2}/", Fault: s3test.Fault{
			Kind: s3test.Delay, HeaderDelay: (50 * time.Millisecond),
			BodyDelay: (100 * time.Millisecond)}}))
		o := tiers.Object{Key: "k", Gen: 1, Size: 80_000}
		slow := func(off, n int64) io.ReadSeeker {
			return &slowly{ReadSeeker: body(o)(off, n),
				wait: func() { <-time.After(time.Second) }}
		}
		var flight time.Duration
		tm, err := tier.Put(t.Context(), o, slow,
			func(c tiers.Chunk) { flight += c.Ended - c.Begun })
		require.NoError(t, err)
		assert.Equal(t, 50*time.Millisecond, tm.Device)
		assert.Equal(t, 1050*time.Millisecond, flight)
		tm, err = tier.Get(t.Context(), o, []tiers.Buffer{{B: make([]byte, 80_000)}},
			func([]byte, int64) error { <-time.After(time.Second); return nil },
			func(tiers.Chunk) {})
		require.NoError(t, err)
		// Three ranges, one after the other in one buffer.
		assert.Equal(t, 450*time.Millisecond, tm.Device)
	})
}

// The time in which a store undoes a failed write counts as the store's time.
func TestTheTimeToUndoIsTheStores(t *testing.T) {
	const undo = 700 * time.Millisecond
	for name, c := range map[string]struct {
		size int64
		op   s3test.Op // fails at once
		undo s3test.Op // undoes op, slowly
	}{
		"an entry":      {80_000, s3test.Put, s3test.Delete},
		"a part":        {200_000, s3test.PutPart, s3test.Abort},
		"all its parts": {200_000, s3test.Complete, s3test.Abort},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, cfg := inBubble(t, 1)
				tier := open(t, cfg)
				require.NoError(t, d.SetRules(
					s3test.Rule{Op: c.op, Key: "/[0-9a-f]{2}/", Fault: s3test.Fault{
						Kind: s3test.Status, Status: 403, Code: "AccessDenied"}},
					s3test.Rule{Op: c.undo, Key: "/[0-9a-f]{2}/", Fault: s3test.Fault{
						Kind: s3test.Delay, HeaderDelay: (undo)}}))
				o := tiers.Object{Key: "k", Gen: 1, Size: c.size}
				begun := time.Now()
				tm, err := tier.Put(t.Context(), o, body(o), func(tiers.Chunk) {})
				require.Error(t, err)
				assert.Equal(t, time.Since(begun), tm.Device)
				assert.Equal(t, undo, tm.Device)
			})
		})
	}
}

// slowly waits before its first byte.
type slowly struct {
	io.ReadSeeker
	once sync.Once
	wait func()
}

func (s *slowly) Read(p []byte) (int, error) {
	s.once.Do(s.wait)
	return s.ReadSeeker.Read(p)
}

// Lookup makes a HEAD for each object until the first missing one.
func TestLookupAsksUntilTheFirstMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		tier := open(t, c)
		var objs []tiers.Object
		for i := range 5 {
			objs = append(objs, tiers.Object{Key: fmt.Sprint("k", i), Gen: 1, Size: 100})
			if i != 3 {
				_, err := tier.Put(t.Context(), objs[i], body(objs[i]), func(tiers.Chunk) {})
				require.NoError(t, err)
			}
		}
		d.ClearLog()
		n, err := tier.Lookup(t.Context(), objs...)
		require.NoError(t, err)
		assert.Equal(t, 3, n)
		assert.Len(t, d.Log(), 4)
	})
}
