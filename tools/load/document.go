package load

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"golang.org/x/perf/benchfmt"

	"kvbench/kvbench/merge"
)

// documentSchema is the schema version of the document of kvreport json. Readers accept any 1.x.
const documentSchema = "1.0"

// documentKey is the first key of the document. Its value is documentSchema.
const documentKey = "kvreport_schema"

// documentMark matches the begin of the document, to tell it from a result file.
var documentMark = regexp.MustCompile(`^\{\s*"` + documentKey + `"\s*:`)

// document is the document of kvreport json.
type document struct {
	Schema  string                       `json:"kvreport_schema"`
	Results []Record                     `json:"results"`
	Units   map[string]map[string]string `json:"units"`
}

// document reads a document of kvreport json. Its records keep their Source.
func (r *reader) document(data []byte, name string) error {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		kind, ok := errors.AsType[*json.UnmarshalTypeError](err)
		switch {
		case merge.IsTruncated(data, err):
			err = fmt.Errorf("it is truncated: %w", err)
		case ok && kind.Field == "results":
			err = fmt.Errorf("results is not a list: %w", err)
		}
		return merge.Located(name, data, err)
	}
	// A later minor version only adds keys.
	if major, _, _ := strings.Cut(d.Schema, "."); major != "1" {
		return fmt.Errorf("%s:1: %s %q, this version reads 1.x", name, documentKey, d.Schema)
	}
	// The document has the directions of its units, as text has Unit lines.
	for unit, pairs := range d.Units {
		for key, value := range pairs {
			addUnit(r.units, unit, key, value)
		}
	}
	for i := range d.Results {
		rec := &d.Results[i]
		if string(rec.Raw) == "null" { // other programs write null for a missing result
			rec.Raw = nil
		}
		if rec.Raw != nil {
			if err := rec.parse(rec.Raw); err != nil {
				return fmt.Errorf("%s: result of %s: %w", name, rec.Name, err)
			}
		}
		if err := r.emit(rec); err != nil {
			return err
		}
	}
	return nil
}

// WriteDocument writes records as one JSON document with one record per line, so that grep and diff
// work. All can read it.
func WriteDocument(w io.Writer, records []*Record, units benchfmt.UnitMetadataMap) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b) // ends each value with a line
	e.SetEscapeHTML(false)
	fmt.Fprintf(b, "{%q: %q, \"results\": [\n", documentKey, documentSchema)
	for i, rec := range records {
		if i > 0 {
			b.WriteString(",")
		}
		if err := e.Encode(rec); err != nil {
			return fmt.Errorf("%s: encode %s: %w", rec.place(), rec.Name, err)
		}
	}
	byUnit := map[string]map[string]string{}
	for k, u := range units {
		if byUnit[u.OrigUnit] == nil {
			byUnit[u.OrigUnit] = map[string]string{}
		}
		byUnit[u.OrigUnit][k.Key] = u.Value
	}
	b.WriteString("],\n\"units\": ")
	if err := e.Encode(byUnit); err != nil {
		return err
	}
	b.WriteString("}\n")
	return b.Flush()
}
