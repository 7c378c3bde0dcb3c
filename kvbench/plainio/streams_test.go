package plainio

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/s3test"
	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/tiertest"
)

// A store's client may read on after the put has ended: the buffer stays while it does, and is not
// read when it is freed.
func TestABodyOutlivesItsPut(t *testing.T) {
	pool, err := buffer.NewPool(1, 4096)
	require.NoError(t, err)
	bufs, err := pool.Get(t.Context(), 1, nil)
	require.NoError(t, err)
	l := &lease{pool: pool, bufs: []leased{{Buffer: bufs[0]}}}
	l.bufs[0].lease = l
	l.users.Store(1)
	body := stamped{leased: l.bufs[0]}
	require.NoError(t, body.Fill(tiers.Object{}, 3, make([]byte, 10000)))
	require.True(t, l.take()) // as a read in flight does
	require.NoError(t, l.free())
	require.NoError(t, body.Fill(tiers.Object{}, 0, make([]byte, 10)))
	require.NoError(t, l.free())
	_, err = pool.Get(t.Context(), 1, nil)
	require.ErrorIs(t, err, tiers.ErrClosed)
	assert.ErrorIs(t, body.Fill(tiers.Object{}, 0, make([]byte, 10)), tiers.ErrClosed)
}

// In whatever pieces an object is read, and however often, its bytes are the same, and each block
// begins with a number of its own.
func TestStampedBytesDoNotDependOnHowTheyAreRead(t *testing.T) {
	buf := make([]byte, 3*stampedBlock)
	for i := range buf {
		buf[i] = byte(i * 7)
	}
	l := &lease{}
	l.users.Store(1)
	const size, first = 10*stampedBlock + 100, 1 << 40
	all := stamped{leased{Buffer: tiers.Buffer{B: buf}, lease: l}, first}
	of := func(off, n int64) []byte {
		p := make([]byte, n)
		require.NoError(t, all.Fill(tiers.Object{}, off, p))
		return p
	}
	whole := of(0, size)
	for block := range uint64(size/stampedBlock + 1) {
		at := whole[block*stampedBlock:]
		assert.Equal(t, first+block, binary.LittleEndian.Uint64(at))
		assert.Equal(t, buf[block%3*stampedBlock+8:block%3*stampedBlock+100], at[8:100])
	}
	draw := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		off := draw.Int64N(size)
		n := draw.Int64N(size-off) + 1
		require.Equal(t, whole[off:off+n], of(off, n), "%d bytes from %d on", n, off)
	}
}

// onStore runs a routine on a bucket of the test store, whose answers take 10 ms, in virtual time.
// Rules come before that one.
func onStore(t *testing.T, workers int, window time.Duration, r Routine, rules ...s3test.Rule) (*result.Result,
	*s3test.Server) {
	t.Helper()
	d := s3test.Start(t, s3test.Config{Buckets: []string{"bucket"}, InMemory: true,
		Rules: append(rules, s3test.Rule{Fault: s3test.Fault{Kind: s3test.Delay,
			HeaderDelay: 10 * time.Millisecond}})}, 2)
	wall := tiertest.Wall()
	cfg := plainRun{kvbench.Config{Clock: wall, Unloaded: 300 * time.Millisecond, Storage: kvbench.StorageConfig{
		StorageBytes: 8 << 20,
		Use:          buffer.Use{Chunk: 64 << 10, Depth: 1, Workers: workers},
		Bucket: &kvbench.Bucket{
			Config: objecttier.Config{
				Store: store.Config{Bucket: "bucket", Region: "us-east-1", Payload: store.Unsigned,
					URLs: d.URLs(), Balance: store.RoundRobin,
					Credentials: s3test.Credentials("key"),
					Retries:     3, Timeout: 30 * time.Second, ConnectTimeout: 5 * time.Second,
					Connections: 64, Dial: d.DialContext},
				Prefix: "runs", Names: objecttier.Names{Format: objecttier.Own},
				MultipartAbove: 64 << 20, PartSize: 32 << 20, RangeSize: 32 << 20}},
	}}, Config{Workers: workers}}.lasting(window)
	res, err := runPlain(context.Background(), cfg, r)
	require.NoError(t, err)
	assert.Equal(t, "s3", res.IO.Mode)
	assert.Equal(t, "s3://bucket/runs/rank_0", res.IO.CacheDir)
	assert.Contains(t, res.DeviceCounters.Reason, "object store")
	assert.Empty(t, d.Keys("bucket", ""), "nothing is left behind")
	assert.Empty(t, d.Uploads("bucket"))
	return res, d
}

