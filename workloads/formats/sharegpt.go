package formats

import (
	"io"
	"strings"
)

// ShareGPT is recorded conversations: JSON lists of {id, conversations: [{from: human|gpt,
// value}]}. Each question followed by an answer is a turn. Messages without a known role, and
// questions or answers without their other half, are left out; a conversation without a turn counts
// as failed. Conversations are told apart by their place in the input, not by their id. The counter
// says how many tokens a text has, of which the question and the answer of a turn count so many at
// most.
func ShareGPT(maxContext, maxGenerate int, counter *Tokenizer) Format {
	open := func(path string) (Reader, error) {
		doc, err := openDocument(path)
		return &shareGPTRows{
			document: doc, counter: counter, maxContext: maxContext, maxGenerate: maxGenerate,
		}, err
	}
	return Format{
		Name: "ShareGPT", Untimed: true, Tokenizer: counter.Name(), Open: open,
		Extensions: []string{".json", ".json.gz", ".json.zst"},
	}
}

// shareGPTRows reads the turns of conversations.
type shareGPTRows struct {
	*document
	counter *Tokenizer

	maxContext, maxGenerate int // tokens of a turn

	begun  bool
	turns  []string // question, answer, question, answer of the conversation being read
	turn   int      // turns given
	opened bool     // a usable one was among them
}

// conversation is one element of the list.
type conversation struct {
	Conversations []message `json:"conversations"`
}

// message is what one side said. Data sets have numbers and null where an answer should be, which
// must not cost the conversation.
type message struct {
	From  any `json:"from"`
	Value any `json:"value"`
}

// Next implements Reader. A turn with an empty answer has failed, but is one: the turns behind it
// keep their numbers.
func (s *shareGPTRows) Next() (Row, error) {
	if len(s.turns) == 0 {
		var talk conversation
		if err := s.next(&talk, s.toList); err != nil {
			return Row{}, err
		}
		if s.turns = pairs(talk.Conversations); len(s.turns) == 0 {
			return Row{Context: 1}, nil // a request without an answer
		}
		s.turn, s.opened = 0, false
	}
	ask, answer := s.turns[0], s.turns[1]
	s.turns = s.turns[2:]
	s.turn++
	row := Row{
		Context:  max(1, s.counter.Count(ask, s.maxContext)),
		Generate: s.counter.Count(answer, s.maxGenerate),
		Turn:     s.turn,
	}
	row.Opens = row.Generate > 0 && !s.opened
	s.opened = s.opened || row.Opens
	return row, nil
}

// toList reads up to the only list of a file.
func (s *shareGPTRows) toList() error {
	if s.begun {
		return io.EOF
	}
	s.begun = true
	return s.list("want a list of conversations")
}

// pairs returns each question that is followed by its answer, one after the other. The data sets
// that call themselves ShareGPT spell roles in several ways, lose messages and repeat questions;
// who asked what last decides.
func pairs(messages []message) (turns []string) {
	asked := ""
	for _, m := range messages {
		from, _ := m.From.(string)
		text, _ := m.Value.(string)
		switch strings.ToLower(strings.TrimSpace(from)) {
		case "human", "user":
			if asked = text; strings.TrimSpace(text) == "" {
				asked = ""
			}
		case "gpt", "chatgpt", "assistant", "model":
			if asked != "" {
				turns = append(turns, asked, text)
				asked = ""
			}
		}
	}
	return turns
}
