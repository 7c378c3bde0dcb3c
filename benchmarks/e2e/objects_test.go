package e2e

import (
	"cmp"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/objecttier/s3test"
)

// bucket exists in all stores of these tests.
const bucket = "bench"

// entryKey matches the keys of entries.
const entryKey = `/[0-9a-f]{2}/[0-9a-f]{30}-`

// objects are the flags of a load whose objects have a prefix in the bucket of a store.
func (b *bench) objects(urls []string, load ...string) []string {
	args := []string{"-cache-dir", "s3://" + bucket + "/runs", "-results-dir", b.results,
		"-s3-endpoint", strings.Join(urls, ","), "-progress", "none"}
	if len(load) == 0 || !strings.HasPrefix(load[0], "-test.bench=Checkpoint") {
		args = append(b.micro(), args...)
	}
	return append(args, load...)
}

// newObjectBench is a bench with credentials in its environment.
func newObjectBench(t testing.TB, id, secret, token string) *bench {
	b := newBench(t)
	b.env = slices.DeleteFunc(b.env, func(v string) bool {
		return strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "S3_")
	})
	b.env = append(b.env, "AWS_ACCESS_KEY_ID="+id, "AWS_SECRET_ACCESS_KEY="+secret)
	if token != "" {
		b.env = append(b.env, "AWS_SESSION_TOKEN="+token)
	}
	return b
}

// fakeStore is a store in this process.
func fakeStore(t testing.TB, rules ...s3test.Rule) *s3test.Server {
	t.Helper()
	endToEnd(t)
	return s3test.Start(t, s3test.Config{Buckets: []string{bucket}, Rules: rules}, 2)
}

// Flags of the loads below.
var (
	checkpoints = []string{"-test.bench=Checkpoint$", "-checkpoint-accelerators=4",
		"-checkpoint-scale=1/1024", "-stream-chunk=5MiB", "-verify=full", "-s3-retries=2"}
	synthetic = []string{"-test.bench=Synthetic", "-storage-capacity-gb=0.25", "-verify=full"}
)

// blocks are the flags of a trace of blocks.
func blocks(t *testing.T) []string {
	return []string{"-test.bench=BlockTrace", "-block-trace-path=" + data(t, "mooncake-small.jsonl"),
		"-trace-speedup=0", "-storage-capacity-gb=0.25", "-verify=full"}
}

// TestObjectStore runs loads against a store in this process that fails in one way.
func TestObjectStore(t *testing.T) {
	t.Parallel()
	status := func(op s3test.Op, key string, code int) s3test.Rule {
		return s3test.Rule{Op: op, Key: key, Fault: s3test.Fault{Kind: s3test.Status, Status: code}}
	}
	every := func(op s3test.Op, k int, f s3test.Fault) s3test.Rule {
		return s3test.Rule{Op: op, Key: entryKey, Every: k, Fault: f}
	}
	for _, c := range []struct {
		name  string
		cache string // instead of the bucket that exists
		args  []string
		rules []s3test.Rule
		code  int
		words []string // in what the run prints
	}{
		// Each attempt fails with a probability of 8 %: the default of retries would not do for each of many objects.
		{name: "load", args: append(blocks(t), "-layout=block", "-s3-lookup=head", "-s3-retries=8"), rules: []s3test.Rule{
			every(s3test.Put, 20, s3test.Fault{Kind: s3test.Status, Status: 503}),
			every(s3test.Get, 20, s3test.Fault{Kind: s3test.Cut, At: 1000}),
			every(s3test.Get, 21, s3test.Fault{Kind: s3test.Reset, At: -1}),
			every(s3test.Put, 31, s3test.Fault{Kind: s3test.Lost})}},
		{name: "ranks", args: append(synthetic, "-test.benchtime=50x", "-ranks=2"), rules: []s3test.Rule{
			every("", 50, s3test.Fault{Kind: s3test.Status, Status: 500})}},
		{name: "checkpoint", args: append(checkpoints, "-ranks=2", "-checkpoint-shift=2"),
			rules: []s3test.Rule{every(s3test.PutPart, 5, s3test.Fault{Kind: s3test.Cut, At: 100_000}),
				{Op: s3test.Get, Key: "rank_2_mp_rank_0_optim", Nth: 2,
					Fault: s3test.Fault{Kind: s3test.Reset, At: 100_000}}},
			words: []string{"from the store, whose own caches are unknown"}},
		{name: "full", args: checkpoints, rules: []s3test.Rule{status(s3test.PutPart, "rank_3_mp", 507)},
			code: exitFailed, words: []string{"delete objects in the store"}},
		{name: "other bytes", args: append(blocks(t), "-layout=block"), rules: []s3test.Rule{
			{Op: s3test.Get, Key: entryKey, Every: 3, Fault: s3test.Fault{Kind: s3test.Flip, At: 10_000}}},
			code: exitFailed, words: []string{"rank_0/", "http://127.0.0.1:"}},
		{name: "bucket", cache: "s3://missing/x", args: synthetic, code: exitFailed,
			words: []string{"missing", "-cache-dir"}},
		{name: "endpoint down", args: append(synthetic, "-s3-endpoint=http://127.0.0.1:1",
			"-s3-retries=0"), code: exitFailed, words: []string{"check that the store runs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := fakeStore(t, c.rules...)
			b := newObjectBench(t, "key", "secret", "")
			args := b.objects(s.URLs(), c.args...)
			if c.cache != "" {
				args[slices.Index(args, "-cache-dir")+1] = c.cache
			}
			o := b.run(append(args, "-summary=long")...)
			assert.Equal(t, c.code, o.code, "%s\n%s", o.stdout, o.stderr)
			for _, word := range c.words {
				assert.Contains(t, o.stdout+o.stderr, word)
			}
			assert.NotContains(t, o.stdout+o.stderr, "still in use", "buffers come back, also after a failure")
			assert.Empty(t, s.Keys(bucket, ""), "nothing is left")
			assert.Empty(t, s.Uploads(bucket))
			failed := slices.ContainsFunc(s.Log(), func(e s3test.Entry) bool { return e.Fault != "" })
			assert.Equal(t, len(c.rules) > 0, failed, "the fault happens")
			if c.code != 0 {
				return
			}
			for _, path := range resultFiles(t, b.results) {
				r := readResult(t, path)
				assert.Equal(t, result.StatusComplete, r.Status)
				assert.Equal(t, result.IOObjects, r.IO.Mode)
				require.Len(t, r.Endpoints, 2)
				assert.Zero(t, r.Objects.Lost)
				for name, op := range r.Objects.Operations {
					assert.Zero(t, op.Failed, name)
				}
			}
		})
	}
}

