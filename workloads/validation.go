package workloads

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Validation sums up a recorded run, to compare one of ours with.
type Validation struct {
	Path                  string
	Requests              int64
	Lookups, Hits         int64 // requests that tell whether they hit
	ReadBytes, WriteBytes int64
	Malformed             int64
	First                 []RowError // the first ten
}

// validationRow is one request. Fields may be missing; other keys are ignored.
type validationRow struct {
	Hit   *bool    `json:"cache_hit"`
	Read  *float64 `json:"read_bytes"`
	Write *float64 `json:"write_bytes"`
}

// maxTraceBytes bounds one request, so that sums stay exact for as many requests as a file can hold.
const maxTraceBytes = 1 << 50

// ReadValidation reads a JSON list of requests with cache_hit, read_bytes and write_bytes; .gz and .zst are decompressed. More
// than 1 % malformed rows are an error, and so is a file from which neither ratio can be had.
func ReadValidation(path string) (v Validation, err error) {
	doc, err := openDocument(path)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, doc.close()) }()
	v.Path = path
	fail := func(err error) (Validation, error) {
		return v, fmt.Errorf("validation trace %s:%d: %w", path, doc.line(), err)
	}
	t, err := doc.token()
	if err == nil && t != json.Delim('[') {
		err = errors.New("want a list of requests")
	}
	if err != nil {
		return fail(noEOF(err))
	}
	for doc.dec.More() {
		var row validationRow
		err := doc.value(&row)
		if err == nil {
			err = v.add(row)
		} else if !wrongType(err) {
			return fail(noEOF(err))
		}
		if err != nil {
			v.Malformed++
			if len(v.First) < maxRowErrors {
				v.First = append(v.First, RowError{path, doc.line(), err.Error()})
			}
		}
	}
	if _, err := doc.token(); err != nil {
		return fail(noEOF(err))
	}
	if _, err := doc.token(); !errors.Is(err, io.EOF) {
		return fail(errors.New("something follows the list"))
	}
	switch rows := v.Requests + v.Malformed; {
	case v.Malformed*100 > rows:
		return v, fmt.Errorf("validation trace %s: %d of %d rows are malformed, more than 1 %%; the first is %w", path, v.Malformed, rows, v.First[0])
	case v.Lookups == 0 && v.WriteBytes == 0:
		return v, fmt.Errorf("validation trace %s: none of its %d rows tells cache_hit or write_bytes", path, rows)
	}
	return v, nil
}

func (v *Validation) add(row validationRow) error {
	for _, n := range []*float64{row.Read, row.Write} {
		if n != nil && !(*n >= 0 && *n <= maxTraceBytes) {
			return fmt.Errorf("%v bytes, want 0 to %d", *n, int64(maxTraceBytes))
		}
	}
	if row.Hit == nil && row.Read == nil && row.Write == nil {
		return errors.New("want cache_hit, read_bytes or write_bytes")
	}
	v.Requests++
	if row.Hit != nil {
		v.Lookups++
		if *row.Hit {
			v.Hits++
		}
	}
	if row.Read != nil {
		v.ReadBytes += int64(*row.Read)
	}
	if row.Write != nil {
		v.WriteBytes += int64(*row.Write)
	}
	return nil
}
