package objecttier_test

import (
	"context"
	"errors"
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
	return objecttier.Config{
		Store: store.Config{Bucket: "bucket", URLs: d.URLs(), Balance: store.RoundRobin, Region: "us-east-1",
			Credentials: s3test.Credentials("key"),
			Payload:     store.Unsigned, Retries: 3, Timeout: 30 * time.Second,
			ConnectTimeout: 5 * time.Second, Connections: 32, Clock: clk,
			Random: func() float64 { return 1 }, Dial: d.DialContext},
		Prefix: "a/b", Rank: int(rank.Add(1)), Names: objecttier.Names{Format: objecttier.Own},
		MultipartAbove: 96 << 10, PartSize: 40 << 10, RangeSize: 36 << 10, Depth: 3, Nonce: "test",
		Pool: tiertest.Transfer(t, 8192, 3).Pool, Chunk: 8192,
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
				return open(t, cfg)
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

// put writes an object, with the report of its chunks to done, which may be nil.
func put(ctx context.Context, to tiers.Tier, o tiers.Object, done func(tiers.Chunk)) error {
	return to.Put(ctx, &tiers.Call{Observe: done}, []tiers.Object{o}, tiertest.Content.Source())
}

// sums adds up the reported chunks.
func sums() (func(tiers.Chunk), *[tiers.NumOps]int64) {
	var mu sync.Mutex
	var n [tiers.NumOps]int64
	return func(c tiers.Chunk) {
		mu.Lock()
		defer mu.Unlock()
		n[c.Op] += c.Bytes
	}, &n
}

// check reads an object and compares it.
func check(ctx context.Context, tier tiers.Tier, o tiers.Object, done func(tiers.Chunk)) error {
	return tier.Get(ctx, &tiers.Call{Observe: done}, []tiers.Object{o}, tiertest.Verified)
}

// A failed write leaves nothing: an upload is aborted and its reported bytes are subtracted. An object is
// deleted that a PUT may have made although all its answers were lost.
func TestAWriteThatFailsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		tier := open(t, c)
		o := tiers.Object{Key: "k", Gen: 1, Size: 300_000}
		for _, c := range []struct {
			size   int64
			rule   s3test.Rule
			wasted bool
		}{
			{1000, s3test.Rule{Op: s3test.Put, Fault: s3test.Fault{Kind: s3test.Lost}}, false},
			{o.Size, s3test.Rule{Op: s3test.PutPart, Nth: 5, Fault: status(403, "")}, true},
			{o.Size, s3test.Rule{Op: s3test.Complete, Fault: status(400, "InvalidPart")}, true},
			{o.Size, s3test.Rule{Op: s3test.Create, Fault: status(507, "")}, false},
		} {
			require.NoError(t, d.SetRules(c.rule))
			done, moved := sums()
			before := tier.Stats().WastedBytes
			o := tiers.Object{Key: "k", Gen: 1, Size: c.size}
			err := put(t.Context(), tier, o, done)
			require.Error(t, err)
			assert.Zero(t, moved[tiers.Write])
			assert.Equal(t, c.wasted, tier.Stats().WastedBytes > before)
			assert.Equal(t, c.rule.Status == 507, errors.Is(err, syscall.ENOSPC))
			assert.Empty(t, d.Uploads("bucket"))
			assert.Empty(t, keys(d))
			assert.ErrorIs(t, check(t.Context(), tier, o, done), tiers.ErrNotFound)
		}
		require.NoError(t, d.SetRules())
		require.NoError(t, put(t.Context(), tier, o, nil), "a later write succeeds")
		broken := tiers.Object{Key: "p", Gen: 1, Size: 200_000}
		err := tier.Put(t.Context(), &tiers.Call{}, []tiers.Object{broken},
			slowly{wait: func() { panic("on purpose") }})
		p, ok := errors.AsType[*tiers.PanicError](err)
		require.True(t, ok, err)
		assert.Equal(t, "on purpose", p.Value)
		assert.Empty(t, d.Uploads("bucket"))
	})
}

