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
var Azure = requestFormat("Azure",
	stampColumn("TIMESTAMP", 0, dateStamp),
	tokensColumn("ContextTokens", 1, 1, func(r *Row) *int { return &r.Context }),
	tokensColumn("GeneratedTokens", 2, 0, func(r *Row) *int { return &r.Generate }))

// BurstGPT is https://github.com/HPMLL/BurstGPT: Timestamp,Model,Request tokens,Response
// tokens,Total tokens,Log Type; version 3 adds Session ID,Elapsed time.
var BurstGPT = requestFormat("BurstGPT",
	stampColumn("Timestamp", 0, SecondsStamp),
	tokensColumn("Request tokens", 2, 1, func(r *Row) *int { return &r.Context }),
	tokensColumn("Response tokens", 3, 0, func(r *Row) *int { return &r.Generate }),
	Column[Row]{"Session ID", 6, true, func(r *Row, field string) error {
		r.Session = field
		return nil
	}})

// requestFormat returns a CSV format of requests.
func requestFormat(name string, columns ...Column[Row]) Format {
	table := Table[Row]{Kind: "a trace of the " + name + " format", Columns: columns}
	return Format{Name: name, Extensions: packed(".csv"), Open: func(path string) (Reader, error) {
		rows, err := table.Open(path)
		if err != nil {
			return nil, err // not a nil *CSV
		}
		return rows, nil
	}}
}

// stampColumn is a column of times on the trace's own clock. Its origin has no meaning.
func stampColumn(name string, place int, stamp func(text string) (time.Duration, error)) Column[Row] {
	return Column[Row]{Name: name, Place: place, Set: func(r *Row, field string) (err error) {
		r.Stamp, err = stamp(field)
		return err
	}}
}

// tokensColumn is a column of token counts of at least low. Some exports write whole numbers as 12.0.
func tokensColumn(name string, place, low int, to func(*Row) *int) Column[Row] {
	return Column[Row]{Name: name, Place: place, Set: func(r *Row, field string) error {
		n, err := strconv.Atoi(strings.TrimSuffix(field, ".0"))
		if err != nil {
			return errNoNumber
		}
		*to(r) = n
		return checkTokens(n, low)
	}}
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
