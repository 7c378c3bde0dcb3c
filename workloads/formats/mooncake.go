package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"
)

// mooncakeTokens is the block size of Mooncake's files, which do not contain it.
const mooncakeTokens = 512

// mooncakeRows reads the JSON lines of https://github.com/kvcache-ai/Mooncake
// (FAST25-release/traces): {"timestamp": ms, "input_length": 6758, "output_length": 500,
// "hash_ids": [0, 1, ...]}. AIPerf writes input_tokens, output_tokens and created_time instead;
// block_size, which is kvbench's own key, is the block size where it is not 512.
//
// A row of a session (session_id) with a delay instead of a timestamp (AIPerf, Dynamo) starts that
// many ms after the answer to the row before it of its session. The time of the answer is not
// recorded: the delay counts from the row before it. Such rows wait in held for earlier rows.
type mooncakeRows struct {
	lineReader
	scope string
	row   mooncakeRow

	asked map[string]*time.Duration // by session: when its last row came
	held  heldRows                  // with delays
	ready bool                      // timed has a row, behind those of them that come before it
	timed Row                       // with a timestamp
	ended error                     // what ended the file
}

// mooncakeRow is one line.
type mooncakeRow struct {
	at      float64 // ms
	in, out int64
	size    int64   // of its blocks, 0 = not given
	ids     []int64 // memory that rows share
	present uint8   // the keys of the line, a bit each
	session []byte  // as written, with its quotes; valid until the next line
	delay   float64 // ms, where there is no time
}

// The keys, in the order of their bits.
const (
	mooncakeTime = 1 << iota
	mooncakeIn
	mooncakeOut
	mooncakeSize
	mooncakeDelay
	mooncakeSession
	mooncakeNeeds = mooncakeIn | mooncakeOut
)

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
		row, err := m.read()
		timed := m.row.present&mooncakeTime != 0
		switch {
		case err == nil && timed && len(m.held.rows) == 0: // nearly all rows of nearly all files
			return row, nil
		case err == nil && timed:
			m.timed, m.ready = row, true
		case err == nil:
			row.Blocks = slices.Clone(row.Blocks)
			m.held.add(row)
		case IsMalformed(err):
			return Row{}, err
		default:
			m.ended = err
		}
	}
}

// maxAsked bounds the sessions whose last row is known, to some hundred MB.
const maxAsked = 1 << 20

// read reads a line.
func (m *mooncakeRows) read() (Row, error) {
	line, err := m.lineReader.next()
	if err != nil {
		return Row{}, err
	}
	r := &m.row
	if err := r.decode(line); err != nil {
		return Row{}, Malformed{err}
	}
	if r.present&(mooncakeSession|mooncakeTime|mooncakeDelay) == mooncakeSession {
		// AIPerf begins such a session as soon as it has a place for it.
		return Row{}, malformed("a row of a session with neither timestamp nor delay: nobody " +
			"wrote down when it came")
	}
	if r.present&mooncakeNeeds != mooncakeNeeds || r.present&(mooncakeTime|mooncakeDelay) == 0 {
		return Row{}, malformed("want timestamp, input_length, output_length and hash_ids")
	}
	if r.present&mooncakeTime == 0 {
		before := m.asked[string(r.session)]
		if before == nil || !(r.delay >= 0) {
			return Row{}, malformed("a row with a delay and no timestamp: want a session_id of a " +
				"row before it, after which it comes, and a delay of at least 0")
		}
		r.at = float64(*before)/1e6 + r.delay
	}
	size := cmp.Or(r.size, mooncakeTokens)
	if err := checkTokens(int(size), 1); err != nil {
		return Row{}, malformed("block_size: %w", err)
	}
	row, err := blockRow(r.at/1e3, int(r.in), int(r.out), r.ids, int(size), m.scope)
	if err == nil && len(r.session) > 0 {
		// Most rows are of a session that is known: no copy of its name is made for a look-up.
		if at := m.asked[string(r.session)]; at != nil {
			*at = row.Stamp
			return row, nil
		}
		if m.asked == nil || len(m.asked) == maxAsked {
			m.asked = make(map[string]*time.Duration)
		}
		m.asked[string(r.session)] = new(row.Stamp)
	}
	return row, err
}

// mooncakeLine is any line. Pointers tell what is missing.
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

// decode reads any line that is a JSON object. Where a name of each pair is missing the other
// counts.
func (r *mooncakeRow) decode(line []byte) error {
	var v mooncakeLine
	if err := json.Unmarshal(line, &v); err != nil {
		return err
	}
	at, in, out := cmp.Or(v.Time, v.Created), cmp.Or(v.In, v.InToo), cmp.Or(v.Out, v.OutToo)
	switch {
	case v.IDs == nil && (v.Messages != nil || v.Text != nil || v.Input != nil):
		return malformed("messages, input or text_input without hash_ids: their blocks are not " +
			"known")
	case v.WaitFor != nil:
		return malformed("%s: %s", agenticSchema, agenticInstead)
	}
	ids := append(r.ids[:0], v.IDs...)
	*r = mooncakeRow{ids: ids}
	if id := string(v.Session); id != "" && id != "null" && id != `""` { // a number or a text
		r.session, r.present = v.Session, r.present|mooncakeSession
	}
	if delay := cmp.Or(v.Delay, v.DelayToo); delay != nil {
		r.delay, r.present = *delay, r.present|mooncakeDelay
	}
	if at != nil {
		r.at, r.present = *at, r.present|mooncakeTime
	}
	if in != nil {
		r.in, r.present = *in, r.present|mooncakeIn
	}
	if out != nil {
		r.out, r.present = *out, r.present|mooncakeOut
	}
	if v.Size != nil {
		r.size, r.present = *v.Size, r.present|mooncakeSize
	}
	return nil
}

// bailianTokens is the size of the blocks of Bailian's traces.
const bailianTokens = 16

// bailianRows reads the JSON lines of
// https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon: {"chat_id": 1, "parent_chat_id":
// -1, "timestamp": s, "input_length": 40, "output_length": 9, "type": "text", "turn": 1,
// "hash_ids": [1, 2, 3]}. Ids are those of a block's own tokens: in another place of another prompt
// the same id is another block to an engine. What stands before it makes it that here, too.
type bailianRows struct {
	lineReader
	scope string
	chain map[link]int64 // blocks by what they are behind
	ids   []int64
}

// link is a block by its own id behind another one, 0 for none.
type link struct{ before, id int64 }

// bailianRow is one line. Pointers tell what is missing.
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
		at, known := b.chain[link{before, id}]
		if !known {
			at = int64(len(b.chain)) + 1
			b.chain[link{before, id}] = at
		}
		b.ids, before = append(b.ids, at), at
	}
	return blockRow(*r.Time, *r.In, *r.Out, b.ids, bailianTokens, b.scope)
}
