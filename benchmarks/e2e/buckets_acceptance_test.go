//go:build measure

package e2e

// What runs on object stores have to do, beside what they cost (see buckets_measured_test.go):
// go test -tags measure ./benchmarks/e2e -run 'Objects|Endpoint|Fault|Killed'

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/objecttier/s3double"
	"kvbench/tiers/objecttier/s3gateway"
)

// What is decided does not depend on where the bytes lie: hits, misses, evictions and bytes of a
// block trace are those of files, on any store.
func TestObjectsHitAsFilesDo(t *testing.T) {
	stores := map[string][]string{"double": double(t, s3double.Config{}, 2).URLs(),
		"versitygw": s3gateway.Start(t, s3gateway.Config{Bucket: bucket}, 2).URLs()}
	type numbers struct {
		digest                  string
		requests                int64
		blocks, hits, written   int64
		evictedEntries, evicted int64
		readBytes, writtenBytes int64
	}
	run := func(args []string, places func(*bench) []string) numbers {
		b := newObjectBench(t)
		args = append(append(append(b.micro(), "-verify=full",
			"-workers=1", "-seed=7"), places(b)...), args...)
		// Who pauses comes back at a time that depends on when his answer was there.
		text, err := os.ReadFile(args[1])
		require.NoError(t, err)
		pause := regexp.MustCompile(`think_time_range: \[[^]]*\]`)
		require.NoError(t, os.WriteFile(args[1], pause.ReplaceAll(text,
			[]byte("think_time_range: [0, 0]")), 0o644))
		b.ok(args...)
		r := theResult(t, b.results)
		require.Equal(t, result.StatusComplete, r.Status)
		i := slices.IndexFunc(r.Tiers, func(t result.Tier) bool { return t.Level == "storage" })
		require.GreaterOrEqual(t, i, 0)
		storage := r.Tiers[i]
		assert.Equal(t, r.CompletionUnit != result.UnitOperation, r.Digest != "", args)
		n := numbers{digest: r.Digest, requests: r.RequestsCompleted,
			evicted: storage.Evicted.Bytes, evictedEntries: storage.Evicted.Entries,
			readBytes: storage.Read.Bytes, writtenBytes: storage.Write.Bytes}
		if c := r.BlockCache; c != nil {
			n.blocks, n.hits, n.written = c.Blocks, c.Hits, c.Written
		}
		return n
	}
	for _, args := range [][]string{
		{"-test.bench=BlockTrace", "-block-trace-path=" + data(t, "mooncake-small.jsonl"),
			"-layout=entry", "-trace-speedup=0", "-storage-capacity-gb=0.05"},
		{"-test.bench=BlockTrace", "-block-trace-path=" + data(t, "mooncake-small.jsonl"),
			"-layout=block", "-trace-speedup=0", "-storage-capacity-gb=0.05"},
		{"-test.bench=MaxStorageStress", "-division=open", "-max-requests=300", "-turns=ordered",
			"-arrival=closed-loop", "-model=micro", "-num-users=16", "-storage-capacity-gb=0.003"},
		{"-test.bench=RAG", "-rag-num-docs=2", "-max-requests=300", "-turns=ordered",
			"-arrival=closed-loop", "-storage-capacity-gb=0.03"},
		{"-test.bench=IOTraceReplay", "-io-trace-replay=" + data(t, "iotrace-small.csv")},
	} {
		files := run(args, (*bench).places)
		assert.Positive(t, files.writtenBytes, args)
		for name, urls := range stores {
			objects := run(args, func(b *bench) []string { return b.objects(urls) })
			assert.Equal(t, files, objects, "%s %v", name, args)
		}
	}
}

// An endpoint that is killed costs attempts, never an operation; when it is back it is used again.
// The store's log says how far the run is, and the run ends when all of it has been seen.
func TestAnEndpointOfManyDies(t *testing.T) {
	d := double(t, s3double.Config{}, 4)
	answered := func(endpoint, after int) (n int) {
		for _, e := range d.Log() {
			if e.Seq > after && ownKey.MatchString(e.Key) && e.Status/100 == 2 &&
				(endpoint < 0 || e.Endpoint == endpoint) {
				n++
			}
		}
		return n
	}
	now := func() int { log := d.Log(); return log[len(log)-1].Seq }
	b := newObjectBench(t)
	p := b.start(append(append(b.micro(), b.objects(d.URLs())...), "-test.bench=Synthetic",
		"-test.benchtime=1h", "-storage-capacity-gb=0.25", "-verify=full")...)
	eventually(t, "requests to all", func() bool { return answered(2, 0) >= 20 })
	d.Endpoints()[2].Kill()
	dead := now()
	eventually(t, "requests to the others", func() bool { return answered(-1, dead) >= 200 })
	assert.Zero(t, answered(2, dead))
	require.NoError(t, d.Endpoints()[2].Return())
	eventually(t, "requests to the one that is back", func() bool { return answered(2, dead) >= 20 })
	require.NoError(t, p.Process.Signal(os.Interrupt))
	o := p.end()
	assert.Equal(t, 130, o.code, "%s\n%s", o.stdout, o.stderr)
	r := theResult(t, b.results)
	assert.Empty(t, r.Errors)
	for name, op := range r.Objects.Operations {
		if name != "connect" { // to the one that is dead
			assert.Zero(t, op.Failed, name)
		}
	}
	require.Len(t, r.Endpoints, 4)
	assert.Positive(t, r.Endpoints[2].Rests)
	for i, e := range r.Endpoints {
		assert.Positive(t, e.Requests, i)
	}
	assert.NotEmpty(t, r.Objects.Retries)
	assert.Empty(t, d.Keys(bucket, ""))
}

