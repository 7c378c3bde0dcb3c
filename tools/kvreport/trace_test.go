package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// traceCall runs kvreport trace.
func traceCall(args ...string) (code int, stdout, stderr string) {
	return call("", append([]string{"trace"}, args...)...)
}

func TestTraceUsage(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "say what to trace: -comm NAME, -pid N, -cgroup DIR"},
		{[]string{"-comm", "x", "-pid", "3"}, "only one of a process id, a name and a cgroup"},
		{[]string{"-dev", "no-such-disk"}, "-dev no-such-disk: there is no block device no-such-disk"},
		{[]string{"-pid", "4", "-dev", "x", "-dir", dir}, "-dev and -dir both name the device"},
		{[]string{"-dir", dir, "-level", "file"}, "-level file is for processes"},
		{[]string{"-cgroup", "no/such/group"}, "-cgroup: "},
		{[]string{"-comm", "a-name-of-seventeen"}, "longer than the 15 characters"},
		{[]string{"-pid", "-4"}, "must not be negative"},
		{[]string{"-pid", "4", "-duration", "-1s"}, "-duration -1s"},
		{[]string{"-pid", "4", "-duration", "60"}, "-duration"},
		{[]string{"-pid", "4", "-level", "all"}, `-level: unknown level "all"`},
		{[]string{"-pid", "4", "-dir", "/proc"}, "-dir /proc: proc"},
		{[]string{"-pid", "4", "-dir", "/no/such/directory"}, "-dir /no/such/directory: "},
		{[]string{"-pid", "4", "-fio", "/no/such/directory/x.fio"},
			"-fio /no/such/directory/x.fio: there is no directory"},
		{[]string{"-pid", "4", "-fio", dir}, "is a directory: name a file"},
		{[]string{"-pid", "4", "extra"}, `unexpected arguments ["extra"]`},
		{[]string{"-speed", "4"}, "unknown flag -speed"},
		{[]string{"-duration", "10"},
			"-duration must be a time with its unit, did you mean 10s or 10m?"},
		{[]string{"-com", "fio"}, "did you mean"},
	} {
		code, stdout, stderr := traceCall(c.args...)
		assert.Equal(t, Usage, code, "%q", c.args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, c.says)
		assert.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		assert.True(t, strings.HasPrefix(stderr, "kvreport trace: "), stderr)
	}
}

func TestTraceTellsAllMistakesAtOnce(t *testing.T) {
	_, _, stderr := traceCall("-comm", "x", "-pid", "3", "-duration", "-1s", "-level", "all",
		"-fio", "/no/such/x", "-dir", "/proc", "extra")
	for _, says := range []string{"only one of", "-duration -1s", "-level", "-fio /no/such/x",
		"-dir /proc", "extra"} {
		assert.Contains(t, stderr, says)
	}
}

func TestTraceHelpTeaches(t *testing.T) {
	code, stdout, _ := traceCall("-h")
	assert.Equal(t, Done, code)
	for _, says := range []string{"usage: kvreport trace -comm NAME|-pid N|-cgroup DIR|-dev DEVICE", "CAP_BPF",
		"Exit codes", "sudo kvreport trace -comm vllm -duration 60s -fio vllm.fio", "-level file"} {
		assert.Contains(t, stdout, says)
	}
	for l := range strings.Lines(stdout) {
		assert.LessOrEqual(t, len([]rune(l)), 130, l)
	}
}

func TestTraceOfAPidThatDoesNotExist(t *testing.T) {
	code, stdout, stderr := traceCall("-pid", "999999999", "-duration", "10ms")
	assert.Equal(t, Usage, code)
	assert.Empty(t, stdout)
	assert.Equal(t, "kvreport trace: there is no process 999999999\n", stderr)
}

// The job is written whole or not at all.
func TestTraceWritesItsJob(t *testing.T) {
	var out strings.Builder
	c := &Call{name: "trace", stdout: &out}
	file := filepath.Join(t.TempDir(), "x.fio")
	require.NoError(t, c.writeTraced("[job]\n", file))
	assert.Equal(t, "fio job: "+file+"\n", out.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "[job]\n", string(text))
	out.Reset()
	require.NoError(t, c.writeTraced("[job]\n", "-"))
	assert.Equal(t, "\n[job]\n", out.String())
	require.NoError(t, c.writeTraced("", ""))
}
