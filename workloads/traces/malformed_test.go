package traces

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

const azureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n"

// azureRows returns n good rows.
func azureRows(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "2024-01-02 03:%02d:%02d.0000000,100,10\n", i/60%60, i%60)
	}
	return b.String()
}

// TestMalformedShare: one percent is the limit, at the end of a file and in the middle of a long one. One row
// of a small file is accepted, too.
func TestMalformedShare(t *testing.T) {
	bad := "x,y,z\n"
	tests := []struct {
		name, text string
		opens      bool
		runs       bool
	}{
		{"1 of 100", azureRows(50) + bad + azureRows(49), true, true},
		{"1 of 3", azureRows(2) + bad, false, false},
		{"1 of 4", azureRows(3) + bad, true, true},
		{"2 of 199", azureRows(50) + bad + bad + azureRows(147), false, false},
		{"20 of 2000, early", azureRows(100) + strings.Repeat(bad, 20) + azureRows(1880), false, false},
		{"20 of 2000, late", azureRows(1980) + strings.Repeat(bad, 20), true, true},
		{"21 of 2000, late", azureRows(1979) + strings.Repeat(bad, 21), true, false},
		{"50 of 10000 after row 1000", azureRows(1000) + strings.Repeat(bad, 50) + azureRows(8950),
			true, false},
		{"of another format", "a,b,c,d\n1,2,3,4\n5,6,7,8\n", false, false},
		{"nothing", "", false, false},
		{"only failed requests", "2024-01-02 03:04:05,100,0\n", false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := write(t, "x.csv", azureHeader+test.text)
			cfg := traceConfig(path)
			s, err := New(formats.Azure, cfg)
			require.Equal(t, test.opens, err == nil, "%v", err)
			if err != nil {
				assert.ErrorContains(t, err, path)
			} else {
				all(t, s)
				assert.Equal(t, test.runs, s.Err() == nil, "%v", s.Err())
				if s.Err() != nil {
					assert.ErrorContains(t, s.Err(), "more than 1 %")
					assert.ErrorContains(t, s.Err(), "; the first is "+path)
				}
				require.NoError(t, s.Close())
			}
			cfg.AllowMalformed, cfg.Cycles = true, 0
			cfg.MaxRequests = 20000
			s = openTrace(t, formats.Azure, cfg)
			all(t, s)
			assert.NoError(t, s.Err())
		})
	}
}

// TestUnordered: rows out of the order of time are refused with the number of rows and the flag, unless
// their times are not used. A few are counted.
func TestUnordered(t *testing.T) {
	row := func(second int) string { return fmt.Sprintf("2024-01-02 03:04:%02d,100,10\n", second) }
	var descending strings.Builder
	for i := range 20 {
		descending.WriteString(row(59 - 2*i))
	}
	path := write(t, "x.csv", azureHeader+descending.String())
	read := func(cfg Config) (workloads.TraceReport, error) {
		s, err := New(formats.Azure, cfg)
		if err != nil {
			return workloads.TraceReport{}, err
		}
		all(t, s)
		return s.Report(), s.Err()
	}
	cfg := traceConfig(path)
	cfg.Speedup = 1
	_, err := read(cfg)
	assert.ErrorContains(t, err, "19 of the first 20 rows are earlier than a row before them")
	assert.ErrorContains(t, err, "-trace-allow-malformed")
	assert.ErrorContains(t, err, "line 12: ", "ten rows are named")
	cfg.AllowMalformed = true
	report, err := read(cfg)
	require.NoError(t, err)
	assert.EqualValues(t, 19, report.Unordered)
	cfg.AllowMalformed, cfg.Rate = false, 10
	report, err = read(cfg)
	require.NoError(t, err, "the times are not used")
	assert.EqualValues(t, 19, report.Unordered)
	// One of twenty, and a jitter of a second.
	path = write(t, "y.csv", azureHeader+row(10)+row(9)+strings.Repeat(row(20), 17)+row(10))
	cfg = traceConfig(path)
	cfg.Speedup = 1
	report, err = read(cfg)
	require.NoError(t, err)
	assert.EqualValues(t, 1, report.Unordered)
}

func TestTraceErrors(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent.csv")
	_, err := New(formats.Azure, traceConfig(absent, testdata("burstgpt-small.csv")))
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "burstgpt-small.csv", "every file is looked at")

	// A file that vanishes between two cycles.
	path := write(t, "a.csv", azureHeader+azureRows(3))
	cfg := traceConfig(path)
	cfg.Cycles = 0
	s := openTrace(t, formats.Azure, cfg)
	require.NoError(t, os.Remove(path))
	all(t, s)
	assert.ErrorIs(t, s.Err(), os.ErrNotExist)
}

// fuzzRows feeds a whole file to a format: no panic, no row that is out of range, and the counts
// add up.
func fuzzRows(f *testing.F, format formats.Format, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := os.CreateTemp(dir, "*.csv")
		require.NoError(t, err)
		defer os.Remove(file.Name())
		_, err = file.Write(text)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		in := &input{format: format, files: make([]opening, 1), apart: []string{""},
			cfg: Config{Paths: []string{file.Name()}, Cycles: 1, AllowMalformed: true, Speedup: 1, Live: 3}}
		s := newReplay(in)
		usable, last := int64(0), s.times.arrival
		least := 1
		if format.Silent {
			least = 0
		}
		for {
			row, err := s.next()
			if err != nil {
				break
			}
			usable++
			if row.Context < 1 || row.Context > workloads.MaxTokens || row.Generate < least ||
				row.Generate > workloads.MaxTokens ||
				row.arrival < last {
				t.Errorf("row %+v after %v", row, last)
			}
			last = row.arrival
		}
		report := s.Report()
		if s.Err() == nil && report.Rows != usable+report.Failed+report.Malformed {
			t.Errorf("%+v with %d usable rows", report, usable)
		}
		rows := int64(bytes.Count(text, []byte("\n")) + 1)
		if csv := len(format.Extensions) == 3 && !format.Untimed; csv && report.Rows > rows {
			t.Errorf("%d rows in %d lines", report.Rows, rows)
		}
		if len(s.reader.heads) > 0 {
			t.Error("the file is left open")
		}
	})
}

func FuzzAzure(f *testing.F) {
	fuzzRows(f, formats.Azure, azureHeader+azureRows(2),
		"\xef\xbb\xbf"+azureHeader+"\"2024-01-02 03:04:05\",\"1\"\"\",2\r\n", "TIMESTAMP\n",
		"2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10T00:00:00Z,1.0,0", ",,,\n\"",
		"9999-12-31 23:59:59,1,1")
}

func FuzzBurstGPT(f *testing.F) {
	fuzzRows(
		f,
		formats.BurstGPT,
		"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,"+
			"490,Conversation log\n",
		"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,"+
			"Log Type\n1.5,a,2,\"GPT \"\"4\"\"\",1,0,1,x\n",
		"1,m,2,3,5,x,session,9\n2,m,2,3\n",
		"inf,m,1,1\n-0,m,1,1\n0x1p4,m,1,1\n1_0,m,1,1",
	)
}