// TestUnloadedLatencyOfSlowStores: one request of these stores takes longer than the 150 ms that a direction is
// measured for. At least eight whole requests are measured. A request that the store refused is no measure: its
// time contains the pause before the next attempt.
func TestUnloadedLatencyOfSlowStores(t *testing.T) {
	const objects = "/[0-9a-f]{2}/"
	delay := func(d time.Duration) s3test.Fault { return s3test.Fault{Kind: s3test.Delay, HeaderDelay: d} }
	rate := s3test.Fault{Kind: s3test.Delay, BytesPerSec: 1e6} // per connection: 262 ms for an object
	for _, c := range []struct {
		name    string
		op      s3test.Op
		fault   s3test.Fault
		took    time.Duration // one object
		refused bool          // the first request, which waits 5 s then
		missing string        // why there is no measurement
	}{
		{name: "rate, GET", op: s3test.Get, fault: rate, took: 262_144 * time.Microsecond},
		{name: "rate, GET, refused", op: s3test.Get, fault: rate, took: 262_144 * time.Microsecond, refused: true},
		{name: "rate, PUT", op: s3test.Put, fault: rate, took: 262_144 * time.Microsecond},
		{name: "rate, PUT, refused", op: s3test.Put, fault: rate, took: 262_144 * time.Microsecond, refused: true},
		{name: "first byte, GET", op: s3test.Get, fault: delay(200 * time.Millisecond), took: 200 * time.Millisecond},
		{name: "first byte, GET, refused", op: s3test.Get, fault: delay(200 * time.Millisecond),
			took: 200 * time.Millisecond, refused: true},
		{name: "first byte, PUT", op: s3test.Put, fault: delay(200 * time.Millisecond), took: 200 * time.Millisecond},
		{name: "first byte, PUT, refused", op: s3test.Put, fault: delay(200 * time.Millisecond),
			took: 200 * time.Millisecond, refused: true},
		{name: "too slow", op: s3test.Get, fault: delay(11 * time.Second),
			missing: "one read took longer than the 10s of the measurement"},
		{name: "refused until the end", op: s3test.Get, fault: delay(6 * time.Second), refused: true,
			missing: "the store refused the first attempt of each read that was measured (1)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &Ceiling{InFlight: 4, Footprint: 4 << 20}
				if c.op == s3test.Get {
					r.ReadShare = 1
				}
				rules := []s3test.Rule{{Op: c.op, Key: objects, Fault: c.fault}}
				if c.refused {
					rules = append([]s3test.Rule{{Op: c.op, Key: objects, Times: 1, Fault: s3test.Fault{
						Kind: s3test.Status, Code: "SlowDown", RetryAfter: "5"}}}, rules...)
				}
				res, _ := onStore(t, 1, 15*time.Second, r, rules...)
				u, v, requests := res.Harness.Unloaded, res.Harness.Verdict, int64(0)
				assert.Equal(t, c.refused, strings.Contains(fmt.Sprint(res.Warnings),
					"before the window requests waited 5 s in all"))
				measured := u.Write
				if c.op == s3test.Get {
					measured = u.Read
				}
				if assert.Equal(t, c.missing, u.Reason); c.missing != "" {
					assert.Equal(t, result.Undecided, v.Kind)
					assert.Contains(t, v.Reason, c.missing)
					assert.Empty(t, measured)
					return
				}
				for _, of := range measured {
					requests += of.Requests
				}
				assert.GreaterOrEqual(t, requests, int64(8))
				assert.EqualValues(t, c.took, measured[len(measured)-1].NS)
				// Each connection has the whole rate, so requests do not wait for each other.
				assert.Equal(t, result.LatencyLimited, v.Kind, v.Reason)
				assert.InDelta(t, 1, *v.Slowdown, 0.02)
			})
		})
	}
}

// Plain I/O on a store is whole objects: by Put and Get, with the given number in flight or the one
// that a sweep finds.
func TestPlainIOOnAStore(t *testing.T) {
	for name, c := range map[string]struct {
		r           *Ceiling
		read, wrote bool
	}{
		"reads":  {&Ceiling{ReadShare: 1, InFlight: 4}, true, false},
		"writes": {&Ceiling{InFlight: 4}, false, true},
		"mixed":  {&Ceiling{ReadShare: 0.5, StepTime: 50 * time.Millisecond}, true, true},
		"churn":  {&Ceiling{ReadShare: 0.5, InFlight: 2, Churn: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.r.Footprint = 4 << 20
				res, d := onStore(t, 1, time.Second/4, c.r)
				moved := res.Tiers[0]
				assert.Equal(t, c.read, moved.Read.Bytes > 0)
				assert.Equal(t, c.wrote, moved.Write.Bytes > 0)
				if c.r.InFlight == 0 {
					assert.NotEmpty(t, res.PlainIO.Sweep)
				}
				if c.r.Churn {
					assert.Positive(t, moved.Deleted.Entries)
				}
				for _, e := range d.Log() { // a request is an object, from its first byte on
					if e.Op == s3test.Get && e.Status == 206 && e.Key != "" {
						assert.Contains(t, e.Key, "check", "a part of an object: %+v", e)
					}
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		res, d := onStore(t, 1, time.Hour, &Removal{Ceiling: Ceiling{Footprint: 4 << 20}})
		assert.EqualValues(t, 64, res.Removal.Files)
		deleted := 0
		for _, e := range d.Log() {
			if e.Op == s3test.Delete {
				deleted++
			}
		}
		assert.GreaterOrEqual(t, deleted, 64)
	})
}
