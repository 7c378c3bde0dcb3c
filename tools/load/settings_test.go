package load_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/merge"
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

// settingsOf returns the settings of all records together.
func settingsOf(records []*load.Record) *load.Settings {
	s := &load.Settings{}
	for _, rec := range records {
		s.Add(rec.Settings())
	}
	return s
}

func TestDifferences(t *testing.T) {
	const open, line = "kvbench-format: 2\ndivision: open\n", "BenchmarkSynthetic 1 5 ns/op\n"
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
			"simulated is no and on a device model, io-used is buffered and direct, decode-reads is " +
				"batched and once, write-device is flush and transfer+flush"},
		"a default and what was given": {lines(t, open+line), lines(t, open+"io: buffered\n"+line),
			"io is direct and buffered"},
		"a default and a file": {lines(t, open+line), res(nil, "buffered"),
			"io is direct and buffered"},
		"a default, spelled out": {lines(t, open+line), lines(t, open+"io: direct\n"+line),
			""},
		"a default that the workers decide, spelled out": {lines(t, open+line), lines(t, open+"io-depth: 1\n"+line), ""},
		"a default that follows from what was given": {lines(t, open+"workers: 2\n"+line),
			lines(t, open+"workers: 2\nio-depth: 4\n"+line), ""},
		"requests in flight": {lines(t, open+"BenchmarkBlockIO/op=read 1 5 ns/op\n"),
			lines(t, open+"io-depth: 16\nBenchmarkBlockIO/op=read 1 5 ns/op\n"), "in-flight is 32 and 16"},
		"unknown in another program's text": {lines(t, line), real, ""},
		"granted, whatever was wanted": {res(nil, "direct"), res(nil, "buffered"),
			"io-used is direct and buffered"},
		"of another program and python": {lines(t, line), python, ""},
	} {
		assert.Equal(t, c.want, differences(settingsOf(c.a), settingsOf(c.b)), name)
	}
}

// differences lists the settings in which two sets of trials differ.
func differences(a, b *load.Settings) string {
	var parts []string
	for _, d := range load.Differences(a, b, nil) {
		parts = append(parts, fmt.Sprintf("%s is %s and %s", d.Name, a.Text(d.Name),
			b.Text(d.Name)))
	}
	return strings.Join(parts, ", ")
}

