package formats

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// TestPublishedVectors: token counts of cl100k_base as OpenAI's tiktoken publishes them, in its
// tests, its documentation and its cookbook.
func TestPublishedVectors(t *testing.T) {
	counter := NewTokenizer(TokenizerCL100K, 0)
	assert.Equal(t, "cl100k_base", counter.Name)
	for text, want := range map[string]int{
		"hello world":                  2, // 15339 1917
		"hello  world":                 3, // 15339 220 1917
		"hello   world":                3, // 15339 256 1917
		"rer":                          1, // 38149
		"'rer":                         2, // 2351 81
		"today\n ":                     3, // 31213 198 220
		"today\n \n":                   2, // 31213 27907
		"today\n  \n":                  2, // 31213 14211
		"0":                            1,
		"000":                          1,
		"0000":                         2,
		"00000000":                     3,
		"supercalifragilistic":         7,
		"tiktoken is great!":           6, // 83 1609 5963 374 2294 0
		"antidisestablishmentarianism": 6,
		"2 + 2 = 4":                    7,
		"お誕生日おめでとう":                    9,
		"'RE":                          1,
		"":                             0,
		"We know what we are, but know not what we may be.": 14,
	} {
		assert.Equal(t, want, counter.Count(text, 1000), "%q", text)
	}
	assert.Equal(t, 5, counter.Count(strings.Repeat("hello world ", 100), 5))
}

func TestCharactersAsFallback(t *testing.T) {
	counter := NewTokenizer(TokenizerChars, 0)
	assert.Equal(t, "characters/4", counter.Name)
	assert.Equal(t, 3, counter.Count("お誕生日おめでとう", 1000))
	assert.Equal(t, 2, counter.Count("お誕生日おめでとう", 2))
	counter = NewTokenizer(TokenizerChars, 3)
	assert.Equal(t, "characters/3", counter.Name)
}

// Texts of no natural language take time in proportion to their size. In proportion to the square of the
// size these texts would take hours, so this test fails without a clock.
func TestHugeTextsAreCountedInTime(t *testing.T) {
	counter := NewTokenizer(TokenizerCL100K, 0)
	for _, text := range []string{
		strings.Repeat("a", 1<<14), strings.Repeat(" ", 1<<14),
		strings.Repeat("é", 1<<14), strings.Repeat("!?", 1<<14),
		strings.Repeat("word ", 1<<14), strings.Repeat("\xff", 1<<14), strings.Repeat("7", 1<<14),
	} {
		assert.Positive(t, counter.Count(text, 8192))
	}
}

// Cutting does not change the counts of texts that need no cutting.
func TestPartsAreWholeTexts(t *testing.T) {
	text := "short words, 12 numbers 3456 and\n\n  spaces " + strings.Repeat("x", 100)
	assert.Equal(t, text, firstPart(text, 100, 1<<20))
	assert.Equal(t, text[:len(text)-1], firstPart(text, 99, 1<<20))
	assert.Equal(t, "éé", firstPart("ééé", 3, 100), "not inside of a character")
}

func FuzzTokenizer(f *testing.F) {
	counter := NewTokenizer(TokenizerCL100K, 0)
	f.Add("hello  world\r\n\r\n 1234567 'll \u2028 \xf0\x9f")
	f.Fuzz(func(t *testing.T, text string) {
		n := counter.Count(text, 1<<20)
		if n < 0 || n > len(text)+utf8.UTFMax*len(text) || (n == 0) != (text == "") {
			t.Errorf("%d tokens of %d bytes", n, len(text))
		}
		rest, parts := text, 0
		for ; len(rest) > 0; parts++ {
			part := firstPart(rest, 5, 50)
			if part == "" {
				t.Fatalf("no progress with %q", rest)
			}
			rest = rest[len(part):]
		}
	})
}
