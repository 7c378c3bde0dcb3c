package formats

import (
	"errors"
	"fmt"
	"io"

	"kvbench/workloads"
)

// Validation holds the sums of a recorded run, for comparison with a run of the suite.
type Validation struct {
	workloads.TraceReport // only the counts of rows
	Path                  string
	Requests              int64 // usable rows
	Lookups, Hits         int64 // requests with cache_hit, and requests with a hit
	ReadBytes, WriteBytes int64
	// Sums over the requests that have token counts.
	ContextTokens, GeneratedTokens int64
}

// validationRow is one request. Fields may be missing. Other keys are ignored.
type validationRow struct {
	Hit   *bool    `json:"cache_hit"`
	Read  *float64 `json:"read_bytes"`
	Write *float64 `json:"write_bytes"`

	Context   *float64 `json:"context_tokens"`
	Generated *float64 `json:"generation_tokens"`
}

// maxTraceBytes is the largest number of bytes of one request, so that sums over all requests of a file
// stay exact.
const maxTraceBytes = 1 << 50

// ReadValidation reads a recorded run of an engine or of another benchmark: a JSON list of requests with
// cache_hit, read_bytes and write_bytes. Its hit ratio and bytes are compared with a run of the suite.
// .gz and .zst are decompressed. More than 1 % malformed rows are an error. A file without the data for
// either ratio is an error.
func ReadValidation(path string) (v Validation, err error) {
	doc, err := openDocument(path, "requests")
	if err != nil {
		return v, err
	}
	defer doc.Close() // only read from
	v.Path = path
	tally := Tally{What: "validation trace", File: path, Allow: true} // End checks the whole file
	for err == nil {
		var row validationRow
		bad := doc.next(&row)
		if bad == nil {
			bad = v.add(row)
		}
		err = tally.Row(bad, doc.Line)
	}
	v.TraceReport, tally.Allow = tally.Report, false
	if !errors.Is(err, io.EOF) {
		return v, err
	}
	if err = tally.End(); err == nil && v.Lookups == 0 && v.WriteBytes == 0 {
		err = fmt.Errorf("validation trace %s: none of its %d rows has cache_hit or write_bytes", path,
			v.Rows)
	}
	return v, err
}

// add counts a request. A request without any known value or with an impossible value is malformed.
func (v *Validation) add(row validationRow) error {
	for _, n := range []*float64{row.Read, row.Write} {
		if bytes := orZero(n); !(bytes >= 0 && bytes <= maxTraceBytes) {
			return malformed("%v bytes, want 0 to %d", bytes, int64(maxTraceBytes))
		}
	}
	if row.Hit == nil && row.Read == nil && row.Write == nil {
		return malformed("want cache_hit, read_bytes or write_bytes")
	}
	for _, n := range []*float64{row.Context, row.Generated} {
		if tokens := orZero(n); !(tokens >= 0 && tokens <= workloads.MaxTokens) {
			return malformed("%v tokens, want 0 to %d", tokens, workloads.MaxTokens)
		}
	}
	v.Requests++
	v.ContextTokens += int64(orZero(row.Context))
	v.GeneratedTokens += int64(orZero(row.Generated))
	v.ReadBytes += int64(orZero(row.Read))
	v.WriteBytes += int64(orZero(row.Write))
	if row.Hit != nil {
		v.Lookups++
		if *row.Hit {
			v.Hits++
		}
	}
	return nil
}

// orZero returns the value of a field, 0 if it is missing.
func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
