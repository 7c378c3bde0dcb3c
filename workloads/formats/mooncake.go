package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// mooncakeTokens is the block size of Mooncake's files. The files do not contain it.
const mooncakeTokens = 512

// mooncakeRows reads the JSON lines of https://github.com/kvcache-ai/Mooncake
// (FAST25-release/traces): {"timestamp": ms, "input_length": 6758, "output_length": 500,
// "hash_ids": [0, 1, ...]}. AIPerf writes input_tokens, output_tokens and created_time instead.
// block_size is kvbench's own key, for a block size other than 512.
//
// A row of a session (session_id) may have a delay in ms instead of a timestamp (AIPerf, Dynamo).
// The delay begins with the answer to the session's row before. The time of the answer is not
// recorded, so the delay counts from the start of the row before. Rows with a delay wait in held
// until no earlier row can come.
type mooncakeRows struct {
	lineReader
	scope string

	asked map[string]*time.Duration // by session: the time of its last row
	held  heldRows                  // rows with delays
	ready bool                      // timed has a row; earlier rows of held come first
	timed Row                       // the next row with a timestamp
	ended error                     // what ended the file
}

// Next implements Reader.
func (m *mooncakeRows) Next() (Row, error) {
	for {
		switch {
		case len(m.held.rows) > 0 && (m.ready && m.held.rows[0].Stamp <= m.timed.Stamp ||
			m.held.full() || errors.Is(m.ended, io.EOF)):
			return m.held.take(), nil
		case m.ready:
			m.ready = false
			return m.timed, nil
		case m.ended != nil:
			return Row{}, m.ended
		}
		row, timed, err := m.read()
		switch {
		case err == nil && timed && len(m.held.rows) == 0: // nearly all rows of nearly all files
			return row, nil
		case err == nil && timed:
			m.timed, m.ready = row, true
		case err == nil:
			m.held.add(row)
		case IsMalformed(err):
			return Row{}, err
		default:
			m.ended = err
		}
	}
}

// maxAsked bounds the sessions in asked, to some hundred MB.
const maxAsked = 1 << 20

// read reads a line. timed reports whether it has a timestamp.
func (m *mooncakeRows) read() (row Row, timed bool, err error) {
	text, err := m.lineReader.next()
	if err != nil {
		return row, false, err
	}
	var line mooncakeLine
	if err := json.Unmarshal(text, &line); err != nil {
		return row, false, Malformed{err}
	}
	// If one key of a pair is missing, the other one counts.
	at, delay := cmp.Or(line.Time, line.Created), cmp.Or(line.Delay, line.DelayToo)
	in, out := cmp.Or(line.In, line.InToo), cmp.Or(line.Out, line.OutToo)
	session := string(line.Session) // a number or a text
	if session == "null" || session == `""` {
		session = ""
	}
	switch {
	case line.IDs == nil && (line.Messages != nil || line.Text != nil || line.Input != nil):
		return row, false, malformed("messages, input or text_input without hash_ids: their blocks " +
			"are not known")
	case line.WaitFor != nil:
		return row, false, malformed("%s: %s", agenticSchema, agenticInstead)
	case session != "" && at == nil && delay == nil:
		// AIPerf begins such a session as soon as it has room for another session.
		return row, false, malformed("a row of a session with neither timestamp nor delay: its " +
			"time is not recorded")
	case in == nil || out == nil || at == nil && delay == nil:
		return row, false, malformed("want timestamp, input_length, output_length and hash_ids")
	}
	before := m.asked[session]
	if at == nil {
		if before == nil || !(*delay >= 0) {
			return row, false, malformed("a row with a delay and no timestamp: want a session_id of " +
				"a row before it, after which it comes, and a delay of at least 0")
		}
		at = new(float64(*before)/1e6 + *delay)
	} else {
		timed = true
	}
	size := int64(mooncakeTokens)
	if line.Size != nil && *line.Size != 0 {
		size = *line.Size
	}
	if err := checkTokens(int(size), 1); err != nil {
		return row, timed, malformed("block_size: %w", err)
	}
	row, err = blockRow(*at/1e3, int(*in), int(*out), line.IDs, int(size), m.scope)
	if err != nil || session == "" {
		return row, timed, err
	}
	if before != nil {
		*before = row.Stamp
		return row, timed, nil
	}
	if m.asked == nil || len(m.asked) == maxAsked {
		m.asked = make(map[string]*time.Duration)
	}
	m.asked[session] = new(row.Stamp)
	return row, timed, nil
}

// mooncakeLine is any line. A nil pointer is a missing key.
type mooncakeLine struct {
	Time    *float64 `json:"timestamp"`
	Created *float64 `json:"created_time"`
	In      *int64   `json:"input_length"`
	InToo   *int64   `json:"input_tokens"`
	Out     *int64   `json:"output_length"`
	OutToo  *int64   `json:"output_tokens"`
	IDs     blockIDs `json:"hash_ids"`
	Size    *int64   `json:"block_size"`

	Session  json.RawMessage `json:"session_id"`
	Delay    *float64        `json:"delay"`
	DelayToo *float64        `json:"delay_ms"`
	Messages json.RawMessage `json:"messages"`
	Text     json.RawMessage `json:"text_input"`
	Input    json.RawMessage `json:"input"`
	WaitFor  json.RawMessage `json:"wait_for"`
}

// bailianTokens is the size of the blocks of Bailian's traces.
const bailianTokens = 16

// bailianRows reads the JSON lines of
// https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon: {"chat_id": 1, "parent_chat_id":
// -1, "timestamp": s, "input_length": 40, "output_length": 9, "type": "text", "turn": 1,
// "hash_ids": [1, 2, 3]}. An id depends on the block's own tokens only. To an engine, equal tokens
// after different prefixes are different blocks, so a block is identified by its id and the block
// before it here.
type bailianRows struct {
	lineReader
	scope string
	chain map[link]int64 // blocks by id and the block before
	ids   []int64
}

// link is a block's own id and the block before it, 0 for none.
type link struct{ before, id int64 }

// bailianRow is one line. A nil pointer is a missing key.
type bailianRow struct {
	Time *float64 `json:"timestamp"` // s
	In   *int     `json:"input_length"`
	Out  *int     `json:"output_length"`
	IDs  blockIDs `json:"hash_ids"`
}

// Next implements Reader.
func (b *bailianRows) Next() (Row, error) {
	line, err := b.next()
	if err != nil {
		return Row{}, err
	}
	var r bailianRow
	if err := json.Unmarshal(line, &r); err != nil {
		return Row{}, Malformed{err}
	}
	if r.Time == nil || r.In == nil || r.Out == nil {
		return Row{}, malformed("want timestamp, input_length, output_length and hash_ids")
	}
	if b.chain == nil {
		b.chain = make(map[link]int64)
	}
	b.ids = b.ids[:0]
	before := int64(0)
	for _, id := range r.IDs {
		before = numbered(b.chain, link{before, id}, int64(len(b.chain))+1)
		b.ids = append(b.ids, before)
	}
	return blockRow(*r.Time, *r.In, *r.Out, b.ids, bailianTokens, b.scope)
}
