package workloads

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// columns are indices of fields; session is -1 where there is none.
type columns struct{ stamp, context, generate, session int }

// azureFormat is the Azure LLM inference trace: TIMESTAMP,ContextTokens,GeneratedTokens.
var azureFormat = traceFormat{
	name: "Azure", stampName: "TIMESTAMP", contextName: "ContextTokens", generateName: "GeneratedTokens",
	positional: func(int) columns { return columns{0, 1, 2, -1} },
	stamp:      dateStamp,
}

// burstFormat is BurstGPT: Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type; version 3 adds
// Session ID,Elapsed time.
var burstFormat = traceFormat{
	name: "BurstGPT", stampName: "Timestamp", contextName: "Request tokens", generateName: "Response tokens", sessionName: "Session ID",
	positional: func(fields int) columns {
		if fields >= 7 {
			return columns{0, 2, 3, 6}
		}
		return columns{0, 2, 3, -1}
	},
	stamp: secondsStamp,
}

// csvRows reads comma-separated values.
type csvRows struct {
	format *traceFormat
	lines  *lineReader
	cols   columns
	fields [][]byte
}

// reader opens a file of the format.
func (f *traceFormat) reader(path string) (rowReader, error) {
	if f.open != nil {
		return f.open(path)
	}
	lines, err := openLines(path, maxLine)
	if err != nil {
		return nil, err
	}
	return &csvRows{format: f, lines: lines, cols: columns{stamp: -1}}, nil
}

func (c *csvRows) next() (rec record, reason, err error) {
	for {
		line, tooLong, err := c.lines.next()
		if err != nil {
			return record{}, nil, err
		}
		c.fields = c.fields[:0]
		if tooLong {
			reason = fmt.Errorf("longer than %d bytes", maxLine)
		} else {
			c.fields, reason = splitFields(c.fields, line)
		}
		if c.cols.stamp < 0 && reason == nil {
			cols, header, err := c.format.header(c.fields)
			if err != nil {
				return record{}, nil, fmt.Errorf("%s:%d: %w", c.lines.path, c.lines.number, err)
			}
			if header {
				c.cols = cols
				continue
			}
			c.cols = c.format.positional(len(c.fields))
		}
		if reason == nil {
			rec, reason = c.format.parse(c.fields, c.cols)
		}
		return rec, reason, nil
	}
}

func (c *csvRows) line() int    { return c.lines.number }
func (c *csvRows) close() error { return c.lines.close() }

// header returns the columns that a first line names; ok is false when the line is no header.
func (f *traceFormat) header(fields [][]byte) (c columns, ok bool, err error) {
	if len(fields) == 0 || !anyEqual(fields, f.stampName) {
		return columns{}, false, nil
	}
	find := func(name string) int {
		for i, field := range fields {
			if name != "" && strings.EqualFold(string(field), name) {
				return i
			}
		}
		return -1
	}
	c = columns{find(f.stampName), find(f.contextName), find(f.generateName), find(f.sessionName)}
	var missing []string
	if c.context < 0 {
		missing = append(missing, f.contextName)
	}
	if c.generate < 0 {
		missing = append(missing, f.generateName)
	}
	if len(missing) > 0 {
		return columns{}, true, fmt.Errorf("the header has no column %s: is it a trace of the %s format?", strings.Join(missing, " and no "), f.name)
	}
	return c, true, nil
}

func anyEqual(fields [][]byte, name string) bool {
	for _, field := range fields {
		if strings.EqualFold(string(field), name) {
			return true
		}
	}
	return false
}

// parse reads one row.
func (f *traceFormat) parse(fields [][]byte, c columns) (record, error) {
	if need := max(c.stamp, c.context, c.generate); len(fields) <= need {
		return record{}, fmt.Errorf("%d fields, need at least %d", len(fields), need+1)
	}
	var r record
	var err error
	if r.stamp, err = f.stamp(string(fields[c.stamp])); err != nil {
		return record{}, fmt.Errorf("%s %q: %w", f.stampName, shorten(fields[c.stamp]), err)
	}
	if r.context, err = tokenCount(fields[c.context], 1); err != nil {
		return record{}, fmt.Errorf("%s %q: %w", f.contextName, shorten(fields[c.context]), err)
	}
	if r.generate, err = tokenCount(fields[c.generate], 0); err != nil {
		return record{}, fmt.Errorf("%s %q: %w", f.generateName, shorten(fields[c.generate]), err)
	}
	if c.session >= 0 && c.session < len(fields) {
		r.session = string(fields[c.session])
	}
	return r, nil
}

// shorten keeps messages about absurd fields readable.
func shorten(field []byte) []byte {
	if len(field) > 40 {
		return field[:40]
	}
	return field
}

// Errors of fields are made once: a hostile file may have one per row.
var (
	errNoNumber  = errors.New("want a whole number of tokens")
	errFewTokens = errors.New("too few tokens")
	errTokens    = fmt.Errorf("more than %d tokens", MaxTokens)
	errSeconds   = errors.New("want seconds, 0 to 9000000000")
	errDate      = errors.New("want a date and time such as 2006-01-02 15:04:05.0000000, year 1970 to 2200")
)

// tokenCount reads a token count of at least low. Some exports write whole numbers as 12.0.
func tokenCount(field []byte, low int) (int, error) {
	text := strings.TrimSuffix(string(field), ".0")
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, errNoNumber
	case n < low:
		return 0, errFewTokens
	case n > MaxTokens:
		return 0, errTokens
	}
	return n, nil
}

// secondsStamp reads seconds since some origin.
func secondsStamp(text string) (time.Duration, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > 9e9 {
		return 0, errSeconds
	}
	return time.Duration(v * 1e9), nil
}

// dateStamp reads a date and time, with or without a zone, as the time since 1970. time.Parse takes any number of digits of
// a fraction where the layout has none.
func dateStamp(text string) (time.Duration, error) {
	t, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		t, err = time.Parse("2006-01-02 15:04:05Z07:00", strings.Replace(text, "T", " ", 1))
	}
	if err != nil {
		t, err = time.Parse("2006-01-02T15:04:05", text)
	}
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return 0, errDate
	}
	return time.Duration(t.UnixNano()), nil
}
