package formats

// dynamo is the format of the request traces of NVIDIA Dynamo (dynamo.request.trace.v1): JSON lines,
// bare or under "event". The lines of type request_end are requests: {"schema", "event_type":
// "request_end", "request": {"output_tokens": 4, "request_received_ms": 1000, "replay":
// {"trace_block_size": 16, "input_length": 40, "input_sequence_hashes": [11, 22, 33]}}}. A hash depends
// on a block and all blocks before it, and has the same meaning in every file.
//
// Dynamo writes a line when a request ends, but the replay is in the order of receipt. So the reader
// holds all rows.
var dynamo = blockFormat{
	name: "Dynamo", sign: `JSON lines with "event_type"`, extension: ".jsonl",
	keys: []string{"schema", "event_type", "event"},
	open: func(path, _ string) (Reader, error) { return openJSONLines(path, dynamoRow) },
}

const (
	// dynamoSchema is the schema that a line must have.
	dynamoSchema = "dynamo.request.trace.v1"
	// agenticSchema is the schema of files that Dynamo's simulator makes from such traces and from
	// other traces. Older files have no header, and rows with wait_for.
	agenticSchema  = "dynamo.agentic_mooncake"
	agenticInstead = "the times of these rows are a graph of dependencies; give the request " +
		"trace that they were made of (" + dynamoSchema + ")"
)

// dynamoEvent is one line of a file. Nil pointers are missing keys.
type dynamoEvent struct {
	Schema  string       `json:"schema"`
	Type    string       `json:"event_type"`
	Event   *dynamoEvent `json:"event"`
	Request *struct {
		Output   *whole   `json:"output_tokens"`
		Received *float64 `json:"request_received_ms"`
		Replay   *struct {
			Size   int      `json:"trace_block_size"`
			Input  *whole   `json:"input_length"`
			Hashes []uint64 `json:"input_sequence_hashes"`
		} `json:"replay"`
	} `json:"request"`
}

func dynamoRow(out *rowReader, e *dynamoEvent) error {
	if e.Event != nil {
		e = e.Event
	}
	switch r := e.Request; {
	case e.Schema == agenticSchema:
		return malformed("%s: %s", agenticSchema, agenticInstead)
	case e.Schema != dynamoSchema:
		return malformed("schema %.40q, want %s", e.Schema, dynamoSchema)
	case e.Type != "request_end":
		return nil
	case r == nil || r.Output == nil || r.Received == nil || r.Replay == nil || r.Replay.Input == nil:
		return malformed("want request with output_tokens, request_received_ms and replay with " +
			"trace_block_size, input_length and input_sequence_hashes")
	}
	r := e.Request
	ids := make([]int64, len(r.Replay.Hashes))
	for i, h := range r.Replay.Hashes {
		ids[i] = int64(h) // keep the bits: a hash is no number
	}
	row, err := blockRow(*r.Received/1e3, Row{Context: int(*r.Replay.Input), Generate: int(*r.Output), Blocks: ids,
		BlockTokens: r.Replay.Size, Scope: "dynamo", Common: true})
	if err == nil {
		out.hold(row)
	}
	return err
}
