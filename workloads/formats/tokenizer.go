package formats

import (
	"cmp"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// TokenizerCL100K and TokenizerChars are the names of the tokenizers.
const (
	// TokenizerCL100K is the byte pair encoding of GPT-3.5 and GPT-4. Its data is part of the
	// program.
	TokenizerCL100K = "cl100k"
	// TokenizerChars is an estimate: the number of characters divided by a constant.
	TokenizerChars = "chars"
)

// Tokenizer counts the tokens of texts. It is safe for concurrent use.
//
// The module of the encoder stays at v0.7.0. Later versions up to v0.10.0 split line ends with
// spaces between them wrongly ("today\n \n" into 31213 198 720 instead of 31213 27907).
type Tokenizer struct {
	Name string // as in results
	// Count returns the tokens of a text, or limit if there are more.
	Count func(text string, limit int) int
}

// NewTokenizer returns the tokenizer of a name: TokenizerCL100K or TokenizerChars. charsPerToken applies to
// TokenizerChars; 0 means 4.
func NewTokenizer(name string, charsPerToken int) Tokenizer {
	if name == TokenizerChars {
		chars := cmp.Or(charsPerToken, 4)
		return Tokenizer{fmt.Sprintf("characters/%d", chars), func(text string, limit int) int {
			return min((utf8.RuneCountInString(text)+chars-1)/chars, limit)
		}}
	}
	bpe := codec.NewCl100kBase()
	return Tokenizer{"cl100k_base", func(text string, limit int) int { return countEncoded(bpe, text, limit) }}
}

// maxRun is the longest run of letters, digits, spaces or marks that is encoded as one piece. The time
// of splitting and merging grows with the square of this length. Runs in natural language are far
// shorter.
const maxRun = 1 << 10

// longestToken is the length of cl100k_base's longest token in bytes: 128 spaces.
const longestToken = 128

// countEncoded returns the tokens of a text, at most limit. Its time depends on the limit, not on the
// text.
func countEncoded(bpe *codec.Codec, text string, limit int) int {
	if len(text)/longestToken >= limit {
		return limit
	}
	n := 0
	for len(text) > 0 && n < limit {
		part := firstPart(text, maxRun, maxPart)
		text = text[len(part):]
		c, _ := bpe.Count(part) // its only error is a time-out of the pattern, which has none
		n += c
	}
	return min(n, limit)
}

// maxPart is the number of bytes that are encoded before the count is compared with its limit.
const maxPart = 1 << 20

// firstPart returns the start of a text: up to most bytes, or up to the point where a run has run
// bytes.
func firstPart(text string, run, most int) string {
	start, class := 0, -2
	for i, r := range text {
		c := slices.IndexFunc(runeClasses[:], func(is func(rune) bool) bool { return is(r) })
		if c != class {
			start, class = i, c
		}
		if i-start >= run || i >= most {
			return text[:i]
		}
	}
	return text
}

// runeClasses are classes of characters. The pattern of cl100k_base never joins characters of
// different classes in one piece.
var runeClasses = [...]func(rune) bool{unicode.IsLetter, unicode.IsNumber, unicode.IsSpace}