// TestObjectStoreOfOthers runs on a server that verifies signatures and checksums: the way in which
// each payload is protected, engines' names, parts, ranks, and the user's mistakes.
func TestObjectStoreOfOthers(t *testing.T) {
	t.Parallel()
	urls, dir := gateway(t)
	for _, c := range []struct {
		secret string
		args   []string
		code   int
		words  string
	}{
		{"secret", []string{"-test.bench=StorageCeiling/op=(churn|delete)$", "-test.benchtime=1s",
			"-ceiling-size-gb=0.1", "-s3-payload=signed"}, 0, ""},
		{"secret", append(blocks(t), "-layout=block", "-s3-lookup=head", "-s3-keys=lmcache",
			"-test.benchtime=5m"), 0, ""},
		{"secret", append(checkpoints, "-ranks=2", "-s3-payload=crc32c"), 0, ""},
		{"secret", append(checkpoints, "-ranks=1", "-s3-payload=crc64nvme"), 0, ""},
		{"other", synthetic, exitFailed, "AWS_SECRET_ACCESS_KEY"},
		{"secret", append(synthetic, "-s3-region=eu-west-1"), exitFailed, "-s3-region"},
	} {
		b := newObjectBench(t, "key", c.secret, "")
		o := b.run(b.objects(urls, c.args...)...)
		assert.Equal(t, c.code, o.code, "%v\n%s\n%s", c.args, o.stdout, o.stderr)
		assert.Contains(t, o.stdout+o.stderr, c.words)
		for _, path := range resultFiles(t, b.results) {
			r := readResult(t, path)
			require.NotNil(t, r.Objects, path)
			for name, op := range r.Objects.Operations {
				assert.Zero(t, op.Failed, "%s in %s", name, path)
			}
			if n := r.BlockCache; n != nil && c.code == 0 {
				assert.EqualValues(t, []int64{258, 92, 166}, []int64{n.Blocks, n.Hits, n.Written})
				assert.Positive(t, r.Objects.Operations["head"].Requests)
				assert.GreaterOrEqual(t, r.Objects.Operations["put"].Requests, int64(166))
			}
		}
	}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			t.Errorf("left behind: %s", path)
		}
		return err
	}))
}

