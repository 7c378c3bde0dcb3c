package benchmarks

import (
	"context"
	"hash/maphash"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"kvbench/kvbench/params"
	"kvbench/tiers"
	"kvbench/tiers/content"
)

// BenchmarkDataGen measures the generator of entry contents on one core: its
// rate next to the rate of a memory copy taken in turn with it, how far zstd level 1
// shrinks the data, and how many 4 KiB blocks occur twice.
//
// It writes no result file, other than every other benchmark: it has no tier, no device, no workers
// and no load, so that of a Result nothing would be filled but the window, and a Result that says
// nothing of a storage would be one more case for each of its readers. What it measures is on its
// line, which benchstat, gate and page read as any other.
func BenchmarkDataGen(b *testing.B) { run(b) }

func dataGen(b *testing.B, v *params.Values) {
	content := content.New(v.TrialNonce(), v.Rank)
	// Both walk through more memory than any cache of one core holds, as
	// the buffers of a run do: a copy inside the cache is no memory copy.
	const chunk, arena = 1 << 20, 64 << 20
	buf, src := make([]byte, arena), make([]byte, arena)
	window := v.Window.Length
	if v.Division == params.Quick && v.Origin("benchtime").Kind < params.FromFile {
		window = quickPlainWindow
	}
	var gen, copied time.Duration
	var chunks int64
	object := tiers.Object{Key: "datagen", Gen: 1, Size: 1 << 40}
	for (window == 0 || gen < window) &&
		(v.Window.Completions == 0 || chunks < v.Window.Completions) {
		if current.ctx.Err() != nil {
			b.Fatal(context.Cause(current.ctx))
		}
		// A run of one, then of the other: what disturbs the machine meets both.
		const turn = arena / chunk
		start := time.Now()
		for n := range int64(turn) {
			content.Fill(buf[n*chunk:(n+1)*chunk], object, (chunks+n)*chunk)
		}
		middle := time.Now()
		for n := range turn {
			copy(src[n*chunk:(n+1)*chunk], buf[n*chunk:])
		}
		gen, copied = gen+middle.Sub(start), copied+time.Since(middle)
		chunks += turn
	}
	total := float64(chunks * chunk)
	b.ReportMetric(float64(gen.Nanoseconds())/float64(chunks), "ns/op")
	b.ReportMetric(total/gen.Seconds(), "gen-B/s")
	b.ReportMetric(total/copied.Seconds(), "copy-B/s")
	b.ReportMetric(copied.Seconds()/gen.Seconds(), "gen-copy-ratio")
	ratio, duplicates := quality(b, content)
	b.ReportMetric(ratio, "zstd-ratio")
	b.ReportMetric(duplicates, "duplicate-blocks")
}

// quality looks at 64 MiB: parts of several entries and of two writes of one.
func quality(b *testing.B, content *content.Content) (zstdRatio, duplicates float64) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = enc.Close() }()
	const part = 8 << 20
	seed := maphash.MakeSeed()
	seen := make(map[uint64]struct{}, 8*part/4096)
	buf := make([]byte, part)
	var out []byte
	var raw, small int
	for n := range 8 {
		o := tiers.Object{Key: []string{"u0/c0/t1", "u0/c0/t2", "u1/c0/t1", "system/0"}[n/2],
			Gen: uint64(n%2 + 1), Size: part}
		content.Fill(buf, o, 0)
		out = enc.EncodeAll(buf, out[:0])
		raw, small = raw+len(buf), small+len(out)
		for at := 0; at < part; at += 4096 {
			h := maphash.Bytes(seed, buf[at:at+4096])
			if _, twice := seen[h]; twice {
				duplicates++
			}
			seen[h] = struct{}{}
		}
	}
	return float64(small) / float64(raw), duplicates
}
