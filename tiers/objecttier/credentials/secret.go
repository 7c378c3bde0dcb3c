package credentials

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Secret is a text that nobody sees by printing, formatting or marshalling what holds it.
type Secret struct{ text string }

// NewSecret keeps a text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal is the text. Whoever calls it must not let it go further than to where it is needed.
func (s Secret) Reveal() string { return s.text }

// Set says whether there is one.
func (s Secret) Set() bool { return s.text != "" }

// String says how long it is, which tells a half-copied one, and nothing of it.
func (s Secret) String() string {
	if s.text == "" {
		return "not set"
	}
	return fmt.Sprintf("set, %d characters", len(s.text))
}

// GoString is what %#v shows.
func (s Secret) GoString() string { return s.String() }

// Format is all verbs of package fmt, those included that would look into the structure.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is what JSON, YAML, XML and flags write.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Masked shows the ends of a key id, which is no secret but tells much: enough to know which one it
// is. One below 8 characters would be shown whole.
func Masked(id string) string {
	if len(id) < gram {
		return "****"
	}
	return id[:4] + "****" + id[len(id)-4:]
}

// gram is how many characters of a secret may nowhere be seen. Shorter secrets are looked for as a
// whole.
const gram = 8

// Filter takes secrets out of texts that others have made.
type Filter struct{ grams map[string]bool }

// NewFilter returns one for these secrets.
func NewFilter(secrets ...Secret) *Filter {
	f := &Filter{grams: map[string]bool{}}
	for _, s := range secrets {
		if s.text == "" {
			continue
		}
		n := min(gram, len(s.text))
		for i := range len(s.text) - n + 1 {
			f.grams[s.text[i:i+n]] = true
		}
	}
	return f
}

// signed is what carries keys and signatures in requests, wherever it is quoted: in a header, and
// in an address.
var signed = regexp.MustCompile(
	`(?i)(authorization["']?[:= ]+["']?(?:aws4-hmac-sha256 |bearer |basic )?|` +
		`x-amz-(?:credential|signature|security-token)["']?(?:%3d|[:= ])+["'\[]*|` +
		`(?:credential|signature)=)[^\s&"'\],]+`)

// Text is the text without any 8 characters of a secret, nor the values of Authorization,
// X-Amz-Credential, X-Amz-Signature and X-Amz-Security-Token.
func (f *Filter) Text(text string) string {
	text = signed.ReplaceAllString(text, "${1}****")
	hidden := make([]bool, len(text))
	found := false
	for g := range f.lengths() {
		for i := 0; i+g <= len(text); i++ {
			if !f.grams[text[i:i+g]] {
				continue
			}
			found = true
			for k := i; k < i+g; k++ {
				hidden[k] = true
			}
		}
	}
	if !found {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			b.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			b.WriteString("****")
		}
	}
	return b.String()
}

// lengths are those of the grams: 8, and those of shorter secrets.
func (f *Filter) lengths() map[int]bool {
	n := map[int]bool{}
	for g := range f.grams {
		n[len(g)] = true
	}
	return n
}

// Error is err with a text without secrets. What it wraps is found by errors.Is and errors.As as
// before; whoever prints what it finds there prints it unfiltered.
func (f *Filter) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := f.Text(text); clean != text {
		return &filtered{clean, err}
	}
	return err
}

// filtered is an error with another text.
type filtered struct {
	text string
	err  error
}

func (e *filtered) Error() string { return e.text }

// Is looks for a sentinel in what was filtered.
func (e *filtered) Is(target error) bool { return errors.Is(e.err, target) }

// As finds a type in what was filtered.
func (e *filtered) As(target any) bool { return errors.As(e.err, target) }