// Whatever goes wrong with one request in a hundred costs time and nothing else.
func TestFaultsAreTriedAgain(t *testing.T) {
	for _, f := range []s3double.Fault{
		{Kind: s3double.Status, Status: 408}, {Kind: s3double.Status, Status: 429, RetryAfter: "0"},
		{Kind: s3double.Status, Status: 500}, {Kind: s3double.Status, Status: 502},
		{Kind: s3double.Status, Status: 503, Early: true}, {Kind: s3double.Status, Status: 504},
		{Kind: s3double.Lost}, {Kind: s3double.Cut, At: -1}, {Kind: s3double.Cut, At: 1000},
		{Kind: s3double.Reset, At: -1}, {Kind: s3double.Reset, At: 5000},
	} {
		d := double(t, s3double.Config{Seed: 5, Rules: []s3double.Rule{
			{Key: ownKey.String(), Share: 0.01, Attempt: 1, Fault: f},
			// One of each at least, however few there are.
			{Op: s3double.Put, Key: ownKey.String(), Nth: 2, Fault: f},
			{Op: s3double.Get, Key: ownKey.String(), Nth: 2, Fault: f},
		}}, 1)
		b := newObjectBench(t)
		b.ok(append(append(b.micro(), b.objects(d.URLs())...), "-test.bench=BlockTrace",
			"-block-trace-path="+data(t, "mooncake-small.jsonl"), "-trace-speedup=0",
			"-layout=block", "-verify=full")...)
		r := theResult(t, b.results)
		played := 0
		for _, e := range d.Log() {
			if e.Fault != "" {
				played++
			}
		}
		assert.GreaterOrEqual(t, played, 2, f)
		for name, op := range r.Objects.Operations {
			assert.Zero(t, op.Failed, "%s: %v", name, f)
		}
		assert.Zero(t, r.Objects.Lost, f)
		assert.Empty(t, d.Keys(bucket, ""), f)
	}
}

// What a killed run leaves the next one takes back, and nothing else.
func TestAKilledRunIsReclaimed(t *testing.T) {
	for name, rule := range map[string]s3double.Rule{
		"in an upload": {Op: s3double.PutPart, Nth: 3, Fault: s3double.Fault{Kind: s3double.Hang,
			At: 1000}},
		"between objects": {Op: s3double.Put, Key: ownKey.String(), Nth: 5,
			Fault: s3double.Fault{Kind: s3double.Hang, At: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			d := double(t, s3double.Config{}, 1)
			changed := time.Now().Add(-time.Hour)
			foreign := map[string]string{"runs/rank_0/notes.txt": "mine", "runs/rank_01/x": "mine",
				"other": "mine"}
			args := func(b *bench) []string {
				list := append(append(b.micro(), b.objects(d.URLs())...), "-test.bench=Tier/"+
					"tier=storage/op=write/size=16MiB", "-test.benchtime=3x", "-storage-capacity-gb=4",
					"-s3-multipart-above=5MiB", "-s3-part-size=5MiB")
				if name == "between objects" {
					list = append(list, "-s3-multipart-above=5GiB")
				}
				return list
			}
			require.NoError(t, d.SetRules(rule))
			b := newObjectBench(t)
			p := b.start(args(b)...)
			eventually(t, "the request that hangs", func() bool {
				return slices.ContainsFunc(d.Log(), func(e s3double.Entry) bool {
					return e.Fault == s3double.Hang
				})
			})
			require.NoError(t, p.Process.Signal(syscall.SIGKILL))
			p.end()
			require.NotEmpty(t, append(d.Keys(bucket, "runs/"), d.Uploads(bucket)...))
			for key, body := range foreign {
				require.NoError(t, d.SetObject(bucket, key, body, changed))
			}
			require.NoError(t, d.SetRules())
			d.ClearLog()
			b = newObjectBench(t)
			b.ok(args(b)...)
			// The marker stays beside what is somebody else's: it says whose the prefix is.
			assert.ElementsMatch(t, append(slices.Collect(maps.Keys(foreign)),
				"runs/rank_0/.kvbench.json"), d.Keys(bucket, ""))
			for key, body := range foreign {
				got, err := d.Object(bucket, key)
				require.NoError(t, err)
				assert.Equal(t, body, string(got))
			}
			assert.Empty(t, d.Uploads(bucket))
			reclaimed := theResult(t, b.results).Objects.Reclaimed
			assert.Positive(t, reclaimed.Objects+reclaimed.Uploads)
			for _, e := range d.Log() { // nothing outside of its prefix is asked for
				for _, key := range append(e.Keys, e.Key) {
					if e.Op != s3double.Location && e.Op != s3double.Versioning &&
						e.Op != s3double.HeadBucket && key != "" {
						assert.True(t, strings.HasPrefix(key, "runs/rank_0/"), "%s %q", e.Op, key)
					}
				}
				assert.False(t, e.Op == s3double.List && e.Key == "", "a list of everything")
			}
		})
	}
}
