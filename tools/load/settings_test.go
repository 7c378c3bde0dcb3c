package load_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
)

// lines reads benchmark text.
func lines(t *testing.T, text string) []*load.Record {
	t.Helper()
	records, _, err := load.All([]string{"-"}, load.Options{Stdin: strings.NewReader(text)})
	require.NoError(t, err)
	return records
}

// res is a record of a result file.
func res(simulation *result.Simulation, mode string) []*load.Record {
	return []*load.Record{{Name: "Synthetic", Result: &result.Result{
		Division: "open", Simulation: simulation,
		IO:         result.IO{Mode: mode, WriteDevice: result.WriteDeviceTransfer},
		Workload:   result.Workload{DecodeReads: "once"},
		Parameters: []result.Parameter{{Name: "io", Value: mode}},
	}}}
}

// settings are those of all records together.
func settings(records []*load.Record) *load.Settings {
	s := load.NewSettings()
	for _, rec := range records {
		s.Add(rec)
	}
	return s
}

func TestIncomparable(t *testing.T) {
	const open, line = "kvbench-format: 1\ndivision: open\n", "BenchmarkSynthetic 1 5 ns/op\n"
	real, model, fast := res(nil, "direct"),
		res(&result.Simulation{Device: &result.SimulatedDevice{}}, "direct"),
		res(&result.Simulation{}, "direct")
	python := []*load.Record{{Python: true}}
	for name, c := range map[string]struct {
		a, b []*load.Record
		want string
	}{
		"alike":                  {real, real, ""},
		"measured and simulated": {real, model, "simulated is no and on a device model"},
		"one of several is simulated": {append(res(nil, "direct"), model...), real,
			"simulated is no+on a device model and no"},
		"two kinds of simulation": {fast, model,
			"simulated is on infinitely fast storage and on a device model"},
		"simulated text": {lines(t, open+line),
			lines(t, open+"simulated: true\n"+line),
			"simulated is no and on infinitely fast storage"},
		"text and file": {lines(t,
			open+"simulated: true\nsimulate-device: read=1GiB/s\n"+line), model, ""},
		"Python and simulated": {python, model,
			"simulated is no and on a device model, I/O is buffered and direct, decode reads is " +
				"batched and once, device time of writes is flush and transfer+flush"},
		"a default and what was given": {lines(t, open+line), lines(t, open+"io: buffered\n"+line),
			"I/O is direct and buffered"},
		"a default and a file": {lines(t, open+line), res(nil, "buffered"),
			"I/O is direct and buffered"},
		"a default, spelled out": {lines(t, open+line), lines(t, open+"io: direct\n"+line),
			""},
		"not told by somebody else's": {lines(t, line), real, ""},
		"granted, whatever was wanted": {res(nil, "direct"), res(nil, "buffered"),
			"I/O is direct and buffered"},
		"of another program and python": {lines(t, line), python, ""},
	} {
		assert.Equal(t, c.want, load.Incomparable(settings(c.a), settings(c.b)), name)
	}
}

func TestIncomparableReadsNames(t *testing.T) {
	const text = "kvbench-format: 1\ndivision: open\nBenchmarkSynthetic/io=buffered 1 5 ns/op\n"
	assert.Empty(t, load.Incomparable(settings(lines(t, text)), settings(res(nil, "buffered"))))
}

func TestSimulationIsToldByTextOfTheSuite(t *testing.T) {
	const suite, line = "kvbench-format: 1\n", "BenchmarkA 1 5 ns/op\n"
	for text, want := range map[string]string{
		line:                       "",
		suite + line:               load.Measured,
		"simulated: true\n" + line: load.InfinitelyFast,
		"simulated: true\nsimulate-device: read=1GiB/s\n" + line: load.DeviceModel,
	} {
		rec := lines(t, text)[0]
		assert.Equal(t, want, rec.Simulation(), text)
		assert.Equal(t, want != "" && want != load.Measured, rec.IsSimulated(), text)
	}
}

// Paths are places: which recording was played is told by what is in it.
func TestRecordingsAreToldApartByTheirContent(t *testing.T) {
	played := func(files *result.TraceFiles, path string) *load.Settings {
		rec := res(nil, "direct")
		rec[0].Result.TraceFiles = files
		rec[0].Result.Parameters = append(rec[0].Result.Parameters,
			result.Parameter{Name: "azure-trace-path", Value: path})
		return settings(rec)
	}
	one := &result.TraceFiles{Files: 1, Bytes: 5, HashedBytes: 5, SHA256: strings.Repeat("ab", 32)}
	other := &result.TraceFiles{Files: 1, Bytes: 5, HashedBytes: 5, SHA256: strings.Repeat("cd", 32)}
	assert.Empty(t, load.Differences(played(one, "/a"), played(one, "/b")))
	assert.Empty(t, load.Differences(played(nil, "/a"), played(one, "/b")), "an older result")
	assert.Equal(t, []load.Difference{{Name: load.TraceFiles,
		Old: []string{"sha256 abababababab (5 B in 1)"},
		New: []string{"sha256 cdcdcdcdcdcd (5 B in 1)"}}},
		load.Differences(played(one, "/a"), played(other, "/a")))
}
