package formats

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"regexp"
	"strings"

	"github.com/tinylib/msgp/msgp"
)

// lct is the format of LMCache's recordings of its storage manager (lmcache/v1/mp_observability/trace,
// format version 1). A file is a header and then one record per call. Each header or record is a
// msgpack frame after its length in four bytes.
//
// A call of submit_prefetch_task is a request: it requests the chunks of a prompt from the first on.
// reserve_write stores chunks. reserve_write of a chunk that is in an earlier row makes no row, because
// the replay writes the chunk after the miss. reserve_write of other chunks (generated tokens) makes a
// row. All other calls, which record the completion of these calls, make no rows. Times (t_mono) are
// seconds since the start of the recording. The header has the date of the start.
//
// A chunk has one key for each rank and group of layers. All keys of a chunk are one block here, and
// the model decides its bytes. A hash has the same meaning in every file. The reader remembers the
// chunks of all rows, with some 20 bytes each.
var lct = blockFormat{
	name: "LMCache's .lct", sign: "a recording of the storage manager", extension: ".lct",
	begins: regexp.MustCompile(`(?s)^\x00.*LMCT`), // length of a header with this magic
	open: func(path, _ string) (Reader, error) {
		text, err := openText(path, maxBlockLine)
		if err != nil {
			return nil, err
		}
		l := &lctFile{textFile: text, tokens: lctTokens, known: make(map[int64]bool),
			within: make(map[int64]bool)}
		if err := l.header(); err != nil {
			return nil, errors.Join(fmt.Errorf("trace %s: %w", path, err), text.Close())
		}
		return readRows(l, l.next, l.rows), nil
	},
}

// lctFile reads the records of a file.
type lctFile struct {
	*textFile
	begun  float64 // start in s since 1970, 0 if the header has none
	record int     // number of the last record, from 1
	tokens int     // tokens of a chunk, by the latest layout
	known  map[int64]bool
	within map[int64]bool // chunks of the current row
	ids    []int64
	over   bool
}

const (
	// lctTokens is LMCache's default --chunk-size.
	lctTokens = 256
	// maxFrame is the largest record in bytes. A record with a hundred thousand keys has some 10 MB.
	maxFrame = 64 << 20
)

// lctFirst is the start of every record after the header of its map: the field type.
var lctFirst = []byte("\xa4type\xa6record")

// header reads up to the first record. It refuses other versions, in which the same names may have other
// meanings. LMCache once wrote a header over a shorter one, and the first records then overwrote the end
// of the longer header. So the first record, not the length of the header, shows where the header ends.
func (l *lctFile) header() error {
	head, _ := l.Peek(l.Size())
	if len(head) < 4 {
		return errors.New("it has no header")
	}
	// An overwritten header has all fields before its configuration, and an error after it.
	fields, _, _ := msgp.ReadMapStrIntfBytes(head[4:], nil)
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
	end := int64(4) + int64(binary.BigEndian.Uint32(head))
	if at := int64(bytes.Index(head, lctFirst)); at > 4 {
		end = min(end, at-5) // before the record are its length and one byte of its map
	}
	if _, err := io.CopyN(io.Discard, l, end); err != nil {
		return fmt.Errorf("its header is cut: %w", err)
	}
	return nil
}

// Line returns the number of the record.
func (l *lctFile) Line() int { return l.record }

