package record

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/tiers"
)

func TestSummaryGolden(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report.WriteSummary(&b, fixtureResult()))
	assert.LessOrEqual(t, strings.Count(b.String(), "\n"), 80)
	assert.NotContains(t, b.String(), "%!")
	golden(t, "summary.txt", b.Bytes())
}

func TestSummaryOfTheClosedDivision(t *testing.T) {
	info := fixtureInfo()
	info.Division = result.DivisionClosed
	r := Build(info, fixtureRecorder())
	var b bytes.Buffer
	require.NoError(t, report.WriteSummary(&b, r))
	assert.Contains(t, b.String(), "MLPerf Storage v3.0 parameters, not an MLPerf result")
	assert.Equal(t, result.ClosedNotice, r.Notice)
	assert.Equal(t, result.StatusFailed, r.Status, "the fixture has failures")
}

// A benchmark of single operations has no requests, no load and no lookups.
func TestSummaryOfOperations(t *testing.T) {
	rec := openRecorder(1, time.Second)
	for i := range 30 {
		at := time.Duration(i) * time.Millisecond
		rec.Chunk(at, 0, tiers.Storage, tiers.Write, tiers.Prefill, 4<<20)
		rec.Operation(OpSample{At: at, Level: tiers.Storage, Op: tiers.Write, Bytes: 4 << 20,
			Device: 3 * time.Millisecond})
	}
	r := Build(Info{Result: result.Result{Benchmark: "Tier", CompletionUnit: result.UnitOperation,
		Division:      result.DivisionQuick,
		DeviceWitness: result.Witness{Reason: "tmpfs has no device"}}}, rec)
	assert.Equal(t, result.StatusComplete, r.Status)
	var b bytes.Buffer
	require.NoError(t, report.WriteSummary(&b, r))
	assert.Contains(t, b.String(), "30 operations")
	assert.Contains(t, b.String(), "no byte counts: tmpfs has no device")
	assert.NotContains(t, b.String(), "requests/s")
	assert.Equal(t, result.Metric{Unit: "ns/op", Value: float64(time.Second) / 30}, r.Metrics()[0])
}

func TestMetricsLine(t *testing.T) {
	var units []string
	values := map[string]float64{}
	for _, m := range fixtureResult().Metrics() {
		units = append(units, m.Unit)
		values[m.Unit] = m.Value
	}
	assert.Equal(t, strings.Fields(
		`ns/op req/s tok/s storage-tok/s read-B/s write-B/s read-p50-ns read-p95-ns read-p99-ns write-p95-ns
		read-ns/MiB e2e-p95-ns hit-ratio served-ratio cpu-ns/B peak-RSS-bytes device-read-ratio ceiling-ratio`), units)
	assert.InDelta(t, float64(fixtureWindow)/1200, values["ns/op"], 1e-6)
	assert.InDelta(t, 40, values["req/s"], 1e-9)
	assert.InDelta(t, 600<<20, values["peak-RSS-bytes"], 0)

	info := fixtureInfo()
	info.Ceiling, info.DeviceWitness, info.LoadEnd = nil, result.Witness{Reason: "tmpfs"}, nil
	for _, m := range Build(info, fixtureRecorder()).Metrics() {
		assert.NotContains(t, []string{"device-read-ratio", "ceiling-ratio"}, m.Unit,
			"absent when unknown")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestSummaryTellsWriteErrors(t *testing.T) {
	require.ErrorContains(t, report.WriteSummary(brokenWriter{}, fixtureResult()), "no space left")
}
