package formats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// kvEvents is the format of the events about the GPU's cache that vLLM, SGLang and Dynamo publish
// (vllm/distributed/kv_events.py). Each line has a batch as JSON: [time, [event, …], rank] or {"ts": s,
// "events": [{"type": "BlockStored", "block_hashes": [104], "block_size": 4, …}]}. An event may also be
// a list: ["BlockStored", hashes, parent, tokens, block size, lora id, medium, …]. Older engines
// publish lists, newer engines objects with names.
//
// There are no events of look-ups. A block that the GPU stores was not in the GPU's cache before: it
// was computed, or loaded from a tier below. So the blocks of a BlockStored are a request for these
// blocks to such a tier. A hit is a block that is stored again. Blocks that the GPU's cache had are no
// requests. Stores on other media are copies. Removals free capacity of the engine's cache, not of
// another cache.
//
// A hash depends on a block and all blocks before it. If workers start the hashes with the same value,
// they have the same meaning in every file. Workers that share a storage must do this (vLLM's
// PYTHONHASHSEED). Otherwise the hashes of different workers never match.
var kvEvents = blockFormat{
	name: "KV events", sign: "JSON lines with batches of events", extension: ".jsonl",
	keys:   []string{"events", "data_parallel_rank"},
	begins: regexp.MustCompile(`^\s*\[\s*-?[\d.eE+-]+\s*,\s*\[`), // a time and a list of events
	open: func(path, _ string) (Reader, error) {
		counts, note, err := kvGroup(path)
		if err != nil {
			return nil, err
		}
		return openJSONLines(path, func(out *rowReader, b *kvBatch) error {
			if b.Time == nil || b.Events == nil {
				return malformed("want a batch of events with its time")
			}
			for _, text := range b.Events {
				var e kvEvent
				if err := unmarshal(text, &e); err != nil {
					out.add(Row{}, err)
					continue
				}
				if !e.stores() {
					continue
				}
				if e.Group == counts {
					out.add(blockRow(*b.Time, Row{Context: len(e.Hashes) * e.Size, Blocks: e.Hashes,
						BlockTokens: e.Size, Scope: "kv", Common: true, Note: note}))
				}
			}
			return nil
		})
	},
}

// kvGroup returns the group of layers whose events count. Hybrid models have events for each group. It is
// the first group with full attention or MLA, else the group with the most tokens, in the first rows of
// the file. A linear layer's group stores only its last state, and a placeholder has blocks of 0 tokens. note
// names the group, if there are several.
func kvGroup(path string) (group int64, note string, err error) {
	text, err := openText(path, maxBlockLine)
	if err != nil {
		return 0, "", err
	}
	defer text.Close() // only read from
	lines, tokens, full := &lineReader{textFile: text}, map[int64]int{}, false
	for range CheckedRows {
		line, err := lines.next()
		if err != nil && !IsMalformed(err) {
			break // reading the rows reports it
		}
		var b kvBatch
		if err != nil || json.Unmarshal(line, &b) != nil {
			continue
		}
		lines.usable = true
		for _, text := range b.Events {
			var e kvEvent
			if json.Unmarshal(text, &e) != nil || !e.stores() {
				continue
			}
			kind, _ := e.Kind.(string)
			tokens[e.Group] += len(e.Hashes) * e.Size
			counts := e.Size > 0 && (strings.HasPrefix(kind, "full_attention") || strings.HasPrefix(kind, "mla"))
			if !full && (counts || len(tokens) == 1 || tokens[e.Group] > tokens[group]) {
				group, full = e.Group, counts
			}
		}
	}
	if len(tokens) > 1 {
		note = fmt.Sprintf("of %d groups of layers, the blocks of group %d count", len(tokens), group)
	}
	return group, note, nil
}

// kvBatch is one line of a file.
type kvBatch struct {
	Time   *float64          `json:"ts"`
	Events []json.RawMessage `json:"events"`
}

// UnmarshalJSON implements json.Unmarshaler for both forms.
func (b *kvBatch) UnmarshalJSON(text []byte) error {
	if text[0] != '[' {
		type plain kvBatch
		return json.Unmarshal(text, (*plain)(b))
	}
	return decodeList(text, &b.Time, &b.Events)
}

// kvEvent is an event. A nil Medium is the GPU.
type kvEvent struct {
	Type   string   `json:"type"`
	Hashes blockIDs `json:"block_hashes"`
	Size   int      `json:"block_size"`
	Medium *string  `json:"medium"`
	Group  int64    `json:"group_idx"`
	Kind   any      `json:"kv_cache_spec_kind"`
}

const kvStored = "BlockStored"

// stores reports whether the event stores blocks on the GPU.
func (e *kvEvent) stores() bool {
	return e.Type == kvStored && (e.Medium == nil || strings.EqualFold(*e.Medium, "GPU")) &&
		len(e.Hashes) > 0
}

// UnmarshalJSON implements json.Unmarshaler for both forms. Of lists it reads only BlockStored.
func (e *kvEvent) UnmarshalJSON(text []byte) error {
	if text[0] != '[' {
		type plain kvEvent
		return json.Unmarshal(text, (*plain)(e))
	}
	if err := decodeList(text, &e.Type); err != nil || e.Type != kvStored {
		return err
	}
	// The unused values are the parent, the tokens, the adapter (twice) and the separation of tenants.
	var unused json.RawMessage
	return decodeList(text, &e.Type, &e.Hashes, &unused, &unused, &e.Size, &unused, &e.Medium,
		&unused, &unused, &e.Group, &e.Kind)
}

// decodeList decodes the first values of a list into to, as many as the list has.
func decodeList(text []byte, to ...any) error {
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	for i := range min(len(list), len(to)) {
		if err := json.Unmarshal(list[i], to[i]); err != nil {
			return err
		}
	}
	return nil
}

// whole is a whole number. Some exports write 12.0.
type whole int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *whole) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(bytes.TrimSuffix(text, []byte(".0")), (*int64)(n))
}

// blockIDs are ids of blocks. Nearly all files have whole numbers. Other ids are hashes, see kvHash.
type blockIDs []int64

// UnmarshalJSON implements json.Unmarshaler.
func (ids *blockIDs) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, (*[]int64)(ids)) == nil {
		return nil
	}
	var hashes []json.RawMessage
	err := json.Unmarshal(text, &hashes)
	*ids = (*ids)[:0]
	for _, h := range hashes {
		id, bad := kvHash(string(h))
		*ids, err = append(*ids, id), cmp.Or(err, bad)
	}
	return err
}

// kvHash parses the hash of a block: a number, whose bits are the id, or hexadecimal digits, whose last
// eight bytes are the id, as in llm-d, which routes requests by these hashes.
func kvHash(text string) (int64, error) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return int64(n), nil
	}
	if n, err := strconv.ParseInt(strings.TrimSuffix(text, ".0"), 10, 64); err == nil {
		return n, nil
	}
	digits := strings.Trim(text, `"`)
	if n, err := strconv.ParseUint(digits[max(0, len(digits)-16):], 16, 64); err == nil {
		return int64(n), nil
	}
	return 0, malformed("a block's hash is %.40s, want a number or hexadecimal digits", text)
}
