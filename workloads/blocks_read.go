package workloads

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxBlockLine is the longest line of a block trace: a request of a hundred thousand ids.
const maxBlockLine = 1 << 20

// blockFormat is that of block traces; size is the block size of files that do not tell theirs, 0 means 512.
func blockFormat(size int) *traceFormat {
	if size < 1 {
		size = blockTokens
	}
	return &traceFormat{name: "block", silent: true, open: func(path string) (rowReader, error) { return openBlocks(path, size) }}
}

// openBlocks opens a file of either format.
func openBlocks(path string, size int) (rowReader, error) {
	base := filepath.Base(path)
	if at := strings.IndexByte(base, '.'); at > 0 {
		base = base[:at]
	}
	session := false
	if !strings.Contains(strings.ToLower(filepath.Base(path)), ".jsonl") {
		doc, err := openDocument(path)
		if err != nil {
			return nil, err
		}
		session, err = isSession(doc.dec)
		_ = doc.close() // only read from
		if err != nil {
			return nil, fmt.Errorf("trace %s: %w: want JSON lines with hash_ids (Mooncake) or a JSON document with requests (a session)", path, err)
		}
	}
	if session {
		doc, err := openDocument(path)
		if err != nil {
			return nil, err
		}
		return &sessionRows{doc: doc, base: base}, nil
	}
	lines, err := openLines(path, maxBlockLine)
	if err != nil {
		return nil, err
	}
	return &mooncakeRows{lines: lines, scope: scopeName(base), size: size}, nil
}

// isSession tells the formats apart by the keys of the first object.
func isSession(dec *json.Decoder) (bool, error) {
	t, err := dec.Token()
	if err == nil && t != json.Delim('{') {
		err = errors.New("it does not start with an object")
	}
	for err == nil && dec.More() {
		if t, err = dec.Token(); err != nil {
			break
		}
		switch t {
		case "requests", "block_size", "hash_id_scope":
			return true, nil
		case "hash_ids", "input_length", "output_length", "timestamp":
			return false, nil
		}
		err = skipValue(dec)
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("the format is unknown")
	}
	return false, err
}

// mooncakeRows reads Mooncake's JSON lines.
type mooncakeRows struct {
	lines *lineReader
	scope string
	size  int
}

// mooncakeRow is one line. Pointers tell what is missing.
type mooncakeRow struct {
	Timestamp *float64 `json:"timestamp"` // ms
	Input     *int     `json:"input_length"`
	Output    *int     `json:"output_length"`
	Blocks    []int64  `json:"hash_ids"`
}

func (m *mooncakeRows) next() (rec record, reason, err error) {
	line, tooLong, err := m.lines.next()
	switch {
	case err != nil:
		return record{}, nil, err
	case tooLong:
		return record{}, fmt.Errorf("longer than %d bytes", maxBlockLine), nil
	}
	var row mooncakeRow
	if err := json.Unmarshal(line, &row); err != nil {
		return record{}, err, nil
	}
	if row.Timestamp == nil || row.Input == nil || row.Output == nil {
		return record{}, errors.New("want timestamp, input_length, output_length and hash_ids"), nil
	}
	rec = record{context: *row.Input, generate: *row.Output, blocks: row.Blocks, blockTokens: m.size, scope: m.scope}
	reason = rec.finish(*row.Timestamp / 1e3)
	return rec, reason, nil
}

func (m *mooncakeRows) line() int    { return m.lines.number }
func (m *mooncakeRows) close() error { return m.lines.close() }

// finish checks a row of blocks and sets its time.
func (r *record) finish(seconds float64) error {
	switch {
	case !(seconds >= 0 && seconds <= 9e9): // written so that NaN fails
		return errSeconds
	case r.context < 1 || r.generate < 0:
		return errFewTokens
	case r.context > MaxTokens || r.generate > MaxTokens:
		return errTokens
	}
	r.stamp = time.Duration(math.Round(seconds * 1e9))
	return checkBlocks(r)
}

// BlockSizes returns the different sizes of blocks in block traces, in tokens, smallest first, judging each file by its
// first usable row.
func BlockSizes(paths []string) ([]int, error) {
	var sizes []int
	for _, path := range paths {
		rows, err := openBlocks(path, blockTokens)
		if err != nil {
			return nil, err
		}
		for {
			rec, reason, err := rows.next()
			if err == nil && reason == nil && !slices.Contains(sizes, rec.blockTokens) {
				sizes = append(sizes, rec.blockTokens)
			}
			if err != nil || reason == nil {
				break
			}
		}
		_ = rows.close() // only read from
	}
	if len(sizes) == 0 {
		return nil, errors.New("no usable row in any of the block traces")
	}
	slices.Sort(sizes)
	return sizes, nil
}

// blockTokens is the size of Mooncake's blocks, whose files do not tell it.
const blockTokens = 512

// maxBlocks bounds the blocks of one request.
const maxBlocks = 1 << 20

// BlockExtensions are the files that ExpandPaths takes from a directory of block traces.
func BlockExtensions() []string {
	return []string{".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".json.gz", ".json.zst"}
}

// Errors of rows of blocks.
var (
	errManyBlocks = errors.New("more block ids than the input has blocks")
	errTwice      = errors.New("a block id stands twice in one request: its prefix would hold itself")
	errNoBlocks   = errors.New("no block ids")
)

// checkBlocks refuses rows that no paged cache can have made. Fewer ids than blocks are fine: engines that keep whole blocks
// only leave the rest of the last one out.
func checkBlocks(rec *record) error {
	switch n := len(rec.blocks); {
	case n == 0:
		return errNoBlocks
	case n > maxBlocks:
		return fmt.Errorf("more than %d block ids", maxBlocks)
	case n > (rec.context-1)/rec.blockTokens+1:
		return errManyBlocks
	}
	sorted := slices.Clone(rec.blocks)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) < len(rec.blocks) {
		return errTwice
	}
	return nil
}

// scopeName makes a text fit for the middle of a key.
func scopeName(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '/' || r == ',' || r == '"' || r <= ' ' || r == 0x7f || r == 0xfffd:
			return '_'
		}
		return r
	}, text)
}
