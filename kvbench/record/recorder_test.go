package record

import (
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
)

func TestWindowGate(t *testing.T) {
	r := New(2)
	feed := func(at time.Duration) {
		chunk(r, at, 0, tiers.Storage, tiers.Write, tiers.Prefill, 10)
		r.Operation(OpSample{At: at, Level: tiers.Storage, Op: tiers.Write, Bytes: 10})
		r.Request(RequestSample{At: at, GenerateTokens: 1})
		r.Lookup(at, 1, workloads.ForDecodeRead, Hit)
		r.Evict(at, 1, tiers.Storage, 1)
		r.Delete(at, 1, tiers.Storage, 1, 1)
	}
	feed(5) // before Open nothing counts
	assert.Zero(t, r.Counters())
	r.Open(10, 20)
	for _, at := range []time.Duration{9, 10, 15, 20, 21} {
		feed(at)
	}
	c := r.Counters()
	assert.EqualValues(t, 30, c.Bytes[tiers.Storage][tiers.Write], "both ends belong to the window")
	assert.EqualValues(t, 3, c.Requests)
	m := newBuilder(&Info{}, r)
	assert.EqualValues(t, 3, m.n.Tiers[tiers.Storage].Write.Operations)
	assert.EqualValues(t, 3, m.n.Lookups[workloads.ForDecodeRead].Hits)
	assert.EqualValues(t, 3, m.n.Tiers[tiers.Storage].Evicted.Entries)
	r.SetEnd(17)
	r.SetEnd(19) // never moves back
	feed(18)
	assert.EqualValues(t, 3, r.Counters().Requests)
	start, end := r.Window()
	assert.Equal(t, []time.Duration{10, 17}, []time.Duration{start, end})
}

func TestCancelledOperationsAreCountedApart(t *testing.T) {
	r := openRecorder(1, time.Second)
	chunk(r, time.Second, 0, tiers.Storage, tiers.Write, tiers.Prefill, 2<<20)
	r.Operation(OpSample{At: 2 * time.Second, Level: tiers.Storage, Op: tiers.Write,
		Bytes: 100 << 20, Timing: tiers.Timing{Device: 3}, Partial: true})
	m := newBuilder(&Info{}, r)
	assert.EqualValues(t, 1, m.n.Tiers[tiers.Storage].Write.Cancelled)
	assert.Zero(t, m.n.Tiers[tiers.Storage].Write.Operations)
	assert.Len(t, m.hists, 1, "of the chunk")
	assert.EqualValues(t, 2<<20, r.Counters().Bytes[tiers.Storage][tiers.Write], "its chunks count")
}

// A request to a store moves its bytes in pieces, and is one request. The bytes of an upload that
// failed are subtracted.
func TestPiecesAreBytesAndNoRequests(t *testing.T) {
	r := openRecorder(1, time.Second)
	chunk := func(bytes int64, piece bool) {
		now := time.Millisecond
		r.Chunk(0, tiers.Storage, tiers.Decode, tiers.Chunk{Op: tiers.Read, Bytes: bytes,
			Piece: piece, Begun: now, Ended: now, Submitted: now, Completed: now})
	}
	chunk(10, true)
	chunk(10, true)
	chunk(5, false)
	chunk(-10, true)
	read := newBuilder(&Info{}, r).n.Tiers[tiers.Storage].Read
	assert.EqualValues(t, 15, read.Bytes)
	assert.EqualValues(t, 1, read.Requests)
}

func TestLimitRequestsIsExact(t *testing.T) {
	r := New(4)
	full := 0
	r.LimitRequests(500, func() { full++ })
	r.Open(0, workloads.Never)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 100 {
				r.Request(RequestSample{At: time.Duration(i), Shard: w})
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 1, full)
	assert.EqualValues(t, 500, r.Counters().Requests)
	_, end := r.Window()
	assert.Less(t, end, time.Duration(100))
}

