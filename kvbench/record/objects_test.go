package record

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/s3test"
	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
)

// setting is a tier of a double whose requests are counted.
type setting struct {
	*objecttier.Tier
	rec    *Recorder // of the window
	counts *Objects
	double *s3test.Server
	clock  func() time.Duration
	res    result.Result
	hists  result.Histograms
}

// inBubble is one in memory and virtual time.
func inBubble(t *testing.T, endpoints int, change func(*objecttier.Config)) *setting {
	d := s3test.Start(t, s3test.Config{Buckets: []string{"bucket"}, InMemory: true}, endpoints)
	return open(t, d, func(c *objecttier.Config) {
		c.Store.Dial = d.DialContext
		if change != nil {
			change(c)
		}
	})
}

// open makes a tier of a double. Its end removes everything.
func open(t testing.TB, d *s3test.Server, change func(*objecttier.Config)) *setting {
	clk := tiertest.Wall()
	s := &setting{double: d, clock: clk.Now, rec: New(1)}
	s.counts = NewObjects(s.rec, len(d.URLs()), clk.Now)
	c := objecttier.Config{
		Store: store.Config{Bucket: "bucket", URLs: d.URLs(), Balance: store.RoundRobin, Region: "us-east-1",
			Credentials: s3test.Credentials("key"),
			Payload:     store.Unsigned, Retries: 10, Timeout: 30 * time.Second,
			ConnectTimeout: 5 * time.Second, Connections: 64, Clock: clk, Observer: s.counts,
			Random: func() float64 { return 1 }},
		Prefix: "a/b", Names: objecttier.Names{Format: objecttier.Own}, MultipartAbove: 96 << 10,
		PartSize: 40 << 10, RangeSize: 36 << 10, Depth: 3, Nonce: "test",
		Pool: tiertest.Transfer(t, 8192, 3).Pool, Chunk: 8192,
	}
	change(&c)
	var err error
	s.Tier, err = objecttier.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Clear(context.Background(), func(int64) {}))
		assert.NoError(t, s.Close())
	})
	return s
}

// openWindow and closeWindow do what a trial does.
func (s *setting) openWindow() {
	s.counts.OpenWindow(s.Tier)
	s.rec.Open(s.clock(), workloads.Never)
}

func (s *setting) closeWindow() {
	s.rec.SetEnd(s.clock())
	s.counts.CloseWindow(s.Tier)
	s.rec.Close()
	s.hists = s.counts.Fill(&s.res, s.Tier)
	s.res.Distribute(s.hists)
}

func (s *setting) put(ctx context.Context, o tiers.Object) error {
	return s.Put(ctx, &tiers.Call{}, []tiers.Object{o}, tiertest.Content.Source())
}

// failing is a sink that fails.
type failing struct{}

func (failing) Take(tiers.Object, int64, []byte) error { return errSome }

func (s *setting) get(ctx context.Context, o tiers.Object) error {
	return s.Get(ctx, &tiers.Call{}, []tiers.Object{o}, tiertest.Verified)
}

// logged is what an access log shows of a kind of request.
type logged struct{ requests, bytes int64 }

// log adds up the entries from one on: by the names of a result, by endpoint, and by status. It
// leaves out the check of the store, which the recorder does not see.
func (s *setting) log(from int) (kinds map[string]logged, endpoints []logged,
	status map[string]int64) {
	kinds, status = map[string]logged{}, map[string]int64{}
	endpoints = make([]logged, len(s.Endpoints()))
	for _, e := range s.double.Log()[from:] {
		if strings.Contains(e.Key, ".kvbench-check-") {
			continue
		}
		name, moved := string(e.Op), int64(0)
		switch e.Op {
		case s3test.Get:
			if moved = e.BytesOut; e.Status/100 != 2 {
				moved = 0 // an error's text is no object
			}
		case s3test.Put, s3test.PutPart:
			moved = e.BytesIn
		case s3test.ListUploads:
			name = "list"
		case s3test.Bucket:
			name = "bucket"
		}
		k := kinds[name]
		kinds[name] = logged{k.requests + 1, k.bytes + moved}
		at := &endpoints[e.Endpoint]
		at.requests++
		at.bytes += moved
		if e.Status > 0 && e.Fault != s3test.Lost {
			status[strconv.Itoa(e.Status)]++
		}
	}
	return kinds, endpoints, status
}

// counted is the same from a result. GETs of ranges are GETs to a store.
func counted(operations map[string]result.ObjectCounts) map[string]logged {
	all := map[string]logged{}
	for name, n := range operations {
		if name == "connect" {
			continue
		}
		if name == "get_range" {
			name = "get"
		}
		k := all[name]
		if sum := (logged{k.requests + n.Attempts - n.Unsent, k.bytes + n.Bytes}); sum != k {
			all[name] = sum
		}
	}
	return all
}

func ofWindow(o *result.Objects) map[string]result.ObjectCounts {
	all := map[string]result.ObjectCounts{}
	for name, n := range o.Operations {
		all[name] = n.ObjectCounts
	}
	return all
}

