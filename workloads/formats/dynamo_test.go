package formats

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const dynamoLines = `{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1100,"event_source":"dynamo","agent_context":{"session_id":"s1"},"request":{"request_id":"r1","model":"m","input_tokens":40,"output_tokens":4,"cached_tokens":0,"request_received_ms":1000,"total_time_ms":100,"ttft_ms":20,"replay":{"trace_block_size":16,"input_length":40,"input_sequence_hashes":[11,22,33]}}}
{"timestamp":900,"event":{"schema":"dynamo.request.trace.v1","event_type":"tool_end","event_time_unix_ms":1900}}
{"timestamp":1200,"event":{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":2200,"agent_context":{"session_id":"s1"},"request":{"request_id":"r2","output_tokens":6,"cached_tokens":32,"request_received_ms":2000,"replay":{"trace_block_size":16,"input_length":60,"input_sequence_hashes":[11,22,44,18446744073709551615]}}}}
{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":2300,"request":{"request_id":"r3","output_tokens":2,"request_received_ms":1500,"replay":{"trace_block_size":16,"input_length":20,"input_sequence_hashes":[11,77]}}}
{"schema":"dynamo.request.trace.v2","event_type":"request_end"}
{"schema":"dynamo.request.trace.v1","event_type":"request_end","request":{"output_tokens":2}}
{"schema":"dynamo.request.trace.v1","event_type":"request_end","request":{"output_tokens":2,"request_received_ms":1,"replay":{"input_length":20}}}
`

// Requests are returned in the order in which they were received. Other events are no requests.
func TestDynamo(t *testing.T) {
	rows, errs := rowsOf(t, "d.jsonl", dynamoLines)
	require.Len(t, rows, 3)
	assert.Equal(t, []string{"1s 40 dynamo", "1.5s 20 dynamo", "2s 60 dynamo"}, summaries(rows))
	assert.Equal(t, []int64{11, 22, 44, -1}, rows[2].Blocks)
	assert.Equal(t, 16, rows[0].BlockTokens)
	require.Len(t, errs, 3)
	assert.Contains(t, errs[0], `schema "dynamo.request.trace.v2", want dynamo.request.trace.v1`)
	assert.Contains(t, errs[1], "want request with output_tokens")
	assert.Contains(t, errs[2], "trace_block_size: too few tokens")
}

// A request that thousands of others overtook is returned late, and no request is lost.
func TestDynamoHoldsSoManyRequests(t *testing.T) {
	var b strings.Builder
	const rows = 3 * maxHeld
	line := func(received int) {
		fmt.Fprintf(&b, `{"schema":"dynamo.request.trace.v1","event_type":"request_end","request":{`+
			`"output_tokens":1,"request_received_ms":%d,"replay":{"trace_block_size":16,`+
			`"input_length":16,"input_sequence_hashes":[%d]}}}`+"\n", received, received+1)
	}
	for i := range rows {
		line(i ^ 7) // not quite in order
	}
	line(0)
	got, errs := rowsOf(t, "d.jsonl", b.String())
	assert.Empty(t, errs)
	require.Len(t, got, rows+1)
	late := 0
	for i := 1; i < len(got); i++ {
		if got[i].Stamp < got[i-1].Stamp {
			late++
		}
	}
	assert.Equal(t, 1, late)
	assert.Equal(t, (rows-1)*time.Millisecond, got[len(got)-1].Stamp)
}

// Waiting requests with long prompts take no more memory than short ones.
func TestHeldRowsAreBoundedByTheirBlocks(t *testing.T) {
	var h heldRows
	ids := make([]int64, 1<<20)
	for i := range 8 {
		require.False(t, h.full(), i)
		h.add(Row{Blocks: ids, Stamp: time.Duration(9 - i)})
	}
	assert.True(t, h.full())
	assert.EqualValues(t, 2, h.take().Stamp, "the earliest")
	assert.False(t, h.full())
}

// The output of Dynamo's simulator is refused by name, and the error says which file to use instead.
func TestAgenticMooncakeIsRefused(t *testing.T) {
	rows, errs := rowsOf(t, "a.jsonl", `{"schema":"dynamo.agentic_mooncake","version":2,"block_size":64,"hash_id_scope":"local","source":{}}
{"request_id":"a","play_id":"p","session_id":"s","model":"m","input_length":64,"output_length":2,"hash_ids":[1],"not_before_ms":0}
`)
	assert.Empty(t, rows)
	require.Len(t, errs, 2)
	assert.Contains(t, errs[0], "dynamo.agentic_mooncake: when these rows come is a graph of who "+
		"waits for whom; give the request trace that they were made of (dynamo.request.trace.v1)")
}