func status(code int, name string) s3test.Fault {
	return s3test.Fault{Kind: s3test.Status, Status: code, Code: name}
}

// Reading an object that the store has lost is a failed read, not a miss.
func TestALostObjectIsNoMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		tier := open(t, c)
		o := tiers.Object{Key: "k", Gen: 1, Size: 5000}
		err := put(t.Context(), tier, o, nil)
		require.NoError(t, err)
		require.NoError(t, d.SetRules(s3test.Rule{Op: s3test.Get, Fault: s3test.Fault{
			Kind: s3test.Status, Status: 404, Code: "NoSuchKey"}}))
		err = check(t.Context(), tier, o, nil)
		assert.ErrorIs(t, err, objecttier.ErrLost)
		assert.NotErrorIs(t, err, tiers.ErrNotFound)
		assert.ErrorContains(t, err, "entry k")
		assert.EqualValues(t, 1, tier.Stats().Lost)

		require.NoError(t, d.SetRules(s3test.Rule{Op: s3test.Get, Fault: s3test.Fault{
			Kind: s3test.Flip, At: 4321}}))
		err = check(t.Context(), tier, o, nil)
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
		var once sync.Once
		second := func() { <-time.After(time.Second) }
		var flight time.Duration
		call := tiers.Call{Observe: func(c tiers.Chunk) { flight += c.Ended - c.Begun }}
		require.NoError(t, tier.Put(t.Context(), &call, []tiers.Object{o},
			slowly{tiertest.Content.Source(), func() { once.Do(second) }}))
		assert.Equal(t, tiers.Timing{Device: 50 * time.Millisecond, Generation: time.Second},
			call.Timing)
		assert.Equal(t, 1050*time.Millisecond, flight)
		// Three ranges, one after the other in one buffer, each in one piece.
		err := tier.Plain(tiers.Buffer{B: make([]byte, 80_000)}).Get(t.Context(), &call,
			[]tiers.Object{o}, slowly{wait: second})
		require.NoError(t, err)
		assert.Equal(t, tiers.Timing{Device: 450 * time.Millisecond, Host: 3 * time.Second},
			call.Timing)
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
				var call tiers.Call
				require.Error(t, tier.Put(t.Context(), &call, []tiers.Object{o},
					tiertest.Content.Source()))
				assert.Equal(t, time.Since(begun), call.Timing.Device)
				assert.Equal(t, undo, call.Timing.Device)
			})
		})
	}
}

// slowly calls a function before it fills or takes bytes.
type slowly struct {
	tiers.Source
	wait func()
}

func (s slowly) Fill(o tiers.Object, off int64, p []byte) error {
	s.wait()
	return s.Source.Fill(o, off, p)
}

func (s slowly) Take(tiers.Object, int64, []byte) error { s.wait(); return nil }

func TestNamesAreTheEngines(t *testing.T) {
	o := tiers.Object{Key: "u1/c2/t3", Gen: 9}
	other := tiers.Object{Key: "u1/c2/t3", Gen: 10}
	for _, c := range []struct {
		names objecttier.Names
		want  string
	}{
		{objecttier.Names{Format: objecttier.Own}, `^[0-9a-f]{2}/[0-9a-f]{30}-0000000000000009$`},
		{objecttier.Names{Format: objecttier.LMCache, Model: "org/m-8b", Ranks: 1},
			`^org/m-8b@01000100@0@[0-9a-f]{64}$`},
		{objecttier.Names{Format: objecttier.LMCache, Model: "m", Rank: 3, Ranks: 8}, `^m@08030803@0@[0-9a-f]{64}$`},
		{objecttier.Names{Format: objecttier.VLLM, Model: "org/m-8b", Ranks: 1},
			`^org_m-8b_33f5ebf10e8a_r0/[0-9a-f]{3}/[0-9a-f]{2}_g0/[0-9a-f]{64}\.bin$`},
	} {
		assert.Regexp(t, c.want, c.names.Name(o))
		assert.NotEqual(t, c.names.Name(o), c.names.Name(other))
	}
}