// The objects of a killed run stay: the next run lists them with the command that removes them, and
// removes only its own.
func TestAKilledRunIsListed(t *testing.T) {
	t.Parallel()
	entries := []string{"-test.bench=Tier/tier=storage/op=write/size=16MiB", "-test.benchtime=3x",
		"-storage-capacity-gb=4", "-s3-multipart-above=5MiB", "-s3-part-size=5MiB"}
	for name, c := range map[string]struct {
		rule s3test.Rule
		args []string
		dir  string
	}{
		"in an upload": {s3test.Rule{Op: s3test.PutPart, Key: entryKey, Nth: 3,
			Fault: s3test.Fault{Kind: s3test.Hang, At: 1000}}, entries, "runs/rank_0/"},
		"in a checkpoint": {s3test.Rule{Op: s3test.PutPart, Key: "rank_2_mp", Nth: 2,
			Fault: s3test.Fault{Kind: s3test.Hang, At: 1000}}, checkpoints,
			"runs/ckpt_8b/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakeStore(t, c.rule)
			b := newObjectBench(t, "key", "secret", "")
			p := b.start(b.objects(s.URLs(), c.args...)...)
			eventually(t, "the request that hangs", func() bool {
				return slices.ContainsFunc(s.Log(), func(e s3test.Entry) bool {
					return e.Fault == s3test.Hang
				})
			})
			require.NoError(t, p.Process.Signal(syscall.SIGKILL))
			p.end()
			eventually(t, "the requests that the killed run had sent", func() bool {
				return !slices.ContainsFunc(s.Log(), func(e s3test.Entry) bool {
					return e.Ended == 0 && e.Fault != s3test.Hang
				})
			})
			require.NoError(t, s.SetRules())
			for _, key := range []string{c.dir + "notes.txt", "runs/rank_01/x", "other"} {
				require.NoError(t, s.SetObject(bucket, key, "mine"))
			}
			left, uploads := s.Keys(bucket, ""), s.Uploads(bucket)
			require.Greater(t, len(left)+len(uploads), 3)
			s.ClearLog()
			b = newObjectBench(t, "key", "secret", "")
			o := b.ok(b.objects(s.URLs(), c.args...)...)
			if slices.ContainsFunc(left, func(key string) bool { // PREFIX/rank_0/RUN/…
				name, found := strings.CutPrefix(key, c.dir)
				return found && strings.Contains(name, "/")
			}) {
				assert.Contains(t, o.stdout+o.stderr, "aws s3 rm --recursive --endpoint-url "+
					s.URLs()[0]+" s3://"+bucket+"/"+c.dir)
			}
			if len(uploads) > 0 {
				assert.Contains(t, o.stdout+o.stderr, "aws s3api abort-multipart-upload")
			}
			// The store may still complete an upload that the killed run had asked it to complete.
			for _, key := range s.Keys(bucket, "") {
				assert.True(t, slices.Contains(left, key) || slices.Contains(uploads, key), "%s", key)
			}
			assert.Subset(t, s.Keys(bucket, ""), left)
			assert.Subset(t, append(s.Uploads(bucket), s.Keys(bucket, "")...), uploads)
			for _, e := range s.Log() { // it touches nothing outside of its prefix
				for _, key := range append(e.Keys, e.Key) {
					assert.True(t, key == "" && e.Op != s3test.List || strings.HasPrefix(key, c.dir),
						"%s %q", e.Op, key)
				}
			}
		})
	}
}

// Other runs read the checkpoints of one run, with any number of ranks.
func TestCheckpointsOnObjectsInTwoRuns(t *testing.T) {
	t.Parallel()
	s := fakeStore(t)
	b := newObjectBench(t, "key", "secret", "")
	run := func(code int, more ...string) outcome {
		o := b.run(b.objects(s.URLs(), append(checkpoints, more...)...)...)
		require.Equal(t, code, o.code, "%s\n%s", o.stdout, o.stderr)
		return o
	}
	none := run(exitFailed, "-checkpoint-writes=0")
	assert.Contains(t, none.stdout, "there is no checkpoint to read")
	assert.Empty(t, s.Keys(bucket, ""))
	run(0, "-checkpoint-reads=0", "-ranks=2")
	kept := s.Keys(bucket, "")
	assert.Greater(t, len(kept), 2, "a manifest, and the files of two checkpoints")
	for _, ranks := range []string{"-ranks=1", "-ranks=2"} {
		run(0, "-checkpoint-writes=0", ranks)
	}
	other := run(exitFailed, "-checkpoint-writes=0", "-checkpoint-scale=1/2048")
	assert.Contains(t, other.stdout, "not of 8b on 4 accelerators at a scale of 1/2048")
	assert.Equal(t, kept, s.Keys(bucket, ""))
}

