package iotrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
)

const ioHeader = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n"

// ioFile writes a trace and returns its path.
func ioFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	return path
}

// readIO reads a whole trace.
func readIO(t testing.TB, path string, allow bool) ([]Row, workloads.TraceReport, error) {
	t.Helper()
	tr, err := Open(path, allow, false)
	if err != nil {
		return nil, workloads.TraceReport{}, err
	}
	var rows []Row
	row, err := tr.Next()
	for ; err == nil; row, err = tr.Next() {
		rows = append(rows, row)
	}
	require.NoError(t, tr.Close())
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return rows, tr.Report(), err
}

func TestIOTraceReadsOursAndThePythonBenchmarks(t *testing.T) {
	want := []Row{{0, Write, 1000, 2, "u1/c1/t1", "Prefill"},
		{1500 * time.Millisecond, Read, 1000, 0, "u1/c1/t1", "Decode"},
		{1500 * time.Millisecond, Delete, 7, 1, "a,b", "Evict"}}
	ours := ioHeader + "1700000000.000000,Write,1000,Tier-2,u1/c1/t1,Prefill\n1700000001.500000," +
		"Read,1000,Tier-0,u1/c1/t1,Decode\n" +
		"1700000001.000000,Delete,7,Tier-1,\"a,b\",Evict\n"
	for name, text := range map[string]string{
		"ours":      ours,
		"python":    strings.ReplaceAll(ours, "\n", "\r\n"),
		"no header": strings.TrimPrefix(ours, ioHeader),
		"other order": "Phase,Key,Tier,Object_Size_Bytes,Operation,Timestamp\nPrefill," +
			"u1/c1/t1,Tier-2,1000,Write,5\nDecode,u1/c1/t1,Tier-0,1000,Read,6.5\nEvict,\"a,b\"," +
			"Tier-1,7,Delete,6\n",
		"spelled by hand": "timestamp,operation,object_size_bytes,tier,key,phase\n1,write," +
			"1000.0,2,u1/c1/t1,prefill\n2.5,READ,1000,tier-0,u1/c1/t1,DECODE\n2.4,delete,7,1," +
			"\"a,b\",evict",
		"with byte order":  "\xef\xbb\xbf" + ours,
		"with blank lines": strings.ReplaceAll(ours, "\n", "\n\n"),
	} {
		rows, report, err := readIO(t, ioFile(t, "trace.csv", text), false)
		require.NoError(t, err, name)
		assert.EqualValues(t, 3, report.Rows, name)
		for i := range rows {
			rows[i].At = rows[i].At.Round(time.Microsecond)
		}
		assert.Equal(t, want, rows, name)
	}
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	require.NoError(t, err)
	_, err = z.Write([]byte(ours))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	rows, _, err := readIO(t, ioFile(t, "trace.csv.zst", packed.String()), false)
	require.NoError(t, err)
	assert.Len(t, rows, 3)
}

// Every row of a file of the Python benchmark.
func TestIOTraceReadsThePythonBenchmarksFile(t *testing.T) {
	rows, report, err := readIO(t, filepath.Join("..", "..", "testdata", "iotrace-small.csv"), false)
	require.NoError(t, err)
	assert.EqualValues(t, 14, report.Rows)
	assert.Zero(t, report.Malformed)
	for i := range rows {
		rows[i].At = rows[i].At.Round(time.Microsecond)
	}
	assert.Equal(t, Row{0, Write, 4 << 20, 2, "conv_user_0001_1736171642098_turn_1", "Prefill"},
		rows[0])
	assert.Equal(t,
		Row{37985 * time.Microsecond, Read, 122880, 2, "kv_system_8f3b1c09d2a47e65", "Decode"}, rows[7],
		"Both")
	rows, _, err = readIO(t, ioFile(t, "both.csv", ioHeader+"1,Write,5,Tier-2,k,Both\n"), false)
	require.NoError(t, err)
	assert.Equal(t, "Prefill", rows[0].Phase)
}

