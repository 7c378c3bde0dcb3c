package units

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSuggestion(t *testing.T) {
	assert.Empty(t, Suggestion("elephant", []string{"quick", "open"}))
	assert.Empty(t, Suggestion("x", nil))
	assert.Empty(t, Suggestion("zz", []string{"o"}), "no letter stays")
	assert.Empty(t, Suggestion("", []string{"8b"}))
	assert.Equal(t, `, did you mean "quick"?`, Suggestion("quik", []string{"quick", "open"}))
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "1KiB": 1024, "1.5 MiB": 3 * MiB / 2, "2gib": 2 * GiB, "1TiB": TiB,
		"7B": 7, "+1": 1, "-1KiB": -1024, "0.0001KiB": 0,
	} {
		got, err := ParseSize(text, 1)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "KiB", "1K", "1MB", "1e3", "1.2.3", "--1", "0x10", "1 2",
		"9223372036854775808", "8388608TiB", "9e99", "∞"} {
		_, err := ParseSize(text, 1)
		assert.Error(t, err, text)
	}
	got, err := ParseSize("0.5", GiB)
	assert.NoError(t, err)
	assert.Equal(t, GiB/2, got)
}

// FuzzParseSize holds that no text panics and that whatever is read is written and read back alike.
func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"1MiB", "4.5GiB", "-1", "0.1", "12KB", "9223372036854775807",
		"1.7976931348623157e308"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text, 1)
		if err != nil {
			return
		}
		back, err := ParseSize(FormatSize(n), 1)
		assert.NoError(t, err)
		assert.Equal(t, n, back)
		if n >= 0 && n < 1<<53 { // what a float64 holds exactly: 8 PiB
			back, err = ParseSize(FormatGiB(n), GiB)
			assert.NoError(t, err)
			assert.Equal(t, n, back)
		}
	})
}

func TestTheNearestNameKeepsItsDigits(t *testing.T) {
	best, _ := Nearest("llama3-8b", []string{"mistral-7b", "llama2-7b", "llama3.1-8b"})
	assert.Equal(t, "llama3.1-8b", best)
	best, _ = Nearest("raed", []string{"write", "read"})
	assert.Equal(t, "read", best)
}
