package formats

import (
	"encoding/json"
	"io"
	"strings"
)

// ShareGPT is recorded conversations: JSON lists of {id, conversations: [{from: human|gpt,
// value}]}. Each question followed by an answer is a turn. Messages without a known role, and
// questions or answers without their other half, are left out; a conversation without a turn counts
// as failed. Conversations are told apart by their place in the input, not by their id. The counter
// says how many tokens a text has, of which the question and the answer of a turn count so many at
// most.
func ShareGPT(maxContext, maxGenerate int, counter Tokenizer) Format {
	open := func(path string) (Reader, error) {
		doc, err := openDocument(path)
		return &shareGPTRows{document: doc, counter: counter,
			maxContext: maxContext, maxGenerate: maxGenerate}, err
	}
	return Format{
		Name: "ShareGPT", Untimed: true, Tokenizer: counter.Name, Open: open,
		Extensions: []string{".json", ".json.gz", ".json.zst"},
	}
}

// shareGPTRows reads the turns of conversations.
type shareGPTRows struct {
	*document
	counter Tokenizer

	maxContext, maxGenerate int   // tokens of a turn
	turns                   []Row // of the conversation being read
}

// conversation is one element of the list.
type conversation struct {
	Conversations []message `json:"conversations"`
}

// message is what one side said.
type message struct {
	From  text `json:"from"`
	Value text `json:"value"`
}

// text is a string; every other value counts as none. Data sets have numbers and null where an
// answer should be, which must not cost the conversation, nor much memory: a list of numbers would
// take thirty times its text.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	if *t = ""; b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	return nil
}

// Next implements Reader.
func (s *shareGPTRows) Next() (Row, error) {
	if len(s.turns) == 0 {
		var talk conversation
		if err := s.next(&talk, s.toList); err != nil {
			return Row{}, err
		}
		if s.turns = s.pairs(talk.Conversations); len(s.turns) == 0 {
			return Row{Context: 1}, nil // a request without an answer
		}
	}
	row := s.turns[0]
	s.turns = s.turns[1:]
	return row, nil
}

// toList reads up to the only list of a file.
func (s *shareGPTRows) toList() error {
	if s.dec.InputOffset() > 0 {
		return io.EOF
	}
	return s.list("want a list of conversations")
}

// pairs makes a row of each question that is followed by its answer. The data sets that call
// themselves ShareGPT spell roles in several ways, lose messages and repeat questions; who asked
// what last decides. A turn with an empty answer has failed, but is one: the turns behind it keep
// their numbers.
func (s *shareGPTRows) pairs(messages []message) (turns []Row) {
	asked, opened := "", false
	for _, m := range messages {
		said := string(m.Value)
		switch strings.ToLower(strings.TrimSpace(string(m.From))) {
		case "human", "user":
			if asked = said; strings.TrimSpace(said) == "" {
				asked = ""
			}
		case "gpt", "chatgpt", "assistant", "model":
			if asked == "" {
				continue
			}
			row := Row{
				Context:  max(1, s.counter.Count(asked, s.maxContext)),
				Generate: s.counter.Count(said, s.maxGenerate),
				Turn:     len(turns) + 1,
			}
			row.Opens = row.Generate > 0 && !opened
			opened = opened || row.Opens
			turns, asked = append(turns, row), ""
		}
	}
	return turns
}
