package formats

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"kvbench/workloads"
)

// Azure is the Azure LLM inference trace: TIMESTAMP,ContextTokens,GeneratedTokens. The traces of
// 2023 and 2024 are at https://github.com/Azure/AzurePublicDataset. The timestamps of 2024 have a
// zone.
var Azure = requestFormat("Azure", dateStamp, Columns{
	Names:    []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"},
	Required: 3, Places: []int{0, 1, 2},
})

// BurstGPT is https://github.com/HPMLL/BurstGPT: Timestamp,Model,Request tokens,Response
// tokens,Total tokens,Log Type; version 3 adds Session ID,Elapsed time.
var BurstGPT = requestFormat("BurstGPT", SecondsStamp, Columns{
	Names:    []string{"Timestamp", "Request tokens", "Response tokens", "Session ID"},
	Required: 3, Places: []int{0, 2, 3, 6},
})

// stampFunc parses a time on the trace's own clock. Its origin has no meaning.
type stampFunc func(text string) (time.Duration, error)

// requestFormat returns a CSV format with the time, context tokens, generated tokens and perhaps a
// session.
func requestFormat(name string, stamp stampFunc, columns Columns) Format {
	columns.Kind = "a trace of the " + name + " format"
	return Format{Name: name, Extensions: packed(".csv"), Open: func(path string) (Reader, error) {
		c, err := OpenCSV(path, columns)
		return &requestRows{CSV: c, stamp: stamp}, err
	}}
}

// requestRows reads the rows of a requestFormat.
type requestRows struct {
	*CSV
	stamp stampFunc
}

// Next implements Reader.
func (r *requestRows) Next() (row Row, err error) {
	fields, err := r.Fields()
	if err != nil {
		return row, err
	}
	if len(fields) > 3 {
		row.Session = fields[3]
	}
	if row.Stamp, err = r.stamp(fields[0]); err != nil {
		return row, r.Bad(0, err)
	}
	if row.Context, err = tokenCount(fields[1], 1); err != nil {
		return row, r.Bad(1, err)
	}
	if row.Generate, err = tokenCount(fields[2], 0); err != nil {
		return row, r.Bad(2, err)
	}
	return row, nil
}

// These errors are allocated once, because a file may have an error in every row.
var (
	errNoNumber  = errors.New("want a whole number of tokens")
	errFewTokens = errors.New("too few tokens")
	errTokens    = fmt.Errorf("more than %d tokens", workloads.MaxTokens)
	errSeconds   = errors.New("want seconds, 0 to 9000000000")
	errDate      = errors.New("want a date and time such as 2006-01-02 15:04:05.0000000," +
		" year 1970 to 2200")
)

// tokenCount parses a token count of at least low. Some exports write whole numbers as 12.0.
func tokenCount(text string, low int) (int, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(text, ".0"))
	if err != nil {
		return 0, errNoNumber
	}
	return n, checkTokens(n, low)
}

// checkTokens returns an error if n is less than low or more than workloads.MaxTokens.
func checkTokens(n, low int) error {
	switch {
	case n < low:
		return errFewTokens
	case n > workloads.MaxTokens:
		return errTokens
	}
	return nil
}

// SecondsStamp parses seconds since some origin.
func SecondsStamp(text string) (time.Duration, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v > 9e9 {
		return 0, errSeconds
	}
	return time.Duration(v * 1e9), nil
}

// dateLayouts are the layouts of dates with and without a zone. Without a fraction in the layout,
// time.Parse accepts a fraction with any number of digits.
var dateLayouts = [...]string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00",
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05"}

// dateStamp parses a date and time. It returns the time since 1970.
func dateStamp(text string) (time.Duration, error) {
	for _, layout := range dateLayouts {
		t, err := time.Parse(layout, text)
		if err == nil && t.Year() >= 1970 && t.Year() <= 2200 {
			return time.Duration(t.UnixNano()), nil
		}
	}
	return 0, errDate
}
