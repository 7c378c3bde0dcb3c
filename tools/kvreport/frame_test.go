package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

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

// A pipe represents files that are not regular: root would replace a device as easily.
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
