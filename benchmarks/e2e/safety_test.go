package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// entryLike is a name that the suite could give to a file of its own.
const entryLike = "ab/0123456789abcdef0123456789abcd-0000000000000001"

// userFiles puts a user's files into dir, and others next to it to which links
// in dir point. It returns the directory of both.
func userFiles(t testing.TB, dir string) (root string) {
	t.Helper()
	root = filepath.Dir(dir)
	outside := filepath.Join(root, "outside")
	old := time.Date(2020, 2, 29, 12, 0, 0, 123456789, time.UTC)
	for name, mode := range map[string]os.FileMode{
		filepath.Join(dir, "weights.npy"):         0o644,
		filepath.Join(dir, ".hidden"):             0o600,
		filepath.Join(dir, ".kvbench.json"):       0o644, // in the cache directory it marks nothing
		filepath.Join(dir, "read-only.npy"):       0o400,
		filepath.Join(dir, "run.sh"):              0o755,
		filepath.Join(dir, entryLike):             0o644,
		filepath.Join(dir, "sub/deeper/x.npy"):    0o644,
		filepath.Join(dir, "sub/.dot"):            0o640,
		filepath.Join(dir, "rank_00/y.npy"):       0o644,
		filepath.Join(dir, "rank_1/z.npy"):        0o644,
		filepath.Join(dir, "rank_1", entryLike):   0o644,
		filepath.Join(dir, "rank_0.old/z.npy"):    0o644,
		filepath.Join(outside, "precious.npy"):    0o644,
		filepath.Join(outside, "ab/precious.npy"): 0o644,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte("the user's "+name), mode))
		require.NoError(t, os.Chtimes(name, old, old))
	}
	for link, target := range map[string]string{
		"out": outside, "precious": filepath.Join(outside, "precious.npy"),
		"nowhere": "does/not/exist",
		"rank_2":  outside, "sub/up": "../..",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	return root
}

// userBench is a bench whose cache directory holds a user's files, and what a
// look at them must show ever after.
func userBench(t testing.TB) (b *bench, root string, before map[string]string) {
	b = newBench(t)
	b.cache = filepath.Join(b.work, "user/cache")
	root = userFiles(t, b.cache)
	return b, root, tree(t, root)
}

// long runs until something ends it; its entries are what the quick division makes.
func (b *bench) long() []string {
	return append(b.places(), "-test.bench=MaxStorageStress", "-test.benchtime=10m",
		"-storage-capacity-gb=1")
}

// working waits until the run writes entries. A first file may be a trial of
// what the filesystem can do.
func (b *bench) working() {
	b.t.Helper()
	eventually(b.t, "entries in "+b.cache, func() bool {
		files, _ := filepath.Glob(filepath.Join(b.cache, "rank_0/*/*"))
		return len(files) > 2
	})
}

// hybridModel has two groups of layers, which engines keep apart, and 512 bytes of a token.
const hybridModel = `{"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 2,
	"num_key_value_heads": 2, "head_dim": 16, "torch_dtype": "bfloat16", "sliding_window": 64,
	"layer_types": ["sliding_attention", "full_attention", "sliding_attention",
	"full_attention"]}`

// TestUserFilesSurviveSIGKILL kills runs of each kind of layout at random moments: before the directory
// is made, while it fills, in the window, while it is cleaned. The next run removes what the killed one left.
func TestUserFilesSurviveSIGKILL(t *testing.T) {
	t.Parallel()
	b, root, before := userBench(t)
	model := filepath.Join(b.work, "config.json")
	require.NoError(t, os.WriteFile(model, []byte(hybridModel), 0o600))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	leftovers := 0
	for _, layout := range []string{"entry", "slots", "packed=3", "lmcache-fs", "hicache-file",
		"kvbm-slots", "mooncake-bucket", "entry"} {
		args := append(b.places(), "-test.bench=BlockTrace", "-test.benchtime=10m", "-model", model,
			"-block-trace-path="+data(t, "mooncake-small.jsonl"), "-trace-speedup=0",
			"-replay-cycles=0", "-division=open", "-storage-capacity-gb=0.05", "-layout", layout)
		if strings.Contains(layout, "-") {
			args = append(args, "-object-tokens=16")
		}
		if layout == "entry" { // whose run may also be killed before it has a directory, and at its end
			args = append(args, "-test.benchtime=300ms")
		}
		p := b.start(args...)
		if layout != "entry" {
			eventually(t, "the files of "+layout, func() bool { return b.holds(p) })
		}
		// The moment is what is random; nothing is waited for.
		<-time.After(time.Duration(rng.IntN(450)) * time.Millisecond)
		require.NoError(t, p.Process.Kill())
		p.end()
		now := tree(t, root)
		if exists(filepath.Join(b.cache, "rank_0")) {
			leftovers++
		}
		for name, text := range before {
			assert.Equal(t, text, now[name], name)
		}
	}
	assert.GreaterOrEqual(t, leftovers, 6, "killed runs leave something")
	require.NoError(t, os.RemoveAll(b.results))
	b.ok(b.few(b.places()...)...)
	assert.Equal(t, before, tree(t, root), "the next run reclaims everything")
	r := theResult(t, b.results)
	assert.Equal(t, result.StatusComplete, r.Status)
}

// holds reports whether a run holds the directory and has files of its load there.
func (b *bench) holds(p *process) bool {
	var marker struct{ PID int }
	text, _ := os.ReadFile(filepath.Join(b.cache, "rank_0/.kvbench.json"))
	_ = json.NewDecoder(strings.NewReader(string(text))).Decode(&marker)
	files, _ := filepath.Glob(filepath.Join(b.cache, "rank_0/[^.]*"))
	return marker.PID == p.Process.Pid && len(files) > 0
}
