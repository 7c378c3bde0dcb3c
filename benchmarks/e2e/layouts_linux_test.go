package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hybridModel has two groups of layers, which engines keep apart, and 512 bytes of a token.
const hybridModel = `{"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 2,
	"num_key_value_heads": 2, "head_dim": 16, "torch_dtype": "bfloat16", "sliding_window": 64,
	"layer_types": ["sliding_attention", "full_attention", "sliding_attention",
	"full_attention"]}`

// TestLayoutsAreRemoved: the files of each kind of layout are removed after Ctrl-C, however long that
// takes, and after kill -9 by the next run. Both leave a user's files as they are.
func TestLayoutsAreRemoved(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"entry", "slots", "packed=3", "lmcache-fs", "hicache-file",
		"kvbm-slots", "mooncake-bucket"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			b, root, before := userBench(t)
			model := filepath.Join(b.work, "config.json")
			require.NoError(t, os.WriteFile(model, []byte(hybridModel), 0o600))
			args := append(b.places(), "-test.bench=BlockTrace", "-test.benchtime=10m", "-model",
				model, "-block-trace-path="+data(t, "mooncake-small.jsonl"), "-trace-speedup=0",
				"-replay-cycles=0", "-division=open", "-storage-capacity-gb=0.05", "-layout", layout)
			if strings.Contains(layout, "-") {
				args = append(args, "-object-tokens=16")
			}

			p := b.start(args...)
			b.holds(layout, p)
			require.NoError(t, p.Process.Kill())
			p.end()
			mine := filepath.Join(b.cache, "rank_0/mine.bin")
			require.NoError(t, os.WriteFile(mine, nil, 0o600))

			b.terminal(100) // without one the run removes files for about a second only
			p = b.start(args...)
			b.holds(layout, p)
			require.NoError(t, p.Process.Signal(os.Interrupt))
			assert.Equal(t, 130, p.end().code)
			warnings := strings.Join(interrupted(t, b).Warnings, "\n")
			if layout != "kvbm-slots" { // whose file has no name
				assert.Regexp(t, `reclaimed \d+ files .* of an earlier run that was killed`, warnings)
			}
			left, err := filepath.Glob(filepath.Join(b.cache, "rank_0/[^.]*"))
			require.NoError(t, err)
			assert.Equal(t, []string{mine}, left)
			require.NoError(t, os.RemoveAll(filepath.Join(b.cache, "rank_0")))
			assert.Equal(t, before, tree(t, root))
		})
	}
}

// holds waits until a run holds the directory and has files of its load there.
func (b *bench) holds(layout string, p *process) {
	b.t.Helper()
	rank, files := filepath.Join(b.cache, "rank_0"), 3 // an entry, and what there is at the start
	if regexp.MustCompile(`slots|raw|offset|bucket`).MatchString(layout) {
		files = 1 // with many objects
	}
	eventually(b.t, "files of "+layout, func() bool {
		var marker struct{ PID int }
		text, _ := os.ReadFile(filepath.Join(rank, ".kvbench.json"))
		_ = json.NewDecoder(strings.NewReader(string(text))).Decode(&marker)
		if marker.PID != p.Process.Pid {
			return false
		}
		n := 0
		_ = filepath.WalkDir(rank, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && e.Name() != ".kvbench.json" &&
				e.Name() != "config.json" && e.Name() != "mine.bin" {
				n++
			}
			if n == files {
				return fs.SkipAll
			}
			return nil
		})
		return n == files || layout == "kvbm-slots" && exists(filepath.Join(rank, "engine"))
	})
}
