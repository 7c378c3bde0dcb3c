package comparable_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/tools/comparable"
	"kvbench/tools/input"
)

// lines reads benchmark text.
func lines(t *testing.T, text string) (records []*input.Record) {
	t.Helper()
	_, err := input.Each([]string{"-"}, input.Options{Stdin: strings.NewReader(text)},
		func(r *input.Record) error {
			records = append(records, r)
			return nil
		})
	require.NoError(t, err)
	return records
}

// result is a record of a result file.
func result(simulation *kvbench.SimulationResult, mode string) []*input.Record {
	return []*input.Record{{Name: "Synthetic", Result: &kvbench.Result{
		Division: "open", Simulation: simulation,
		IO:         kvbench.IOResult{Mode: mode, WriteDevice: kvbench.WriteDeviceTransfer},
		Workload:   kvbench.Workload{DecodeReads: "once"},
		Parameters: []kvbench.Parameter{{Name: "io", Value: mode}},
	}}}
}

// settings are those of all records together.
func settings(bench string, records []*input.Record) *comparable.Settings {
	s := comparable.NewSettings(bench)
	var r comparable.Reader
	for _, rec := range records {
		r.Add(s, rec)
	}
	return s
}

func TestIncomparable(t *testing.T) {
	const open, line = "kvbench-format: 1\ndivision: open\n", "BenchmarkSynthetic 1 5 ns/op\n"
	real, model, fast := result(nil, "direct"),
		result(&kvbench.SimulationResult{Device: &kvbench.SimulatedDevice{}}, "direct"),
		result(&kvbench.SimulationResult{}, "direct")
	python := []*input.Record{{Python: true}}
	for name, c := range map[string]struct {
		a, b []*input.Record
		want string
	}{
		"alike":                  {real, real, ""},
		"measured and simulated": {real, model, "simulated is no and on a device model"},
		"one of several is simulated": {append(result(nil, "direct"), model...), real,
			"simulated is no+on a device model and no"},
		"two kinds of simulation": {fast, model,
			"simulated is on infinitely fast storage and on a device model"},
		"simulated text": {lines(t, open+line),
			lines(t, open+"simulated: true\n"+line),
			"simulated is no and on infinitely fast storage"},
		"text and file": {lines(t,
			open+"simulated: true\nsimulate-device: read=1GiB/s\n"+line), model, ""},
		"Python and simulated": {python, model, "simulated is no and on a device model, I/O is buffered and direct, decode reads is batched and once, device time of writes is flush and transfer+flush"},
		"a default and what was given": {lines(t, open+line), lines(t, open+"io: buffered\n"+line),
			"I/O is direct and buffered"},
		"a default and a file": {lines(t, open+line), result(nil, "buffered"),
			"I/O is direct and buffered"},
		"a default, spelled out": {lines(t, open+line), lines(t, open+"io: direct\n"+line),
			""},
		"not told by somebody else's": {lines(t, line), real, ""},
		"granted, whatever was wanted": {result(nil, "direct"), result(nil, "buffered"),
			"I/O is direct and buffered"},
		"of another program and python": {lines(t, line), python, ""},
	} {
		assert.Equal(t, c.want, comparable.Incomparable(settings("Synthetic", c.a),
			settings("Synthetic", c.b)), name)
	}
}

func TestIncomparableReadsNames(t *testing.T) {
	const text = "kvbench-format: 1\ndivision: open\nBenchmarkSynthetic/io=buffered 1 5 ns/op\n"
	const name = "Synthetic/io=buffered"
	assert.Empty(t, comparable.Incomparable(settings(name, lines(t, text)),
		settings(name, result(nil, "buffered"))))
}

func TestReaderSharesLists(t *testing.T) {
	recs := lines(t, "kvbench-format: 1\ndivision: open\nBenchmarkA 1 5 ns/op\nBenchmarkA 1 6 ns/op\n")
	var r comparable.Reader
	a, b := r.Of(recs[0]), r.Of(recs[1])
	assert.Same(t, &a[0], &b[0], "thousands of lines share one list")
	assert.False(t, r.IsSimulated(recs[0]))
	assert.Contains(t, a, comparable.Setting{Name: comparable.Simulated,
		Value: comparable.Measured})
}
