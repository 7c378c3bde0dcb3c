package formats

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const kvEventLines = `[1000.5,[["BlockStored",[101,102],null,[1,2,3,4,5,6,7,8],4,null,"GPU"]],0]
[1000.9,[["BlockStored",[103],102,[9,10,11,12],4,null,"GPU",null,null,0,"full_attention",null],["BlockStored",[201],null,[9,10,11,12],4,null,"GPU",null,null,1,"sliding_window",null]],0]
[1001.2,[["BlockRemoved",[101],"GPU"],["BlockStored",[101],null,[],4,null,"STORAGE"]],0]
{"ts":1002.0,"events":[{"type":"BlockStored","block_hashes":[104],"parent_block_hash":103,"token_ids":[13,14,15,16],"block_size":4,"medium":"CPU"}],"data_parallel_rank":0}
[1003.0,[["AllBlocksCleared"]],0]
{"ts":1004,"events":[{"type":"BlockStored","block_hashes":[18446744073709551615,-2,"00112233445566778899aabbccddeeff"],"block_size":4},{"type":"BlockStored","block_hashes":[101],"block_size":4,"medium":"gpu"}]}
`

// Each store on the GPU is a request. Stores on other media and removals are none.
func TestKVEvents(t *testing.T) {
	rows, errs := rowsOf(t, "k.jsonl", kvEventLines+`[1,[["BlockStored",["x"],null,[],4]]]
[1,[["BlockStored",[1],null,[],0]]]
[1,[["BlockStored",[],null,[],4]]]
[1]
["BlockStored"]
`)
	assert.Equal(t, []string{"16m40.5s 8 kv", "16m40.9s 4 kv", "16m44s 12 kv", "16m44s 4 kv"},
		summaries(rows))
	assert.Equal(t, []int64{101, 102}, rows[0].Blocks)
	last := uint64(0x8899aabbccddeeff)
	assert.Equal(t, []int64{-1, -2, int64(last)}, rows[2].Blocks)
	assert.Equal(t, []int64{101}, rows[3].Blocks, "stored again")
	assert.Equal(t, 4, rows[0].BlockTokens)
	require.Len(t, errs, 4)
	assert.Contains(t, errs[0], `a block's hash is "x", want a number`)
	assert.Contains(t, errs[1], "block_size: too few tokens")
	assert.Contains(t, errs[2], "want a batch of events with its time")

	// A malformed event loses only its own row.
	rows, errs = rowsOf(t, "b.jsonl", `{"ts":1,"events":[`+
		`{"type":"BlockStored","block_hashes":[105],"block_size":4},`+
		`{"type":"BlockStored","block_hashes":["x"],"block_size":4},7,`+
		`{"type":"BlockStored","block_hashes":[107],"block_size":4}]}`+"\n")
	require.Len(t, rows, 2)
	assert.Equal(t, []int64{105}, rows[0].Blocks)
	assert.Equal(t, []int64{107}, rows[1].Blocks)
	assert.Len(t, errs, 2)

	// Either form may come first, and a list of other values is no recording.
	_, lines, _ := bytes.Cut([]byte(kvEventLines), []byte("\n"))
	for range 2 {
		_, lines, _ = bytes.Cut(lines, []byte("\n"))
	}
	rows, errs = rowsOf(t, "k.json", string(lines))
	assert.Len(t, rows, 2)
	assert.Empty(t, errs)
	_, err := Blocks.Open(file(t, "k.json", `[1, 2]`))
	assert.ErrorContains(t, err, "it does not start with an object")
}

// file writes one.
func file(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// textOf is a file in memory.
func textOf(data []byte) *textFile {
	return &textFile{Reader: bufio.NewReaderSize(bytes.NewReader(data), 1<<16), path: "memory",
		unpack: io.NopCloser(nil)}
}

// readAll reads to the end. It checks that an engine can have made each row, and that there are no more
// rows than bytes.
func readAll(t *testing.T, r Reader, size int) {
	for n := 0; ; n++ {
		row, err := r.Next()
		if err != nil && !IsMalformed(err) {
			require.ErrorIs(t, err, io.EOF)
			return
		}
		require.LessOrEqual(t, n, size)
		if err == nil {
			require.True(t, distinct(row.Blocks))
			require.LessOrEqual(t, len(row.Blocks), (row.Context-1)/row.BlockTokens+1)
		}
	}
}

// FuzzKVEvents: any text gives rows or errors.
func FuzzKVEvents(f *testing.F) {
	f.Add([]byte(kvEventLines))
	f.Add([]byte(`[1e300,[["BlockStored",[1,1],null,[],4,null,null,null,null,7]]]`))
	f.Add([]byte(`{"ts":null,"events":[null,[],{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		readAll(t, &kvEventRows{lineReader: lineReader{textOf(text), 0}}, len(text))
	})
}
