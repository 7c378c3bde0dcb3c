package formats

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func FuzzSplitFields(f *testing.F) {
	f.Add(`a,"b ""c"", d",,e`)
	f.Add(`"`)
	f.Add(`"a"b,c`)
	f.Add(`,`)
	f.Fuzz(func(t *testing.T, line string) {
		plain := !strings.ContainsRune(line, '"')
		commas := strings.Count(line, ",")
		fields, err := splitFields(nil, line)
		if err == nil && (len(fields) > commas+1 || len(fields) == 0) ||
			plain && (err != nil || len(fields) != commas+1) {
			t.Errorf("%d fields of %d commas, %v", len(fields), commas, err)
		}
	})
}

// A value without an end takes limited memory.
func TestDocumentsAreBounded(t *testing.T) {
	r := &boundedReader{from: strings.NewReader(strings.Repeat("x", 100)), left: 10}
	dec := json.NewDecoder(r)
	var v any
	assert.Error(t, dec.Decode(&v))
	assert.Zero(t, r.left)
}