// next reads the next record. If the recorder was killed, the last record is incomplete: it counts as
// one malformed row.
func (l *lctFile) next(to *lctRecord) error {
	if l.over {
		return io.EOF
	}
	l.record++
	head := make([]byte, 4)
	_, err := io.ReadFull(l, head)
	var b []byte
	if n := int64(binary.BigEndian.Uint32(head)); err == nil && n > maxFrame {
		l.over = true
		return malformed("cannot read on after here: a record of %d bytes is above the limit of %d", n,
			maxFrame)
	} else if err == nil { // ReadAll allocates only for bytes that exist
		b, err = io.ReadAll(io.LimitReader(l, n))
		if err == nil && int64(len(b)) < n {
			err = io.ErrUnexpectedEOF
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		l.over = true
		return malformed("the file ends inside its last record")
	case err != nil:
		return fmt.Errorf("read trace %s in record %d: %w", l.path, l.record, err)
	}
	var text bytes.Buffer
	if _, err := msgp.UnmarshalAsJSON(&text, b); err != nil {
		return Malformed{err}
	}
	return unmarshal(text.Bytes(), to)
}

// lctRecord is a record of a file.
type lctRecord struct {
	Type string          `json:"type"`
	At   *float64        `json:"t_mono"` // s
	Name string          `json:"qualname"`
	Args json.RawMessage `json:"args"`
}

// lctArgs are the arguments of the calls that make rows, for all versions of LMCache.
type lctArgs struct {
	Spec   tagged[json.RawMessage]      `json:"spec"` // an object that contains the arguments
	Keys   []tagged[lctKey]             `json:"keys"`
	Layout tagged[lctLayout]            `json:"layout_desc"`
	Groups map[string]tagged[lctLayout] `json:"group_layout_descs"`
}

// tagged is an object with the name of its type.
type tagged[T any] struct {
	Tag   string `json:"__t__"`
	Value T      `json:"v"`
}

// lctKey is the key of a chunk for one rank and one group of layers.
type lctKey struct {
	Hash  []byte `json:"chunk_hash"`
	Salt  string `json:"cache_salt"` // separates tenants
	Model string `json:"model_name"`
}

// lctLayout has the shapes of tensors. The last dimension but one is the tokens of a chunk.
type lctLayout struct {
	Shapes [][]int `json:"shapes"`
}

// rows adds the row of a record, if its call makes one.
func (l *lctFile) rows(out *rowReader, record *lctRecord) error {
	if record.Type != "record" || record.At == nil || record.Name == "" || record.Args == nil {
		return malformed("want a record with t_mono, qualname and args")
	}
	store := strings.HasSuffix(record.Name, ".StorageManager.reserve_write")
	if !store && !strings.HasSuffix(record.Name, ".StorageManager.submit_prefetch_task") {
		return nil
	}
	var args lctArgs
	err := unmarshal(record.Args, &args)
	if err == nil && args.Spec.Tag == "PrefetchRequestSpec" {
		err = unmarshal(args.Spec.Value, &args)
	}
	switch {
	case err != nil:
		return err
	case args.Keys == nil:
		return malformed("%s without keys", record.Name)
	}
	l.layout(&args)
	// The keys are in the order of the prompt's chunks, so the first keys are a prefix.
	l.ids = l.ids[:0]
	clear(l.within)
	for _, k := range args.Keys {
		if k.Tag != "ObjectKey" || len(k.Value.Hash) == 0 {
			return malformed("a key without chunk_hash")
		}
		id := k.Value.chunk()
		// Skip the chunk's keys of other ranks and groups. In reserve_write also skip chunks of earlier
		// rows.
		if l.within[id] || store && l.known[id] {
			continue
		}
		l.within[id], l.known[id] = true, true
		l.ids = append(l.ids, id)
	}
	if len(l.ids) > 0 {
		out.add(blockRow(l.begun+*record.At, Row{Context: len(l.ids) * l.tokens, Blocks: l.ids,
			BlockTokens: l.tokens, Scope: "lmcache", Common: true}))
	}
	return nil
}

// layout sets the tokens of a chunk, if the call has a layout.
func (l *lctFile) layout(args *lctArgs) {
	layout := args.Layout
	if args.Groups != nil {
		layout = args.Groups["0"]
	}
	if shapes := layout.Value.Shapes; layout.Tag == "MemoryLayoutDesc" && len(shapes) > 0 {
		if n := len(shapes[0]); n > 1 && checkTokens(shapes[0][n-2], 1) == nil {
			l.tokens = shapes[0][n-2]
		}
	}
}

// chunk returns the id of a key's chunk: FNV-1a of the hash, the salt and the model.
func (k *lctKey) chunk() int64 {
	h := fnv.New64a()
	for _, part := range []string{string(k.Hash), cmp.Or(k.Salt, "-"), k.Model} {
		_, _ = io.WriteString(h, part+"\xff")
	}
	return int64(h.Sum64())
}