// A request that is all of its operation counts in both, or in neither.
func TestBlocksAreRequestsAndOperations(t *testing.T) {
	r := New(2)
	full := 0
	r.LimitRequests(3, func() { full++ })
	block := func(begun, done time.Duration) bool {
		return r.Block(1, tiers.Chunk{Op: tiers.Read, Bytes: 100, Begun: begun, Ended: done,
			Submitted: begun, Completed: done})
	}
	assert.False(t, block(1, 2), "before the window")
	r.Open(10, 100)
	assert.False(t, block(1, 9))
	assert.True(t, block(5, 15))
	assert.True(t, block(15, 25))
	assert.False(t, block(95, 105), "behind its end")
	assert.True(t, block(30, 40))
	assert.Equal(t, 1, full)
	assert.False(t, block(30, 40), "one too many")
	b := Build(Info{Result: result.Result{CompletionUnit: result.UnitOperation,
		PlainIO: &result.PlainIO{BlockBytes: 100}, Tiers: []result.Tier{{Level: "storage"}}}}, r)
	read := b.Tiers[0].Read
	assert.EqualValues(t, 3, b.Completions())
	assert.EqualValues(t, 3, read.Requests)
	assert.EqualValues(t, 300, read.Bytes)
	assert.EqualValues(t, 300, read.EntryBytes)
	assert.EqualValues(t, 5+10+5+10+10, read.InFlightNS, "both edges, and the one too many")
	assert.EqualValues(t, read.InFlightNS, b.Harness.Busy.StorageNS)
	assert.EqualValues(t, 3, b.Latency.Levels["storage"].Read.Request.Count)
	assert.InEpsilon(t, 3/30e-9, *b.PlainIO.RequestsPerSecond, 1e-9)
}

// Workers that are busy when the last request that counts completes were busy until then.
func TestOperationsPastTheLimitAreWorkOfTheWindow(t *testing.T) {
	r := New(1)
	r.LimitRequests(1, func() {})
	r.Open(0, workloads.Never)
	for range 4 {
		r.Request(RequestSample{At: time.Second}, OpSample{At: time.Second, Level: tiers.Storage,
			Op: tiers.Write, Timing: tiers.Timing{Device: time.Second}})
	}
	b := Build(Info{}, r)
	assert.EqualValues(t, 1, b.Completions())
	assert.EqualValues(t, 4*time.Second, b.Harness.Busy.StorageNS)
}

func TestRecorderFromManyGoroutines(t *testing.T) {
	r := openRecorder(3, time.Hour)
	var wg sync.WaitGroup
	const workers, each = 8, 40
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				at := time.Duration(i) * time.Second
				fixtureRequest(r, w, at)
				r.Gauge(at, Gauge{Queued: 1})
				r.Failure(at, result.ErrorSample{Errno: "EIO"})
				if i%10 == 0 {
					r.Counters()
				}
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, workers*each, r.Counters().Requests)
	assert.EqualValues(t, workers*each, r.Counters().Failures)
}

// A drive that dies fails operations while the result is built: its counts agree with its table.
func TestResultWhileOperationsFail(t *testing.T) {
	for range 30 {
		r := openRecorder(1, time.Hour)
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 100 {
				r.Failure(2*time.Hour, result.ErrorSample{Errno: "EIO"})
			}
		})
		res := Build(Info{}, r)
		counted := int64(0)
		for _, e := range res.Errors {
			counted += e.Count
		}
		require.Equal(t, counted, res.Requests.FailedOperations)
		wg.Wait()
	}
}

func TestFailureTableIsBounded(t *testing.T) {
	f := failures{by: make(map[result.ErrorCount]int64)}
	for i := range 1000 {
		f.add(result.ErrorSample{Errno: string(rune('A' + i)), Fatal: i == 999}, new(ends))
	}
	f.add(result.ErrorSample{Errno: "A"}, new(ends))
	assert.LessOrEqual(t, len(f.by), maxFailureKinds+1)
	assert.Len(t, f.first, maxFailureSample+1)
	assert.EqualValues(t, 1001, f.total.Load())
	assert.True(t, f.first[maxFailureSample].Fatal, "kept although it came after the first ten")
}

func TestSizeClasses(t *testing.T) {
	for bytes, want := range map[int64]int{0: 0, 1<<20 - 1: 0, 1 << 20: 1, 4<<20 - 1: 1, 4 << 20: 2,
		16 << 20: 3, 64<<20 - 1: 3, 1 << 30: 6, 4 << 30: 7, 1 << 50: 7} {
		assert.Equal(t, want, sizeClass(bytes), bytes)
		lo, hi := result.SizeClassBounds(want)
		assert.True(t, bytes >= lo && (hi == nil || bytes < *hi), bytes)
	}
}

func TestHistogramNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range histNames {
		assert.False(t, seen[name] || name == "", name)
		seen[name] = true
	}
}

