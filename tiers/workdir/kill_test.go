package workdir_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/workdir"
)

const victimEnv = "KVTEST_VICTIM_DIR"

// TestKilledRunsAreReclaimedAndHarmNothing runs itself as another process that opens, fills and closes
// a cache directory in a loop, and kills that process with SIGKILL after a random number of steps.
func TestKilledRunsAreReclaimedAndHarmNothing(t *testing.T) {
	if dir := os.Getenv(victimEnv); dir != "" {
		victim(t, dir)
		return
	}
	cache, outside := t.TempDir(), t.TempDir()
	workdir.UsersFiles(t, cache, outside)
	before, beyond := workdir.Tree(t, cache), workdir.Tree(t, outside)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	reclaimed, all := 0, int64(0)
	kills := 20
	if testing.Short() {
		kills = 6 // starting a process costs half a second under the race detector
	}
	for range kills {
		killAfter(t, cache, 1+rng.IntN(60))
		left := workdir.Left(workdir.Options{CacheDir: cache})
		d, err := workdir.Open(t.Context(), workdir.Options{CacheDir: cache})
		require.NoError(t, err)
		assert.Zero(t, workdir.Left(workdir.Options{CacheDir: cache}))
		all += left.Bytes
		reclaimed += d.Reclaimed().Files
		require.NoError(t, d.Close())
		require.Equal(t, before, workdir.Tree(t, cache))
	}
	assert.Equal(t, beyond, workdir.Tree(t, outside))
	assert.Positive(t, reclaimed, "some kills came while files were there")
	assert.Positive(t, all, "which was known before")
}

// killAfter starts the victim and kills it when it has reported that many steps.
func killAfter(t *testing.T, dir string, steps int) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), victimEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	in := bufio.NewScanner(out)
	for n := 0; n < steps && in.Scan(); n++ {
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
}

// victim works until it is killed, one line per step.
func victim(t *testing.T, dir string) {
	x := tiertest.Transfer(t, tiertest.Chunk, 2)
	engine := ioengine.NewPsync(x.Clock.Now)
	for run := uint64(0); ; run++ {
		fmt.Println("open")
		d, err := workdir.Open(t.Context(), workdir.Options{CacheDir: dir})
		require.NoError(t, err)
		layout := tiers.Layout{Kind: tiers.Layouts[run%4].Name, Bytes: 300_000, Places: 3}
		tier, err := filetier.New(t.Context(), filetier.Config{Dir: d, Engine: engine, Direct: run%2 == 0,
			Layout: layout, Capacity: 3_000_000})
		if errors.Is(err, tiers.ErrNotSupported) { // no holes on this platform
			require.NoError(t, d.Close())
			continue
		}
		require.NoError(t, err)
		for i := range 10 {
			fmt.Println("write")
			_, _, err := x.Write(context.Background(), tier, nil,
				tiers.Object{Key: fmt.Sprint("k", i), Gen: run, Size: 300_000})
			require.NoError(t, err)
		}
		fmt.Println("remove")
		require.NoError(t, tier.Remove(context.Background(), tiers.Object{Key: "k0", Gen: run}))
		fmt.Println("close")
		require.NoError(t, tier.Close())
		require.NoError(t, d.Close())
	}
}