// load writes and reads objects of all sizes concurrently.
func (s *setting) load(t *testing.T, name string, n int) {
	rng := rand.New(rand.NewPCG(1, 2))
	var all sync.WaitGroup
	for i := range n {
		o := tiers.Object{Key: fmt.Sprint(name, i), Gen: 1, Size: rng.Int64N(200_000) + 1}
		all.Go(func() {
			if assert.NoError(t, s.put(t.Context(), o)) {
				assert.NoError(t, s.get(t.Context(), o))
				_, err := s.Lookup(t.Context(), o)
				assert.NoError(t, err)
				assert.NoError(t, s.Remove(t.Context(), o))
			}
		})
	}
	all.Wait()
	synctest.Wait() // the server completes its log after the response
}

// Each request is in the store's log, and each byte: of the window in the window, and what lies
// around it apart. One request in twenty meets a fault.
func TestCountsAreThoseOfTheAccessLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inBubble(t, 3, nil)
		var rules []s3test.Rule
		for _, f := range []s3test.Fault{{Kind: s3test.Status, Status: 500},
			{Kind: s3test.Status, Status: 503, Code: "SlowDown"}, {Kind: s3test.Lost},
			{Kind: s3test.Delay, HeaderDelay: time.Second}} {
			rules = append(rules, s3test.Rule{Key: "/[0-9a-f]{2}/", Every: 25, Fault: f})
		}
		for _, f := range []s3test.Fault{{Kind: s3test.Cut, At: 20_000},
			{Kind: s3test.Hang, At: 30_000}} {
			rules = append(rules, s3test.Rule{Op: s3test.Get, Key: "/[0-9a-f]{2}/", Every: 12,
				Fault: f})
		}
		require.NoError(t, s.double.SetRules(rules...))
		s.load(t, "before", 10)
		begun := len(s.double.Log())
		s.openWindow()
		s.load(t, "in it", 50)
		s.closeWindow()
		o := s.res.Objects
		kinds, endpoints, status := s.log(begun)
		assert.Equal(t, kinds, counted(ofWindow(o)))
		assert.Equal(t, status, o.Status)
		for i, e := range s.res.Endpoints {
			assert.Equal(t, endpoints[i], logged{e.Attempts, e.BytesRead + e.BytesWritten}, e.URL)
			assert.Equal(t, s.double.URLs()[i], e.URL)
			assert.Equal(t, e.Attempts, e.Requests+e.Retries)
			assert.Positive(t, e.MaxInFlight)
		}
		faults := int64(0)
		for _, n := range o.Retries {
			faults += n
		}
		assert.Greater(t, faults, int64(10))
		assert.Positive(t, o.BackoffNS)
		assert.Equal(t, "s3test", o.Server)
		for _, op := range o.Operations {
			assert.Zero(t, op.Failed)
			assert.Equal(t, op.Requests, op.Latency.Count)
		}
		assert.Equal(t, o.Operations["get"].Requests+o.Operations["get_range"].Requests,
			o.FirstByte.Count)
		// All that the store has seen is in one of both.
		s.load(t, "behind", 10)
		s.counts.Fill(&s.res, s.Tier)
		both := ofWindow(s.res.Objects)
		for name, n := range s.res.Objects.Outside {
			sum := both[name]
			sum.Requests, sum.Attempts = sum.Requests+n.Requests, sum.Attempts+n.Attempts
			sum.Bytes += n.Bytes
			both[name] = sum
		}
		kinds, _, _ = s.log(0)
		assert.Equal(t, kinds, counted(both))
		require.NoError(t, s.double.SetRules())
	})
}

// The first byte of a GET that had to go on came with its first attempt.
func TestFirstByteOfAGetThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inBubble(t, 1, nil)
		o := tiers.Object{Key: "k", Gen: 1, Size: 30_000}
		require.NoError(t, s.put(t.Context(), o))
		delay := time.Millisecond
		require.NoError(t, s.double.SetRules(
			s3test.Rule{Op: s3test.Get, Nth: 1, Fault: s3test.Fault{Kind: s3test.Status}},
			s3test.Rule{Op: s3test.Get, Nth: 1, Fault: s3test.Fault{Kind: s3test.Cut,
				At: 10_000, HeaderDelay: delay}}))
		s.openWindow()
		require.NoError(t, s.get(t.Context(), o))
		s.closeWindow()
		// The first byte is apart from the whole: a store that finds its object late, and one that
		// sends it slowly, are different stores. A pause of 0.2 s before the second attempt, which brings bytes, one of 0.4 s behind it.
		assert.EqualValues(t, 201*time.Millisecond, *s.res.Objects.FirstByte.Max)
		assert.EqualValues(t, 601*time.Millisecond, *s.res.Objects.Operations["get"].Latency.Max)
		assert.EqualValues(t, 600*time.Millisecond, s.res.Objects.BackoffNS)
		assert.EqualValues(t, 3, s.res.Objects.Operations["get"].Attempts)
		require.NoError(t, s.double.SetRules())
	})
}

