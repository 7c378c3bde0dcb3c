package formats

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/tinylib/msgp/msgp"
)

// lct is the format of LMCache's recordings of its storage manager (lmcache/v1/mp_observability/trace,
// format version 1). A file is a header and then one record per call. Each is a frame of msgpack
// behind its length in four bytes.
//
// A call of submit_prefetch_task is a request: it requests the chunks of a prompt from the first on.
// reserve_write stores chunks. A chunk that was requested earlier makes no row, because a
// replay stores it itself. Other chunks, such as chunks of answers, make a request of their own. The
// remaining calls record when these calls were done and make no rows. Times (t_mono) are seconds
// since the start of the recording; the header has its date.
//
// A chunk has one key for each rank and group of layers. All keys of a chunk are one block here, and
// the model decides its bytes. A hash means the same in every file. The reader remembers the chunks
// that were requested, with some 20 bytes each.
var lct = blockFormat{
	begins: regexp.MustCompile(`(?s)^\x00.*LMCT`), // the length of a header with this magic
	open: func(path, _ string) (Reader, error) {
		text, err := openText(path, maxBlockLine)
		if err != nil {
			return nil, err
		}
		return openLCT(text)
	},
}

// lctRows is its Reader.
type lctRows struct {
	*textFile
	begun  float64 // s since 1970, 0 where the header does not say
	record int     // number of the last record, from 1
	tokens int     // of a chunk, by the latest layout
	known  map[int64]bool
	within map[int64]bool // the row
	ids    []int64
	over   bool
}

const (
	// lctTokens is LMCache's default --chunk-size.
	lctTokens = 256
	// maxFrame bounds a record. A record with a hundred thousand keys has some 10 MB.
	maxFrame = 64 << 20
)

// openLCT reads the header. Other versions may mean something else by the same names.
func openLCT(text *textFile) (Reader, error) {
	l := &lctRows{textFile: text, tokens: lctTokens, known: make(map[int64]bool),
		within: make(map[int64]bool)}
	if err := l.header(); err != nil {
		return nil, errors.Join(fmt.Errorf("trace %s: %w", text.path, err), text.Close())
	}
	return l, nil
}

// header reads up to the first record. LMCache once wrote a header over a shorter one, and the first
// records then overwrote the end of the longer header. In such a file the first record begins inside
// the length of the header, where the header without its configuration would end.
func (l *lctRows) header() error {
	head, _ := l.Peek(l.Size())
	if len(head) < 4 {
		return errors.New("it has no header")
	}
	n := int64(binary.BigEndian.Uint32(head))
	whole := head[4:min(int64(len(head)), 4+n)]
	fields, at := headerFields(whole)
	if v, _ := fields["format_version"].(int64); v != 1 {
		return fmt.Errorf("format_version is %v, want 1", fields["format_version"])
	}
	if v := fields["trace_schema_version"]; v != nil && v != int64(1) && v != int64(2) {
		return fmt.Errorf("trace_schema_version is %v, want 1 or 2", v)
	}
	if level := fields["level"]; level != "storage" {
		return fmt.Errorf("level is %v, want storage", level)
	}
	l.begun, _ = fields["t_wall_start"].(float64)
	// An empty text, the name of the digest and another empty text.
	short := int64(at) + 1 + 1 + int64(len("sm_config_digest")) + 1
	if short < n && short+4 < int64(len(whole)) && isRecord(whole[short+4:]) {
		n = short
	}
	if _, err := io.CopyN(io.Discard, l, 4+n); err != nil {
		return fmt.Errorf("its header is cut: %w", err)
	}
	return nil
}

// headerFields reads the fields of a header before its configuration, and returns where the
// configuration begins.
func headerFields(b []byte) (fields map[string]any, config int) {
	fields = make(map[string]any)
	n, rest, err := msgp.ReadMapHeaderBytes(b)
	for i := uint32(0); err == nil && i < n; i++ {
		var name, v any
		if name, rest, err = unpackValue(rest, 0); err == nil && name == "sm_config_json" {
			return fields, len(b) - len(rest)
		}
		if err == nil {
			v, rest, err = unpackValue(rest, 0)
		}
		if key, is := name.(string); is && err == nil {
			fields[key] = v
		}
	}
	return fields, len(b)
}

// isRecord reports whether a record begins here: the type is the first field of every record.
func isRecord(b []byte) bool {
	return len(b) > 1 && b[0]&0xf0 == 0x80 && bytes.HasPrefix(b[1:], []byte("\xa4type\xa6record"))
}

// Line is the number of the record.
func (l *lctRows) Line() int { return l.record }

