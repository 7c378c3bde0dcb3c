package input

import (
	"bytes"
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

// DocumentSchema is the version of the document that kvreport json writes. Readers accept any 1.x.
const DocumentSchema = "1.0"

// DocumentKey is the first key of that document; its value is the schema.
const DocumentKey = "kvreport_schema"

var documentMark = regexp.MustCompile(`^\{\s*"` + DocumentKey + `"\s*:`)

// Entry is a record in the document.
type Entry struct {
	Source   string          `json:"source"`
	File     string          `json:"file"`
	Line     int             `json:"line,omitempty"`
	Name     string          `json:"name"`
	Iters    int             `json:"iterations,omitempty"`
	Config   []Pair          `json:"config,omitempty"`
	Values   []EntryValue    `json:"values"`
	Path     string          `json:"result_path,omitempty"`
	Missing  string          `json:"result_missing,omitempty"`
	Document json.RawMessage `json:"result,omitempty"` // the result file as it stands
}

// Pair is one line of file configuration.
type Pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// EntryValue is one value in the unit in which it was printed.
type EntryValue struct {
	Unit  string `json:"unit"`
	Value Number `json:"value"`
}

// Number is a float64 that may be infinite or none, which JSON cannot say as a number.
type Number float64

// MarshalJSON writes the shortest text that reads back as the same value.
func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return json.Marshal(strconv.FormatFloat(f, 'g', -1, 64))
	}
	return json.Marshal(f)
}

// UnmarshalJSON is the inverse.
func (n *Number) UnmarshalJSON(in []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(in), `"`), 64)
	if err != nil {
		return fmt.Errorf("%s is no number", in)
	}
	*n = Number(f)
	return nil
}

// NewEntry is the record's form in the document.
func NewEntry(rec *Record) Entry {
	e := Entry{Source: rec.Source, File: rec.File, Line: rec.Line, Name: rec.Name, Iters: rec.Iters, Path: rec.Path,
		Document: rec.Raw, Values: make([]EntryValue, len(rec.Values))}
	for _, c := range rec.Config {
		e.Config = append(e.Config, Pair{c.Key, string(c.Value)})
	}
	for i, v := range rec.Values {
		e.Values[i] = EntryValue{v.Unit, Number(v.Value)}
		if v.OrigUnit != "" {
			e.Values[i] = EntryValue{v.OrigUnit, Number(v.OrigValue)}
		}
	}
	if rec.Missing != nil {
		e.Missing = rec.Missing.Error()
	}
	return e
}

// record is the inverse.
func (e Entry) record() (*Record, error) {
	rec := &Record{File: e.File, Line: e.Line, Name: e.Name, Iters: e.Iters, Path: e.Path}
	for _, c := range e.Config {
		rec.Config = append(rec.Config, benchfmt.Config{Key: c.Key, Value: []byte(c.Value), File: true})
	}
	for _, v := range e.Values {
		rec.Values = append(rec.Values, tidy(float64(v.Value), v.Unit))
	}
	if e.Missing != "" {
		rec.Missing = errors.New(e.Missing)
	}
	if len(e.Document) > 0 && !bytes.Equal(e.Document, []byte("null")) {
		return rec, rec.parse(e.Document)
	}
	return rec, nil
}

// document streams the document of kvreport json. Its records keep their runs.
func (r *reader) document(in io.Reader, name string) error {
	counter := &lineCounter{r: in, lines: 1}
	d := json.NewDecoder(counter)
	fail := func(err error) error { return fmt.Errorf("%s:%d: %w", name, counter.lines, truncated(err)) }
	before := r.out.Records
	if _, err := d.Token(); err != nil {
		return fail(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fail(err)
		}
		switch key {
		case DocumentKey:
			var schema string
			if err := d.Decode(&schema); err != nil {
				return fail(err)
			}
			if major, _, _ := strings.Cut(schema, "."); major != "1" {
				return fail(fmt.Errorf("%s %q, this version reads 1.x", DocumentKey, schema))
			}
		case "results":
			err = r.entries(d)
		case "units":
			err = r.units(d)
		default:
			err = d.Decode(&json.RawMessage{})
		}
		if err != nil {
			return fail(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return fail(err)
	}
	if r.out.Records == before {
		return fmt.Errorf("%s: no benchmark result in it", name)
	}
	return nil
}

func (r *reader) entries(d *json.Decoder) error {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(err, errors.New("results is not a list"))
	}
	outer := r.source
	defer func() { r.source = outer }()
	for d.More() {
		var e Entry
		if err := d.Decode(&e); err != nil {
			return err
		}
		rec, err := e.record()
		if err != nil {
			return fmt.Errorf("result of %s: %w", e.Name, err)
		}
		if r.source = e.Source; r.source == "" {
			r.source = outer
		}
		if err := r.emit(rec); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func (r *reader) units(d *json.Decoder) error {
	var units map[string]map[string]string
	if err := d.Decode(&units); err != nil {
		return err
	}
	for unit, pairs := range units {
		for key, value := range pairs {
			addUnit(r.out.Units, unit, key, value)
		}
	}
	return nil
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is truncated")
	}
	return err
}

// lineCounter counts the lines read so far; the decoder reads ahead, so the line is the last that can be meant.
type lineCounter struct {
	r     io.Reader
	lines int
}

func (c *lineCounter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.lines += bytes.Count(p[:n], []byte("\n"))
	return n, err
}
