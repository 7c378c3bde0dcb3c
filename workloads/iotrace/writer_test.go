package iotrace

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func someRows() []Row {
	return []Row{
		{0, Write, 131072, 2, "u1/c1/t1", "Prefill"},
		{1999 * time.Nanosecond, Read, 1, 0, "u1/c1/t1", "Decode"},
		{time.Hour + 123456*time.Microsecond, Delete, 1 << 40, 1, `req/a/1.0`, "Evict"},
	}
}

const someText = Header + `
1700000000.000000,Write,131072,Tier-2,u1/c1/t1,Prefill
1700000000.000001,Read,1,Tier-0,u1/c1/t1,Decode
1700003600.123456,Delete,1099511627776,Tier-1,req/a/1.0,Evict
`

func TestIOTraceIsWhatTheFormatSays(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	for _, r := range someRows() {
		require.NoError(t, w.Row(r))
	}
	require.NoError(t, w.Close(true))
	assert.Equal(t, someText, out.String())
	assert.EqualValues(t, 3, w.Rows())
	_, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
}

func TestIOTraceFilesPlainAndCompressed(t *testing.T) {
	for _, name := range []string{"out.csv", "out.csv.zst", "OUT.CSV.ZST"} {
		path := filepath.Join(t.TempDir(), name)
		w, err := Create(path)
		require.NoError(t, err)
		for _, r := range someRows() {
			require.NoError(t, w.Row(r))
		}
		assert.NoFileExists(t, path, "not before it is whole")
		require.NoError(t, w.Close(true))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if name != "out.csv" {
			z, err := zstd.NewReader(bytes.NewReader(text))
			require.NoError(t, err)
			text, err = io.ReadAll(z)
			require.NoError(t, err)
			z.Close()
		}
		assert.Equal(t, someText, string(text))
		left, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		assert.Len(t, left, 1)
	}
}

func TestIOTraceOfABrokenRunLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv")
	require.NoError(t, os.WriteFile(path, []byte("earlier"), 0o666))
	w, err := Create(path)
	require.NoError(t, err)
	require.NoError(t, w.Row(someRows()[0]))
	require.NoError(t, w.Close(false))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "earlier", string(text))
	assert.NoFileExists(t, path+".partial")
}

func TestIOTraceIntoADeviceDoesNotReplaceIt(t *testing.T) {
	w, err := Create(os.DevNull)
	require.NoError(t, err)
	require.NoError(t, w.Row(someRows()[0]))
	require.NoError(t, w.Close(true))
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	assert.False(t, info.Mode().IsRegular())
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestIOTraceErrorsStay(t *testing.T) {
	w := NewWriter(brokenWriter{})
	var err error
	for n := 0; err == nil && n < 1e6; n++ {
		err = w.Row(someRows()[0])
	}
	require.ErrorContains(t, err, "no room")
	require.ErrorContains(t, w.Row(someRows()[0]), "no room")
	require.ErrorContains(t, w.Close(true), "no room")
	_, err = Create(filepath.Join(t.TempDir(), "no", "such", "dir.csv"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
