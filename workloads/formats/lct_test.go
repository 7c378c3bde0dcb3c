package formats

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tinylib/msgp/msgp"
)

// fields are the names and values of a message, in order.
type fields []any

// pack writes a message.
func pack(v any) (b []byte) {
	switch v := v.(type) {
	case []any:
		b = msgp.AppendArrayHeader(nil, uint32(len(v)))
		for _, x := range v {
			b = append(b, pack(x)...)
		}
	case fields:
		b = msgp.AppendMapHeader(nil, uint32(len(v)/2))
		for _, x := range v {
			b = append(b, pack(x)...)
		}
	default:
		b, _ = msgp.AppendIntf(nil, v) // supports all types of these tests
	}
	return b
}

// framed returns messages behind their lengths.
func framed(messages ...fields) (b []byte) {
	for _, m := range messages {
		text := pack(m)
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
	}
	return b
}

// lctHeader is the header that LMCache writes.
func lctHeader(config string, more ...any) fields {
	digest := ""
	if config != "" {
		digest = fmt.Sprintf("%064x", len(config))
	}
	return append(append(fields{"type", "header", "magic", []byte("LMCT"), "format_version", 1,
		"level", "storage"}, more...), "t_mono_start", 5.0, "t_wall_start", 1.7e9,
		"sm_config_json", config, "sm_config_digest", digest)
}

// chunk returns a key of a chunk on a rank.
func chunk(name string, rank int) fields {
	return fields{"__t__", "ObjectKey", "v", fields{"chunk_hash", []byte(name), "model_name", "m",
		"kv_rank", rank, "object_group_id", 0}}
}

// call returns a record.
func call(at float64, method string, args ...any) fields {
	return fields{"type", "record", "t_mono", at, "t_wall", 1.7e9 + at, "qualname",
		"lmcache.v1.distributed.storage_manager.StorageManager." + method, "args", fields(args)}
}

func layoutOf(shape ...any) fields {
	return fields{"__t__", "MemoryLayoutDesc", "v", fields{"shapes", []any{shape},
		"dtypes", []any{"torch.bfloat16"}}}
}

var lctCalls = []fields{
	// A request for two chunks of two ranks; its own stores make no row.
	call(0.5, "submit_prefetch_task", "spec", fields{"__t__", "PrefetchRequestSpec", "v",
		fields{"keys", []any{chunk("a", 0), chunk("a", 1), chunk("b", 0), chunk("b", 1)},
			"num_kv_readers", 1, "group_layout_descs", fields{"0", layoutOf(2, 32, 64, 1024)}}}),
	call(0.6, "reserve_write", "keys", []any{chunk("b", 0)}, "layout_desc",
		layoutOf(2, 32, 64, 1024), "mode", "new"),
	call(0.7, "finish_write", "keys", []any{chunk("b", 0)}),
	// A chunk of an answer: no request has had it.
	call(2, "reserve_write", "keys", []any{chunk("c", 0)}, "mode", "new"),
	call(2, "reserve_write", "keys", []any{chunk("c", 1)}, "mode", "new"),
	// The name in older versions.
	call(3, "submit_prefetch_task", "keys", []any{chunk("a", 0), chunk("b", 0), chunk("c", 0)},
		"layout_desc", layoutOf(2, 32, 64, 1024), "extra_count", 0),
	call(4, "read_prefetched_results.__enter__", "keys", []any{chunk("a", 0)}),
	call(5, "finish_read_prefetched", "keys", []any{chunk("a", 0)}),
}

func TestLCT(t *testing.T) {
	want := []string{"500ms 128 lmcache", "2s 64 lmcache", "3s 192 lmcache"}
	whole := framed(append([]fields{lctHeader("")}, lctCalls...)...)
	long := fmt.Sprintf("%01000d", 7)
	versioned := framed(append([]fields{lctHeader(long, "trace_schema_version", 2)}, lctCalls...)...)
	// A header that was replaced by a longer one before the first record.
	again := framed(lctHeader(long, "lmcache_version", "0.5.0"))
	short := len(framed(lctHeader("", "lmcache_version", "0.5.0")))
	again = append(again[:short:short], framed(lctCalls...)...)
	for name, data := range map[string][]byte{"whole": whole, "versioned": versioned,
		"again": again} {
		rows, errs := rowsOf(t, "r.lct", string(data))
		assert.Empty(t, errs, name)
		var got []string
		for _, r := range rows { // the header has the date
			got = append(got, fmt.Sprintf("%v %d %s", r.Stamp-1.7e9*time.Second, r.Context, r.Scope))
		}
		require.Equal(t, want, got, name)
		assert.Equal(t, 64, rows[0].BlockTokens)
		assert.Equal(t, rows[0].Blocks, rows[2].Blocks[:2], "hashes mean the same everywhere")
		assert.Equal(t, rows[1].Blocks[0], rows[2].Blocks[2])
	}
	// A killed recorder, and impossible records.
	rows, errs := rowsOf(t, "r.lct", string(whole[:len(whole)-5]))
	assert.Len(t, rows, 3)
	require.Len(t, errs, 1)
	assert.Contains(t, errs[0], "the file ends inside its last record")
	rows, errs = rowsOf(t, "r.lct", string(append(whole, framed(
		fields{"type", "record"},
		call(6, "submit_prefetch_task", "external_request_id", "x"),
		call(6, "submit_prefetch_task", "keys", []any{fields{"__t__", "ObjectKey", "v", fields{}}}),
		call(7, "submit_prefetch_task", "keys", []any{chunk("d", 0)}))...)))
	assert.Len(t, rows, 4)
	require.Len(t, errs, 3)
	assert.Contains(t, errs[0], "want a record with t_mono, qualname and args")
	assert.Contains(t, errs[1], "submit_prefetch_task without keys")
	assert.Contains(t, errs[2], "a key without chunk_hash")
	for want, header := range map[string]fields{
		"format_version is 2, want 1":            {"type", "header", "magic", []byte("LMCT"), "format_version", 2},
		"trace_schema_version is 3, want 1 or 2": lctHeader("", "trace_schema_version", 3),
		"level is mq, want storage": {"type", "header", "magic", []byte("LMCT"),
			"format_version", 1, "level", "mq"},
	} {
		_, err := Blocks.Open(file(t, "r.lct", string(framed(header))))
		assert.ErrorContains(t, err, want)
	}
	_, err := Blocks.Open(file(t, "r.lct", string(whole[:40])))
	assert.Error(t, err)
}

// Another salt or model makes another chunk. Another rank does not.
func TestChunks(t *testing.T) {
	var calls []fields
	for _, more := range []fields{{"kv_rank", 0}, {"kv_rank", 16777217}, {"cache_salt", "x"}, {"model_name", "x"}} {
		key := fields{"__t__", "ObjectKey", "v", append(fields{"chunk_hash", []byte("a")}, more...)}
		calls = append(calls, call(1, "submit_prefetch_task", "keys", []any{key}))
	}
	rows, errs := rowsOf(t, "r.lct", string(framed(append([]fields{lctHeader("")}, calls...)...)))
	require.Empty(t, errs)
	assert.Equal(t, rows[0].Blocks, rows[1].Blocks)
	assert.NotEqual(t, rows[0].Blocks, rows[2].Blocks)
	assert.NotEqual(t, rows[2].Blocks, rows[3].Blocks)
	assert.EqualValues(t, []int64{-3348344769229358127}, rows[2].Blocks, "as in earlier versions")
}