// Next implements Reader.
func (l *lctRows) Next() (Row, error) {
	for {
		b, err := l.next()
		if err != nil {
			return Row{}, err
		}
		v, err := unpack(b)
		if err != nil {
			return Row{}, Malformed{err}
		}
		row, request, err := l.row(v)
		if request || err != nil {
			return row, err
		}
	}
}

// next reads the next frame. A killed recorder leaves a part of the last frame, which counts as one
// malformed row.
func (l *lctRows) next() ([]byte, error) {
	if l.over {
		return nil, io.EOF
	}
	l.record++
	head := make([]byte, 4)
	_, err := io.ReadFull(l, head)
	if errors.Is(err, io.EOF) {
		l.over = true
		return nil, io.EOF
	}
	var b []byte
	n := int64(binary.BigEndian.Uint32(head))
	if err == nil && n > maxFrame {
		l.over = true
		return nil, malformed("the rest of the file is lost: a record of %d bytes", n)
	}
	if err == nil { // it takes memory as it is there
		b, err = io.ReadAll(io.LimitReader(l, n))
		if err == nil && int64(len(b)) < n {
			err = io.ErrUnexpectedEOF
		}
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		l.over = true
		return nil, malformed("the last record is cut")
	case err != nil:
		return nil, fmt.Errorf("read trace %s in record %d: %w", l.path, l.record, err)
	}
	return b, nil
}

// row makes a row of a record. It returns false for a call that is no request.
func (l *lctRows) row(v any) (row Row, request bool, err error) {
	record, _ := v.(map[string]any)
	at, timed := record["t_mono"].(float64)
	name, named := record["qualname"].(string)
	args, has := record["args"].(map[string]any)
	if record["type"] != "record" || !timed || !named || !has {
		return row, false, malformed("want a record with t_mono, qualname and args")
	}
	store := strings.HasSuffix(name, ".StorageManager.reserve_write")
	if !store && !strings.HasSuffix(name, ".StorageManager.submit_prefetch_task") {
		return row, false, nil
	}
	if spec := tagged(args["spec"], "PrefetchRequestSpec"); spec != nil {
		args = spec
	}
	l.layout(args)
	keys, has := args["keys"].([]any)
	if !has {
		return row, false, malformed("%s without keys", name)
	}
	// The keys of a prompt come in the order of its chunks, so the first keys are a prefix.
	l.ids = l.ids[:0]
	clear(l.within)
	for _, k := range keys {
		id, err := chunkOf(k)
		if err != nil {
			return row, false, err
		}
		// Skip further ranks and groups of a chunk, and chunks that were requested.
		if l.within[id] || store && l.known[id] {
			continue
		}
		l.within[id], l.known[id] = true, true
		l.ids = append(l.ids, id)
	}
	if len(l.ids) == 0 {
		return row, false, nil
	}
	row, err = blockRow(l.begun+at, Row{Context: len(l.ids) * l.tokens, Blocks: l.ids,
		BlockTokens: l.tokens, Scope: "lmcache", Common: true})
	return row, err == nil, err
}

// layout takes the tokens of a chunk from a call that has them: the last dimension but one of its
// tensors.
func (l *lctRows) layout(args map[string]any) {
	layout := args["layout_desc"]
	if groups, is := args["group_layout_descs"].(map[string]any); is {
		layout = groups["0"]
	}
	shapes, _ := tagged(layout, "MemoryLayoutDesc")["shapes"].([]any)
	if len(shapes) == 0 {
		return
	}
	if shape, _ := shapes[0].([]any); len(shape) > 1 {
		if n, _ := shape[len(shape)-2].(int64); checkTokens(int(n), 1) == nil {
			l.tokens = int(n)
		}
	}
}

// tagged returns the value behind a tag, nil if v has another tag or none.
func tagged(v any, tag string) map[string]any {
	outer, _ := v.(map[string]any)
	if outer["__t__"] != tag {
		return nil
	}
	inner, _ := outer["v"].(map[string]any)
	return inner
}

// chunkOf returns the chunk of a key of any rank and group: FNV-1a of its hash, of the salt that
// separates tenants and of the model.
func chunkOf(key any) (int64, error) {
	k := tagged(key, "ObjectKey")
	hash, is := k["chunk_hash"].([]byte)
	if !is || len(hash) == 0 {
		return 0, malformed("a key without chunk_hash")
	}
	salt, _ := k["cache_salt"].(string)
	model, _ := k["model_name"].(string)
	h := uint64(14695981039346656037)
	for _, part := range []string{string(hash), cmp.Or(salt, "-"), model} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	return int64(h), nil
}
