package golden

import (
	"embed"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false,
	"rewrite the golden files of the tests that run; look at the difference before committing it")

// Check compares got with testdata/<name>.
func Check(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update, then look at the file")
	assert.Equal(t, string(want), got, "%s: run the test with -update if this is meant", path)
}

//go:embed testdata/*.json
var parts embed.FS

// Parts writes results that have what only some benchmarks have, one file each, and returns their
// paths: an autoscaled run, the same simulated, a block trace with its validation, and a replay.
// Whoever lays out results shows all of it.
func Parts(t testing.TB) (paths []string) {
	t.Helper()
	for _, name := range []string{"autoscaled-simulated", "autoscaled", "blocks", "replay"} {
		data, err := fs.ReadFile(parts, "testdata/"+name+".json")
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "kvcache_results_1.json")
		require.NoError(t, os.WriteFile(path, data, 0o644))
		paths = append(paths, path)
	}
	return paths
}
