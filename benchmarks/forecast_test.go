package benchmarks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
	"kvbench/tiers/buffer"
	"kvbench/tracing/host"
)

// foreseen is the plan of one benchmark on a storage tier of 4 GiB, in a window of 600 s.
func foreseen(t *testing.T, name, args string) *plan {
	t.Helper()
	bare, _, _ := strings.Cut(name, "/")
	v, err := resolved(t, bare, append(strings.Fields(args), "-division=open", "-results-dir=/r",
		"-cache-dir="+t.TempDir())...)
	require.NoError(t, err)
	bench, err := readPattern("-bench", name)
	require.NoError(t, err)
	p := newPlan()
	p.points = v.Points
	for _, point := range v.Points {
		p.storage[point] = kvbench.StorageConfig{StorageBytes: 4 << 30,
			Use: buffer.Use{Depth: 1}}
	}
	p.add(v, suite, bench, nil)
	p.schedule(2)
	before := current
	current = &session{}
	assert.Empty(t, p.populate())
	p.foresee(current)
	current = before
	return p
}

// An estimate is of one trial: its time, and the bytes that it writes and needs.
func TestEstimates(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		// Seven steps of a second find the number in flight. The window of writes ends when 2 GiB, half of
		// the tier, are full.
		{"StorageCeiling", "", `
			StorageCeiling/op=read about 10m10.2s, writes 2 GiB, needs 2 GiB
			StorageCeiling/op=write about 10.7s, writes 2 GiB, needs 4 GiB
			StorageCeiling/op=mixed about 11.45s, writes 2 GiB, needs 3 GiB
			StorageCeiling/op=churn about 10m10.45s, writes about 306 GiB, needs 3 GiB
			StorageCeiling/op=delete about 5.2s, writes 2 GiB, needs 2 GiB`},
		{"StorageCeiling", "-workers=4 -ceiling-size-gb=1", `
			StorageCeiling/op=read about 10m1.95s, writes 1 GiB, needs 1 GiB
			StorageCeiling/op=write about 1.95s, writes 1 GiB, needs 1 GiB
			StorageCeiling/op=mixed about 2.45s, writes 1 GiB, needs 1 GiB
			StorageCeiling/op=churn about 10m1.95s, writes about 301 GiB, needs 1 GiB
			StorageCeiling/op=delete about 2.95s, writes 1 GiB, needs 1 GiB`},
		{"Knee", "-ceiling-size-gb=1", `
			Knee/op=read about 10m41.95s, writes 1 GiB, needs 1 GiB
			Knee/op=write about 10m41.95s, writes about 641 GiB, needs 1 GiB`},
		{"DecodeOnly", "-model=tiny-1b -num-users=2", `
			DecodeOnly about 10m1.87s, writes 960 MiB, needs 960 MiB`},
		{"PrefillOnly", "-model=tiny-1b -request-rate=2 -settle=30s -warmup=10s", `
			PrefillOnly about 11m11.7s, writes at most 149 GiB, needs 4 GiB`},
		{"PrefillOnly", "-model=llama3.1-8b -request-rate=2 -precondition -precondition-size-gb=8", `
			PrefillOnly about 10m9.7s, writes about 608 GiB, needs 4 GiB`},
		{"Synthetic", "-model=tiny-1b -request-rate=2 -max-requests=100", `
			Synthetic at least 51.7s, writes at most 12.2 GiB, needs 4 GiB`},
		{"BlockIO/op=write/size=1MiB", "", "BlockIO/op=write/size=1MiB about 10m3.2s, writes about 602 GiB, needs 2 GiB"},
		{"BlockTrace", "-block-trace-path=../testdata/mooncake-small.jsonl", `
			BlockTrace at most 10m1.7s, writes at most 14.5 GiB, needs 4 GiB`},
		{"BlockTrace", "-max-requests=9 -block-trace-path=../testdata/mooncake-small.jsonl", `
			BlockTrace at least 1.7s, writes at most 14.5 GiB, needs 4 GiB`},
		{"BlockTrace", "-replay-cycles=2 -max-requests=9 -block-trace-path=../testdata/mooncake-small.jsonl", `
			BlockTrace at least 1.7s, writes at most 28.9 GiB, needs 4 GiB`},
		{"BlockTrace", "-replay-cycles=0 -max-requests=9 -block-trace-path=../testdata/mooncake-small.jsonl", `
			BlockTrace at least 1.7s, writes at least 0 B, needs 4 GiB`},
		{"AzureTrace", "-model=tiny-1b -azure-trace-path=../testdata/azure-small.csv", `
			AzureTrace at most 10m1.39s, writes at most 2.75 GiB, needs 2.75 GiB`},
		{"IOTraceReplay", "-io-trace-replay=../testdata/iotrace-small.csv", `
			IOTraceReplay at most 10m0.7s, writes at most 17.1 MiB, needs 17.1 MiB`},
		{"Checkpoint", "-checkpoint-writes=4 -checkpoint-reads=2 -checkpoint-scale=1/64 -checkpoint-pause=5s", `
			Checkpoint/model=8b/op=write about 28.24s, writes 6.54 GiB, needs 4 GiB
			Checkpoint/model=8b/op=read about 13.97s, writes 0 B, needs 0 B`},
		{"DataGen/source=pool$", "", "DataGen/source=pool about 10m0s, writes 0 B, needs 0 B"},
		{"Synthetic", "-simulate-device=read=1GiB/s,write=1GiB/s -storage-capacity-gb=4", `
			Synthetic about 0s, writes 0 B, needs 0 B`},
	} {
		var got []string
		for _, l := range foreseen(t, c.name, c.args).runs() {
			got = append(got, fmt.Sprintf("%s %s%v, writes %s%s, needs %s", l.name(), l.timeIs,
				l.time.Round(10*time.Millisecond),
				l.writtenIs, units.Bytes.Text(l.written), units.Bytes.Text(l.room)))
		}
		want := strings.ReplaceAll(strings.TrimSpace(c.want), "\t", "")
		assert.Equal(t, want, strings.Join(got, "\n"), c.name+" "+c.args)
	}
}

