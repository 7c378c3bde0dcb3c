package formats

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
)

func TestReadValidation(t *testing.T) {
	const text = `[{"cache_hit": true, "read_bytes": 300, "write_bytes": 100, "context_tokens": 5},
		{"cache_hit": false, "read_bytes": 0, "write_bytes": 50, "phase": {"x": [1]}},
		{"cache_hit": true, "read_bytes": 2.5e2}]`
	for _, name := range []string{"v.json", "v.json.gz", "v.json.zst"} {
		path := file(t, name, text)
		v, err := ReadValidation(path)
		require.NoError(t, err)
		assert.Equal(t, Validation{TraceReport: workloads.TraceReport{Rows: 3}, Path: path, Requests: 3,
			Lookups: 3, Hits: 2, ReadBytes: 550, WriteBytes: 150, ContextTokens: 5}, v)
	}
	for text, want := range map[string]string{
		`{}`:                        "want cache_hit, read_bytes or write_bytes",
		``:                          "unexpected EOF",
		`[`:                         "unexpected EOF",
		"[\n{\"cache_hit\": true},": "v.json:2:",
		`[]`:                        "none of its 0 rows has cache_hit or write_bytes",
		`[{"cache_hit": true}, {"cache_hit": "yes"}]`: "1 of the first 2 rows are malformed, more than 1 " +
			"%; the first is",
		`[{"cache_hit": true}, {"context_tokens": 1}]`: "want cache_hit, read_bytes or write_bytes",
		`[{"write_bytes": 1}, {"read_bytes": -1}]`:     "-1 bytes, want 0 to",
	} {
		_, err := ReadValidation(file(t, "v.json", text))
		assert.ErrorContains(t, err, want, text)
	}
	_, err := ReadValidation(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzValidation(f *testing.F) {
	f.Add([]byte(`[{"cache_hit": true, "read_bytes": 300, "write_bytes": 100}]`))
	f.Add([]byte(`[{"cache_hit": 1e999},`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(dir, "v.json")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		v, err := ReadValidation(path)
		if err == nil &&
			(v.Requests < 1 || v.Hits > v.Lookups || v.Lookups > v.Requests ||
				v.ReadBytes < 0 || v.WriteBytes < 0) {
			t.Errorf("%+v", v)
		}
	})
}
