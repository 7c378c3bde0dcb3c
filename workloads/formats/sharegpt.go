package formats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// ShareGPT returns the format of recorded conversations: JSON lists, or JSON lines, of {id, conversations: [{from:
// human|gpt, value}]}, or with OpenAI's names: {messages: [{role: user|assistant, content}]}. A
// question followed by an answer is a turn. Messages without a known role, questions without an answer
// and answers without a question are left out, with a note. System prompts are left out. A conversation without
// a turn counts as failed. A conversation without any known role is malformed. The place in the input identifies a conversation,
// not its id. counter counts tokens. A question has at most maxContext tokens, an answer at most
// maxGenerate.
func ShareGPT(maxContext, maxGenerate int, counter Tokenizer) Format {
	open := func(path string) (Reader, error) {
		turns := func(out *rowReader, element *conversation) error {
			messages := slices.Concat(element.Conversations, element.Messages, element.Items)
			known := func(m message) bool { return m.side() > 0 }
			switch {
			case pairs(out, messages, maxContext, maxGenerate, counter):
			case element.Conversations == nil && element.Messages == nil && element.Items == nil:
				return errNoMessages
			case len(messages) > 0 && !slices.ContainsFunc(messages, known):
				return errNoRole
			default:
				out.add(Row{Context: 1}, nil) // a request without an answer
			}
			return nil
		}
		return openDocuments(path, "conversations", turns)
	}
	return Format{
		Name: "ShareGPT", Untimed: true, Tokenizer: counter.Name, Open: open,
		Extensions: append(packed(".json"), packed(".jsonl")...),
	}
}

// conversation is one element of the list. Each data set uses one of the three names.
type conversation struct {
	Conversations []message `json:"conversations"`
	Messages      []message `json:"messages"`
	Items         []message `json:"items"`
}

// message is one message of a conversation.
type message struct {
	From    text `json:"from"`
	Role    text `json:"role"`
	Value   text `json:"value"`
	Content text `json:"content"`
}

// text is a string, or the joined text parts of an OpenAI message. Any other value becomes an empty
// text, because some data sets have numbers and null instead of answers. Lists are decoded part by
// part, because a decoded list of numbers needs thirty times its size.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	*t = ""
	switch b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(t))
	case '[':
		parts := json.NewDecoder(bytes.NewReader(b))
		_, _ = parts.Token() // the [
		for parts.More() {
			var part struct{ Text string }
			if parts.Decode(&part) != nil {
				break
			}
			*t += text(part.Text)
		}
	}
	return nil
}

// The sides of a conversation. sides maps the roles of data sets to them.
const (
	questions = iota + 1
	answers
	prompts // of the system
)

var sides = map[string]int{"human": questions, "user": questions, "gpt": answers, "chatgpt": answers,
	"assistant": answers, "model": answers, "bing": answers, "bard": answers, "system": prompts}

// side returns questions, answers, prompts, or 0 for an unknown role.
func (m message) side() int {
	return sides[strings.ToLower(strings.TrimSpace(string(cmp.Or(m.From, m.Role))))]
}

// Errors of conversations in another format.
var (
	errNoMessages = malformed("missing key: need conversations, messages or items")
	errNoRole     = malformed("no message has a known role (human/gpt or user/assistant)")
)

// pairs adds a row for each question that is followed by its answer, and reports whether there is one.
// Data sets spell roles in several ways, lose messages and repeat questions: the last of several
// questions counts. A turn with an empty answer has failed but keeps its number.
func pairs(out *rowReader, messages []message, maxContext, maxGenerate int, counter Tokenizer) bool {
	question, turns, used, opens := "", 0, 0, -1
	for _, m := range messages {
		text := string(cmp.Or(m.Value, m.Content))
		switch m.side() {
		case questions:
			if question = text; strings.TrimSpace(text) == "" {
				question = ""
			}
		case answers:
			if question == "" {
				continue
			}
			turns++
			used += 2
			row := Row{
				Context:  max(1, counter.Count(question, maxContext)),
				Generate: counter.Count(text, maxGenerate),
				Turn:     turns,
			}
			if row.Generate > 0 && opens < 0 {
				row.Opens, opens = true, len(out.rows)
			}
			out.add(row, nil)
			question = ""
		case prompts:
			used++
		}
	}
	if used < len(messages) && opens >= 0 {
		out.rows[opens].Note = "messages without a known role, without an answer or without a question are left out"
	}
	return turns > 0
}
