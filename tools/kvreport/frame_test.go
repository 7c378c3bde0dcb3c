package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/kvbench/version"
)

func TestMainFindsTheCommand(t *testing.T) {
	code, out, errs := call("", "device", "-x")
	assert.Equal(t, Usage, code)
	assert.Empty(t, out)
	assert.Equal(t, "kvreport device: unknown flag -x; kvreport help device shows the usage\n", errs)
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}} {
		code, out, errs := call("", args...)
		assert.Equal(t, Done, code)
		assert.Contains(t, out, "  json        all results as one JSON document\n")
		assert.Empty(t, errs)
	}
	for _, args := range [][]string{{"help", "json"}, {"json", "-h"}, {"json", "a", "--help"}} {
		code, out, _ := call("", args...)
		assert.Equal(t, Done, code)
		assert.True(t, strings.HasPrefix(out, "usage: kvreport json IN… [-o FILE]\n\nReads "), out)
		assert.Contains(t, out, "\n\nExample:\n    go test ./benchmarks ")
	}
	code, _, errs := call("")
	assert.Equal(t, Usage, code)
	assert.Contains(t, errs, "usage: kvreport COMMAND")
	_, out, errs := call("", "json", "--", "-h")
	assert.Empty(t, out)
	assert.Contains(t, errs, "kvreport json: ", "behind -- it is the name of a file")
}

func TestUnknownCommand(t *testing.T) {
	code, _, errs := call("", "jsno")
	assert.Equal(t, Usage, code)
	assert.Equal(t, "kvreport: unknown command \"jsno\", did you mean \"json\"?; kvreport help "+
		"lists the commands\n", errs)
	_, _, errs = call("", "help", "presentation")
	assert.NotContains(t, errs, "did you mean")
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

// A pipe stands for what is no regular file: root replaces a device as easily.
func TestWriteFileNeverReplacesWhatIsNoFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	end, err := os.OpenFile(pipe, os.O_RDWR, 0) // a writer would wait for a reader
	require.NoError(t, err)
	defer end.Close()
	require.NoError(t, writeFile(pipe, func(w io.Writer) error {
		_, err := io.WriteString(w, "hello")
		return err
	}))
	got := make([]byte, 5)
	_, err = io.ReadFull(end, got)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(got))
	info, err := os.Lstat(pipe)
	require.NoError(t, err)
	assert.Equal(t, os.ModeNamedPipe, info.Mode().Type())
}

func TestTheBuildIsToldWhicheverWayItIsAsked(t *testing.T) {
	for _, asked := range []string{"version", "-version", "--version"} {
		code, out, errs := call("", asked)
		assert.Equal(t, Done, code)
		assert.Equal(t, "kvreport "+version.Current()+"\n", out)
		assert.Empty(t, errs)
	}
}
