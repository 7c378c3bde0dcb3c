package formats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRows runs the scripts of testdata/rows: a format, a file and its rows. -rewrite updates them. A format has
// its cases there: valid rows, and every reason for which a row or a file is refused.
func TestRows(t *testing.T) {
	counter := NewTokenizer(TokenizerChars, 1)
	known := map[string]Format{"blocks": Blocks, "azure": Azure, "burstgpt": BurstGPT,
		"sharegpt": ShareGPT(100, 100, counter)}
	datadriven.Walk(t, "testdata/rows", func(t *testing.T, script string) {
		datadriven.RunTest(t, script, func(t *testing.T, d *datadriven.TestData) string {
			path := file(t, d.CmdArgs[0].Key, d.Input)
			var b strings.Builder
			require.Contains(t, known, d.Cmd)
			r, err := known[d.Cmd].Open(path)
			for err == nil {
				var row Row
				if row, err = r.Next(); IsMalformed(err) {
					fmt.Fprintf(&b, "line %d: %v\n", r.Line(), err)
					err = nil
				} else if err == nil {
					b.WriteString(printed(row))
				}
			}
			if !errors.Is(err, io.EOF) {
				fmt.Fprintf(&b, "error: %v\n", err)
			}
			if r != nil {
				require.NoError(t, r.Close())
			}
			return strings.ReplaceAll(b.String(), filepath.Dir(path)+string(filepath.Separator), "")
		})
	})
}

// printed returns a row as in the scripts.
func printed(r Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %d+%d", r.Stamp, r.Context, r.Generate)
	when := func(is bool, format string, args ...any) {
		if is {
			fmt.Fprintf(&b, format, args...)
		}
	}
	when(r.Session != "", " session %s", r.Session)
	when(r.Turn > 0, " turn %d", r.Turn)
	when(r.Opens, "*")
	when(r.BlockTokens > 0, " %dx%d %s", len(r.Blocks), r.BlockTokens, r.Scope)
	when(r.Common, "!")
	when(r.Agent.Play > 0, " session %d", r.Agent.Play)
	when(r.Agent.ID > 0, " agent %d of %d", r.Agent.ID, r.Agent.Starter)
	when(r.Agent.Detached, " detached")
	when(r.Agent.Took > 0, " took %v", r.Agent.Took)
	when(r.BlockTokens > 0, " %v", r.Blocks)
	when(r.Note != "", " (%s)", r.Note)
	return b.String() + "\n"
}

// file writes a text to a new file, compressed by the extension of its name.
func file(t testing.TB, name, text string) string {
	t.Helper()
	var b bytes.Buffer
	switch filepath.Ext(name) {
	case ".gz":
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(text))
		require.NoError(t, errors.Join(err, w.Close()))
	case ".zst":
		w, err := zstd.NewWriter(&b)
		require.NoError(t, err)
		_, err = w.Write([]byte(text))
		require.NoError(t, errors.Join(err, w.Close()))
	default:
		b.WriteString(text)
	}
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

// rowsOf reads the text of a block trace. It returns the errors of malformed rows.
func rowsOf(t testing.TB, name, text string) (rows []Row, errs []string) {
	t.Helper()
	r, err := Blocks.Open(file(t, name, text))
	require.NoError(t, err)
	defer r.Close()
	for {
		row, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return rows, errs
		case IsMalformed(err):
			errs = append(errs, err.Error())
		default:
			require.NoError(t, err)
			row.Blocks = append([]int64(nil), row.Blocks...) // valid until the next row
			rows = append(rows, row)
		}
	}
}

// FuzzBlockFormats: any bytes give rows that an engine can have made, or errors. There are never more rows than
// bytes. The exported rows are the same when they are read again.
func FuzzBlockFormats(f *testing.F) {
	scripts, err := filepath.Glob("testdata/rows/*")
	require.NoError(f, err)
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		for part := range strings.SplitSeq(string(text), "\nblocks ") {
			_, input, _ := strings.Cut(part, "\n")
			input, _, _ = strings.Cut(input, "----")
			f.Add([]byte(input))
		}
	}
	f.Add([]byte(`[1e300,[["BlockStored",[1,1],null,[],4,null,null,null,null,7]]]`))
	f.Add(framed(append([]fields{lctHeader("")}, lctCalls...)...))
	f.Add(framed(lctHeader("{}", "trace_schema_version", 2), lctCalls[0]))
	f.Add([]byte("\x00\x00\x00\x05\x81\xa1x\xc4\x04LMCT"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(dir, "fuzz.json")
		require.NoError(t, os.WriteFile(path, text, 0o644))
		r, err := Blocks.Open(path)
		if err != nil {
			return
		}
		defer r.Close()
		var rows []Row
		for n := 0; err == nil || IsMalformed(err); n++ {
			require.LessOrEqual(t, n, len(text)+1)
			var row Row
			if row, err = r.Next(); err == nil {
				require.True(t, distinct(row.Blocks))
				require.LessOrEqual(t, len(row.Blocks), (row.Context-1)/row.BlockTokens+1)
				row.Blocks = slices.Clone(row.Blocks)
				rows = append(rows, row)
			}
		}
		out, short := exported(t, rows, 0)
		// A prompt that fills no block has no block that others could read.
		all := len(rows)
		rows = slices.DeleteFunc(rows, func(r Row) bool { return len(r.Blocks) == 0 })
		require.Equal(t, all-len(rows), short)
		back, errs := rowsOf(t, "out.jsonl", out)
		require.Empty(t, errs)
		require.Equal(t, shape(rows), shape(back))
	})
}

// Agents may start agents only so deep.
func TestDeepAgents(t *testing.T) {
	deep := `{"t":0,"in":64,"out":1,"hash_ids":[7]}`
	for range maxAgents + 2 {
		deep = `{"t":0,"type":"subagent","requests":[` + deep + `]}`
	}
	rows, errs := rowsOf(t, "a.json", `{"block_size":64,"requests":[{"t":0,"in":64,"out":1,"hash_ids":[7]},`+deep+`]}`)
	assert.Len(t, rows, 1)
	require.Len(t, errs, 1)
	assert.Contains(t, errs[0], "more than 64 agents that start each other")
}
