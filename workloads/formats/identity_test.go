package formats

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
	assert.Equal(t, []int64{2, 5, 5}, []int64{int64(one.Files), one.Bytes, one.Hashed})
	for _, other := range [][]string{{"abd", "de"}, {"ab", "cde"}, {"abcde"}, {"abc", "de", ""},
		{"de", "abc"}} {
		assert.NotEqual(t, one.SHA256, id(100, other...).SHA256, other)
	}
	// Beyond the bound sizes count, and nothing else.
	long := id(4, "abc", "de", strings.Repeat("x", 9))
	assert.EqualValues(t, 4, long.Hashed)
	assert.Equal(t, long, id(4, "abc", "dE", strings.Repeat("y", 9)))
	assert.NotEqual(t, long.SHA256, id(4, "abc", "de", strings.Repeat("x", 8)).SHA256)
	_, err := Identify([]string{filepath.Join(t.TempDir(), "absent")})
	assert.ErrorContains(t, err, "absent")
}