// What cannot be sent, what is not there, what its caller has cancelled.
func TestWhatDoesNotSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inBubble(t, 1, func(c *objecttier.Config) { c.Store.Retries = 2 })
		o := tiers.Object{Key: "k", Gen: 1, Size: 3000}
		require.NoError(t, s.put(t.Context(), o))
		s.openWindow()
		found, err := s.Lookup(t.Context(), tiers.Object{Key: "none", Gen: 1, Size: 1})
		require.NoError(t, err)
		assert.Zero(t, found)
		require.NoError(t, s.double.SetRules(s3test.Rule{Op: s3test.Get, Fault: s3test.Fault{
			Kind: s3test.Status, Status: 404, Code: "NoSuchKey"}}))
		require.Error(t, s.get(t.Context(), o))
		require.NoError(t, s.double.SetRules(s3test.Rule{Op: s3test.Get,
			Fault: s3test.Fault{Kind: s3test.Hang}}))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		require.ErrorIs(t, s.get(ctx, o), context.Canceled)
		require.NoError(t, s.double.SetRules())
		require.ErrorIs(t, s.Get(t.Context(), &tiers.Call{}, []tiers.Object{o}, failing{}), errSome)
		s.double.Endpoints()[0].Kill()
		require.Error(t, s.get(t.Context(), o))
		require.NoError(t, s.double.Endpoints()[0].Return())
		s.closeWindow()
		r := s.res.Objects
		get := r.Operations["get"]
		assert.Equal(t, result.ObjectCounts{Requests: 1, Attempts: 1},
			r.Operations["head"].ObjectCounts, "a no is an answer")
		assert.EqualValues(t, 1, r.Operations["head"].Latency.Count)
		assert.EqualValues(t, 4, get.Requests)
		assert.EqualValues(t, 2, get.Failed)
		assert.EqualValues(t, 2, get.Cancelled, "by a context, and by a sink")
		assert.Positive(t, get.Unsent)
		assert.Zero(t, get.Latency.Count)
		assert.EqualValues(t, 1, r.Lost)
		assert.Equal(t, get.Attempts+1, s.res.Endpoints[0].Attempts)
		assert.EqualValues(t, 4, s.res.Endpoints[0].Failed, "the lost one, and three of the last")
		assert.EqualValues(t, 2, r.Retries["refused"]+r.Retries["eof"]+r.Retries["reset"])
		assert.Positive(t, r.Operations["connect"].Failed)
		assert.EqualValues(t, 2, r.Status["404"])
	})
}

// On real sockets the kernel has seen the bytes, too.
func TestTheNetworkOfTheWindow(t *testing.T) {
	d := s3test.Start(t, s3test.Config{Buckets: []string{"bucket"}}, 2)
	s := open(t, d, func(*objecttier.Config) {})
	o := tiers.Object{Key: "k", Gen: 1, Size: 3 << 20}
	require.NoError(t, s.put(t.Context(), o))
	s.openWindow()
	require.NoError(t, s.get(t.Context(), o))
	s.closeWindow()
	assert.Positive(t, s.res.Objects.ProofNS)
	n := s.res.Network
	if n.ReceivedBytes == nil {
		t.Skip("this kernel does not report TCP_INFO")
	}
	n.Derive(o.Size)
	assert.InDelta(t, 1.01, *n.ReadRatio, 0.02, "headers, and nothing of what was before")
	assert.False(t, n.Short())
	n.Derive(2 * o.Size)
	assert.True(t, n.Short())
	n.Derive(0)
	assert.False(t, n.Short())
}

// A trial that fails before its window reports what it has counted.
func TestAWindowThatNeverOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inBubble(t, 1, nil)
		require.NoError(t, s.put(t.Context(), tiers.Object{Key: "k", Gen: 1, Size: 3000}))
		assert.Empty(t, s.counts.Fill(&s.res, s.Tier))
		assert.Empty(t, s.res.Objects.Operations)
		kinds, _, _ := s.log(0)
		assert.Equal(t, kinds, counted(s.res.Objects.Outside))
	})
}

var errSome = errors.New("some")

// The end of the window cuts off what is in flight, and nothing that begins behind it.
func TestTheWindowsEndCutsOffWhatBeganInIt(t *testing.T) {
	rec := New(1)
	rec.Open(time.Second, 10*time.Second)
	counts := NewObjects(rec, 1, func() time.Duration { return 11 * time.Second })
	for _, begun := range []time.Duration{500, 9_000, 10_500} {
		counts.Request(store.Request{Op: store.Get, Begun: begun * time.Millisecond,
			Ended: 11 * time.Second, Cancelled: true, Err: context.Canceled})
	}
	assert.Equal(t, result.ObjectCounts{Cancelled: 1},
		counts.total.Operations["get"].ObjectCounts)
}
