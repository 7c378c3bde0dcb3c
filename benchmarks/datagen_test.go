package benchmarks

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/params"
	"kvbench/tiers"
	"kvbench/tiers/content"
)

// BenchmarkDataGen compares the content of entries with other ways to make it: the rate on one core next
// to a memory copy taken in turn with it, the rate on all cores, the rate at which a consumer gets filled
// buffers, how far zstd level 1 shrinks the data, and the share of 4 KiB blocks that occur twice.
//
// It writes no result file, other than every other benchmark: it has no tier, no device, no workers
// and no load, so that of a Result nothing would be filled but the window, and a Result that says
// nothing of a storage would be one more case for each of its readers. What it measures is on its
// lines, which benchstat, gate and page read as any other.
func BenchmarkDataGen(b *testing.B) { run(b) }

// The data set is entries of 16 MiB, which is 128 tokens of llama3.1-8b, and is filled in chunks.
const (
	genChunk  = 1 << 20
	genEntry  = 16 // chunks
	genBlock  = 4096
	poolBytes = 256 << 20
)

// filler fills a chunk of the data set, by its number. It is for one goroutine at a time.
type filler func(chunk []byte, n int64)

// sources are the ways to make content. Each returns a function that returns the filler of a core.
var sources = []struct {
	name string
	open func(*content.Content) func() filler
}{
	// Any chunk at any time: the suite's.
	{"content", func(c *content.Content) func() filler {
		return func() filler {
			return func(p []byte, n int64) { c.Fill(p, entryOf(n), n%genEntry*genChunk) }
		}
	}},
	// The same cipher as one endless stream per core: what cannot be made again costs no new start.
	{"stream", func(c *content.Content) func() filler {
		var cores atomic.Int64
		return func() filler {
			s := c.Source()
			o, at := tiers.Object{Key: fmt.Sprint("core ", cores.Add(1)), Size: math.MaxInt64}, int64(0)
			return func(p []byte, _ int64) {
				_ = s.Fill(o, at, p) // generation does not fail
				at += int64(len(p))
			}
		}
	}},
	// What the Python benchmark did before March 2026 (KVCacheGenerator.generate): an entry is a part of
	// the pool, from an element that the hash of its key selects.
	{"pool", func(*content.Content) func() filler {
		pool := newPool()
		return func() filler {
			return func(p []byte, n int64) {
				sum := sha256.Sum256([]byte(entryOf(n).Key))
				first := binary.LittleEndian.Uint64(sum[:]) % (poolBytes/2 - genEntry*genChunk/2)
				copy(p, pool[2*int64(first)+n%genEntry*genChunk:])
			}
		}
	}},
	// The same for an entry larger than the pool, which is the pool from its beginning, again and again.
	{"pool-repeated", func(*content.Content) func() filler {
		pool := newPool()
		return func() filler {
			return func(p []byte, n int64) { copy(p, pool[n*genChunk%poolBytes:]) }
		}
	}},
}

func entryOf(n int64) tiers.Object {
	return tiers.Object{Key: fmt.Sprint("datagen/", n/genEntry), Gen: 1, Size: genEntry * genChunk}
}

// newPool returns float16 numbers, uniform in -1 to 1.
func newPool() []byte {
	pool := make([]byte, poolBytes)
	random := rand.New(rand.NewPCG(42, 0))
	for i := 0; i < len(pool); i += 2 {
		binary.LittleEndian.PutUint16(pool[i:], float16(2*random.Float32()-1))
	}
	return pool
}

// float16 rounds x, of at most 1, to IEEE 754 binary16. Numbers below its normal ones are 0.
func float16(x float32) uint16 {
	bits := math.Float32bits(x)
	sign, size := uint16(bits>>16&0x8000), bits&^(1<<31)
	const least = (127 - 14) << 23 // 2^-14
	if size < least {
		return sign
	}
	return sign | uint16((size-(least-1<<23)+0xfff+size>>13&1)>>13)
}

func TestFloat16(t *testing.T) {
	for x, want := range map[float32]uint16{1: 0x3c00, -1: 0xbc00, 0.5: 0x3800, 1.0 / 3: 0x3555,
		-6.1035156e-05: 0x8400, 1e-5: 0, 0.99999: 0x3c00} {
		assert.Equal(t, want, float16(x), x)
	}
}

func dataGenParts(*params.Values) (list []part) {
	for _, s := range sources {
		list = append(list, part{name: "source=" + s.name, bench: func(b *testing.B, v *params.Values) {
			g := &generation{b: b, window: v.Window, open: s.open(content.New(v.TrialNonce(), v.Rank))}
			dataSet := int64(10e9)
			g.window.Length /= 3
			if v.Division == params.Quick {
				dataSet = 1e9
			}
			g.oneCore()
			g.allCores()
			g.pipeline()
			g.quality(dataSet)
		}})
	}
	return list
}

