package formats

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rowsOf reads the text of a block trace. It returns the errors of malformed rows.
func rowsOf(t testing.TB, name, text string) (rows []Row, errs []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	r, err := Blocks.Open(path)
	require.NoError(t, err)
	defer r.Close()
	for {
		row, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return rows, errs
		case IsMalformed(err):
			errs = append(errs, err.Error())
		default:
			require.NoError(t, err)
			row.Blocks = append([]int64(nil), row.Blocks...) // valid until the next row
			rows = append(rows, row)
		}
	}
}

func TestMooncakeVariants(t *testing.T) {
	rows, errs := rowsOf(t, "v.jsonl", `{"timestamp":1000,"input_length":1200,"output_length":52,"hash_ids":[0,1,2]}
{"created_time":2000.5,"input_tokens":600,"output_tokens":10,"hash_ids":[7,8],"priority":1}
{"timestamp":3000,"input_length":130,"output_length":1,"hash_ids":[1,2,3],"block_size":64}
{"session_id":"s1","delay":2000,"input_length":1100,"output_length":10,"hash_ids":[7,8,9]}
{"timestamp":300,"messages":[{"role":"user","content":"no ids"}],"output_length":5}
{"timestamp":300,"text_input":"no ids","output_length":5}
{"session_id":"s2","input_length":600,"output_length":5,"hash_ids":[7]}
{"request_id":"r","session_id":"s3","timestamp":1,"wait_for":[],"input_length":6,"hash_ids":[8]}
{"timestamp":1,"input_length":600,"output_length":5,"hash_ids":[1,1]}
{"timestamp":1,"input_length":60,"output_length":5,"hash_ids":[1],"block_size":-1}
{"timestamp":1,"input_length":60,"output_length":5,"hash_ids":[2,1]}
{"timestamp":1,"input":"What is a KV cache?","output":"A cache.","session_id":"s4"}
{"timestamp":4000,"input_length":600,"output_length":1,"hash_ids":["7d865e959b2466918","2c"]}
{"timestamp":5000,"input_length":600,"output_length":1,"hash_ids":[9223372036854775809,2]}
{"timestamp":6000,"input_length":600,"output_length":1,"hash_ids":["a b"]}
{"timestamp":6000,"input_length":1000000000000000,"output_length":1,"hash_ids":[1]}
`)
	require.Len(t, rows, 5)
	assert.Equal(t, []int64{-0x279a16a64db996e8, 0x2c}, rows[3].Blocks, "hexadecimal digits")
	assert.Equal(t, []int64{-9223372036854775807, 2}, rows[4].Blocks, "the bits of a hash")
	assert.EqualValues(t, 2000.5e6, rows[1].Stamp)
	assert.Equal(t, []int64{7, 8}, rows[1].Blocks)
	assert.Equal(t, []int{512, 512, 64},
		[]int{rows[0].BlockTokens, rows[1].BlockTokens, rows[2].BlockTokens})
	require.Len(t, errs, 11)
	assert.Contains(t, errs[0], "a row with a delay and no timestamp: want a session_id")
	assert.Contains(t, errs[1], "messages, input or text_input without hash_ids")
	assert.Equal(t, errs[1], errs[2])
	assert.Contains(t, errs[3], "a row of a session with neither timestamp nor delay")
	assert.Contains(t, errs[4], "dynamo.agentic_mooncake: when these rows come is a graph")
	assert.Contains(t, errs[5], "a block id stands twice")
	assert.Contains(t, errs[6], "block_size: too few tokens")
	assert.Contains(t, errs[7], "more block ids than the input has blocks")
	assert.Equal(t, errs[1], errs[8])
	assert.Contains(t, errs[9], `a block's hash is "a b", want a number or hexadecimal digits`)
	assert.Contains(t, errs[10], "1000000000000000 tokens in, 1 out: more than 1073741824 tokens")
}

// A row with a delay comes after the row before it of its session, between rows of other sessions.
func TestMooncakeDelays(t *testing.T) {
	rows, errs := rowsOf(t, "d.jsonl", `{"session_id":"a","timestamp":1000,"input_length":512,"output_length":1,"hash_ids":[1]}
{"session_id":"a","delay":500,"input_length":1024,"output_length":1,"hash_ids":[1,2]}
{"session_id":"a","delay_ms":2000,"input_length":1536,"output_length":1,"hash_ids":[1,2,3]}
{"session_id":"b","timestamp":1500,"input_length":512,"output_length":1,"hash_ids":[4]}
{"session_id":"b","timestamp":1600,"delay":9,"input_length":512,"output_length":1,"hash_ids":[5]}
{"session_id":"c","delay":1,"input_length":512,"output_length":1,"hash_ids":[6]}
{"delay":1,"input_length":512,"output_length":1,"hash_ids":[6]}
{"session_id":"b","delay":-1,"input_length":512,"output_length":1,"hash_ids":[6]}
{"session_id":"b","delay":1e4,"input_length":512,"output_length":1,"hash_ids":[7]}
{"timestamp":3500,"input_length":512,"output_length":1,"hash_ids":[8]}
`)
	var ids []int64
	var at []int64
	for _, r := range rows {
		ids, at = append(ids, r.Blocks[len(r.Blocks)-1]), append(at, r.Stamp.Milliseconds())
	}
	assert.Equal(t, []int64{1, 2, 4, 5, 3, 8, 7}, ids)
	assert.Equal(t, []int64{1000, 1500, 1500, 1600, 3500, 3500, 11600}, at)
	assert.Len(t, errs, 3)
}
