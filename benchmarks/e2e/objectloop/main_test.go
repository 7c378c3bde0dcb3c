package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/objecttier/s3double"
)

func TestClientsDoTheSame(t *testing.T) {
	for name := range clients {
		for _, op := range []string{"put", "get"} {
			d := s3double.Start(t, s3double.Config{Buckets: []string{"bench"}, Anonymous: true}, 1)
			var stdout, stderr bytes.Buffer
			code := run([]string{"-endpoint", d.URLs()[0], "-client", name, "-op", op, "-size",
				"70000", "-in-flight", "3", "-warm", "1ms", "-time", "1ms"}, &stdout, &stderr)
			require.Zero(t, code, "%s %s: %s", name, op, stderr.String())
			var o outcome
			require.NoError(t, json.Unmarshal(stdout.Bytes(), &o))
			assert.Positive(t, o.PeakRSS)
			assert.Equal(t, o.Requests*70_000, o.Bytes)
			counts, bytes := map[s3double.Op]int{}, int64(0)
			for _, e := range d.Log() {
				counts[e.Op]++
				if e.Op == s3double.Get {
					bytes += e.BytesOut
				}
			}
			if op == "put" {
				assert.Positive(t, counts[s3double.Delete])
				assert.Positive(t, counts[s3double.Put])
			} else {
				assert.GreaterOrEqual(t, bytes, o.Bytes)
			}
			assert.Zero(t, counts[s3double.Location], "nobody asks for the region")
		}
	}
}

func TestFlagsThatAreWrong(t *testing.T) {
	var stderr bytes.Buffer
	assert.Equal(t, 2, run([]string{"-client", "no"}, &stderr, &stderr))
	assert.Contains(t, stderr.String(), "-client is one of bare, minio, minio-core")
	stderr.Reset()
	assert.Equal(t, 1, run([]string{"-endpoint", "http://127.0.0.1:1"}, &stderr, &stderr))
	assert.Contains(t, stderr.String(), "connection refused")
}