func TestIOTraceCountsMalformedRows(t *testing.T) {
	good := "1,Write,10,Tier-2,k,Prefill\n"
	for _, bad := range []string{
		"x,Write,10,Tier-2,k,Prefill", "-1,Write,10,Tier-2,k,Prefill", "1,Append,10,Tier-2,k," +
			"Prefill", "1,Write,ten,Tier-2,k,Prefill",
		"1,Write,0,Tier-2,k,Prefill", "1,Write,-5,Tier-2,k,Prefill", "1,Write," +
			"9223372036854775807,Tier-2,k,Prefill", "1,Write,10,Tier-3,k,Prefill",
		"1,Write,10,gpu,k,Prefill", "1,Write,10,Tier-2,,Prefill", "1,Write,10,Tier-2,k,Generate",
		"1,Write,10,Tier-2,k", `1,Write,10,Tier-2,"k,Prefill`,
		"1,Write,10,Tier-2," + strings.Repeat("k", 5000) + ",Prefill", strings.Repeat("z", 70000),
	} {
		path := ioFile(t, "trace.csv", ioHeader+good+bad+"\n")
		_, _, err := readIO(t, path, false)
		require.ErrorContains(t, err, "more than 1 %", bad[:min(40, len(bad))])
		assert.ErrorContains(t, err, path+":3", "the line is named")
		rows, report, err := readIO(t, path, true)
		require.NoError(t, err)
		assert.Len(t, rows, 1)
		assert.EqualValues(t, 1, report.Malformed)

		rows, report, err = readIO(t,
			ioFile(t, "trace.csv", ioHeader+strings.Repeat(good, 100)+bad+"\n"), false)
		require.NoError(t, err, "one of 101 is less than 1 %%")
		assert.Len(t, rows, 100)
		assert.Equal(t, 102, report.First[0].Line)
	}
	_, _, err := readIO(t, ioFile(t, "empty.csv", ioHeader), true)
	require.ErrorContains(t, err, "empty.csv has no rows")
	_, _, err = readIO(t, ioFile(t, "other.csv", "Timestamp,Operation,Size\n1,Read,2\n"), true)
	require.ErrorContains(t, err, "no column Object_Size_Bytes")
	_, err = Open(filepath.Join(t.TempDir(), "none.csv"), false, false)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A replay keeps keys, perhaps millions, but not the lines that contained them.
func TestIOTraceKeysDoNotKeepTheirLines(t *testing.T) {
	const rows, behind = 1000, 8 << 10
	var text strings.Builder
	text.WriteString(strings.TrimSpace(ioHeader) + ",More\n")
	for i := range rows {
		fmt.Fprintf(&text, "1.0,Read,4096,Tier-2,key%d,Decode,%s\n", i,
			strings.Repeat("x", behind))
	}
	path := ioFile(t, "trace.csv", text.String())
	text.Reset()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	list, _, err := readIO(t, path, false)
	require.NoError(t, err)
	require.Len(t, list, rows)
	assert.Less(t, heap(), before+rows*behind/4)
	runtime.KeepAlive(list)
}

func FuzzIOTrace(f *testing.F) {
	f.Add(
		ioHeader + "1700000000.000000,Write,1000,Tier-2,u1/c1/t1,Prefill\r\n1700000001.500000," +
			"Read,1000,Tier-0,\"a,\"\"b\",Decode\n",
	)
	f.Add(ioHeader + "1736171642.142218,Read,122880,Tier-2,kv_system_8f3b1c09d2a47e65,Both\r\n")
	f.Add("1,read,1,0,k,evict\n\n2,delete,0,Tier-1,k,Evict")
	f.Add("Phase,Key,Tier,Object_Size_Bytes,Operation,Timestamp\n")
	f.Add("\xef\xbb\xbf" + ioHeader + "9e9,Write,1e3,Tier-2,\x00,Prefill\n,,,,,\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		for _, allow := range []bool{false, true} {
			rows, report, err := readIO(t, ioFile(t, "trace.csv", text), allow)
			last := time.Duration(0)
			for _, r := range rows {
				require.GreaterOrEqual(t, r.At, last)
				last = r.At
				require.NotEmpty(t, r.Key)
				require.NotEmpty(t, r.Phase)
				require.True(t, r.Bytes >= 0 && r.Tier >= 0 && r.Tier <= 2)
				require.False(t, r.Operation == Write && r.Bytes == 0)
			}
			require.LessOrEqual(t, report.Malformed, report.Rows)
			if err == nil {
				require.Equal(t, report.Rows, int64(len(rows))+report.Malformed)
				require.NotEmpty(t, rows)
			}
		}
	})
}

// Rows out of the order of time are refused, unless their times are not used.
func TestUnordered(t *testing.T) {
	text := ioHeader
	for second := 20; second > 0; second -= 2 {
		text += fmt.Sprintf("%d,Write,4096,Tier-2,k%d,Prefill\n", second, second)
	}
	for _, untimed := range []bool{false, true} {
		rows, err := Open(ioFile(t, "trace.csv", text), false, untimed)
		require.NoError(t, err)
		for err == nil {
			_, err = rows.Next()
		}
		assert.EqualValues(t, 9, rows.Report().Unordered)
		assert.Equal(t, untimed, errors.Is(err, io.EOF), "%v", err)
		require.NoError(t, rows.Close())
	}
}
