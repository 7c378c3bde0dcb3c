package formats

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exported returns the written rows, each at its own time, and how many the writer left out.
func exported(t testing.TB, rows []Row, tokens int) (text string, short int) {
	t.Helper()
	var b bytes.Buffer
	w := NewMooncakeWriter(&b, tokens)
	for i := range rows {
		ok, err := w.Write(&rows[i], rows[i].Stamp)
		require.NoError(t, err)
		if !ok {
			short++
		}
	}
	require.NoError(t, w.Flush())
	return b.String(), short
}

// shape is what a cache sees of rows: sizes, and which blocks are equal, independent of their ids.
func shape(rows []Row) (list []string) {
	seen := map[string]int{}
	for _, r := range rows {
		line := fmt.Sprintf("%d %d %d:", r.Context, r.Generate, r.BlockTokens)
		for _, id := range r.Blocks {
			key := fmt.Sprint(r.Scope, "/", id)
			if _, known := seen[key]; !known {
				seen[key] = len(seen)
			}
			line += fmt.Sprint(" ", seen[key])
		}
		list = append(list, line)
	}
	return list
}

func TestExportKeepsWhatCachesSee(t *testing.T) {
	mooncake, err := os.ReadFile("../../testdata/mooncake-small.jsonl")
	require.NoError(t, err)
	session, err := os.ReadFile("../../testdata/session-small.json")
	require.NoError(t, err)
	const agents = `{"block_size":64,"requests":[{"t":0,"model":"big","in":200,"out":40,"hash_ids":[1,2,3]},
		{"t":5,"type":"subagent","requests":[{"t":0,"model":"small","in":130,"out":2,"hash_ids":[2,1]}]},
		{"t":9,"model":"big","in":330,"out":60,"hash_ids":[1,2,3,4,5]}]}`
	for _, text := range []string{string(mooncake), string(session), agents} {
		rows, _ := rowsOf(t, "in.json", text)
		out, short := exported(t, rows, 0)
		assert.Zero(t, short)
		back, errs := rowsOf(t, "out.jsonl", out)
		assert.Empty(t, errs)
		assert.Equal(t, shape(rows), shape(back))
	}
	// Ids that already count from 0 in order stay unchanged.
	rows, _ := rowsOf(t, "in.jsonl", string(mooncake))
	out, _ := exported(t, rows, 0)
	assert.Equal(t, string(mooncake), out)
}

func TestExportJoinsBlocks(t *testing.T) {
	row := func(tokens int, ids ...int64) Row {
		return Row{Context: tokens, Generate: 1, Blocks: ids, BlockTokens: 16, Scope: "s"}
	}
	out, short := exported(t, []Row{
		row(128, 1, 2, 3, 4, 5, 6, 7, 8), row(80, 1, 2, 3, 4, 9), row(128, 1, 2, 3, 4, 5, 6, 7, 9),
		row(80, 1, 2, 3, 4, 5), // a part of a larger block is another block
		row(64, 5, 6, 7, 8),    // as are its parts at another place
		row(79, 1, 2, 3, 4),    // the left out tokens stay out
		row(40, 1, 2),          // here all
	}, 64)
	assert.Equal(t, 1, short)
	back, errs := rowsOf(t, "out.jsonl", out)
	assert.Empty(t, errs)
	assert.Equal(t, []string{"128 1 64: 0 1", "80 1 64: 0 2", "128 1 64: 0 3", "80 1 64: 0 4",
		"64 1 64: 5", "79 1 64: 0"}, shape(back))
	_, err := NewMooncakeWriter(&bytes.Buffer{}, 500).Write(&Row{BlockTokens: 16}, 0)
	assert.EqualError(t, err, "blocks of 16 tokens cannot be joined to blocks of 500: give a "+
		"multiple of 16")
}
