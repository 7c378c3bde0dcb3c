package workloads

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ConversationExtensions are the files that ExpandPaths takes from a directory of conversations.
func ConversationExtensions() []string { return []string{".json", ".json.gz", ".json.zst"} }

// shareGPTFormat is the ShareGPT format; the questions and answers of a turn have at most that many tokens.
func shareGPTFormat(maxContext, maxGenerate int, counter *Tokenizer) *traceFormat {
	return &traceFormat{name: "ShareGPT", open: func(path string) (rowReader, error) {
		doc, err := openDocument(path)
		return &shareGPTRows{doc: doc, counter: counter, maxContext: maxContext, maxGenerate: maxGenerate}, err
	}}
}

// shareGPTRows reads the turns of conversations.
type shareGPTRows struct {
	doc     *document
	counter *Tokenizer

	maxContext, maxGenerate int // tokens of a turn

	begun, over bool
	turns       []message // question, answer, question, answer of the conversation being read
	turn        int       // turns given
	opened      bool      // a usable one was among them
	at          int       // line of the conversation
}

// conversation is one element of the list. Anything may stand where text should.
type conversation struct {
	Conversations []message `json:"conversations"`
}

type message struct {
	From  text `json:"from"`
	Value text `json:"value"`
}

// text is a string; every other value counts as none.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	*t = ""
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	return nil
}

func (s *shareGPTRows) next() (rec record, reason, err error) {
	for !s.over {
		if len(s.turns) > 0 {
			return s.take(), nil, nil
		}
		if err := s.begin(); err != nil {
			return s.broken(err)
		}
		if !s.doc.dec.More() {
			if _, err := s.doc.token(); err != nil { // the ]
				return s.broken(noEOF(err))
			}
			s.over = true
			break
		}
		var c conversation
		err := s.doc.value(&c)
		s.at = s.doc.line()
		if wrongType(err) {
			return record{}, err, nil
		}
		if err != nil {
			return s.broken(noEOF(err))
		}
		if s.turns = pairs(c.Conversations); len(s.turns) == 0 {
			return record{context: 1}, nil, nil // a request without an answer
		}
		s.turn, s.opened = 0, false
	}
	return record{}, nil, io.EOF
}

// begin reads the start of the list, once.
func (s *shareGPTRows) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	t, err := s.doc.token()
	if err == nil && t != json.Delim('[') {
		err = errors.New("want a list of conversations")
	}
	return noEOF(err)
}

func (s *shareGPTRows) broken(err error) (rec record, reason, fatal error) {
	s.over, s.at = true, s.doc.line()
	if readFailed(err) {
		return record{}, nil, fmt.Errorf("read trace %s in line %d: %w", s.doc.path, s.at, err)
	}
	return record{}, fmt.Errorf("the rest of the file is lost: %w", err), nil
}

// take makes a row of the next turn.
func (s *shareGPTRows) take() record {
	ask, answer := s.turns[0], s.turns[1]
	s.turns = s.turns[2:]
	s.turn++
	rec := record{
		context: max(1, s.counter.Count(string(ask.Value), s.maxContext)), generate: s.counter.Count(string(answer.Value), s.maxGenerate),
		turn: s.turn,
	}
	if rec.generate > 0 && !s.opened {
		rec.opens, s.opened = true, true
	}
	return rec
}

func (s *shareGPTRows) line() int { return s.at }

func (s *shareGPTRows) close() error { return s.doc.close() }

// pairs returns each question that is followed by its answer, one after the other.
func pairs(messages []message) []message {
	var turns []message
	var ask *message
	for i := range messages {
		m := &messages[i]
		switch strings.ToLower(strings.TrimSpace(string(m.From))) {
		case "human", "user":
			if ask = m; strings.TrimSpace(string(m.Value)) == "" {
				ask = nil
			}
		case "gpt", "chatgpt", "assistant", "model":
			if ask != nil {
				turns = append(turns, *ask, *m)
				ask = nil
			}
		}
	}
	return turns
}
