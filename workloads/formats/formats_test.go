package formats

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFilesOfADirectoryAPatternAndAName(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.csv", "a.CSV.gz", ".hidden.csv", "README.txt", "c.jsonl"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "c.csv"), 0o700))
	a, b := filepath.Join(dir, "a.CSV.gz"), filepath.Join(dir, "b.csv")
	d := filepath.Join(dir, "c.csv", "day", "d.csv")
	require.NoError(t, os.Mkdir(filepath.Dir(d), 0o700))
	require.NoError(t, os.WriteFile(d, nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".old"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".old", "e.csv"), nil, 0o600))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Dir(d), link))
	pattern := filepath.Join(dir, "[a-c].[cC]*")
	for path, want := range map[string][]string{dir: {a, b, d}, pattern: {a, b}, b: {b},
		link: {filepath.Join(link, "d.csv")}} {
		got, err := Azure.Files(path)
		require.NoError(t, err)
		assert.Equal(t, want, got, path)
	}
	got, err := Blocks.Files(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(dir, "c.jsonl")}, got)
	got, err = Azure.Files(filepath.Join(dir, "c.jsonl"))
	require.NoError(t, err)
	assert.Len(t, got, 1, "a name is taken at its word")
}

func TestNoFilesAreAnError(t *testing.T) {
	empty := t.TempDir()
	for path, want := range map[string]string{
		"":                             "no such file",
		filepath.Join(empty, "x.csv"):  "no such file",
		filepath.Join(empty, "*.csv"):  "matches no file",
		filepath.Join(empty, "[x.csv"): "syntax error in pattern",
		empty:                          "holds no file that ends in .csv, .csv.gz, .csv.zst",
	} {
		_, err := Azure.Files(path)
		assert.ErrorContains(t, err, want)
	}
}

// A file with numbers in the place of text takes no more memory than a file with text.
func TestShareGPTMemoryIsBoundedByTheText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talks.json")
	text := `[{"conversations": [{"from": "human", "value": [` + strings.Repeat("1.5,", 1<<20) +
		`1]}]}]`
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	counter := NewTokenizer(TokenizerChars, 4)
	rows, err := ShareGPT(100, 100, counter).Open(path)
	require.NoError(t, err)
	defer rows.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	row, err := rows.Next()
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	assert.Equal(t, Row{Context: 1}, row, "it has no question")
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8*len(text)))
}

func TestIdentityIsOfTheContent(t *testing.T) {
	made := func(texts ...string) (files []string) {
		dir := t.TempDir()
		for i, text := range texts {
			files = append(files, filepath.Join(dir, string(rune('a'+i))))
			require.NoError(t, os.WriteFile(files[i], []byte(text), 0o600))
		}
		return files
	}
	id := func(most int64, texts ...string) Identity {
		id, err := identify(made(texts...), most)
		require.NoError(t, err)
		return id
	}
	one := id(100, "abc", "de")
	assert.Equal(t, one, id(100, "abc", "de"), "wherever it lies")
	assert.Equal(t, []int64{2, 5, 5}, []int64{int64(one.Files), one.Bytes, one.HashedBytes})
	for _, other := range [][]string{{"abd", "de"}, {"ab", "cde"}, {"abcde"}, {"abc", "de", ""},
		{"de", "abc"}} {
		assert.NotEqual(t, one.SHA256, id(100, other...).SHA256, other)
	}
	// Above the bound only sizes count.
	long := id(4, "abc", "de", strings.Repeat("x", 9))
	assert.EqualValues(t, 4, long.HashedBytes)
	assert.Equal(t, long, id(4, "abc", "dE", strings.Repeat("y", 9)))
	assert.NotEqual(t, long.SHA256, id(4, "abc", "de", strings.Repeat("x", 8)).SHA256)
	_, err := Identify([]string{filepath.Join(t.TempDir(), "absent")})
	assert.ErrorContains(t, err, "absent")
}
