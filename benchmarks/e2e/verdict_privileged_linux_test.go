package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/kvbench/result"
	"kvbench/tiers/objecttier/s3test"
	"kvbench/tiers/privtest"
)

// TestVerdicts runs in situations that are made so that one thing limits the run. A disk and a store
// with known latencies complete four requests at a time.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	slow := privtest.LoopOptions{DirectIO: true, NoJournal: true, Times: privtest.Times{
		Read: 20 * time.Millisecond, Write: 20 * time.Millisecond, Slots: 4}}
	discards := privtest.LoopOptions{DirectIO: true, Discard: true,
		Times: privtest.Times{Discard: 100 * time.Millisecond}}
	reads := []string{"-test.bench=BlockIO/op=read/size=64KiB$", "-ceiling-size-gb=0.03"}
	users := []string{"-test.bench=PrefillOnly$", "-storage-capacity-gb=0.05", "-arrival=closed-loop"}
	for name, c := range map[string]struct {
		disk  privtest.LoopOptions
		users bool // with entries of 256 KiB to 1 MiB
		args  []string
		want  string
	}{
		"full depth": {slow, false, append(reads, "-workers=16"), result.StorageLimited},
		"one worker": {slow, false, append(reads, "-workers=1"), result.LatencyLimited},
		"idle load":  {slow, true, append(users, "-num-users=1", "-workers=8"), result.LoadLimited},
		"small tier": {slow, true, append(users, "-num-users=128", "-workers=32",
			"-storage-capacity-gb=0.005"), result.CapacityLimited},
		"discards": {discards, true, append(users, "-num-users=64", "-workers=8",
			"-storage-capacity-gb=0.01"), result.DiscardLimited},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary(t)
			disk := privtest.LoopFS(t, 128, c.disk)
			b := newBench(t)
			b.cache = filepath.Join(disk.Dir, "cache")
			limited(t, b, c.want, append(b.places(), b.load(c.users, c.args)...))
		})
	}
	t.Run("another process", func(t *testing.T) {
		t.Parallel()
		binary(t)
		disk := privtest.LoopFS(t, 128, slow)
		b := newBench(t)
		b.cache = filepath.Join(disk.Dir, "cache")
		defer readOthers(t, filepath.Join(disk.Dir, "other"), 4)()
		limited(t, b, result.Shared, append(b.places(), b.load(false, append(reads, "-workers=4"))...))
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		binary(t)
		b := newBench(t)
		b.cache = filepath.Join(privtest.LoopFS(t, 128, privtest.LoopOptions{}).Memory, "cache")
		limited(t, b, result.CPULimited, append(b.places(), b.load(true, append(users,
			"-num-users=64", "-workers="+strconv.Itoa(runtime.NumCPU())))...))
	})
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		endToEnd(t)
		s := s3test.Start(t, s3test.Config{Buckets: []string{bucket}, Slots: 4, Rules: []s3test.Rule{
			{Fault: s3test.Fault{Kind: s3test.Delay, HeaderDelay: 50 * time.Millisecond}}}}, 1)
		b := newObjectBench(t, "key", "secret", "")
		limited(t, b, result.StorageLimited, append(b.objects(s.URLs()), b.load(true,
			append(users, "-num-users=128", "-workers=32"))...))
	})
}

// verdictConfig makes entries of 64 to 256 tokens of 4 KiB.
const verdictConfig = `
parameters: {model: small}
model_configs:
  small: {num_layers: 4, hidden_dim: 256, num_heads: 1, kv_heads: 1}
user_templates:
  chatbot: {context_range: [64, 256], generation_range: [1, 4], think_time_range: [0.01, 0.02]}
  coding: {context_range: [64, 256], generation_range: [1, 4], think_time_range: [0.01, 0.02]}
  document: {context_range: [64, 256], generation_range: [1, 4], think_time_range: [0.01, 0.02]}
`

func (b *bench) load(users bool, args []string) []string {
	args = append([]string{"-division=open", "-test.benchtime=3s", "-storage-capacity-gb=0.06"},
		args...)
	if !users {
		return args
	}
	path := filepath.Join(b.work, "small.yaml")
	require.NoError(b.t, os.WriteFile(path, []byte(verdictConfig), 0o644))
	return append([]string{"-config", path}, args...)
}

// limited checks the verdict of a run.
func limited(t *testing.T, b *bench, want string, args []string) {
	t.Helper()
	o := b.ok(args...)
	v := theResult(t, b.results).Harness.Verdict
	assert.Equal(t, want, v.Kind, v.Reason)
	assert.Regexp(t, `^the run moved [0-9.,]+ .?i?B/s with [0-9.,]+ I/O requests in flight: `, v.Reason)
	assert.Contains(t, o.stdout+o.stderr, v.Kind+", because "+v.Reason)
	t.Logf("%s: %s", v.Kind, v.Reason)
}

// readOthers makes a file and reads it with n requests in flight, past the page cache, until stop is
// called.
func readOthers(t *testing.T, path string, n int) (stop func()) {
	t.Helper()
	const size, request = 8 << 20, 128 << 10
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_DIRECT, 0o600)
	require.NoError(t, err)
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	_, err = f.WriteAt(memory, 0)
	require.NoError(t, err)
	var readers sync.WaitGroup
	over := make(chan struct{})
	for i := range n {
		readers.Go(func() {
			part := memory[i*request : (i+1)*request]
			for at := int64(i) * request; ; at = (at + int64(n)*request) % size {
				select {
				case <-over:
					return
				default:
				}
				if _, err := f.ReadAt(part, at); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		close(over)
		readers.Wait()
		assert.NoError(t, unix.Munmap(memory))
		assert.NoError(t, f.Close())
	}
}
