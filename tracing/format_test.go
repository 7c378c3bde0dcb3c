package tracing

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFieldOffsets(t *testing.T) {
	const format = `name: block_rq_issue
ID: 1234
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:dev_t dev;	offset:8;	size:4;	signed:0;
	field:sector_t sector;	offset:16;	size:8;	signed:0;
	field:unsigned int nr_sector;	offset:24;	size:4;	signed:0;
	field:char rwbs[10];	offset:34;	size:10;	signed:0;
	field:__data_loc char[] cmd;	offset:60;	size:4;	signed:0;

print fmt: "%d,%d %s"
`
	got, err := fieldOffsets(format, "dev", "sector", "nr_sector", "rwbs", "cmd")
	require.NoError(t, err)
	assert.Equal(t, []uint32{8, 16, 24, 34, 60}, got)
	_, err = fieldOffsets(format, "dev", "bytes")
	require.EqualError(t, err, "the tracepoint has no field bytes")
}
