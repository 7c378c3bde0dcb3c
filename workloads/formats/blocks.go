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
)

// Blocks is the format of block traces: JSON lines of Mooncake, Bailian or Dynamo, sessions of agents as
// JSON documents, events of GPUs' caches, or recordings of LMCache, detected by the content of each file.
// Engines with a paged cache store blocks of a fixed number of tokens, addressed by their content and all
// tokens before it, so that requests with equal beginnings share blocks. A row without generated tokens is a
// normal request. Ids are valid within a file, or within a session of a file.
var Blocks = Format{
	Name: "block", Silent: true, Open: openBlocks,
	Extensions: []string{".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".json.gz", ".json.zst",
		".lct", ".lct.gz", ".lct.zst"},
}

const (
	// maxBlocks limits the blocks of one request.
	maxBlocks = 1 << 20
	// maxBlockLine is the longest line of a block trace: a request of a hundred thousand ids, which
	// may be hashes of twenty digits.
	maxBlockLine = 2 << 20
)

// openBlocks opens a file of any block format.
func openBlocks(path string) (Reader, error) {
	name, base := filepath.Base(path), baseOf(path)
	kind, err := blockKind(path)
	// A malformed line does not affect others, so a file of lines may begin with one.
	if err != nil && !strings.Contains(strings.ToLower(name), ".jsonl") {
		return nil, err
	}
	if kind == sessionKind {
		doc, err := openDocument(path)
		return &sessionRows{document: doc, base: base}, err
	}
	text, err := openText(path, maxBlockLine)
	if err != nil {
		return nil, err
	}
	lines := lineReader{text, 0}
	switch kind {
	case lctKind:
		return openLCT(text)
	case kvEventKind:
		return &kvEventRows{lineReader: lines}, nil
	case bailianKind:
		return &bailianRows{lineReader: lines, scope: scopeName(base)}, nil
	case dynamoKind:
		return &dynamoRows{lineReader: lines}, nil
	}
	return &mooncakeRows{lineReader: lines, scope: scopeName(base)}, nil
}

// baseOf returns a file's name up to the first dot.
func baseOf(path string) string {
	name := filepath.Base(path)
	base, _, _ := strings.Cut(name, ".")
	return cmp.Or(base, name)
}

// Apart returns the suffix of the scope of each file's rows, for formats whose scope is the file. It
// distinguishes files of the same name in several directories, or files such as t.1.jsonl and t.2.jsonl. It
// is "" for the first file of a name.
func Apart(paths []string) (suffixes []string) {
	seen := make(map[string]int)
	for _, path := range paths {
		base := baseOf(path)
		seen[base]++
		suffix := ""
		if n := seen[base]; n > 1 {
			suffix = fmt.Sprintf("~%d", n)
		}
		suffixes = append(suffixes, suffix)
	}
	return suffixes
}

// The kinds of block traces.
const (
	mooncakeKind = iota
	sessionKind
	bailianKind
	dynamoKind
	kvEventKind
	lctKind
)

// blockKind detects the format by the keys of the first object: at a key that only one format has, else at
// the end of the object.
func blockKind(path string) (kind int, err error) {
	doc, err := openDocument(path)
	if err != nil {
		return 0, err
	}
	defer doc.Close() // only read from
	if head, _ := doc.textFile.Peek(lctLook); isLCT(head) {
		return lctKind, nil
	}
	first, err := doc.token()
	if first == json.Delim('[') { // a time, and a list of events
		_, timed := nextToken(doc).(float64)
		if timed && nextToken(doc) == json.Delim('[') {
			return kvEventKind, nil
		}
	}
	if err == nil && first != json.Delim('{') {
		err = errors.New("it does not start with an object")
	}
	known := false
	for err == nil && doc.dec.More() {
		var key json.Token
		switch key, err = doc.token(); key {
		case "requests", "hash_id_scope":
			return sessionKind, nil
		case "chat_id", "parent_chat_id":
			return bailianKind, nil
		case "schema", "event_type", "event":
			return dynamoKind, nil
		case "events", "data_parallel_rank":
			return kvEventKind, nil
		case "hash_ids", "input_length", "output_length", "timestamp":
			known = true
		}
		if err == nil {
			err = doc.skip()
		}
	}
	if known {
		return mooncakeKind, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("the format is unknown")
	}
	return 0, fmt.Errorf("trace %s: %w: want JSON lines with hash_ids (Mooncake, Bailian), of"+
		" request_end (Dynamo) or of batches of events (vLLM's cache), JSON documents with"+
		" requests (sessions), or a recording of LMCache's (.lct)", path, err)
}

// nextToken returns the next token of a document, or nil.
func nextToken(doc *document) json.Token {
	t, _ := doc.token() // nil matches no format
	return t
}

// blockRow makes a row of blocks. It refuses rows that no paged cache can have. Fewer ids than blocks are
// valid: engines that store only whole blocks omit the last partial one, which may be the only one.
func blockRow(at float64, in, out int, ids []int64, size int, scope string) (Row, error) {
	tokens := cmp.Or(checkTokens(in, 1), checkTokens(out, 0))
	switch n := len(ids); {
	case !(at >= 0 && at <= 9e9): // written so that NaN fails
		return Row{}, Malformed{errSeconds}
	case tokens != nil:
		return Row{}, malformed("%d tokens in, %d out: %w", in, out, tokens)
	case n == 0 && in >= size:
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

// distinct reports whether all ids are different. Most requests have ascending ids, in the order of their
// creation. For the others a map would be slower than sorting: requests have up to a hundred thousand ids.
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

// BlockSizes returns the different block sizes of block traces, in tokens, smallest first. It reads the
// first usable row of each file, and returns the error of the first file without one.
func BlockSizes(paths []string) ([]int, error) {
	sizes := make(map[int]bool)
	var first error
	for _, path := range paths {
		row, err := firstRow(path)
		if err == nil {
			sizes[row.BlockTokens] = true
		}
		first = cmp.Or(first, err)
	}
	return slices.Sorted(maps.Keys(sizes)), first
}

// OnlySessions refuses a parameter that applies only to sessions of agents, if a trace has other requests.
// It reads the first usable row of each file. It ignores errors of a file, which the later read reports.
func OnlySessions(parameter string, paths []string) error {
	for _, path := range paths {
		row, err := firstRow(path)
		if err == nil && row.Agent.Play == 0 {
			return fmt.Errorf("%s: must be absent but for sessions of agents, whose requests wait "+
				"for each other: %s has none", parameter, path)
		}
	}
	return nil
}

// firstRow returns the first usable row of a file.
func firstRow(path string) (Row, error) {
	rows, err := openBlocks(path)
	if err != nil {
		return Row{}, err
	}
	defer rows.Close() // only read from
	tally := Tally{What: "trace", File: path, Allow: true}
	for {
		row, err := rows.Next()
		switch end := tally.Row(err, rows.Line); {
		case errors.Is(end, io.EOF):
			return Row{}, tally.Unusable()
		case end != nil || err == nil:
			return row, end
		}
	}
}
