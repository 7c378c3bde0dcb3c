package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFilesThatAreOverwritten: entries that are replaced all the time, in files that stay. Every
// byte is compared; a run that was killed is taken back, and what is the user's stays.
func TestFilesThatAreOverwritten(t *testing.T) {
	t.Parallel()
	b, root, before := userBench(t)
	args := append(append(b.micro(), b.places()...), "-division=open", "-recycle",
		"-storage-capacity-gb=0.006", "-num-users=8", "-arrival=closed-loop", "-verify=full")

	p := b.start(append(args, "-test.bench=PrefillOnly", "-test.benchtime=10m")...)
	b.working()
	assert.NoError(t, p.Process.Kill())
	p.end()

	o := b.ok(append(args, "-test.bench=MultiTurn", "-test.benchtime=600x")...)
	assert.Equal(t, before, tree(t, root))
	r := theResult(t, b.results)
	storage := r.Tiers[len(r.Tiers)-1]
	assert.Contains(t, storage.Description, ", files overwritten in place")
	assert.Positive(t, storage.Evicted.Entries)
	assert.Positive(t, storage.Read.Bytes)
	assert.Zero(t, r.Requests.Failed)
	assert.LessOrEqual(t, storage.WasteBytes, *storage.CapacityBytes)
	assert.Contains(t, strings.Join(r.Warnings, "\n"), "of an earlier run that was killed")
	assert.Contains(t, o.stdout+o.stderr, "recycle")

	has(t, b.refused("-test.bench=Synthetic", "-recycle", "-layout=vllm-fs"), "-recycle: must be",
		"-layout")
	has(t, b.refused("-test.bench=StorageCeiling", "-recycle"), "-recycle: must be")
	has(t, b.refused("-test.bench=Synthetic", "-recycle", "-cache-dir=s3://bucket/x",
		"-storage-capacity-gb=1", "-s3-endpoint=http://127.0.0.1:1"), "-recycle: must be false")
}
