package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/command"
	"kvbench/tracing"
	"kvbench/tracing/collector"
	"kvbench/tracing/fio"
)

func call(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = command.Main("kvreport", []command.Command{Command}, append([]string{"trace"}, args...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "give either -comm NAME or -pid N"},
		{[]string{"-comm", "x", "-pid", "3"}, "give either -comm NAME or -pid N"},
		{[]string{"-comm", "a-name-of-seventeen"}, "longer than the 15 characters"},
		{[]string{"-pid", "-4"}, "must not be negative"},
		{[]string{"-pid", "4", "-duration", "-1s"}, "-duration -1s"},
		{[]string{"-pid", "4", "-duration", "60"}, "-duration"},
		{[]string{"-pid", "4", "-level", "all"}, `-level: unknown level "all"`},
		{[]string{"-pid", "4", "-dir", "/proc"}, "-dir /proc: proc"},
		{[]string{"-pid", "4", "-dir", "/no/such/directory"}, "-dir /no/such/directory: "},
		{[]string{"-pid", "4", "-fio", "/no/such/directory/x.fio"}, "-fio /no/such/directory/x.fio: there is no directory"},
		{[]string{"-pid", "4", "-fio", dir}, "is a directory: name a file"},
		{[]string{"-pid", "4", "extra"}, `unexpected arguments ["extra"]`},
		{[]string{"-speed", "4"}, "unknown flag -speed"},
		{[]string{"-com", "fio"}, "did you mean"},
	} {
		code, stdout, stderr := call(c.args...)
		assert.Equal(t, command.Usage, code, "%q", c.args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, c.says)
		assert.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		assert.True(t, strings.HasPrefix(stderr, "kvreport trace: "), stderr)
	}
}

func TestAllMistakesAreToldAtOnce(t *testing.T) {
	_, _, stderr := call("-comm", "x", "-pid", "3", "-duration", "-1s", "-level", "all", "-fio", "/no/such/x", "-dir", "/proc", "extra")
	for _, says := range []string{"give either", "-duration -1s", "-level", "-fio /no/such/x", "-dir /proc", "extra"} {
		assert.Contains(t, stderr, says)
	}
}

func TestHelpTeaches(t *testing.T) {
	code, stdout, _ := call("-h")
	assert.Equal(t, command.Done, code)
	for _, says := range []string{"usage: kvreport trace -comm NAME|-pid N", "CAP_BPF", "Exit codes", "sudo kvreport trace -comm vllm -duration 60s -fio vllm.fio", "-level file"} {
		assert.Contains(t, stdout, says)
	}
	for l := range strings.Lines(stdout) {
		assert.LessOrEqual(t, len([]rune(l)), 130, l)
	}
}

func TestAPidThatDoesNotExist(t *testing.T) {
	code, stdout, stderr := call("-pid", "999999999", "-duration", "10ms")
	assert.Equal(t, command.Usage, code)
	assert.Empty(t, stdout)
	assert.Equal(t, "kvreport trace: there is no process 999999999\n", stderr)
}

func TestLiveLineIsShort(t *testing.T) {
	p99 := 1234.5
	line := live(&tracing.Trace{
		Histograms: tracing.Histograms{D2CRead: &tracing.Histogram{P99: &p99}},
		Capture: tracing.Capture{
			WindowNS: int64(100 * time.Hour), Read: tracing.Direction{Requests: 1e10, Bytes: 1 << 50, MeanDepth: 200}, Write: tracing.Direction{Requests: 1e10, MeanDepth: 55},
		},
	})
	assert.Equal(t, "100h0m0s: 10000000000 reads, 10000000000 writes, 1048576.00 GiB, depth 255.0, read p99 1234 µs", line)
	short := live(&tracing.Trace{Capture: tracing.Capture{WindowNS: int64(5 * time.Second), Read: tracing.Direction{Requests: 7, Bytes: 3 << 30, MeanDepth: 2.5}}})
	assert.Equal(t, "5s: 7 reads, 0 writes, 3.00 GiB, depth 2.5", short)
}

// Nothing but the report may reach a file or a pipe.
func TestLiveLineIsForTerminals(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "err"))
	require.NoError(t, err)
	defer f.Close()
	for _, w := range []interface{ Write([]byte) (int, error) }{f, &bytes.Buffer{}} {
		say := liveLine(w)
		say(&tracing.Trace{})
		say(nil)
	}
	info, err := f.Stat()
	require.NoError(t, err)
	assert.Zero(t, info.Size())
}

// The job is written whole or not at all, and what there is no trace for is said.
func TestWriteJob(t *testing.T) {
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "x.fio")
	err := writeJob(file, &tracing.Trace{Capture: tracing.Capture{Reason: "nothing came"}}, fio.Input{}, &out)
	require.ErrorContains(t, err, "nothing came")
	assert.NoFileExists(t, file)

	one := &tracing.Trace{
		Histograms: tracing.Histograms{SizeRead: &tracing.Histogram{Unit: "kb", Count: 3, Buckets: []tracing.Bucket{{Range: [2]float64{4, 5}, Count: 3, Value: 4}}}},
		Capture:    tracing.Capture{Status: tracing.StatusTraced, WindowNS: 1e9, Read: tracing.Direction{Requests: 3, D2CNS: 5e9}},
	}
	require.NoError(t, writeJob(file, one, fio.Input{}, &out))
	assert.Equal(t, "fio job: "+file+"\n", out.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(text), "bssplit=4k/100,4k/100\n")
	out.Reset()
	require.NoError(t, writeJob("-", one, fio.Input{}, &out))
	assert.Equal(t, "\n"+string(text), out.String())
	require.NoError(t, writeJob("", one, fio.Input{}, &out))
}

func TestNoRequestIsExplained(t *testing.T) {
	assert.ErrorContains(t, noRequest(options{tracing: collector.Options{Comm: "vlm"}}, 0), "no process named vlm ran")
	assert.ErrorContains(t, noRequest(options{subject: "process 7", dir: "/mnt/x"}, 1), "no request of process 7 to the device of /mnt/x was seen")
	assert.ErrorContains(t, noRequest(options{subject: "process 7"}, 1), "-level file shows the calls")
}