// No 8 characters of a secret are in the output or files of a run: with a store that quotes the
// secret, a wrong key, a web page, an address with a secret, a crash with all stacks.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	const id = "AKIAIOSFODNN7EXAMPLE" // the key of AWS's documents
	secret, token := letters(40), letters(100)
	quote := s3test.Fault{Kind: s3test.Status, Status: 500, Message: secret + token}
	s := s3test.Start(t, s3test.Config{Buckets: []string{bucket}, AccessKey: id, Token: token,
		Rules: []s3test.Rule{{Key: `/[0-9a-f]{2}/|\.pt$`, Every: 100, Fault: quote}}}, 1)
	page := s3test.Start(t, s3test.Config{Buckets: []string{bucket}, AccessKey: id, Token: token,
		Rules: []s3test.Rule{{Fault: s3test.Fault{Kind: s3test.Page,
			Text: "<!DOCTYPE html><html><title>" + secret + "</title></html>"}}}}, 1)
	few := []string{"-test.bench=MaxStorageStress", "-test.benchtime=20x"}
	long := []string{"-test.bench=MaxStorageStress", "-test.benchtime=10m"}
	for _, c := range []struct {
		name   string
		id     string
		url    string
		args   []string
		words  string // "" = it succeeds
		signal syscall.Signal
	}{
		{name: "good", args: few},
		{name: "wrong key", id: "AKIAI44QH8DHBEXAMPLE", args: few, words: "AWS_ACCESS_KEY_ID"},
		{name: "page", url: page.URLs()[0], args: few, words: "web page"},
		{name: "address", url: "http://" + id + ":" + secret + "@127.0.0.1:9000", args: few,
			words: "-s3-endpoint"},
		{name: "crash", args: long, signal: syscall.SIGABRT, words: "goroutine"},
		{name: "ranks", args: append(long, "-ranks=2", "-metrics-listen=127.0.0.1:0"),
			signal: syscall.SIGINT, words: "metrics"},
		{name: "checkpoint", args: append(checkpoints, "-ranks=2")},
	} {
		b := newObjectBench(t, cmp.Or(c.id, id), secret, token)
		b.env = append(b.env, "S3_ANYTHING=UNRELATED")
		s.ClearLog()
		texts := map[string]string{}
		p := b.start(b.objects([]string{cmp.Or(c.url, s.URLs()[0])}, append(c.args, "-test.v")...)...)
		if c.signal != 0 {
			eventually(t, "requests", func() bool { return len(s.Log()) > 200 })
			if c.name == "ranks" {
				texts["metrics"] = b.metrics(p)
				for _, rank := range []string{"0", "1"} {
					assert.Contains(t, texts["metrics"], "\nkvbench_kv_offload_tiering_write_bytes_total"+
						`{benchmark="MaxStorageStress",rank="`+rank+`",tier="storage"} `)
				}
			}
			lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // none but on Linux
			for _, path := range lines {
				if text, err := os.ReadFile(path); err == nil { // else the process has ended
					texts[path] = string(text)
				}
			}
			require.NoError(t, p.Process.Signal(c.signal))
		}
		o := p.end()
		assert.Equal(t, c.words == "", o.code == 0, "%s\n%s\n%s", c.name, o.stdout, o.stderr)
		assert.Contains(t, o.stdout+o.stderr, c.words, c.name)
		texts["standard output"], texts["standard error"] = o.stdout, o.stderr
		b.nowhere(c.name, texts, secret, token, "UNRELATED")
	}
}

// metricsAddress matches the line with the address of the metrics.
var metricsAddress = regexp.MustCompile(
	`metrics until the run ends: (http://127\.0\.0\.1:\d+/metrics)`)

// metrics reads the metrics of a run of two ranks.
func (b *bench) metrics(p *process) (text string) {
	eventually(b.t, "metrics of both ranks", func() bool {
		m := metricsAddress.FindStringSubmatch(p.errout.String())
		if m == nil {
			return false
		}
		answer, err := http.Get(m[1])
		require.NoError(b.t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(b.t, err)
		text = string(body)
		return strings.Contains(text, `rank="1"`)
	})
	http.DefaultClient.CloseIdleConnections()
	return text
}

// nowhere fails where 8 characters of a secret are in a text or in a file of the bench.
func (b *bench) nowhere(name string, texts map[string]string, secrets ...string) {
	b.t.Helper()
	all := maps.Clone(texts)
	require.NoError(b.t, filepath.WalkDir(b.work, func(path string, e fs.DirEntry,
		err error) error {
		if err == nil && e.Type().IsRegular() {
			text, err := os.ReadFile(path)
			all[path] = string(text)
			return err
		}
		return err
	}))
	for where, text := range all {
		for _, secret := range secrets {
			for i := 0; i+8 <= len(secret); i++ {
				if strings.Contains(text, secret[i:i+8]) {
					b.t.Errorf("%s: %s has characters %d to %d of a secret", name, where, i, i+8)
					break
				}
			}
		}
	}
}

// letters are random characters of a secret.
func letters(n int) string {
	const all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	text := make([]byte, n)
	for i := range text {
		text[i] = all[rand.IntN(len(all))]
	}
	return string(text)
}
