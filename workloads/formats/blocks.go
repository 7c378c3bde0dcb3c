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
	"regexp"
	"slices"
	"strings"
	"time"
)

// blockFormats returns the formats of block traces, in the order of the documentation. A new format is
// a file with a blockFormat, and a line here and in the table of README: help and messages follow.
func blockFormats() []blockFormat {
	return []blockFormat{
		mooncake,
		bailian,
		dynamo,
		kvEvents,
		lct,
		agentSessions,
	}
}

// blockFormat is a format of block traces, and how it is detected.
type blockFormat struct {
	name      string // in help
	sign      string // by which a person recognises a file
	extension string // extension of files in a directory, besides .gz and .zst

	begins *regexp.Regexp // matches the first bytes of a file, nil for a file of JSON objects
	keys   []string       // keys of the first object that only this format has
	// sharedKeys are keys of the first object that other formats have, too. They decide only if no key
	// of keys does.
	sharedKeys []string
	// open opens a file. scope stands for the file in the keys of blocks.
	open func(path, scope string) (Reader, error)
}

// Blocks is the format of block traces. The content of each file shows which format it has. Engines
// with a paged cache store blocks of a fixed number of tokens, addressed by their content and all
// tokens before it, so that requests with equal beginnings share blocks. A row without generated tokens
// is a normal request. Ids are valid within a file, or within a session of a file.
var Blocks = Format{Name: "block", Silent: true, Open: openBlocks, Extensions: blockExtensions()}

func blockExtensions() (list []string) {
	for _, f := range blockFormats() {
		if !slices.Contains(list, f.extension) {
			list = append(list, packed(f.extension)...)
		}
	}
	return list
}

// BlockFormats returns the names of the formats of block traces.
func BlockFormats() (names []string) {
	for _, f := range blockFormats() {
		names = append(names, f.name)
	}
	return names
}

// maxBlocks is the largest number of blocks of one request.
const maxBlocks = 1 << 20

// openBlocks opens a file of any block format.
func openBlocks(path string) (Reader, error) {
	format, err := blockFormatOf(path)
	if err != nil {
		// The first line of a file of lines may be malformed: the other lines may still be usable.
		if !strings.Contains(strings.ToLower(filepath.Base(path)), ".jsonl") {
			return nil, err
		}
		format = mooncake
	}
	return format.open(path, scopeName(baseOf(path)))
}

// baseOf returns a file's name up to its first dot.
func baseOf(path string) string {
	name := filepath.Base(path)
	base, _, _ := strings.Cut(name, ".")
	return cmp.Or(base, name)
}

// Apart returns a scope suffix for the rows of each file, for formats whose scope is the file. The
// suffix distinguishes files of the same name in several directories, and files such as t.1.jsonl and
// t.2.jsonl. It is "" for the first file of a name.
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

// headBytes is the number of bytes of a file that blockFormat.begins is matched with.
const headBytes = 128

// blockFormatOf returns the format of a file, by its first bytes or by the keys of its first object.
func blockFormatOf(path string) (format blockFormat, err error) {
	doc, err := openDocument(path, "")
	if err != nil {
		return format, err
	}
	defer doc.Close()                       // only read from
	head, _ := doc.textFile.Peek(headBytes) // a shorter file has fewer
	for _, f := range blockFormats() {
		if f.begins != nil && f.begins.Match(head) {
			return f, nil
		}
	}
	begin, err := doc.token()
	if err == nil && begin != json.Delim('{') {
		err = errors.New("it does not start with an object")
	}
	for err == nil && doc.dec.More() {
		var key json.Token
		if key, err = doc.token(); err != nil {
			break
		}
		for _, f := range blockFormats() {
			if slices.Contains(f.keys, key.(string)) {
				return f, nil
			}
			if slices.Contains(f.sharedKeys, key.(string)) {
				format = f
			}
		}
		var unused json.RawMessage
		err = doc.value(&unused)
	}
	if format.open != nil {
		return format, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("the format is unknown")
	}
	var signs []string
	for _, f := range blockFormats() {
		signs = append(signs, fmt.Sprintf("%s (%s)", f.name, f.sign))
	}
	return format, fmt.Errorf("trace %s: %w: want %s", path, err, strings.Join(signs, ", "))
}

// errBlockKeys is the error of a row without the keys of Mooncake and Bailian.
var errBlockKeys = malformed("want timestamp, input_length, output_length and hash_ids")

// blockRow completes a row of blocks. at is its time in s. It refuses rows that no paged cache can
// have. One id less than blocks is valid: engines that store only whole blocks omit the last, partial
// block, which may be the only block.
func blockRow(at float64, r Row) (Row, error) {
	if err := checkTokens(r.BlockTokens, 1); err != nil {
		return Row{}, malformed("blocks of %d tokens: %w", r.BlockTokens, err)
	}
	tokens := cmp.Or(checkTokens(r.Context, 1), checkTokens(r.Generate, 0))
	switch n := len(r.Blocks); {
	case !(at >= 0 && at <= 9e9): // written so that NaN fails
		return Row{}, Malformed{errSeconds}
	case tokens != nil:
		return Row{}, malformed("%d tokens in, %d out: %w", r.Context, r.Generate, tokens)
	case n == 0 && r.Context >= r.BlockTokens:
		return Row{}, malformed("no block ids")
	case n > maxBlocks:
		return Row{}, malformed("more than %d block ids", maxBlocks)
	case n > (r.Context-1)/r.BlockTokens+1:
		return Row{}, malformed("more block ids than the input has blocks: %d ids, %d tokens, blocks of %d "+
			"tokens%s", n, r.Context, r.BlockTokens, sizeHint(&r))
	case r.Context-n*r.BlockTokens >= r.BlockTokens:
		return Row{}, malformed("fewer block ids than the input has whole blocks: %d ids, %d tokens, blocks "+
			"of %d tokens%s", n, r.Context, r.BlockTokens, sizeHint(&r))
	case !distinct(r.Blocks):
		return Row{}, malformed("a block id stands twice in one request: its prefix would hold itself")
	}
	r.Stamp = time.Duration(math.Round(at * 1e9))
	return r, nil
}

// sizeHint names the block size that fits a row's ids, the next power of two.
func sizeHint(r *Row) string {
	size := 1
	for size*len(r.Blocks) < r.Context {
		size *= 2
	}
	return fmt.Sprintf("; \"block_size\": %d would fit (Dynamo: \"trace_block_size\")", size)
}

// distinct reports whether all ids are different. Most requests have ascending ids, in the order of
// their creation. The ids of other requests are sorted, because a map would be slower: a request has up
// to a hundred thousand ids.
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

// scopeName replaces the characters of a text that may not be in a key.
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

// OnlySessions returns an error if a trace has requests outside of sessions of agents. parameter, which
// applies only to sessions, is named in the error. OnlySessions reads the first usable row of each
// file. It ignores errors of a file, which the later read reports.
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
	row, err := Usable(&tally, rows.Next, rows.Line)
	if errors.Is(err, io.EOF) {
		err = tally.Unusable()
	}
	return row, err
}