// The mean number in flight is exact at both edges of the window: what was in flight at one counts
// for the part that lies inside, though its bytes and its latency count as a whole or not at all.
func TestRequestsInFlight(t *testing.T) {
	r := New(2)
	r.Open(10*time.Second, 20*time.Second)
	give := func(begun, ended time.Duration, flush bool) {
		c := tiers.Chunk{Op: tiers.Read, Flush: flush, Bytes: 1 << 20, Begun: begun, Ended: ended,
			Submitted: begun - time.Millisecond, Completed: ended + time.Millisecond}
		r.Chunk(1, tiers.Storage, tiers.Decode, c)
	}
	give(8*time.Second, 9*time.Second, false)   // before
	give(8*time.Second, 12*time.Second, false)  // 2 s of it
	give(12*time.Second, 15*time.Second, false) // 3 s
	give(12*time.Second, 13*time.Second, true)  // 1 s, no request
	give(18*time.Second, 25*time.Second, false) // 2 s, did not end in the window
	r.Close()
	give(19*time.Second, 21*time.Second, false) // 1 s, reported while the load drains
	give(20*time.Second, 21*time.Second, false) // after
	res := Build(infoOf(result.Result{}), r)
	got := res.Tiers[1].Read
	assert.EqualValues(t, 9*time.Second, got.InFlightNS)
	assert.InDelta(t, 0.9, *got.MeanInFlight, 1e-9)
	assert.EqualValues(t, 2, got.Requests)
	assert.EqualValues(t, 3<<20, got.Bytes)
	latency := res.Latency.Levels["storage"].Read.Request
	assert.EqualValues(t, 2, latency.Count)
	assert.InEpsilon(t, int64(4*time.Second), *latency.Max, 0.001)
	assert.Nil(t, latency.P50, "of two")
}

// What a request waited for the threads of an engine that is imitated is apart from what this
// process had it for.
func TestWaitingForAnEngine(t *testing.T) {
	const s = time.Second
	r := New(1)
	r.Open(0, 20*s)
	r.Chunk(0, tiers.Storage, tiers.Decode, tiers.Chunk{Op: tiers.Read, Bytes: 1 << 20, Held: 5 * s,
		Submitted: 6 * s, Begun: 6*s + s/2, Ended: 10*s + s/2, Completed: 11 * s})
	r.Request(RequestSample{At: 11 * s}, OpSample{At: 11 * s, Level: tiers.Storage, Op: tiers.Read,
		Phase: tiers.Decode, Bytes: 1 << 20, Timing: tiers.Timing{Device: 10 * s}})
	r.Close()
	busy := Build(infoOf(result.Result{}), r).Harness.Busy
	assert.EqualValues(t, 10*s, busy.StorageNS)
	assert.EqualValues(t, 5*s, busy.EngineNS)
	assert.EqualValues(t, s, busy.HandoverNS)
}

func BenchmarkRecorderChunk(b *testing.B) {
	const workers = 16
	r := openRecorder(2, time.Hour)
	for i := range b.N {
		at := time.Duration(i)
		r.Chunk(i%workers, tiers.Storage, tiers.Decode, tiers.Chunk{Op: tiers.Read, Bytes: 2 << 20,
			Begun: at - 400, Ended: at, Submitted: at - 500, Completed: at})
	}
}

// The cost of counting does not grow with the number of goroutines: with a shard for each processor one
// of 64 goroutines pays what a single one does, with one shard it waits for the others. A block is an
// I/O request of plain I/O, an operation is one of the cache.
func BenchmarkRecorderContention(b *testing.B) {
	samples := map[string]func(r *Recorder, worker int, at time.Duration){
		"block": func(r *Recorder, worker int, at time.Duration) {
			r.Block(worker, tiers.Chunk{Op: tiers.Read, Bytes: 4096, Begun: at - 400,
				Ended: at, Submitted: at - 500, Completed: at})
		},
		"operation": func(r *Recorder, worker int, at time.Duration) {
			r.Operation(OpSample{Shard: worker, At: at, Level: tiers.Storage, Op: tiers.Read,
				Bytes: 4096, Timing: tiers.Timing{Device: 400}})
		},
	}
	for _, shards := range []int{1, runtime.GOMAXPROCS(0)} {
		for _, name := range slices.Sorted(maps.Keys(samples)) {
			b.Run(fmt.Sprintf("shards=%d/%s", shards, name), func(b *testing.B) {
				tiertest.Crowd(b, func(*testing.B) func(*testing.PB) {
					r := openRecorder(shards, time.Hour)
					var workers atomic.Int64
					return func(p *testing.PB) {
						worker := int(workers.Add(1))
						for at := time.Duration(500); p.Next(); at++ {
							samples[name](r, worker, at)
						}
					}
				})
			})
		}
	}
}

