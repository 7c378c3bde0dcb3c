package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/submission"
)

// leaf are the files of one run of three options, three trials and two ranks, with <start> for its
// time and <end> for those of trials. MLPerf Storage's report drops a run with two metadata files,
// or with a summary of another name.
func leaf() (files []string) {
	files = strings.Fields("check.md kv_cache_<start>_metadata.json rank_1.log report.html " +
		"report.xlsx summary.json")
	for option := 1; option <= 3; option++ {
		for trial := range 3 {
			name := fmt.Sprintf("kvcache_opt%d_trial%d_<start>", option, trial)
			files = append(files, name+".stderr.log", name+".stdout.log")
			for rank := range 2 {
				at := fmt.Sprintf("option_%d/trial_%d/rank_%d/", option, trial, rank)
				files = append(files, at+"kvcache_results_<end>.json", at+"summary.txt")
			}
		}
	}
	slices.Sort(files)
	return files
}

// TestSubmissionTree: real results of three options, three trials and two ranks make a tree with
// what MLPerf Storage 3.0.46 reads; with one rank's result removed they make none, and it is named.
func TestSubmissionTree(t *testing.T) {
	t.Parallel()
	b := newClients(t)
	b.ok(append(append(b.micro(), b.places()...),
		"-test.bench=MaxStorageStress|StorageThroughput|LargeModel", "-test.benchtime=5x",
		"-test.count=3", "-ranks=2", "-division=open", "-model=tiny-1b", "-num-users=2",
		"-cpu-mem-gb=0", "-storage-capacity-gb=0.6")...)
	submit := func(out string) (built bool, said string) {
		s := submission.Submission{Dir: b.results, Out: out, Organisation: "acme",
			System: "flash7", Division: "open"}
		require.NoError(t, s.Validate())
		var text bytes.Buffer
		built, err := s.Run(&text, func(line string) { said += line + "\n" })
		require.NoError(t, err)
		return built, said
	}
	out := filepath.Join(b.work, "tree")
	built, said := submit(out)
	require.True(t, built, said)

	runs, err := filepath.Glob(filepath.Join(out,
		"open/acme/results/flash7/kv_cache/tiny-1b/run/*"))
	require.NoError(t, err)
	require.Len(t, runs, 1)
	start, end := filepath.Base(runs[0]), regexp.MustCompile(`results_\d{8}_\d{6}`)
	var files []string
	require.NoError(t, filepath.WalkDir(runs[0], func(p string, d fs.DirEntry, err error) error {
		// The image is there where the binary was built from a commit.
		if err == nil && !d.IsDir() && d.Name() != ".mlps-code-image" {
			rel, _ := filepath.Rel(runs[0], p)
			rel = end.ReplaceAllString(rel, "results_<end>")
			files = append(files, strings.ReplaceAll(rel, start, "<start>"))
		}
		return err
	}))
	slices.Sort(files)
	assert.Equal(t, leaf(), files)

	var summary struct {
		Ranks          int  `json:"total_ranks"`
		PartialFailure bool `json:"partial_failure"`
		Options        map[string]map[string]any
	}
	text, err := os.ReadFile(filepath.Join(runs[0], "summary.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &summary))
	assert.Equal(t, 2, summary.Ranks)
	assert.False(t, summary.PartialFailure)
	require.Len(t, summary.Options, 3)
	for name, o := range summary.Options {
		for _, key := range strings.Fields("aggregated_read_bandwidth_gbps " +
			"aggregated_write_bandwidth_gbps aggregated_avg_throughput_tokens_per_sec " +
			"aggregated_storage_throughput_tokens_per_sec aggregated_p95_latency_ms") {
			assert.Greater(t, o[key], 0.0, "%s %s", name, key)
		}
		assert.Equal(t, []any{2.0, 3.0, []any{}}, []any{o["rank_count"], o["trial_count"],
			o["missing_files"]})
	}
	assert.FileExists(t, filepath.Join(out, "open/acme/systems/flash7.yaml"))

	require.NoError(t, os.RemoveAll(filepath.Join(b.results, "option_2/trial_1/rank_1")))
	built, said = submit(out + "2")
	assert.False(t, built)
	assert.Contains(t, said, "option 2: every trial of every rank must have a result: 2 ranks × 3 "+
		"trials are expected (option_2/trial_1/rank_1/kvcache_results_*.json)")
	assert.NoDirExists(t, out+"2")
}
