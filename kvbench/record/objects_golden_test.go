package record

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/s3test"
	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/tiertest"
	"kvbench/tools/golden"
)

// goldenEntry is the n-th of the run below: mostly of one size, some of parts and ranges.
func goldenEntry(n int) tiers.Object {
	size := int64(600_000)
	if n%50 == 49 {
		size = 2_500_000
	}
	return tiers.Object{Key: fmt.Sprint("k", n), Gen: 1, Size: size}
}

// The result of a run on two endpoints of a double, one request after the other in virtual time, so
// that it is the same each time: answers take 2 ms and bodies 5 ms, a few are slow, some fail, and
// one endpoint is gone for a while. Tests of reports, pages and workbooks read it.
func TestGoldenResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := s3test.Rule{Fault: s3test.Fault{Kind: s3test.Delay, HeaderDelay: 2 * time.Millisecond,
			BodyDelay: 5 * time.Millisecond}}
		d := s3test.Start(t, s3test.Config{Buckets: []string{"kvb"},
			InMemory: true, Rules: []s3test.Rule{slow}, AccessKey: "AKIAIOSFODNN7EXAMPLE"}, 2)
		clk := tiertest.Wall()
		rec := New(1)
		r := NewObjects(rec, 2, clk.Now)
		cfg := objecttier.Config{
			Store: store.Config{Bucket: "kvb", URLs: d.URLs(), Balance: store.RoundRobin, Region: "us-east-1",
				Credentials: s3test.Credentials("AKIAIOSFODNN7EXAMPLE"),
				Payload:     store.Unsigned, Retries: 3, Timeout: 30 * time.Second,
				ConnectTimeout: 5 * time.Second, Connections: 16, Clock: clk, Observer: r,
				Random: func() float64 { return 0.5 }, Dial: d.DialContext},
			Prefix: "bench", Names: objecttier.Names{Format: objecttier.Own},
			MultipartAbove: 1 << 20, PartSize: 1 << 20, RangeSize: 1 << 20, Depth: 1, Nonce: "test",
			Pool: tiertest.Transfer(t, 256<<10, 1).Pool, Chunk: 256 << 10,
		}
		tier, err := objecttier.Open(t.Context(), cfg)
		require.NoError(t, err)
		goldenLoad(t, tier, d, rec, r, clk, slow)
		info := Info{Result: goldenInfo(tier)}
		r.Store = DescribeStore(cfg, "-s3-endpoint", "head")
		info.Times = r.Fill(&info.Result, tier)
		res := Build(info, rec)
		res.Histograms = nil // compressed bytes differ between versions of Go
		// A transport may dial for a request that another connection then takes.
		delete(res.Objects.Operations, "connect")
		delete(res.Objects.Outside, "connect")
		text, err := json.MarshalIndent(res, "", " ")
		require.NoError(t, err)
		golden.Check(t, "../../../tools/golden/testdata/objects.json", string(text)+"\n")
		require.NoError(t, tier.Clear(t.Context(), func(int64) {}))
		require.NoError(t, tier.Close())
	})
}

// goldenLoad fills the tier, opens the window, looks up, reads, writes and removes.
func goldenLoad(t *testing.T, tier *objecttier.Tier, d *s3test.Server, rec *Recorder,
	r *Objects, clk clock.Clock, slow s3test.Rule) {
	put := func(o tiers.Object) {
		c := tiers.Call{Observe: func(c tiers.Chunk) {
			rec.Chunk(0, tiers.Storage, tiers.Prefill, c)
		}}
		require.NoError(t, tier.Put(t.Context(), &c, []tiers.Object{o}, zeros{}))
		rec.Operation(OpSample{At: clk.Now(), Level: tiers.Storage, Op: tiers.Write,
			Phase: tiers.Prefill, Bytes: o.Size, Timing: c.Timing})
	}
	get := func(o tiers.Object) {
		c := tiers.Call{Observe: func(c tiers.Chunk) {
			rec.Chunk(0, tiers.Storage, tiers.Decode, c)
		}}
		require.NoError(t, tier.Get(t.Context(), &c, []tiers.Object{o}, zeros{}))
		rec.Operation(OpSample{At: clk.Now(), Level: tiers.Storage, Op: tiers.Read,
			Phase: tiers.Decode, Bytes: o.Size, First: true, Timing: c.Timing})
	}
	for n := range 20 {
		put(goldenEntry(n))
	}
	fault := func(nth int, op s3test.Op, f s3test.Fault) s3test.Rule {
		return s3test.Rule{Op: op, Nth: nth, Fault: f}
	}
	require.NoError(t, d.SetRules(
		fault(30, s3test.Get, s3test.Fault{Kind: s3test.Status, Status: 503, Code: "SlowDown"}),
		fault(60, s3test.Get, s3test.Fault{Kind: s3test.Cut, At: 300_000}),
		fault(90, s3test.Get, s3test.Fault{Kind: s3test.Delay,
			HeaderDelay: 80 * time.Millisecond}),
		fault(100, s3test.Put, s3test.Fault{Kind: s3test.Status, Status: 500}), slow))
	rec.Open(clk.Now(), clk.Now()+time.Minute)
	r.OpenWindow(tier)
	for n := 20; n < 260; n++ {
		if n == 200 {
			d.Endpoints()[1].Kill()
			synctest.Wait() // the client's connections are closed
		}
		if n == 240 {
			require.NoError(t, d.Endpoints()[1].Return())
		}
		o := goldenEntry(n)
		_, err := tier.Lookup(t.Context(), o) // it is not there yet
		require.NoError(t, err)
		put(o)
		_, err = tier.Lookup(t.Context(), o)
		require.NoError(t, err)
		get(o)
		if n%10 == 0 {
			require.NoError(t, tier.Remove(t.Context(), goldenEntry(n-20)))
			rec.Delete(clk.Now(), 0, tiers.Storage, goldenEntry(n-20).Size, 2*time.Millisecond)
		}
	}
	rec.SetEnd(clk.Now())
	rec.Close()
	r.CloseWindow(tier)
}

// goldenInfo is what an engine knows of such a run.
func goldenInfo(tier *objecttier.Tier) result.Result {
	return result.Result{
		Benchmark: "BlockTrace", Name: "BlockTrace", Division: result.DivisionOpen, Ranks: 1,
		Count: 1, CompletionUnit: result.UnitOperation, Status: result.StatusComplete,
		EndedBy: result.EndedByDeadline, StartTime: "2026-03-04T05:06:07.000008Z",
		NominalWindowNS: new(int64(time.Minute)),
		Workload:        result.Workload{Workers: 1},
		IO: result.IO{CacheDir: tier.URL(), Mode: result.IOObjects,
			WriteDevice: result.WriteDeviceTransfer, ChunkBytes: 256 << 10, Depth: 1},
		Tiers: []result.Tier{{Level: "storage", Description: tier.Traits().Description,
			CapacityBytes: new(int64(1 << 30))}},
		DeviceCounters: result.DeviceCounters{Reason: "the storage tier is an object store: no block " +
			"device of this machine is behind it"},
		Parameters: []result.Parameter{
			{Name: "cache-dir", Value: "s3://kvb/bench", Origin: "flag"},
			{Name: "s3-lookup", Value: "head", Origin: "flag"}},
	}
}

// zeros is a source of zeros, and a sink.
type zeros struct{}

func (zeros) Fill(_ tiers.Object, _ int64, p []byte) error { clear(p); return nil }

func (zeros) Take(tiers.Object, int64, []byte) error { return nil }
