package formats

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
