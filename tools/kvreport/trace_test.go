package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing"
	"kvbench/tracing/collector"
)

func TestLiveLineIsShort(t *testing.T) {
	p99 := 1234.5
	line := live(&tracing.Trace{
		Histograms: tracing.Histograms{D2CRead: tracing.Histogram{P99: &p99}},
		Capture: tracing.Capture{
			WindowNS: int64(100 * time.Hour),
			Read:     tracing.Direction{Requests: 1e10, Bytes: 1 << 50, MeanDepth: 200},
			Write:    tracing.Direction{Requests: 1e10, MeanDepth: 55},
		},
	})
	assert.Equal(t, "100h0m0s: 10000000000 reads, 10000000000 writes, 1024 TiB, depth "+
		"255.0, read p99 1234 µs", line)
	short := live(&tracing.Trace{Capture: tracing.Capture{WindowNS: int64(5 * time.Second),
		Read: tracing.Direction{Requests: 7, Bytes: 3 << 30, MeanDepth: 2.5}}})
	assert.Equal(t, "5s: 7 reads, 0 writes, 3 GiB, depth 2.5", short)
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

func TestNoRequestIsExplained(t *testing.T) {
	assert.ErrorContains(t, (&traceOptions{collector: collector.Options{Comm: "vlm"}}).noRequest(0),
		"no process named vlm ran")
	assert.ErrorContains(t, (&traceOptions{subject: "process 7"}).noRequest(1),
		"no request of process 7 was seen: what memory answers makes none (-level file shows the calls)")
}

// The job is written whole or not at all.
func TestTraceWritesItsJob(t *testing.T) {
	var out strings.Builder
	c := &Call{stdout: &out}
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
