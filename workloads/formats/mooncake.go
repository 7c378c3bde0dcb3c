package formats

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

	"kvbench/workloads"
)

// maxBlockLine is the longest line of a block trace: a request of a hundred thousand ids.
const maxBlockLine = 1 << 20

// Blocks is block traces: Mooncake's JSON lines, or sessions of agents as JSON documents, told apart by what is
// in each file. A row without generated tokens is a request like others. The ids of one file, of a session of
// one file, are a scope of their own.
var Blocks = Format{
	Name: "block", Silent: true, Open: openBlocks,
	Extensions: []string{".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".json.gz", ".json.zst"},
}

// openBlocks opens a file of either format.
func openBlocks(path string) (Reader, error) {
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
		session, err = isSession(doc)
		_ = doc.Close() // only read from
		if err != nil {
			return nil, fmt.Errorf("trace %s: %w: want JSON lines with hash_ids (Mooncake) or a JSON document with requests (a session)", path, err)
		}
	}
	if session {
		doc, err := openDocument(path)
		if err != nil {
			return nil, err
		}
		return &sessionRows{document: doc, base: base}, nil
	}
	lines, err := openLines(path, maxBlockLine)
	if err != nil {
		return nil, err
	}
	return &mooncakeRows{lineReader: lines, scope: scopeName(base)}, nil
}

// isSession tells the formats apart by the keys of the first object.
func isSession(doc *document) (bool, error) {
	err := doc.open('{', "it does not start with an object")
	for err == nil && doc.dec.More() {
		var t json.Token
		if t, err = doc.token(); err != nil {
			break
		}
		switch t {
		case "requests", "block_size", "hash_id_scope":
			return true, nil
		case "hash_ids", "input_length", "output_length", "timestamp":
			return false, nil
		}
		err = doc.skip()
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("the format is unknown")
	}
	return false, err
}

// mooncakeRows reads Mooncake's JSON lines.
type mooncakeRows struct {
	*lineReader
	scope string
}

// mooncakeRow is one line. Pointers tell what is missing.
type mooncakeRow struct {
	Timestamp *float64 `json:"timestamp"` // ms
	Input     *int     `json:"input_length"`
	Output    *int     `json:"output_length"`
	Blocks    []int64  `json:"hash_ids"`
}

// Next implements Reader.
func (m *mooncakeRows) Next() (Row, error) {
	line, err := m.next()
	if err != nil {
		return Row{}, err
	}
	var r mooncakeRow
	if err := json.Unmarshal(line, &r); err != nil {
		return Row{}, Malformed{err}
	}
	if r.Timestamp == nil || r.Input == nil || r.Output == nil {
		return Row{}, malformed("want timestamp, input_length, output_length and hash_ids")
	}
	row := Row{Context: *r.Input, Generate: *r.Output, Blocks: r.Blocks, BlockTokens: blockTokens, Scope: m.scope}
	return row, row.finish(*r.Timestamp / 1e3)
}

// finish checks a row of blocks and sets its time.
func (r *Row) finish(seconds float64) error {
	switch {
	case !(seconds >= 0 && seconds <= 9e9): // written so that NaN fails
		return Malformed{errSeconds}
	case r.Context < 1 || r.Generate < 0:
		return Malformed{errFewTokens}
	case r.Context > workloads.MaxTokens || r.Generate > workloads.MaxTokens:
		return Malformed{errTokens}
	}
	r.Stamp = time.Duration(math.Round(seconds * 1e9))
	if err := checkBlocks(r); err != nil {
		return Malformed{err}
	}
	return nil
}

// BlockSizes returns the different sizes of blocks in block traces, in tokens, smallest first,
// judging each file by its first usable row.
func BlockSizes(paths []string) ([]int, error) {
	var sizes []int
	for _, path := range paths {
		rows, err := openBlocks(path)
		if err != nil {
			return nil, err
		}
		for {
			row, err := rows.Next()
			if isMalformed(err) {
				continue
			}
			if err == nil && !slices.Contains(sizes, row.BlockTokens) {
				sizes = append(sizes, row.BlockTokens)
			}
			break
		}
		_ = rows.Close() // only read from
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

// Errors of rows of blocks.
var (
	errManyBlocks = errors.New("more block ids than the input has blocks")
	errTwice      = errors.New("a block id stands twice in one request: its prefix would hold itself")
	errNoBlocks   = errors.New("no block ids")
)

// checkBlocks refuses rows that no paged cache can have made. Fewer ids than blocks are fine:
// engines that keep whole blocks only leave the rest of the last one out.
func checkBlocks(r *Row) error {
	switch n := len(r.Blocks); {
	case n == 0:
		return errNoBlocks
	case n > maxBlocks:
		return fmt.Errorf("more than %d block ids", maxBlocks)
	case n > (r.Context-1)/r.BlockTokens+1:
		return errManyBlocks
	}
	sorted := slices.Clone(r.Blocks)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) < len(r.Blocks) {
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
