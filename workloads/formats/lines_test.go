package formats

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func FuzzSplitFields(f *testing.F) {
	f.Add([]byte(`a,"b ""c"", d",,e`))
	f.Add([]byte(`"`))
	f.Add([]byte(`"a"b,c`))
	f.Add([]byte(`,`))
	f.Fuzz(func(t *testing.T, line []byte) {
		plain := !bytes.ContainsRune(line, '"')
		commas := bytes.Count(line, []byte(","))
		fields, err := splitFields(nil, line)
		if err == nil && (len(fields) > commas+1 || len(fields) == 0) ||
			plain && (err != nil || len(fields) != commas+1) {
			t.Errorf("%d fields of %d commas, %v", len(fields), commas, err)
		}
	})
}

// A value that does not end does not take memory without end.
func TestDocumentsAreBounded(t *testing.T) {
	r := &boundedReader{from: strings.NewReader(strings.Repeat("x", 100)), left: 10}
	dec := json.NewDecoder(r)
	var v any
	assert.Error(t, dec.Decode(&v))
	assert.Zero(t, r.left)
}
