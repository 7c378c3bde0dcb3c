package e2e

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/objecttier/s3double"
	"kvbench/tiers/objecttier/s3gateway"
)

// bucket is that of all stores here.
const bucket = "bench"

// ownKey is the key of an entry in the suite's own names: two digits, thirty, a generation.
var ownKey = regexp.MustCompile(`^runs/rank_0/[0-9a-f]{2}/[0-9a-f]{30}-[0-9a-f]{16}$`)

// objects are the flags for results, and for a prefix in the bucket of a store.
func (b *bench) objects(urls []string) []string {
	return []string{"-cache-dir", "s3://" + bucket + "/runs", "-results-dir", b.results,
		"-s3-endpoint", strings.Join(urls, ","), "-progress", "none"}
}

// keys are the credentials in the environment of a bench, those of the stores of tests.
func (b *bench) keys(id, secret, token string) {
	b.env = slices.DeleteFunc(b.env, func(v string) bool {
		return strings.HasPrefix(v, "AWS_") || strings.HasPrefix(v, "S3_")
	})
	b.env = append(b.env, "AWS_ACCESS_KEY_ID="+id, "AWS_SECRET_ACCESS_KEY="+secret)
	if token != "" {
		b.env = append(b.env, "AWS_SESSION_TOKEN="+token)
	}
}

// newObjectBench is a bench whose environment opens the stores of tests.
func newObjectBench(t testing.TB) *bench {
	b := newBench(t)
	b.keys("key", "secret", "")
	return b
}

// double is a store in this process, which outlives the runs.
func double(t testing.TB, c s3double.Config, endpoints int) *s3double.Double {
	t.Helper()
	endToEnd(t)
	c.Buckets = append(c.Buckets, bucket)
	return s3double.Start(t, c, endpoints)
}

// Other bytes than were written end the trial, and say where they came from.
func TestOtherBytesEndTheTrial(t *testing.T) {
	d := double(t, s3double.Config{Rules: []s3double.Rule{{Op: s3double.Get,
		Key: ownKey.String(), Nth: 3, Fault: s3double.Fault{Kind: s3double.Flip,
			At: 10_000}}}}, 1)
	b := newObjectBench(t)
	o := b.run(append(append(b.micro(), b.objects(d.URLs())...), "-test.bench=BlockTrace",
		"-block-trace-path="+data(t, "mooncake-small.jsonl"), "-trace-speedup=0", "-layout=block",
		"-verify=full")...)
	assert.Equal(t, exitFailed, o.code)
	assert.Contains(t, o.stdout+o.stderr, "rank_0/")
	assert.Contains(t, o.stdout+o.stderr, d.URLs()[0])
	assert.Empty(t, d.Keys(bucket, ""))
}

// A new user's four mistakes: the error says what to change.
func TestErrorsOfStoresSayWhatToChange(t *testing.T) {
	d := double(t, s3double.Config{}, 1)
	real := s3gateway.Start(t, s3gateway.Config{Bucket: bucket}, 1)
	html := double(t, s3double.Config{Rules: []s3double.Rule{{Fault: s3double.Fault{
		Kind: s3double.HTML}}}}, 1)
	for _, c := range []struct {
		name, id, secret string
		urls             []string
		args             []string
		words            []string
	}{
		{"key", "other", "secret", d.URLs(), nil, []string{"AWS_ACCESS_KEY_ID"}},
		{"key", "other", "secret", real.URLs(), nil, []string{"AWS_ACCESS_KEY_ID"}},
		{"secret", "key", "other", d.URLs(), nil, []string{"AWS_SECRET_ACCESS_KEY"}},
		{"secret", "key", "other", real.URLs(), nil, []string{"AWS_SECRET_ACCESS_KEY"}},
		{"region", "key", "secret", d.URLs(), []string{"-s3-region=eu-west-1"},
			[]string{"-s3-region", "us-east-1"}},
		{"region", "key", "secret", real.URLs(), []string{"-s3-region=eu-west-1"},
			[]string{"-s3-region"}},
		{"bucket", "key", "secret", d.URLs(), []string{"-cache-dir=s3://missing/x"},
			[]string{"missing", "-cache-dir"}},
		{"bucket", "key", "secret", real.URLs(), []string{"-cache-dir=s3://missing/x"},
			[]string{"missing", "-cache-dir"}},
		{"page", "key", "secret", html.URLs(), nil, []string{"-s3-endpoint", html.URLs()[0]}},
	} {
		b := newObjectBench(t)
		b.keys(c.id, c.secret, "")
		o := b.run(append(append(append(b.micro(), b.objects(c.urls)...), "-test.bench=Synthetic"),
			c.args...)...)
		assert.NotZero(t, o.code, c.name)
		for _, word := range c.words {
			assert.Contains(t, o.stdout+o.stderr, word, "%s at %v", c.name, c.urls)
		}
	}
}

// Blocks as LMCache has them, plain I/O and removals on a real store behind two equal endpoints.
func TestARunOnARealStore(t *testing.T) {
	s := s3gateway.Start(t, s3gateway.Config{Bucket: bucket}, 2)
	b := newObjectBench(t)
	for _, args := range [][]string{
		{"-test.bench=StorageCeiling/op=(churn|delete)$", "-ceiling-size-gb=0.1"},
		{"-test.bench=BlockTrace", "-block-trace-path=" + data(t, "mooncake-small.jsonl"),
			"-layout=block", "-s3-lookup=head", "-trace-speedup=0", "-verify=full"},
	} {
		b.ok(append(append(append(b.micro(), b.objects(s.URLs())...), "-test.benchtime=1s",
			"-s3-keys=lmcache", "-storage-capacity-gb=0.25"), args...)...)
	}
	files := resultFiles(t, b.results)
	require.Len(t, files, 3)
	for _, path := range files {
		r := theResult(t, filepath.Dir(path))
		assert.Equal(t, result.StatusComplete, r.Status, path)
		assert.Equal(t, result.IOObjects, r.IO.Mode, path)
		require.NotNil(t, r.Objects, path)
		require.Len(t, r.Endpoints, 2, path)
		for name, op := range r.Objects.Operations {
			assert.Zero(t, op.Failed, "%s in %s", name, path)
		}
		if c := r.BlockCache; c != nil { // a block is two objects, but for short ones
			assert.EqualValues(t, []int64{258, 92, 166}, []int64{c.Blocks, c.Hits, c.Written})
			assert.Positive(t, r.Objects.Operations["head"].Requests)
			assert.Greater(t, r.Objects.Operations["put"].Requests, int64(3*166/2))
			assert.Zero(t, r.Objects.Operations["put_part"].Requests, "engines write whole objects")
		}
	}
	left, err := filepath.Glob(filepath.Join(s.Dir, bucket, "[^.]*"))
	require.NoError(t, err)
	assert.Empty(t, left, "nothing is left behind")
}