// generation measures a source.
type generation struct {
	b      *testing.B
	window params.Window // of each rate
	open   func() filler
}

// more reports whether a rate is to be measured further.
func (g *generation) more(since time.Time, chunks int64) bool {
	return current.ctx.Err() == nil && (g.window.Length == 0 || time.Since(since) < g.window.Length) &&
		(g.window.Completions == 0 || chunks < g.window.Completions)
}

// report reports the rate of chunks.
func (g *generation) report(unit string, chunks int64, took time.Duration) {
	if current.ctx.Err() != nil {
		g.b.Fatal(context.Cause(current.ctx))
	}
	g.b.ReportMetric(float64(chunks*genChunk)/took.Seconds(), unit)
}

// genArena is more memory than any cache of one core holds, as the buffers of a run are: a copy inside the
// cache is no memory copy.
const genArena = 64 << 20

// newArena returns memory that has its pages.
func newArena(bytes int) []byte {
	arena := make([]byte, bytes)
	for at := 0; at < bytes; at += genBlock {
		arena[at] = 1
	}
	return arena
}

func (g *generation) oneCore() {
	fill, buf, src := g.open(), newArena(genArena), newArena(genArena)
	var gen, copied time.Duration
	var chunks int64
	for from := time.Now(); g.more(from, chunks); {
		// A run of one, then of the other: what disturbs the machine meets both.
		const turn = genArena / genChunk
		start := time.Now()
		for n := range int64(turn) {
			fill(buf[n*genChunk:(n+1)*genChunk], chunks+n)
		}
		middle := time.Now()
		for n := range turn {
			copy(src[n*genChunk:(n+1)*genChunk], buf[n*genChunk:])
		}
		gen, copied = gen+middle.Sub(start), copied+time.Since(middle)
		chunks += turn
	}
	g.report("gen-B/s", chunks, gen)
	g.report("copy-B/s", chunks, copied)
	g.b.ReportMetric(float64(gen.Nanoseconds())/float64(chunks), "ns/op")
	g.b.ReportMetric(copied.Seconds()/gen.Seconds(), "gen-copy-ratio")
}

// allCores: each core fills buffers of its own, as the workers of a run do.
func (g *generation) allCores() {
	const own = 8 * genChunk // of each core
	arena := newArena(runtime.GOMAXPROCS(0) * own)
	var chunks atomic.Int64
	var cores sync.WaitGroup
	from := time.Now()
	for buf := range slices.Chunk(arena, own) {
		fill := g.open()
		cores.Go(func() {
			for at := 0; g.more(from, chunks.Load()); at = (at + genChunk) % own {
				fill(buf[at:at+genChunk], chunks.Add(1))
			}
		})
	}
	cores.Wait()
	g.report("gen-all-cores-B/s", chunks.Load(), time.Since(from))
}

// pipeline: all cores fill the buffers that a consumer gives back. A writer would write them in between.
func (g *generation) pipeline() {
	arena := newArena(genArena)
	free, full := make(chan []byte, genArena/genChunk), make(chan []byte, genArena/genChunk)
	for at := 0; at < genArena; at += genChunk {
		free <- arena[at : at+genChunk]
	}
	var begun atomic.Int64
	var cores sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		fill := g.open()
		cores.Go(func() {
			for buf := range free {
				fill(buf, begun.Add(1))
				full <- buf
			}
		})
	}
	from, chunks := time.Now(), int64(0)
	for ; g.more(from, chunks); chunks++ {
		free <- <-full
	}
	g.report("gen-pipeline-B/s", chunks, time.Since(from))
	close(free)
	cores.Wait()
}

// quality reports the zstd ratio of the first chunks of a data set, and the share of its blocks that equal
// an earlier one.
func (g *generation) quality(dataSet int64) {
	// Level 1 of zstd also shrinks data without matches whose bytes are not uniform, such as float16.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		g.b.Fatal(err)
	}
	defer func() { _ = enc.Close() }()
	fill, buf := g.open(), make([]byte, genChunk)
	seed := maphash.MakeSeed()
	seen := make(map[uint64]struct{}, dataSet/genBlock)
	var out []byte
	var blocks, raw, small int
	for n := range dataSet / genChunk {
		if current.ctx.Err() != nil {
			g.b.Fatal(context.Cause(current.ctx))
		}
		fill(buf, n)
		if n < 64 {
			out = enc.EncodeAll(buf, out[:0])
			raw, small = raw+len(buf), small+len(out)
		}
		for at := 0; at < genChunk; at += genBlock {
			seen[maphash.Bytes(seed, buf[at:at+genBlock])] = struct{}{}
			blocks++
		}
	}
	g.b.ReportMetric(float64(small)/float64(raw), "zstd-ratio")
	g.b.ReportMetric(1-float64(len(seen))/float64(blocks), "duplicate-share")
}
