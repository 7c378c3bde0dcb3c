package tracing

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
)

// fixture reads a trace of testdata/traces, which package collector's tests make.
func fixture(t *testing.T, name string) *Trace {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/traces", name+".json"))
	require.NoError(t, err)
	var tr Trace
	require.NoError(t, json.Unmarshal(text, &tr))
	return &tr
}

func TestText(t *testing.T) {
	golden.Check(t, "text/traced.txt", fixture(t, "traced").Text(
		Application{ReadBytes: 9 << 30, WriteBytes: 4 << 30}))
	golden.Check(t, "text/counters.txt", (&Trace{Capture: Capture{
		Status: StatusCounters, Reason: "this process lacks the privilege (CAP_BPF)",
		Needs: []string{"CAP_BPF: run with sudo"}, Device: "sda",
		WindowNS: 1e9, Stat: &DeviceStat{ReadIOs: 7, ReadBytes: 1 << 30, IOTicks: 5e8},
	}}).Text(Application{}))
	text := (&Trace{Capture: Capture{Status: StatusTraced, Device: "sda",
		WindowNS: 60e9, Read: Direction{Requests: 4, Bytes: 16 << 10},
		Write: Direction{Requests: 585735, Bytes: 9 << 30}}}).Text(Application{})
	assert.Contains(t, text, "\nreads        0.07  0.2667 KiB/s          4       4 KiB ")
	assert.Contains(t, text, "\nwrites       9762   153.6 MiB/s     585735 ")
}

func TestRowsSayRealSizes(t *testing.T) {
	b := &textWriter{}
	b.histogram(Named{Histogram: fixture(t, "mixed").SizeRead})
	assert.Contains(t, b.String(), "       4 KiB                     900  90.0% "+strings.Repeat(
		"█", barWidth)+"\n")
	assert.Contains(t, b.String(), "     512 KiB … 1 MiB              10   1.0% ▌\n")
	assert.Contains(t, b.String(), "       1 MiB                      90   9.0% ████\n")
}

// one returns a bucket of one whole number.
func one(value float64, count int64) Bucket {
	return Bucket{Range: [2]float64{value, value + 1}, Count: count}
}

func TestRowsOfDepthsAreWholeNumbers(t *testing.T) {
	b := &textWriter{}
	h := NewHistogram("requests", 30, []Bucket{one(1, 3), one(2, 1), one(3, 1), one(5, 2),
		one(7, 1)})
	b.histogram(Named{Histogram: h})
	assert.Contains(t, b.String(), "           1                       3  37.5% ")
	assert.Contains(t, b.String(), "           2 … 3                   2  25.0% ")
	assert.Contains(t, b.String(), "           4 … 7                   3  37.5% ")
}

func TestBar(t *testing.T) {
	assert.Equal(t, strings.Repeat("█", barWidth), bar(7, 7))
	assert.Equal(t, strings.Repeat("█", barWidth/2), bar(1, 2))
	assert.Equal(t, "▏", bar(1, 1e9), "what is there is seen")
	assert.Empty(t, bar(0, 7))
	assert.Equal(t, "█▏", bar(9, 8*barWidth))
}