// What a user reads before a run adds the trials and ranks up, and has a line for each storage tier.
func TestTheSummaryBeforeARun(t *testing.T) {
	now := time.Date(2026, 11, 27, 14, 2, 0, 0, time.UTC)
	text := func(p *plan) string {
		for _, at := range p.places {
			at.on, at.devices = []host.Filesystem{{Free: 210 << 30, Total: 2 << 40}}, ""
		}
		return strings.Join(p.summary(now), "\n")
	}
	const short = "the window of StorageCeiling/op=write is too short to quote\n" +
		"  at 1 GiB/s half of the tier is full after about 2 s; 10s need a tier of 20 GiB"
	p := foreseen(t, "StorageCeiling", "-keep-files -ranks=3")
	dir := cacheDir(p.points[0])
	assert.Equal(t, "10 trials of 5 benchmarks with windows of up to 600s, each on 3 ranks, about 42m, until "+
		"14:44\nin "+dir+" (rank_*): needs up to 12 GiB of the 210 GiB free, leaves its files\n  writes about 1.84 TiB in "+
		"all, 0.92 drive writes: the filesystem has 2 TiB\n"+short+"\n"+strings.Replace(short, "write", "mixed", 1)+"\nresults in /r", text(p))

	p = foreseen(t, "Checkpoint", "-checkpoint-writes=1 -checkpoint-reads=1 -checkpoint-scale=1/64")
	dir = cacheDir(p.points[0])
	p.time = 20 * time.Hour
	p.lines[0].trials = p.lines[0].trials[:1]
	assert.Equal(t, "3 trials of 2 benchmarks, about 20h0m, until Sat 10:02\nin "+dir+
		" (ckpt_8b): needs up to 1.64 GiB of the 210 GiB free, "+
		"removes its files at the end\n  writes 3.27 GiB in all\nresults in /r", text(p))
	p.lines[0].skip = "is skipped"
	assert.True(t, strings.HasPrefix(text(p), "2 trials of 1 benchmark, "))

	for n := range 4 {
		p.places[fmt.Sprint("/mnt/", n)] = &place{}
	}
	assert.Contains(t, text(p), "\nin /mnt/1 (): needs")
	assert.Contains(t, text(p), " bytes\nand in 3 other places\nresults")

	p = foreseen(t, "Engines", "-block-trace-path=../testdata/mooncake-small.jsonl")
	dir = cacheDir(p.points[0])
	assert.Equal(t, "10 trials of 5 benchmarks with windows of up to 600s, at most 1h40m, until 15:42\nin "+dir+
		" (rank_0): needs up to 4 GiB of the 210 GiB free, removes its files at the end\n  writes at most 145 GiB "+
		"in all, 0.07 drive writes: the filesystem has 2 TiB\n"+strings.Join(p.opening(), "\n")+"\nresults in /r", text(p))

	// A comparison of two directories runs each benchmark in both. A tier can be small because some space stays free.
	a, b := t.TempDir(), t.TempDir()
	v, err := resolved(t, "StorageCeiling", "-division=open", "-results-dir=/r", "-sweep=cache-dir="+a+","+b)
	require.NoError(t, err)
	bench, err := readPattern("-bench", "StorageCeiling/.*/op=write")
	require.NoError(t, err)
	p = newPlan()
	p.points = v.Points
	for _, point := range v.Points {
		p.storage[point] = kvbench.StorageConfig{StorageBytes: 4 << 30,
			Roots: []kvbench.Root{{Dir: cacheDir(point), Floor: 9 << 30}}}
	}
	p.add(v, suite, bench, nil)
	p.schedule(2)
	p.foresee(&session{})
	assert.Regexp(t, "^4 runs of 1 benchmark with windows of up to 600s, about 43 s, until 14:03\n"+
		"  StorageCeiling/op=write\nin "+a+" .*\n  writes 4 GiB in all.*\nin "+b+" .*\n  writes 4 GiB in all.*\n"+
		"  both directories are on this filesystem: one drive is compared with itself\n"+
		"the window of StorageCeiling/op=write is too short to quote\n"+
		"  at 1 GiB/s half of the tier is full after about 2 s; 10s need a tier of 20 GiB\n"+
		"  the tier has 4 GiB, because .* of the .* free stay free\nresults in /r$", text(p))

	p = foreseen(t, "Synthetic", "-simulate-device=read=1GiB/s,write=1GiB/s -storage-capacity-gb=4 -model=tiny-1b")
	assert.Equal(t, "2 trials of 1 benchmark with windows of up to 600s\n"+strings.Join(p.opening(), "\n")+
		"\nresults in /r", text(p))
}

