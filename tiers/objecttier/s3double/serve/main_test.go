package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServesUntilItIsStopped(t *testing.T) {
	dir := t.TempDir()
	rules, access := filepath.Join(dir, "rules.json"), filepath.Join(dir, "log.jsonl")
	require.NoError(t, os.WriteFile(rules, []byte(`[{"op": "get", "kind": "html"}]`), 0o600))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	code := make(chan int)
	go func() {
		code <- run(ctx, []string{"-bucket", "a,bench", "-anonymous", "-endpoints", "2",
			"-rules", rules, "-log", access}, w, io.Discard)
	}()
	lines := bufio.NewScanner(r)
	for range 2 {
		require.True(t, lines.Scan())
		resp, err := http.Get(lines.Text() + "/bench/k")
		require.NoError(t, err)
		assert.Equal(t, "text/html; charset=utf-8", resp.Header.Get("Content-Type"))
		require.NoError(t, resp.Body.Close())
	}
	stop()
	assert.Zero(t, <-code)
	log, err := os.ReadFile(access)
	require.NoError(t, err)
	assert.Equal(t, 2, bytes.Count(log, []byte("\n")))
	assert.Contains(t, string(log), `"fault":"html","rule":1`)
	http.DefaultClient.CloseIdleConnections()
}

func TestFlagsThatAreWrong(t *testing.T) {
	for args, want := range map[string]string{
		"-endpoints=0": "at least one endpoint", "-x": "not defined", "x": "no arguments but flags",
	} {
		var b bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), []string{args}, io.Discard, &b))
		assert.Contains(t, b.String(), want)
	}
	var b bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"-rules", "missing.json"}, io.Discard, &b))
	assert.Contains(t, b.String(), "missing.json")
	assert.Equal(t, []string{"[::1]:9000", "[::1]:9001"}, []string{address("[::1]:9000", 0),
		address("[::1]:9000", 1)})
	assert.Equal(t, "127.0.0.1:0", address("127.0.0.1", 3))
}