// TestWhatARunFinds: what a run found for a parameter that was not set is a setting, too; the free
// space of a disk may change a little.
func TestWhatARunFinds(t *testing.T) {
	with := func(change func(*result.Result)) *load.Settings {
		rec := res(nil, "direct")
		r := rec[0].Result
		r.CompletionUnit, r.Ranks, r.Workload.Workers = result.UnitRequest, 1, 8
		r.Environment.Filesystem.Type = "ext4"
		r.Tiers = []result.Tier{{Level: "storage", CapacityBytes: new(int64(100 << 30))}}
		r.Parameters = append(r.Parameters, result.Parameter{Name: merge.SettingWorkers, Value: "0"},
			result.Parameter{Name: merge.SettingCapacity, Value: "0"})
		change(r)
		return settingsOf(rec)
	}
	mine := with(func(*result.Result) {})
	for want, change := range map[string]func(*result.Result){
		"workers is 8 and 4": func(r *result.Result) { r.Workload.Workers = 4 },
		"filesystem is ext4 and xfs": func(r *result.Result) {
			r.Environment.Filesystem.Type = "xfs"
		},
		"cache-dirs is 1 and 2": func(r *result.Result) { r.IO.Roots = make([]result.Root, 2) },
		"cache-dirs is 1 and 2, filesystem is ext4 and ext4, nfs4": func(r *result.Result) {
			r.IO.Roots = []result.Root{{Mount: result.Filesystem{Type: "ext4"}},
				{Mount: result.Filesystem{Type: "nfs4"}}}
		},
		"ranks is 1 and 2": func(r *result.Result) { r.Ranks = 2 },
		"storage-capacity-gb is 100 and 90": func(r *result.Result) {
			*r.Tiers[0].CapacityBytes = 90 << 30
		},
		"": func(r *result.Result) { *r.Tiers[0].CapacityBytes = 97 << 30 },
	} {
		assert.Equal(t, want, differences(mine, with(change)))
	}
	assert.Empty(t, load.Differences(mine, with(func(r *result.Result) { r.Ranks = 2 }),
		[]string{merge.SettingRanks}))

	// Of plain I/O the requests in flight count, whatever of workers and io-depth the user gave.
	plain := func(inFlight, ranks int, p result.PlainIO) *load.Settings {
		return with(func(r *result.Result) {
			r.CompletionUnit, r.Workload.Workers, r.Ranks, r.PlainIO = result.UnitOperation, inFlight, ranks, &p
			r.Parameters = append(r.Parameters, result.Parameter{Name: merge.SettingDepth, Value: "auto"})
		})
	}
	swept := result.PlainIO{Sweep: []result.SweepStep{{InFlight: 4}}}
	assert.Equal(t, "in-flight is 32 and 100", differences(plain(32, 1, result.PlainIO{}), plain(100, 1, result.PlainIO{})))
	assert.Equal(t, "ranks is 1 and 2", differences(plain(32, 1, result.PlainIO{}), plain(64, 2, result.PlainIO{})))
	assert.Empty(t, differences(plain(8, 1, swept), plain(16, 1, swept)), "it is a result")
	assert.Equal(t, "in-flight is by a sweep and 8", differences(plain(8, 1, swept), plain(8, 1, result.PlainIO{})))
}

func TestDifferencesReadNames(t *testing.T) {
	const text = "kvbench-format: 2\ndivision: open\nBenchmarkSynthetic/io=buffered 1 5 ns/op\n"
	assert.Empty(t, differences(settingsOf(lines(t, text)), settingsOf(res(nil, "buffered"))))
}

func TestSuiteTextNamesTheSimulation(t *testing.T) {
	const suite, line = "kvbench-format: 2\n", "BenchmarkA 1 5 ns/op\n"
	for text, want := range map[string]string{
		line:                       "",
		suite + line:               merge.Measured,
		"simulated: true\n" + line: merge.InfinitelyFast,
		"simulated: true\nsimulate-device: read=1GiB/s\n" + line: merge.DeviceModel,
	} {
		rec := lines(t, text)[0]
		assert.Equal(t, want, rec.Simulation(), text)
		assert.Equal(t, want != "" && want != merge.Measured, rec.IsSimulated(), text)
	}
}

// A path is only a place: the content identifies a recording.
func TestContentIdentifiesARecording(t *testing.T) {
	played := func(files *result.TraceFiles, path string) *load.Settings {
		rec := res(nil, "direct")
		rec[0].Result.TraceFiles = files
		rec[0].Result.Parameters = append(rec[0].Result.Parameters,
			result.Parameter{Name: "azure-trace-path", Value: path})
		return settingsOf(rec)
	}
	one := &result.TraceFiles{Files: 1, Bytes: 5, HashedBytes: 5, SHA256: strings.Repeat("ab", 32)}
	other := &result.TraceFiles{Files: 1, Bytes: 5, HashedBytes: 5, SHA256: strings.Repeat("cd", 32)}
	assert.Empty(t, load.Differences(played(one, "/a"), played(one, "/b"), nil))
	assert.Empty(t, load.Differences(played(nil, "/a"), played(one, "/b"), nil), "an older result")
	assert.Equal(t, []load.Difference{{Name: merge.SettingTraceFiles,
		Old: []string{"sha256 abababababab (5 B in 1)"},
		New: []string{"sha256 cdcdcdcdcdcd (5 B in 1)"}}},
		load.Differences(played(one, "/a"), played(other, "/a"), nil))
}
