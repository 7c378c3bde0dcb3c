package load

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// documentSchema is the version of the document that kvreport json writes. Readers accept any 1.x.
const documentSchema = "1.0"

// documentKey is the first key of that document; its value is the schema.
const documentKey = "kvreport_schema"

// documentMark tells the document from a result file, which begins with a brace too.
var documentMark = regexp.MustCompile(`^\{\s*"` + documentKey + `"\s*:`)

// entry is a record in the document.
type entry struct {
	Source   string          `json:"source"`
	File     string          `json:"file"`
	Line     int             `json:"line,omitempty"`
	Name     string          `json:"name"`
	Iters    int             `json:"iterations,omitempty"`
	Config   []pair          `json:"config,omitempty"`
	Values   []entryValue    `json:"values"`
	Path     string          `json:"result_path,omitempty"`
	Missing  string          `json:"result_missing,omitempty"`
	Document json.RawMessage `json:"result,omitempty"` // the result file as it stands
}

// pair is one line of file configuration.
type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// entryValue is one value in the unit in which it was printed: a number, or the text of one that
// JSON cannot say, because a benchmark that prints Inf is archived as it is.
type entryValue struct {
	Unit  string `json:"unit"`
	Value any    `json:"value"`
}

// newEntry is the record's form in the document.
func newEntry(rec *Record) entry {
	e := entry{Source: rec.Source, File: rec.File, Line: rec.Line, Name: rec.Name, Iters: rec.Iters,
		Path: rec.Path, Document: rec.Raw, Values: make([]entryValue, len(rec.Values))}
	for _, c := range rec.Config {
		e.Config = append(e.Config, pair{c.Key, string(c.Value)})
	}
	for i, v := range rec.Values {
		value, unit := v.Value, v.Unit
		if v.OrigUnit != "" {
			value, unit = v.OrigValue, v.OrigUnit
		}
		e.Values[i] = entryValue{unit, value}
		if math.IsNaN(value) || math.IsInf(value, 0) {
			e.Values[i].Value = fmt.Sprint(value)
		}
	}
	if rec.Missing != nil {
		e.Missing = rec.Missing.Error()
	}
	return e
}

// record is the inverse.
func (e entry) record() (*Record, error) {
	rec := &Record{File: e.File, Line: e.Line, Name: e.Name, Iters: e.Iters, Path: e.Path}
	for _, c := range e.Config {
		rec.Config = append(rec.Config,
			benchfmt.Config{Key: c.Key, Value: []byte(c.Value), File: true})
	}
	for _, v := range e.Values {
		value, err := strconv.ParseFloat(fmt.Sprint(v.Value), 64)
		if err != nil {
			return nil, fmt.Errorf("%v %s is no number", v.Value, v.Unit)
		}
		rec.Values = append(rec.Values, tidy(value, v.Unit))
	}
	if e.Missing != "" {
		rec.Missing = errors.New(e.Missing)
	}
	if len(e.Document) > 0 && string(e.Document) != "null" {
		return rec, rec.parse(e.Document)
	}
	return rec, nil
}

// document is what kvreport json writes.
type document struct {
	Schema  string                       `json:"kvreport_schema"`
	Results []entry                      `json:"results"`
	Units   map[string]map[string]string `json:"units"`
}

// document reads the document of kvreport json. Its records keep their runs.
func (r *reader) document(data []byte, name string) error {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		kind, ok := errors.AsType[*json.UnmarshalTypeError](err)
		switch {
		case isTruncated(data, err):
			err = fmt.Errorf("it is truncated: %w", err)
		case ok && kind.Field == "results":
			err = fmt.Errorf("results is not a list: %w", err)
		}
		return located(name, data, err)
	}
	// A later minor version only adds keys.
	if major, _, _ := strings.Cut(d.Schema, "."); major != "1" {
		return fmt.Errorf("%s:1: %s %q, this version reads 1.x", name, documentKey, d.Schema)
	}
	// Directions travel with the values, as in text.
	for unit, pairs := range d.Units {
		for key, value := range pairs {
			addUnit(r.out.Units, unit, key, value)
		}
	}
	// Records keep the run to which they belonged when they were archived.
	outer := r.source
	defer func() { r.source = outer }()
	for _, e := range d.Results {
		rec, err := e.record()
		if err != nil {
			return fmt.Errorf("%s: result of %s: %w", name, e.Name, err)
		}
		r.source = cmp.Or(e.Source, outer)
		if err := r.emit(rec); err != nil {
			return err
		}
	}
	if len(d.Results) == 0 {
		return fmt.Errorf("%s: no benchmark result in it", name)
	}
	return nil
}

// WriteDocument writes records as one JSON document, a line each, which Each reads again. A line
// each, so that grep and diff work on an archive.
func WriteDocument(w io.Writer, records []*Record, units benchfmt.UnitMetadataMap) error {
	b := bufio.NewWriter(w)
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	fmt.Fprintf(b, "{%q: %q, \"results\": [\n", documentKey, documentSchema)
	for i, rec := range records {
		line.Reset()
		if err := e.Encode(newEntry(rec)); err != nil {
			return fmt.Errorf("%s:%d: encode %s: %w", rec.File, rec.Line, rec.Name, err)
		}
		if i > 0 {
			b.WriteString(",\n")
		}
		b.Write(bytes.TrimRight(line.Bytes(), "\n"))
	}
	said := map[string]map[string]string{}
	for k, u := range units {
		if said[u.OrigUnit] == nil {
			said[u.OrigUnit] = map[string]string{}
		}
		said[u.OrigUnit][k.Key] = u.Value
	}
	line.Reset()
	if err := e.Encode(said); err != nil {
		return err
	}
	fmt.Fprintf(b, "\n],\n\"units\": %s}\n", bytes.TrimRight(line.Bytes(), "\n"))
	return b.Flush()
}