// The time left is that of trials of the same line, else of those of the same benchmark, else the estimate.
func TestTheTimeLeftIsMeasured(t *testing.T) {
	of := func(name string, trials int) *line {
		l := &line{v: &params.Values{Bench: params.Bench{Name: name}}, estimate: estimate{time: 10 * time.Second}}
		for range trials {
			l.trials = append(l.trials, &trial{line: l})
		}
		return l
	}
	a, b, other := of("A", 3), of("A", 2), of("B", 1)
	p := newPlan()
	p.groups = [][]*line{{a}, {b}, {other, {part: part{skip: "it is skipped"}}}}
	left := func(begins *trial) []time.Duration {
		this, after, _ := p.remaining(begins)
		return []time.Duration{this, after}
	}
	assert.Equal(t, []time.Duration{10 * time.Second, 50 * time.Second}, left(a.trials[0]))
	a.ran, a.took = 1, 20*time.Second
	assert.Equal(t, []time.Duration{20 * time.Second, 70 * time.Second}, left(a.trials[1]))
	a.ran, a.took, b.ran, b.took = 3, 60*time.Second, 1, 30*time.Second
	assert.Equal(t, []time.Duration{30 * time.Second, 10 * time.Second}, left(b.trials[1]))
	assert.Equal(t, []string{"2 trials of 2 benchmarks"}, p.notBegun())
	b.ran, b.took = 2, 60*time.Second
	assert.Equal(t, []time.Duration{10 * time.Second, 0}, left(other.trials[0]))
}

func TestRoughTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "–", 400 * time.Millisecond: "1 s", 40 * time.Second: "40 s",
		99700 * time.Millisecond: "2m", 8*time.Minute + 20*time.Second: "8m", 600 * time.Second: "10m",
		2*time.Hour + 17*time.Minute: "2h17m"} {
		assert.Equal(t, want, roughly(d), d)
	}
}
