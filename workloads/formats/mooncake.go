package formats

import (
	"cmp"
	"encoding/json"
	"time"
)

// mooncake is the format of https://github.com/kvcache-ai/Mooncake (FAST25-release/traces): JSON lines
// {"timestamp": ms, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, ...]}. AIPerf writes
// input_tokens, output_tokens and created_time instead. block_size is a key of kvbench, for a block
// size other than 512.
//
// A row of a session (session_id) may have a delay in ms instead of a timestamp (AIPerf, Dynamo). The
// delay starts with the answer to the previous row of the session. The time of the answer is not
// recorded, so the reader counts the delay from the start of the previous row. It holds a row with a
// delay until no earlier row can come.
var mooncake = blockFormat{
	name: "Mooncake", sign: `JSON lines with "hash_ids"`, extension: ".jsonl",
	sharedKeys: []string{"hash_ids", "input_length", "output_length", "timestamp"},
	open: func(path, scope string) (Reader, error) {
		m, first, note := mooncakeSessions{}, true, ""
		return openJSONLines(path, func(out *rowReader, line *mooncakeLine) error {
			if at := cmp.Or(line.Time, line.Created); at != nil {
				// Of the years 2001 to 2096. In milliseconds it would be eleven days after the start.
				if first && *at >= 1e9 && *at < 4e9 {
					note = "timestamps are read as seconds since 1970, although Mooncake's are milliseconds"
				}
				if first = false; note != "" {
					*at *= 1e3
				}
			}
			return m.row(out, line, scope, note)
		})
	},
}

// mooncakeTokens is the block size of Mooncake's files in tokens. The files do not contain it.
const mooncakeTokens = 512

// mooncakeLine is one line of a file. A nil pointer is a missing key.
type mooncakeLine struct {
	Time     *float64 `json:"timestamp"`
	Created  *float64 `json:"created_time"`
	In       *whole   `json:"input_length"`
	InTokens *whole   `json:"input_tokens"`
	Out      *whole   `json:"output_length"`
	OutToken *whole   `json:"output_tokens"`
	IDs      blockIDs `json:"hash_ids"`
	Size     whole    `json:"block_size"`

	Session  json.RawMessage `json:"session_id"`
	Delay    *float64        `json:"delay"`
	DelayMS  *float64        `json:"delay_ms"`
	Messages json.RawMessage `json:"messages"`
	Text     json.RawMessage `json:"text_input"`
	Input    json.RawMessage `json:"input"`
	WaitFor  json.RawMessage `json:"wait_for"`
}

// mooncakeSessions has the time of the last row of each session.
type mooncakeSessions map[string]*time.Duration

// row adds the row of a line to out.
func (m mooncakeSessions) row(out *rowReader, line *mooncakeLine, scope, note string) error {
	// Of each pair of keys, take the key that the line has.
	at, delay := cmp.Or(line.Time, line.Created), cmp.Or(line.Delay, line.DelayMS)
	in, answer := cmp.Or(line.In, line.InTokens), cmp.Or(line.Out, line.OutToken)
	session := string(line.Session) // a number or a text
	if session == "null" || session == `""` {
		session = ""
	}
	before := m[session]
	switch {
	case line.IDs == nil && (line.Messages != nil || line.Text != nil || line.Input != nil):
		return malformed("messages, input or text_input without hash_ids: their blocks are not known")
	case line.WaitFor != nil:
		return malformed("%s: %s", agenticSchema, agenticInstead)
	case session != "" && at == nil && delay == nil:
		// AIPerf begins such a session as soon as it has capacity for another session.
		return malformed("a row of a session with neither timestamp nor delay: its time is not recorded")
	case in == nil || answer == nil || at == nil && delay == nil:
		return errBlockKeys
	case at == nil && (before == nil || !(*delay >= 0)):
		return malformed("a row with a delay and no timestamp: want a session_id of a row before it, " +
			"after which it comes, and a delay of at least 0")
	}
	timed := at != nil
	if !timed {
		at = new(float64(*before)/1e6 + *delay)
	}
	row, err := blockRow(*at/1e3, Row{Context: int(*in), Generate: int(*answer), Blocks: line.IDs,
		BlockTokens: int(cmp.Or(line.Size, mooncakeTokens)), Scope: scope, Note: note})
	if err != nil {
		return err
	}
	if timed {
		out.add(row, nil)
	} else {
		out.hold(row)
	}
	switch {
	case session == "":
	case before != nil:
		*before = row.Stamp
	default:
		m[session] = new(row.Stamp)
	}
	return nil
}

// bailian is the format of https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon: JSON lines
// {"chat_id": 1, "parent_chat_id": -1, "timestamp": s, "input_length": 40, "output_length": 9, "type":
// "text", "turn": 1, "hash_ids": [1, 2, 3]}. An id depends only on the block's own tokens. To an
// engine, equal tokens after different prefixes are different blocks. So the reader identifies a block
// by its id and the block before it.
var bailian = blockFormat{
	name: "Bailian", sign: `JSON lines with "chat_id"`, extension: ".jsonl",
	keys: []string{"chat_id", "parent_chat_id"},
	open: func(path, scope string) (Reader, error) {
		chain := make(map[link]int64) // numbers of blocks by id and the block before
		var ids []int64
		return openJSONLines(path, func(out *rowReader, line *bailianLine) error {
			if line.Time == nil || line.In == nil || line.Out == nil {
				return errBlockKeys
			}
			ids = ids[:0]
			before := int64(0)
			for _, id := range line.IDs {
				before = numbered(chain, link{before, id}, int64(len(chain))+1)
				ids = append(ids, before)
			}
			out.add(blockRow(*line.Time, Row{Context: int(*line.In), Generate: int(*line.Out), Blocks: ids,
				BlockTokens: int(cmp.Or(line.Size, bailianTokens)), Scope: scope}))
			return nil
		})
	},
}

// bailianTokens is the block size of Bailian's traces in tokens.
const bailianTokens = 16

// link is a block's own id and the block before it, 0 for none.
type link struct{ before, id int64 }

// bailianLine is one line of a file. A nil pointer is a missing key.
type bailianLine struct {
	Time *float64 `json:"timestamp"` // s
	In   *whole   `json:"input_length"`
	Out  *whole   `json:"output_length"`
	Size whole    `json:"block_size"` // kvbench's key, as in Mooncake's lines
	IDs  blockIDs `json:"hash_ids"`
}
