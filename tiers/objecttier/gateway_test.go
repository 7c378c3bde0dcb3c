package objecttier_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/credentials"
	"kvbench/tiers/objecttier/endpoint"
	"kvbench/tiers/objecttier/s3gateway"
	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/tiertest"
)

// gatewayConfig is for a tier at the endpoints of a store that another has written, with the sizes
// of parts that it admits.
func gatewayConfig(t testing.TB, s *s3gateway.Store) objecttier.Config {
	t.Helper()
	clk := tiertest.Wall()
	set, err := endpoint.NewSet(s.URLs(), endpoint.RoundRobin, 0, clk.Now)
	require.NoError(t, err)
	return objecttier.Config{
		Store: store.Config{Bucket: s.Bucket, Endpoints: set, Region: s.Region,
			Credentials: credentials.Credentials{ID: s.AccessKey,
				Secret: credentials.NewSecret(s.SecretKey)},
			Payload: store.Unsigned, Retries: 3, Timeout: 30 * time.Second,
			ConnectTimeout: 5 * time.Second, Connections: 32, Clock: clk,
			Random: func() float64 { return 1 }},
		Prefix: "a/b", Rank: int(rank.Add(1)), Names: objecttier.Names{Format: objecttier.Own},
		MultipartAbove: 6 << 20, PartSize: 5 << 20, RangeSize: 1 << 20, Depth: 3, Nonce: "test"}
}

// TestAStoreOfOthersKeepsTheContract is the same as with the double, on a store whose author knew
// nothing of this tier: with each protection of bodies that it has.
func TestAStoreOfOthersKeepsTheContract(t *testing.T) {
	s := s3gateway.Start(t, s3gateway.Config{Bucket: "bucket"}, 2)
	for _, payload := range []store.Payload{store.Unsigned, store.Signed, store.CRC32C,
		store.CRC64NVME} {
		t.Run(string(payload), func(t *testing.T) {
			tiertest.Run(t, func(t testing.TB) tiers.Tier {
				c := gatewayConfig(t, s)
				c.Store.Payload = payload
				return open(t, c)
			})
			// Large enough for parts, and for the ranges that read it.
			c := gatewayConfig(t, s)
			c.Store.Payload = payload
			tier, err := objecttier.Open(t.Context(), c)
			require.NoError(t, err)
			assert.Empty(t, tier.Warnings())
			o := tiers.Object{Key: "parts", Gen: 1, Size: 17<<20 + 13}
			told, n := sums()
			_, err = tier.Put(t.Context(), o, body(o), told)
			require.NoError(t, err)
			bufs := make([]tiers.Buffer, 3)
			for i := range bufs {
				bufs[i].B = make([]byte, 256<<10)
			}
			_, err = tier.Get(t.Context(), o, bufs, func(p []byte, off int64) error {
				return tiertest.Content.Check(p, o, off)
			}, told)
			require.NoError(t, err)
			assert.Equal(t, o.Size, n[tiers.Write])
			assert.Equal(t, o.Size, n[tiers.Read])
			require.NoError(t, tier.Clear(t.Context(), nobody))
			require.NoError(t, tier.Close())
		})
	}
	// Past the protocol, in the directory that is the bucket: no object, and no part of an upload.
	dir := filepath.Join(s.Dir, s.Bucket)
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			t.Errorf("left behind: %s", strings.TrimPrefix(path, dir))
		}
		return err
	}))
}
