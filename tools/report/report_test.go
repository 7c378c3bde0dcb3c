package report_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/command"
	"kvbench/tools/compare"
	"kvbench/tools/input"
	"kvbench/tools/report"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	const text = "BenchmarkA 1 5 ns/op\nBenchmarkA 1 six ns/op\nBenchmarkB 1 7 ns/op\n"
	run := func(fail error, args ...string) (code int, errs string) {
		var b strings.Builder
		code = report.Run("thing", args, strings.NewReader(text), &b, func(records []*input.Record, t *compare.Table) (func(io.Writer) error, []string) {
			return func(w io.Writer) error {
				_, err := io.WriteString(w, records[0].Name+t.Benchmarks[len(t.Benchmarks)-1].Name)
				return errors.Join(err, fail)
			}, []string{"something is missing"}
		})
		return code, b.String()
	}
	code, errs := run(nil, "-", "-o", out)
	assert.Equal(t, command.Done, code)
	assert.Contains(t, errs, "kvreport thing: stdin:2:", "a bad line is named, the rest is read")
	assert.Contains(t, errs, "kvreport thing: something is missing\n")
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, "AB", string(data))

	for _, args := range [][]string{{"-"}, {"-o", out}, {filepath.Join(dir, "none"), "-o", out}} {
		code, errs = run(nil, args...)
		assert.Equal(t, command.Usage, code)
		assert.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	code, errs = run(errors.New("it broke"), "-", "-o", out)
	assert.Equal(t, command.Usage, code)
	assert.Contains(t, errs, "it broke")
	data, err = os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, "AB", string(data), "the file of before stays as it was")
}
