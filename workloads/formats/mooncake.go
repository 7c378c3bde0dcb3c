package formats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"
)

// mooncakeTokens is the size of Mooncake's blocks, whose files do not tell it.
const mooncakeTokens = 512

// mooncakeRows reads the JSON lines of https://github.com/kvcache-ai/Mooncake
// (FAST25-release/traces): {"timestamp": ms, "input_length": 6758, "output_length": 500,
// "hash_ids": [0, 1, ...]}. Others write the same with input_tokens, output_tokens and created_time
// (AIPerf); block_size, which is ours, says of which size the blocks are where it is not 512.
//
// A row of a session (session_id) with a delay instead of a timestamp (AIPerf, Dynamo) comes so
// many ms after the answer to the row before it of its session. When that was answered nobody wrote
// down: it is counted from that row, as if answers took no time. Such rows wait here for those that
// come before them.
//
// Lines as recorders write them are scanned without reflection, eight times as fast; whatever else
// a line may hold is left to encoding/json, which has the last word on what is well-formed.
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
	size    int64   // of its blocks, 0 = not told
	ids     []int64 // memory that rows share
	told    uint8   // which of the keys were there: a bit each
	session []byte  // as it is written, with its quotes; of the line or of none
	delay   float64 // ms, where there is no time
}

// The keys, in the order of their bits.
const (
	mooncakeTime = 1 << iota
	mooncakeIn
	mooncakeOut
	mooncakeIDs
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
		timed := m.row.told&mooncakeTime != 0
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
	if !r.scan(line) {
		if err := r.decode(line); err != nil {
			return Row{}, Malformed{err}
		}
	}
	if r.told&(mooncakeSession|mooncakeTime|mooncakeDelay) == mooncakeSession {
		// AIPerf begins such a session as soon as it has a place for it.
		return Row{}, malformed("a row of a session with neither timestamp nor delay: nobody " +
			"wrote down when it came")
	}
	if r.told&mooncakeNeeds != mooncakeNeeds || r.told&(mooncakeTime|mooncakeDelay) == 0 {
		return Row{}, malformed("want timestamp, input_length, output_length and hash_ids")
	}
	if r.told&mooncakeTime == 0 {
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
		r.session, r.told = v.Session, r.told|mooncakeSession
	}
	if delay := cmp.Or(v.Delay, v.DelayToo); delay != nil {
		r.delay, r.told = *delay, r.told|mooncakeDelay
	}
	if at != nil {
		r.at, r.told = *at, r.told|mooncakeTime
	}
	if in != nil {
		r.in, r.told = *in, r.told|mooncakeIn
	}
	if out != nil {
		r.out, r.told = *out, r.told|mooncakeOut
	}
	if v.Size != nil {
		r.size, r.told = *v.Size, r.told|mooncakeSize
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

// scan reads a line of the keys above in any order, each once, with whole numbers and times that
// may have a fraction. It says false, whatever it has read, where a line is not that: encoding/json
// may read it all the same, and knows which name counts of those that mean the same.
func (r *mooncakeRow) scan(line []byte) bool {
	*r = mooncakeRow{ids: r.ids[:0]}
	s := scanner{text: line}
	if !s.is('{') {
		return false
	}
	for more := true; more; more = s.is(',') {
		var key uint8
		ok := false
		switch string(s.key()) {
		case "timestamp", "created_time":
			key = mooncakeTime
			r.at, ok = s.number()
		case "input_length", "input_tokens":
			key = mooncakeIn
			r.in, ok = s.whole()
		case "output_length", "output_tokens":
			key = mooncakeOut
			r.out, ok = s.whole()
		case "hash_ids":
			key = mooncakeIDs
			r.ids, ok = s.list(r.ids)
		case "block_size":
			key = mooncakeSize
			r.size, ok = s.whole()
		case "session_id":
			key = mooncakeSession
			r.session, ok = s.name()
		case "delay", "delay_ms":
			key = mooncakeDelay
			r.delay, ok = s.number()
		}
		if !ok || r.told&key != 0 {
			return false
		}
		r.told |= key
	}
	return s.is('}') && s.over()
}

// scanner reads JSON of a simple kind. Whatever it does not know it refuses.
type scanner struct {
	text []byte
	at   int
}

// space passes over white space.
func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// is passes over a character, if it comes next.
func (s *scanner) is(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// over says that nothing follows.
func (s *scanner) over() bool {
	s.space()
	return s.at == len(s.text)
}

// key reads a name and the colon behind it; nil if there is none. One with an escape is nobody's.
func (s *scanner) key() []byte {
	if !s.is('"') {
		return nil
	}
	n := bytes.IndexByte(s.text[s.at:], '"')
	if n < 0 {
		return nil
	}
	name := s.text[s.at : s.at+n]
	s.at += n + 1
	if !s.is(':') {
		return nil
	}
	return name
}

// name reads a text of at least one character with its quotes. One with an escape is nobody's: two
// spellings of a name would be two sessions to those who compare the bytes, which is what makes
// this fast.
func (s *scanner) name() ([]byte, bool) {
	if !s.is('"') {
		return nil, false
	}
	from := s.at - 1
	n := bytes.IndexByte(s.text[s.at:], '"')
	if n <= 0 {
		return nil, false
	}
	s.at += n + 1
	name := s.text[from:s.at]
	for _, c := range name {
		if c < ' ' || c >= 0x7f || c == '\\' {
			return nil, false
		}
	}
	return name, true
}

// whole reads an integer of 1 to 18 digits without a sign.
func (s *scanner) whole() (v int64, ok bool) {
	s.space()
	from := s.at
	for ; s.at < len(s.text) && s.text[s.at]-'0' <= 9; s.at++ {
		v = v*10 + int64(s.text[s.at]-'0')
	}
	n := s.at - from
	return v, n == 1 || n > 1 && n <= 18 && s.text[from] != '0'
}

// number reads an integer, or one with a fraction behind a point.
func (s *scanner) number() (float64, bool) {
	s.space()
	from := s.at
	v, ok := s.whole()
	if !ok || s.at == len(s.text) || s.text[s.at] != '.' {
		return float64(v), ok
	}
	s.at++
	fraction := s.at
	for s.at < len(s.text) && s.text[s.at]-'0' <= 9 {
		s.at++
	}
	f, err := strconv.ParseFloat(string(s.text[from:s.at]), 64)
	return f, err == nil && s.at > fraction
}

// list appends the integers of a list. It is where the time goes: nearly all of a line is in it.
func (s *scanner) list(to []int64) ([]int64, bool) {
	if !s.is('[') {
		return to, false
	}
	if s.is(']') {
		return to, true
	}
	text, at := s.text, s.at
	for {
		for at < len(text) && text[at] == ' ' {
			at++
		}
		from, v := at, int64(0)
		for at < len(text) && text[at]-'0' <= 9 {
			v = v*10 + int64(text[at]-'0')
			at++
		}
		if n := at - from; n == 0 || n > 18 || n > 1 && text[from] == '0' {
			return to, false
		}
		to = append(to, v)
		if at < len(text) && text[at] == ',' {
			at++
			continue
		}
		s.at = at
		return to, s.is(']')
	}
}
