package formats

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A line longer than the buffer is a malformed row, and does not affect other lines.
func TestLongLines(t *testing.T) {
	good := "2024-01-02 03:04:05,100,10\n"
	for _, long := range []int{maxLine + 1, 3 * maxLine} {
		r, err := Azure.Open(file(t, "a.csv", good+strings.Repeat("x", long)+"\n"+good))
		require.NoError(t, err)
		_, err = r.Next()
		require.NoError(t, err)
		_, err = r.Next()
		assert.ErrorContains(t, err, "longer than 65536 bytes")
		assert.True(t, IsMalformed(err))
		_, err = r.Next()
		assert.NoError(t, err)
		assert.Equal(t, 3, r.Line())
		require.NoError(t, r.Close())
	}
}

// A line longer than the buffer ends the reading of a file without a usable line before it.
func TestLongLineFirst(t *testing.T) {
	azure, good := "2024-01-02 03:04:05,100,10\n", `{"timestamp": 0, "hash_ids": [1]}`+"\n"
	for _, tc := range []struct {
		format       Format
		before, good string
		limit        int
	}{
		{Azure, "", azure, maxLine},
		{Azure, "TIMESTAMP,ContextTokens,GeneratedTokens\n", azure, maxLine},
		{Blocks, "", good, maxBlockLine},
	} {
		for _, fill := range []string{"x", " "} {
			text := tc.before + strings.Repeat(fill, tc.limit+1) + "\n" + tc.good
			r, err := tc.format.Open(file(t, "a.jsonl", text))
			require.NoError(t, err)
			_, err = r.Next()
			assert.ErrorContains(t, err, "and no line before it has a row")
			assert.False(t, IsMalformed(err))
			require.NoError(t, r.Close())
		}
	}
}

// Blanks before a document count as lines. A document of blanks is not read to its end.
func TestBlanksBeforeADocument(t *testing.T) {
	for _, list := range []string{"", "numbers"} {
		doc, err := openDocument(file(t, "a.json", "\n \n\t7"), list)
		require.NoError(t, err)
		token, err := doc.token()
		require.NoError(t, err)
		assert.EqualValues(t, 7, token)
		assert.Equal(t, 3, doc.Line())
		require.NoError(t, doc.Close())
		_, err = openDocument(file(t, "a.json", strings.Repeat(" ", maxBlockLine+1)), list)
		assert.ErrorContains(t, err, "begins with more than 2097152 blanks")
	}
}

// Files that are cut or not compressed.
func TestBrokenCompression(t *testing.T) {
	whole := strings.Repeat("2024-01-02 03:04:05,100,10\n", 99)
	for _, name := range []string{"a.csv.gz", "a.csv.zst"} {
		packed, err := os.ReadFile(file(t, name, whole))
		require.NoError(t, err)
		for _, text := range []string{string(packed[:len(packed)-20]), whole} {
			path := filepath.Join(t.TempDir(), name)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			r, err := Azure.Open(path)
			for err == nil {
				_, err = r.Next()
			}
			assert.False(t, errors.Is(err, io.EOF) || IsMalformed(err))
			assert.ErrorContains(t, err, path)
		}
	}
}

// A value without an end takes limited memory.
func TestDocumentsAreBounded(t *testing.T) {
	r := &boundedReader{from: strings.NewReader(strings.Repeat("x", 100)), left: 10}
	dec := json.NewDecoder(r)
	var v any
	assert.Error(t, dec.Decode(&v))
	assert.Zero(t, r.left)
}
