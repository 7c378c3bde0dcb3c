package golden

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

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
