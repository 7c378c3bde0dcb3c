package golden

import (
	"embed"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false,
	"rewrite the golden files of the tests that run; look at the difference before committing it")

// Update reports whether the tests are run with -update.
func Update() bool { return *update }

// Check compares got with testdata/<name> of the package under test. With -update it writes the
// file instead: read the difference line by line before you commit it.
func Check(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	// A missing file is an error: otherwise a test without its file would pass.
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update, then look at the file")
	if string(want) == got {
		return
	}
	t.Errorf("%s differs; run the test with -update if this is meant", path)
	old, new := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for shown, i := 0, 0; i < max(len(old), len(new)) && shown < 10; i++ {
		if i >= len(old) || i >= len(new) || old[i] != new[i] {
			t.Errorf("line %d: want %q, got %q", i+1, line(old, i), line(new, i))
			shown++
		}
	}
}

// line is the i-th line, cut to a terminal's width, or empty after the end.
func line(lines []string, i int) string {
	if i >= len(lines) {
		return ""
	}
	return lines[i][:min(len(lines[i]), 160)]
}

// JSON encodes a value like the commands' JSON output.
func JSON(t testing.TB, v any) string {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return b.String()
}

// parts are four results that the engine built once: forty seconds in which 1 MiB a second was
// written, with the sections of one benchmark each put in by hand. They are kept as files, so that
// tests of what reads results need no engine.
//
//	autoscaled-simulated  four rounds of the autoscaler of capacity, on a device model
//	autoscaled            the same, measured
//	blocks                block hits and the ideal ones, and a validation that failed in part
//	replay                counts of an I/O trace
//
// A fifth is made by package objects, whose test pins it: requests to a store of two endpoints.
//
//go:embed testdata/*.json
var parts embed.FS

// Parts writes results with sections of some benchmarks only, one file each, and returns their
// paths: an autoscaled run, the same simulated, a block trace with its validation, a replay, and a
// run on an object store.
func Parts(t testing.TB) (paths []string) {
	t.Helper()
	for _, name := range []string{"autoscaled-simulated", "autoscaled", "blocks", "replay",
		"objects"} {
		data, err := fs.ReadFile(parts, "testdata/"+name+".json")
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "kvcache_results_1.json")
		require.NoError(t, os.WriteFile(path, data, 0o644))
		paths = append(paths, path)
	}
	return paths
}
