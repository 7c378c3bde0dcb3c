package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var testTable = []Command{
	{Name: "json", Args: "IN…", Short: "as JSON", Long: "\nWrites it.",
		Example: "\nkvreport json a.txt\n  kvreport json -", Run: echo},
	{Name: "html", Short: "as a page", Run: echo},
}

func echo(args []string, _ io.Reader, stdout, _ io.Writer) int {
	fmt.Fprint(stdout, strings.Join(args, "|"))
	return No
}

func callTable(args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	code = Main("kvreport", testTable, args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestMainFindsTheCommand(t *testing.T) {
	code, out, _ := callTable("json", "a", "-x")
	assert.Equal(t, No, code)
	assert.Equal(t, "a|-x", out)
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}} {
		code, out, errs := callTable(args...)
		assert.Equal(t, Done, code)
		assert.Contains(t, out, "  json  as JSON\n")
		assert.Empty(t, errs)
	}
	for _, args := range [][]string{{"help", "json"}, {"json", "-h"}, {"json", "a", "--help"}} {
		code, out, _ := callTable(args...)
		assert.Equal(t, Done, code)
		assert.Equal(t, "usage: kvreport json IN…\n\nWrites it.\n\nExample:\n    kvreport json "+
			"a.txt\n    kvreport json -\n", out)
	}
	code, _, errs := callTable()
	assert.Equal(t, Usage, code)
	assert.Contains(t, errs, "usage: kvreport COMMAND")
	_, out, _ := callTable("json", "--", "-h")
	assert.Equal(t, "--|-h", out)
}

func TestUnknownCommand(t *testing.T) {
	code, _, errs := callTable("jsno")
	assert.Equal(t, Usage, code)
	assert.Equal(t, "kvreport: unknown command \"jsno\", did you mean \"json\"?; kvreport help "+
		"lists the commands\n", errs)
	_, _, errs = callTable("help", "presentation")
	assert.NotContains(t, errs, "did you mean")
}

func TestParse(t *testing.T) {
	parsed := func(args ...string) ([]string, string, error) {
		fs := flags("xlsx")
		o := fs.String("o", "", "")
		fs.Bool("verbose", false, "")
		pos, err := parse(fs, args)
		return pos, *o, err
	}
	pos, o, err := parsed("a", "-o", "x", "-", "-verbose", "b", "--", "-c")
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "-", "b", "-c"}, pos)
	assert.Equal(t, "x", o)
	_, _, err = parsed("-verbos")
	assert.EqualError(t, err,
		`unknown flag -verbos, did you mean "verbose"?; kvreport help xlsx shows the usage`)
	_, _, err = parsed("-o")
	assert.ErrorContains(t, err, "flag needs an argument")
}

func TestFailIsOneLine(t *testing.T) {
	var b strings.Builder
	assert.Equal(t, Usage, fail(&b, "json", errors.New("a\nb")))
	assert.Equal(t, "kvreport json: a; b\n", b.String())
}

func TestWriteFileIsWholeOrAbsent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	hello := func(w io.Writer) error { _, err := io.WriteString(w, "hello"); return err }
	require.NoError(t, writeFile(path, hello))
	err := writeFile(path, func(w io.Writer) error {
		_,
			_ = io.WriteString(w, "half")
		return errors.New("bad input")
	})
	assert.EqualError(t, err, "bad input")
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(got))
	assert.ErrorContains(t, writeFile(dir, hello), "it is a directory")
	assert.ErrorContains(t, writeFile(filepath.Join(dir, "no", "x"), hello),
		"no such file or directory")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file stays")
}
