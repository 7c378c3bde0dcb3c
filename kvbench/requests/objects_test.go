package requests

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/endpoint"
	"kvbench/tiers/objecttier/s3test"
	"kvbench/tiers/objecttier/store"
	"kvbench/workloads"
)

// bucket replaces the directory by a bucket of a test store. Small ranges and parts make many
// requests.
func bucket(d *s3test.Server, capacity int64) func(*runConfig) {
	return func(c *runConfig) {
		c.Storage.StorageBytes, c.Storage.Depth = capacity, 2
		c.Storage.Bucket = &kvbench.Bucket{URLs: d.URLs(), Balance: endpoint.RoundRobin,
			Config: objecttier.Config{
				Store: store.Config{Bucket: "bucket", Region: "us-east-1", Payload: store.Unsigned,
					Credentials: store.StaticCredentials("key", "secret", ""),
					Retries:     3, Timeout: 30 * time.Second, ConnectTimeout: 5 * time.Second,
					Connections: 64},
				Prefix: "runs", Names: objecttier.Names{Format: objecttier.Own},
				MultipartAbove: 40 << 10, PartSize: 32 << 10, RangeSize: 28 << 10}}
	}
}

func double(t *testing.T, rules ...s3test.Rule) *s3test.Server {
	return s3test.Start(t, s3test.Config{Buckets: []string{"bucket"},
		Rules: rules}, 2)
}

// The cache's decisions do not depend on where the bytes are, and nothing of a run stays in the
// bucket.
func TestObjectsHitAsAnyTierDoes(t *testing.T) {
	const capacity = 3 << 20
	d := double(t)
	files, want := replayBlocks(t, smallTrace, 1, nullTiers(capacity))
	objects, got := replayBlocks(t, smallTrace, 1, bucket(d, capacity))
	assert.Equal(t, want, got)
	assert.Equal(t, files.BlockCache.Hits, objects.BlockCache.Hits)
	assert.Equal(t, files.Tiers[0].Evicted, objects.Tiers[0].Evicted)
	assert.Equal(t, files.Tiers[0].Read.Bytes, objects.Tiers[0].Read.Bytes)
	assert.Equal(t, files.Tiers[0].Write.Bytes, objects.Tiers[0].Write.Bytes)
	assert.Equal(t, "s3", objects.IO.Mode)
	assert.Empty(t, d.Keys("bucket", ""))
	assert.Empty(t, d.Uploads("bucket"))
}

// A HEAD for each block until the first that the store lacks, before a GET of the request.
func TestLookupsComeBeforeReads(t *testing.T) {
	d := double(t)
	var want int64
	_, _ = replayBlocks(t, smallTrace, 1, func(c *runConfig) {
		bucket(d, 1<<30)(c)
		c.Storage.Bucket.Lookup = true
		c.OnBlocks = func(_ *workloads.Request, s record.BlockSample) {
			want += s.Hits
			if s.Hits < s.Blocks {
				want++
			}
		}
	})
	var heads, missed int64
	for _, e := range d.Log() {
		if e.Op != s3test.Head || checks(e.Key) {
			continue
		}
		heads++
		if e.Status == http.StatusNotFound {
			missed++
		}
	}
	assert.Equal(t, want, heads)
	assert.Positive(t, missed)
}

func checks(key string) bool { return strings.Contains(key, "/.kvbench-check-") }

// A permanent error ends the trial, with its result and without waiting for the rest.
func TestAStoreEndsTheTrial(t *testing.T) {
	for name, c := range map[string]struct {
		rule s3test.Rule
		want string
	}{
		"full": {s3test.Rule{Op: s3test.Put, Key: "/[0-9a-f]{2}/", Nth: 20,
			Fault: s3test.Fault{Kind: s3test.Status, Status: 507}}, "the store is full"},
		"other bytes": {s3test.Rule{Op: s3test.Get, Key: "/[0-9a-f]{2}/", Nth: 3,
			Fault: s3test.Fault{Kind: s3test.Flip, At: 100}},
			"what was read is not what was written"},
	} {
		d := double(t, c.rule)
		cfg := blockConfig(smallTrace, 1)
		bucket(d, 1<<30)(&cfg)
		cfg.Storage.Bucket.MultipartAbove, cfg.Storage.Bucket.RangeSize = 5<<30, 0
		cfg.Storage.Verify = 2
		res, err := runLoad(t.Context(), cfg)
		require.Error(t, err, name)
		require.NotNil(t, res, name)
		assert.Equal(t, result.StatusFailed, res.Status, name)
		assert.Contains(t, res.Error, c.want, name)
		assert.Contains(t, res.Error, "runs/rank_0/", "%s: which object", name)
		assert.Empty(t, d.Keys("bucket", ""), name)
	}
}
