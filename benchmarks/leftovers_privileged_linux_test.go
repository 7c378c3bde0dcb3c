package benchmarks

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/tiers/tiertest"
)

// smallModels keep 512 bytes of a token or fewer, each in another way.
var smallModels = map[string]string{
	"plain": `{"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 2,
		"num_key_value_heads": 2, "head_dim": 16, "torch_dtype": "bfloat16"}`,
	"hybrid": `{"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 2,
		"num_key_value_heads": 2, "head_dim": 16, "torch_dtype": "bfloat16", "sliding_window": 16,
		"layer_types": ["sliding_attention", "full_attention", "sliding_attention",
		"full_attention"]}`,
	"mla": `{"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 2,
		"num_key_value_heads": 2, "kv_lora_rank": 48, "qk_rope_head_dim": 16,
		"torch_dtype": "bfloat16"}`,
}

// smallTraces writes 150 requests of 128 tokens, as a trace of blocks of 16 tokens and as one of
// prompts. They fill a bucket of mooncake-bucket, which holds 500 objects.
func smallTraces(t *testing.T, dir string) (blocks, prompts string) {
	var rows, lines strings.Builder
	lines.WriteString("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n")
	for row := range 150 {
		n := 10 * (row + 1)
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 128, "output_length": 1, `+
			`"block_size": 16, "hash_ids": [0, 1, 2, %d, %d, %d, %d, %d]}`+"\n", row, n, n+1, n+2,
			n+3, n+4)
		fmt.Fprintf(&lines, "%d,ChatGPT,128,1,129,Conversation log\n", row)
	}
	blocks, prompts = filepath.Join(dir, "blocks.jsonl"), filepath.Join(dir, "prompts.csv")
	require.NoError(t, os.WriteFile(blocks, []byte(rows.String()), 0o600))
	require.NoError(t, os.WriteFile(prompts, []byte(lines.String()), 0o600))
	return blocks, prompts
}

// inMemory lets a directory lie in memory where this user may mount and O_DIRECT works there: on a
// disk the flushes of a thousand trials take most of the time.
func inMemory(t *testing.T, dir string) {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512m"); err != nil {
		t.Logf("on a disk, because of mount: %v", err)
		return
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	fd, err := unix.Open(dir+"/direct", unix.O_CREAT|unix.O_RDWR|unix.O_DIRECT, 0o600)
	if err != nil {
		t.Logf("on a disk, because of O_DIRECT on tmpfs: %v", err)
		require.NoError(t, unix.Unmount(dir, 0))
		return
	}
	require.NoError(t, unix.Close(fd))
}

// resolveArgs checks the parameters of a command.
func resolveArgs(t *testing.T, bench string, args ...string) (*params.Values, error) {
	b, ok := params.Benchmark(bench)
	require.True(t, ok)
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	set := params.Register(fs)
	require.NoError(t, fs.Parse(args))
	return set.Resolve(params.Inputs{Bench: b, Base: t.TempDir(), BenchTime: "1h"})
}

// layoutArgs are the arguments for each layout: the words of -layout, as its error lists them, and
// the variants of the suite's own that have files of another kind.
func layoutArgs(t *testing.T) (list [][]string) {
	_, err := resolveArgs(t, "BlockTrace", "-layout", "none-such")
	require.Error(t, err)
	words := regexp.MustCompile(`one of (entry, .*) or packed=N`).FindStringSubmatch(err.Error())
	require.Len(t, words, 2, err.Error())
	for _, word := range strings.Split(words[1], ", ") {
		args := []string{"-layout", word}
		if strings.Contains(word, "-") { // an engine's, which cuts prompts
			args = append(args, "-object-tokens", "16")
		} else {
			args = append(args, "-io-engine", "psync")
		}
		list = append(list, args)
	}
	return append(list, []string{"-layout", "packed=3"})
}

// oneFile matches the layouts of which an early file holds many objects.
var oneFile = regexp.MustCompile(`slots|raw|offset|bucket`)

var errInterrupt = errors.New("interrupt")

// trialOf runs a trial of a command; with interrupt until it has a file.
func trialOf(t *testing.T, interrupt bool, bench string, args ...string) *result.Result {
	if interrupt {
		args = append(slices.Clone(args), "-replay-cycles", "0") // it does not end by itself
	}
	v, err := resolveArgs(t, bench, args...)
	require.NoError(t, err)
	cfg, err := trialConfig(v, 0)
	require.NoError(t, err)
	cfg.AwaitDiscards, cfg.Climb = false, nil
	cfg.Publish = func(*result.Result) error { return nil }
	load, err := requestLoad(v, cfg.Storage)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if !interrupt {
		r, err := kvbench.Run(ctx, cfg, load)
		require.NoError(t, err)
		require.Equal(t, result.StatusComplete, r.Status)
		return r
	}
	files := 3 // an entry and what else the layout makes at its start
	if oneFile.MatchString(v.Layout) {
		files = 1
	}
	go func() {
		// The file of kvbm-slots has no name as soon as it is open.
		for ctx.Err() == nil && len(filesOf(v.CacheDir())) < files &&
			!(v.Layout == "kvbm-slots" && exists(v.CacheDir()+"/rank_0/engine")) {
			<-time.After(100 * time.Microsecond)
		}
		cancel(kvbench.Interrupted{Why: errInterrupt, Attended: true})
	}()
	r, err := kvbench.Run(ctx, cfg, load)
	require.ErrorIs(t, err, errInterrupt)
	return r
}

// filesOf are the files below a cache directory, which may be changing, but for those that say
// whose it is.
func filesOf(dir string) (paths []string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != ".kvbench.json" && e.Name() != "config.json" {
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestEveryLayoutRemovesItsFiles when its run ends, when it is interrupted, and when the run before
// has left them. A user's file in the directory stays.
func TestEveryLayoutRemovesItsFiles(t *testing.T) {
	if tiertest.Race {
		t.Skip("the race detector makes this take a minute, and each layout has its own tests")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a result is small and short-lived
	work := t.TempDir()
	inMemory(t, work)
	blocks, prompts := smallTraces(t, work)
	kept := make(map[string]bool)
	for model, text := range smallModels {
		if testing.Short() && model != "hybrid" {
			continue // whose objects are in several groups of files, and else as the others'
		}
		file := filepath.Join(work, model, "config.json")
		require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		for _, layout := range layoutArgs(t) {
			for _, tpIO := range []string{"one", "all"} {
				for _, load := range [][]string{{"BlockTrace", "-block-trace-path", blocks},
					{"BurstGPT", "-burst-trace-path", prompts}} {
					name := strings.Join([]string{strings.Join(layout[1:], ""), model, tpIO,
						load[0]}, ",")
					cache := filepath.Join(work, strings.ReplaceAll(name, ",", "_"))
					args := slices.Concat(layout, load[1:], []string{"-division", "open",
						"-cache-dir", cache, "-storage-capacity-gb", "0.02", "-model", file,
						"-num-gpus", "2", "-tensor-parallel", "2", "-tp-io", tpIO,
						"-workers", "1", "-trace-speedup", "0", "-generation-mode", "none",
						"-verify", "full"})
					if _, err := resolveArgs(t, load[0], args...); err != nil {
						require.Regexp(t, `(?m)^-(layout|tp-io): must be`, err.Error(), name)
						continue
					}
					t.Run(name, func(t *testing.T) {
						some := leavesNothing(t, cache, load[0], args)
						kept[layout[1]] = kept[layout[1]] || some
					})
				}
			}
		}
	}
	for _, layout := range layoutArgs(t) {
		name := layout[1]
		assert.True(t, kept[name] || name == "kvbm-slots", "no run of -layout %s left files", name)
	}
}

// leavesNothing makes a run of each kind in one cache directory, and reports whether the one that
// kept its files, which is what a killed one does, had some.
func leavesNothing(t *testing.T, cache, bench string, args []string) (kept bool) {
	trialOf(t, true, bench, append(args, "-keep-files")...)
	kept = len(filesOf(cache)) > 0
	users := filepath.Join(cache, "rank_0", "mine.bin")
	require.NoError(t, os.WriteFile(users, nil, 0o600))

	measured := append(args, "-max-requests", "2")
	first := trialOf(t, false, bench, measured...)
	require.Equal(t, []string{users}, filesOf(cache), "after a run that found files")
	require.NoError(t, os.Remove(users))

	trialOf(t, true, bench, args...)
	require.NoDirExists(t, cache, "after an interruption")

	if bench == "BlockTrace" { // a result costs most of this test's time
		second := trialOf(t, false, bench, measured...)
		require.Equal(t, first.Digest, second.Digest)
		require.NoDirExists(t, cache, "after a run")
	}
	return kept
}
