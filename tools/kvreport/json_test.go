package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/golden"
)

func TestJSONOutput(t *testing.T) {
	code, out, errs := call("", "json", "../load/testdata/bench.txt",
		"../load/testdata/events.json")
	assert.Equal(t, Done, code)
	golden.Check(t, "json/text.stderr", errs)
	// The embedded result file is golden in its own package.
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	for _, r := range doc["results"].([]any) {
		if m := r.(map[string]any); m["result"] != nil {
			m["result"] = "embedded"
		}
	}
	text, err := json.MarshalIndent(doc, "", " ")
	require.NoError(t, err)
	golden.Check(t, "json/text.json", string(text)+"\n")
}

// suite is benchmark text as the testing package prints it, one line for every benchmark of the
// suite with every metric.
func suite(t *testing.T) (text string, want map[string]map[string]float64) {
	data, err := os.ReadFile("../../kvbench/record/testdata/result.json")
	require.NoError(t, err)
	res, err := result.Parse(data)
	require.NoError(t, err)
	metrics := res.Metrics()
	require.NotEmpty(t, metrics)
	want = map[string]map[string]float64{}
	var b strings.Builder
	b.WriteString("kvbench-format: 2\ndivision: quick\n")
	for _, u := range units.UnitDirections() {
		fmt.Fprintf(&b, "Unit %s better=%s\n", u.Unit, u.Better)
		metrics = append(metrics, result.Metric{Unit: u.Unit + "-extra", Value: 1.25e-7})
	}
	for i, bench := range params.Benchmarks() {
		line := testing.BenchmarkResult{N: 1, Extra: map[string]float64{}}
		for _, m := range metrics {
			line.Extra[m.Unit] = m.Value * (1 + float64(i)/7)
		}
		text := line.String()
		fmt.Fprintf(&b, "Benchmark%s/key=v-2 \t%s\n--- BENCH: Benchmark%s\n    run.go:1: result: "+
			"/nowhere/x.json\n", bench.Name, text, bench.Name)
		// The line rounds: what it shows is the truth.
		want[bench.Name+"/key=v-2"] = shown(t, text)
	}
	return b.String(), want
}

func shown(t *testing.T, line string) map[string]float64 {
	out := map[string]float64{}
	fields := strings.Fields(line)
	for i := 1; i+1 < len(fields); i += 2 {
		var v float64
		_, err := fmt.Sscan(fields[i], &v)
		require.NoError(t, err, line)
		out[fields[i+1]] = v
	}
	return out
}

func TestJSONRoundTripOfEveryBenchmark(t *testing.T) {
	text, want := suite(t)
	code, out, errs := call(text, "json", "-")
	require.Equal(t, Done, code, errs)
	assert.Empty(t, errs)
	got := map[string]map[string]float64{}
	var doc struct {
		Results []struct {
			Name   string
			Values []struct {
				Unit  string
				Value float64
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	for _, r := range doc.Results {
		got[r.Name] = map[string]float64{}
		for _, v := range r.Values {
			got[r.Name][v.Unit] = v.Value
		}
	}
	assert.Equal(t, want, got)

	again := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, os.WriteFile(again, []byte(out), 0o644))
	_, second, _ := call("", "json", again)
	assert.Equal(t, out, second, "kvreport reads its own document back")
}
