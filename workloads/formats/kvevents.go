package formats

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
)

// kvEventRows reads the events that vLLM, SGLang and Dynamo publish of their GPU's cache
// (vllm/distributed/kv_events.py), a batch per line as JSON: [time, [event, …], rank] or
// {"ts": s, "events": [{"type": "BlockStored", "block_hashes": [104], "block_size": 4, …}]}; an
// event may be a list, too: ["BlockStored", hashes, parent, tokens, block size, lora id, medium,
// …]. Older engines publish lists, newer ones objects with names.
//
// The events have no look-ups. A block that the GPU stores was not there before: it was computed, or loaded
// from a tier below. So the blocks of a BlockStored are a request for these blocks to such a tier, and a hit
// is a block that is stored again. Blocks that the GPU found itself are no requests. Stores on other media
// are copies, and removals free capacity of the engine's cache, not of another one.
//
// Hashes depend on a block and all blocks before it. If workers begin them with the same value, as workers
// that share a storage must (vLLM's PYTHONHASHSEED), they have the same meaning in every file; otherwise
// they never match.
type kvEventRows struct {
	lineReader
	pending []kvRow
	// group is the group of layers whose events count: the first one stored. Hybrid models have events
	// for each group.
	group   int64
	grouped bool
}

// kvRow is the result of an event.
type kvRow struct {
	row Row
	err error
}

// kvBatch is one line.
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

// kvEvent is an event. Medium: nil is the GPU.
type kvEvent struct {
	Type   string   `json:"type"`
	Hashes blockIDs `json:"block_hashes"`
	Size   int      `json:"block_size"`
	Medium *string  `json:"medium"`
	Group  *int64   `json:"group_idx"`
}

// UnmarshalJSON implements json.Unmarshaler for both forms. It only reads lists of BlockStored.
func (e *kvEvent) UnmarshalJSON(text []byte) error {
	if text[0] != '[' {
		type plain kvEvent
		return json.Unmarshal(text, (*plain)(e))
	}
	if err := decodeList(text, &e.Type); err != nil || e.Type != kvStored {
		return err
	}
	// Between them stand the parent, the tokens, the adapter twice and what keeps tenants apart.
	var unused json.RawMessage
	return decodeList(text, &e.Type, &e.Hashes, &unused, &unused, &e.Size, &unused, &e.Medium,
		&unused, &unused, &e.Group)
}

const (
	kvStored = "BlockStored"
	// kvEventScope is where hashes mean something.
	kvEventScope = "kv"
)

// decodeList decodes the first values of a list, as many as it has.
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

// Next implements Reader.
func (k *kvEventRows) Next() (Row, error) {
	for len(k.pending) == 0 {
		line, err := k.next()
		if err != nil {
			return Row{}, err
		}
		if err := k.batch(line); err != nil {
			return Row{}, err
		}
	}
	next := k.pending[0]
	k.pending = k.pending[1:]
	return next.row, next.err
}

// batch reads a line. An event of it that cannot be used costs itself alone.
func (k *kvEventRows) batch(line []byte) error {
	var b kvBatch
	if err := json.Unmarshal(line, &b); err != nil {
		return Malformed{err}
	}
	if b.Time == nil || b.Events == nil {
		return malformed("want a batch of events with its time")
	}
	rows := k.pending[:0]
	for _, text := range b.Events {
		var e kvEvent
		if err := json.Unmarshal(text, &e); err != nil {
			rows = append(rows, kvRow{err: Malformed{err}})
		} else if k.counts(&e) {
			row, err := k.row(*b.Time, &e)
			rows = append(rows, kvRow{row, err})
		}
	}
	k.pending = rows
	return nil
}

// counts says whether an event is one of the GPU that stores blocks of the group that counts.
func (k *kvEventRows) counts(e *kvEvent) bool {
	if e.Type != kvStored || e.Medium != nil && !strings.EqualFold(*e.Medium, "GPU") ||
		len(e.Hashes) == 0 {
		return false
	}
	group := int64(0)
	if e.Group != nil {
		group = *e.Group
	}
	if !k.grouped {
		k.group, k.grouped = group, true
	}
	return group == k.group
}

// row makes a row of an event.
func (k *kvEventRows) row(at float64, e *kvEvent) (Row, error) {
	if err := checkTokens(e.Size, 1); err != nil {
		return Row{}, malformed("block_size: %w", err)
	}
	row, err := blockRow(at, len(e.Hashes)*e.Size, 0, e.Hashes, e.Size, kvEventScope)
	row.Common = true
	return row, err
}

// blockIDs are ids of blocks: whole numbers in nearly all files. Others are hashes, see kvHash.
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

// kvHash reads the hash of a block: a number, whose bits count, or bytes as hexadecimal digits, of
// which the last eight count, as for who routes requests by them (llm-d).
func kvHash(text string) (int64, error) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return int64(n), nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	digits := strings.Trim(text, `"`)
	if n, err := strconv.ParseUint(digits[max(0, len(digits)-16):], 16, 64); err == nil {
		return int64(n), nil
	}
	return 0, malformed("a block's hash is %.40s, want a number or hexadecimal digits", text)
}