// A section's distributions are found by their JSON keys: each has to be the end of a histogram's
// name, or it would be empty for ever.
func TestEveryDistributionHasItsHistogram(t *testing.T) {
	b := &builder{info: &Info{}, hists: result.Histograms{},
		levels: []tiers.Kind{tiers.GPU, tiers.CPU, tiers.Storage}}
	b.r = &b.info.Result
	for _, l := range b.levels {
		b.r.Tiers = append(b.r.Tiers, result.Tier{Level: l.String()})
	}
	for _, name := range histNames {
		b.hists[name] = result.NewHistogram(result.HistogramUnit(name))
		b.hists[name].Record(1)
	}
	b.r.Distribute(b.hists)
	var look func(path string, v reflect.Value)
	look = func(path string, v reflect.Value) {
		switch d, is := v.Interface().(result.Distribution); {
		case is:
			assert.Positive(t, d.Count, path)
		case v.Kind() == reflect.Map:
			assert.NotZero(t, v.Len(), path)
			for k, x := range v.Seq2() {
				look(path+"."+k.String(), x)
			}
		case v.Kind() == reflect.Struct:
			for f, x := range v.Fields() {
				look(path+"."+f.Name, x)
			}
		}
	}
	look("Latency", reflect.ValueOf(b.r.Latency))
}

// TestPartsAddUp: what is counted for each of several directories is what the storage tier has in
// all, to the byte, with both edges of the window; what another tier does is none of it.
func TestPartsAddUp(t *testing.T) {
	r := New(2)
	r.Parts(2)
	r.Open(10*time.Second, 20*time.Second)
	give := func(shard, part int, l tiers.Kind, begun, ended time.Duration, flush bool) {
		r.Chunk(shard, l, tiers.Decode, tiers.Chunk{Op: tiers.Write, Flush: flush, Bytes: 100,
			Begun: begun, Ended: ended, Submitted: begun, Completed: ended, Part: part})
	}
	give(0, 0, tiers.Storage, 8*time.Second, 12*time.Second, false)
	give(1, 1, tiers.Storage, 12*time.Second, 18*time.Second, false)
	give(1, 1, tiers.Storage, 18*time.Second, 19*time.Second, true)
	give(0, 1, tiers.Storage, 19*time.Second, 21*time.Second, false) // counts in flight
	give(0, 0, tiers.CPU, 12*time.Second, 13*time.Second, false)
	assert.True(t, r.Block(0, tiers.Chunk{Op: tiers.Read, Bytes: 7, Begun: 11 * time.Second,
		Ended: 12 * time.Second, Submitted: 11 * time.Second, Completed: 12 * time.Second}))
	r.Close()
	given := result.Result{IO: result.IO{Roots: make([]result.Root, 2)}}
	res := Build(infoOf(given), r)
	a, b := res.IO.Roots[0], res.IO.Roots[1]
	all := res.Tiers[1]
	assert.EqualValues(t, []int64{100, 200, 7, 0},
		[]int64{a.Write.Bytes, b.Write.Bytes, a.Read.Bytes, b.Read.Bytes})
	assert.Equal(t, all.Write.Bytes, a.Write.Bytes+b.Write.Bytes)
	assert.Equal(t, all.Write.Requests, a.Write.Requests+b.Write.Requests)
	assert.Equal(t, all.Write.InFlightNS, a.Write.InFlightNS+b.Write.InFlightNS)
	assert.Equal(t, all.Read.InFlightNS, a.Read.InFlightNS)
	assert.InDelta(t, 4e9, *a.Write.MeanRequestNS, 0)
	assert.InDelta(t, 6e9, *b.Write.MeanRequestNS, 0, "a flush is no request")
	assert.InDelta(t, 0.8, *b.Write.MeanInFlight, 1e-9)
	assert.InDelta(t, 20, *b.Write.BytesPerSecond, 1e-9)
	assert.Zero(t, given.IO.Roots[0].Write.Bytes, "the engine's own list stays as it was")
}
