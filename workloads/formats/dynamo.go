package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// dynamoRows reads the request traces of NVIDIA Dynamo (dynamo.request.trace.v1): JSON lines, bare
// or under "event", of which those of type request_end are requests: {"schema",
// "event_type": "request_end", "request": {"output_tokens": 4, "request_received_ms": 1000,
// "replay": {"trace_block_size": 16, "input_length": 40, "input_sequence_hashes": [11, 22, 33]}}}.
// The hashes depend on a block and all blocks before it, and have the same meaning in every file.
//
// Lines are written when requests end, but replayed in the order of receipt: rows wait here for requests that
// ended later. A row that was overtaken by more rows than may wait comes late.
type dynamoRows struct {
	lineReader
	held  heldRows
	ended error // what ended the file
}

// dynamoSchema is the schema that a line must have.
const dynamoSchema = "dynamo.request.trace.v1"

// agenticSchema is the schema that Dynamo's simulator makes from such traces, and from others. Older files
// have no header, and rows with wait_for.
const (
	agenticSchema  = "dynamo.agentic_mooncake"
	agenticInstead = "when these rows come is a graph of who waits for whom; give the request " +
		"trace that they were made of (" + dynamoSchema + ")"
)

// heldRows are waiting rows, ordered by time.
type heldRows struct {
	rows   []Row
	blocks int // of all of them
}

// The limits of waiting rows: as many as a cluster executes concurrently, and 64 MiB of blocks.
const (
	maxHeld       = 4096
	maxHeldBlocks = 8 << 20
)

// full reports that the earliest row must not wait any more.
func (h *heldRows) full() bool { return len(h.rows) >= maxHeld || h.blocks >= maxHeldBlocks }

func (h *heldRows) add(row Row) {
	at := len(h.rows) // most are later than all others
	if at > 0 && row.Stamp < h.rows[at-1].Stamp {
		at, _ = slices.BinarySearchFunc(h.rows, row, func(a, b Row) int {
			return cmp.Or(cmp.Compare(a.Stamp, b.Stamp), -1) // behind its equals
		})
	}
	h.rows = slices.Insert(h.rows, at, row)
	h.blocks += len(row.Blocks)
}

// take removes the earliest row.
func (h *heldRows) take() Row {
	row := h.rows[0]
	h.rows[0] = Row{} // so that its blocks can be freed
	h.rows = h.rows[1:]
	h.blocks -= len(row.Blocks)
	return row
}

// dynamoEvent is one line. Nil pointers are missing keys.
type dynamoEvent struct {
	Schema  string       `json:"schema"`
	Type    string       `json:"event_type"`
	Event   *dynamoEvent `json:"event"`
	Request *struct {
		Output   *int     `json:"output_tokens"`
		Received *float64 `json:"request_received_ms"`
		Replay   *struct {
			Size   int      `json:"trace_block_size"`
			Input  *int     `json:"input_length"`
			Hashes []uint64 `json:"input_sequence_hashes"`
		} `json:"replay"`
	} `json:"request"`
}

// Next implements Reader.
func (d *dynamoRows) Next() (Row, error) {
	for d.ended == nil && !d.held.full() {
		line, err := d.next()
		if IsMalformed(err) {
			return Row{}, err
		}
		if d.ended = err; err != nil {
			break
		}
		row, request, err := dynamoRow(line)
		if err != nil {
			return Row{}, err
		}
		if request {
			d.held.add(row)
		}
	}
	if len(d.held.rows) > 0 && (d.ended == nil || errors.Is(d.ended, io.EOF)) {
		return d.held.take(), nil
	}
	return Row{}, d.ended
}

// dynamoRow makes a row of a line; it returns false for an event that is no request.
func dynamoRow(line []byte) (row Row, request bool, err error) {
	var e dynamoEvent
	if err := json.Unmarshal(line, &e); err != nil {
		return row, false, Malformed{err}
	}
	if e.Event != nil {
		e = *e.Event
	}
	if e.Schema == agenticSchema {
		return row, false, malformed("%s: %s", agenticSchema, agenticInstead)
	}
	if e.Schema != dynamoSchema {
		return row, false, malformed("schema %.40q, want %s", e.Schema, dynamoSchema)
	}
	if e.Type != "request_end" {
		return row, false, nil
	}
	r := e.Request
	if r == nil || r.Output == nil || r.Received == nil || r.Replay == nil ||
		r.Replay.Input == nil {
		return row, false, malformed("want request with output_tokens, request_received_ms and" +
			" replay with trace_block_size, input_length and input_sequence_hashes")
	}
	if err := checkTokens(r.Replay.Size, 1); err != nil {
		return row, false, malformed("trace_block_size: %w", err)
	}
	ids := make([]int64, len(r.Replay.Hashes))
	for i, h := range r.Replay.Hashes {
		ids[i] = int64(h) // its bits: a hash is no number
	}
	row, err = blockRow(*r.Received/1e3, *r.Replay.Input, *r.Output, ids, r.Replay.Size, "dynamo")
	row.Common = true
	return row, err == nil, err
}
