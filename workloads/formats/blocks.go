package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvbench/workloads"
)

// Blocks is block traces: Mooncake's JSON lines, or sessions of agents as JSON documents, told
// apart by what is in each file. Blocks are how engines that page their cache keep it: a fixed
// number of tokens each, addressed by their content and all that comes before it, so that requests
// with equal beginnings share blocks. A row without generated tokens is a request like others. The
// ids of one file, of a session of one file, are a scope of their own.
var Blocks = Format{
	Name: "block", Silent: true, Open: openBlocks,
	Extensions: []string{".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".json.gz", ".json.zst"},
}

const (
	// maxBlocks bounds the blocks of one request.
	maxBlocks = 1 << 20
	// maxBlockLine is the longest line of a block trace: a request of a hundred thousand ids.
	maxBlockLine = 1 << 20
)

// openBlocks opens a file of either format.
func openBlocks(path string) (Reader, error) {
	name := filepath.Base(path)
	base, _, _ := strings.Cut(name, ".")
	base = cmp.Or(base, name)
	if !strings.Contains(strings.ToLower(name), ".jsonl") {
		session, err := isSession(path)
		if err != nil {
			return nil, err
		}
		if session {
			doc, err := openDocument(path)
			return &sessionRows{document: doc, base: base}, err
		}
	}
	text, err := openText(path, maxBlockLine)
	return &mooncakeRows{lineReader: lineReader{text, 0}, scope: scopeName(base)}, err
}

// isSession tells the formats apart by the keys of the first object.
func isSession(path string) (bool, error) {
	doc, err := openDocument(path)
	if err != nil {
		return false, err
	}
	defer doc.Close() // only read from
	err = doc.open('{', "it does not start with an object")
	for err == nil && doc.dec.More() {
		var key json.Token
		switch key, err = doc.token(); key {
		case "requests", "block_size", "hash_id_scope":
			return true, nil
		case "hash_ids", "input_length", "output_length", "timestamp":
			return false, nil
		}
		if err == nil {
			err = doc.skip()
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("the format is unknown")
	}
	return false, fmt.Errorf("trace %s: %w: want JSON lines with hash_ids (Mooncake) or a JSON"+
		" document with requests (a session)", path, err)
}

// sessionRows reads sessions of agents (https://github.com/callanjfox/kv-cache-tester): one JSON
// document each, {"id", "block_size", "requests": [{"t", "in", "out", "hash_ids"}]}, or several in
// one file. A session of hours has some MB of requests, so that they are read one by one: keys may
// come in any order as long as block_size stands before requests.
type sessionRows struct {
	*document
	base string // name of the file

	within bool   // a session's document, of which:
	scope  string // what the ids are local to
	size   int    // of its blocks, in tokens
}

// sessionRow is one request of a session.
type sessionRow struct {
	T      *float64 `json:"t"` // s since the session's start
	Input  *int     `json:"in"`
	Output *int     `json:"out"`
	Blocks []int64  `json:"hash_ids"`
}

// Next implements Reader.
func (s *sessionRows) Next() (Row, error) {
	var r sessionRow
	if err := s.next(&r, s.toRequests); err != nil {
		return Row{}, err
	}
	if r.T == nil || r.Input == nil || r.Output == nil {
		return Row{}, malformed("want t, in, out and hash_ids")
	}
	return blockRow(*r.T, *r.Input, *r.Output, r.Blocks, s.size, s.scope)
}

// toRequests reads up to the requests of the next document, if it has any.
func (s *sessionRows) toRequests() error {
	if !s.within {
		s.scope, s.size, s.within = scopeName(s.base), 0, true
		return s.open('{', "want an object with block_size and requests")
	}
	for s.dec.More() {
		key, err := s.token()
		switch {
		case err != nil:
		case key == "id":
			var id string
			if err = s.value(&id); id != "" {
				s.scope = scopeName(s.base + "." + id)
			}
		case key == "block_size":
			err = s.value(&s.size)
		case key == "requests" && (s.size < 1 || s.size > workloads.MaxTokens):
			err = fmt.Errorf("block_size %d before requests, want at least 1", s.size)
		case key == "requests":
			return s.list("requests is no list")
		default:
			err = s.skip()
		}
		if err != nil && !IsMalformed(err) {
			return noEOF(err)
		}
	}
	s.within = false
	_, err := s.token() // the }
	return noEOF(err)
}

// blockRow makes a row of blocks. It refuses what no paged cache can have made; fewer ids than
// blocks are fine: engines that keep whole blocks only leave the rest of the last one out.
func blockRow(at float64, in, out int, ids []int64, size int, scope string) (Row, error) {
	tokens := cmp.Or(checkTokens(in, 1), checkTokens(out, 0))
	switch n := len(ids); {
	case !(at >= 0 && at <= 9e9): // written so that NaN fails
		return Row{}, Malformed{errSeconds}
	case tokens != nil:
		return Row{}, Malformed{tokens}
	case n == 0:
		return Row{}, malformed("no block ids")
	case n > maxBlocks:
		return Row{}, malformed("more than %d block ids", maxBlocks)
	case n > (in-1)/size+1:
		return Row{}, malformed("more block ids than the input has blocks")
	}
	if !distinct(ids) {
		return Row{}, malformed("a block id stands twice in one request:" +
			" its prefix would hold itself")
	}
	return Row{Stamp: time.Duration(math.Round(at * 1e9)), Context: in, Generate: out,
		Blocks: ids, BlockTokens: size, Scope: scope}, nil
}

// distinct tells whether no id stands twice. Most requests have theirs in ascending order, as they
// were given out. For the others a map would be slower than sorting: requests have up to a hundred
// thousand.
func distinct(ids []int64) bool {
	for i := 1; i < len(ids); i++ {
		if ids[i] <= ids[i-1] {
			sorted := slices.Clone(ids)
			slices.Sort(sorted)
			return len(slices.Compact(sorted)) == len(ids)
		}
	}
	return true
}

// scopeName makes a text fit for the middle of a key.
func scopeName(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/,\"\x7f\ufffd", r) || r <= ' ' {
			return '_'
		}
		return r
	}, text)
}

// BlockSizes returns the different sizes of blocks in block traces, in tokens, smallest first,
// judging each file by its first usable row.
func BlockSizes(paths []string) ([]int, error) {
	sizes := make(map[int]bool)
	for _, path := range paths {
		rows, err := openBlocks(path)
		if err != nil {
			return nil, err
		}
		row, err := rows.Next()
		for IsMalformed(err) {
			row, err = rows.Next()
		}
		if err == nil {
			sizes[row.BlockTokens] = true
		}
		_ = rows.Close() // only read from
	}
	if len(sizes) == 0 {
		return nil, errors.New("no usable row in any of the block traces")
	}
	return slices.Sorted(maps.Keys(sizes)), nil
}
