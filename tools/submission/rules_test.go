package submission

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
	"kvbench/tools/discover"
	"kvbench/tools/golden"
)

// fileOf is a tree's file of a result.
func fileOf(r *result.Result) []merge.File { return []merge.File{{Result: r}} }

// TestDescriptions: for any storage the description has the words of MLPerf Storage's schema.yaml, and
// leaves to the submitter what is not known. The golden files were compared with that schema in August 2026.
func TestDescriptions(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*result.Result)
		want   []string
	}{
		"an NVMe drive": {func(*result.Result) {}, []string{"storage_location: local",
			"product_API: block", "interface: nvme", "total_rack_units: 0"}},
		"NVMe over TCP": {func(r *result.Result) { r.Environment.Device.Transport = "tcp" },
			[]string{"storage_location: remote ", "product_API: block", "interface: nvme"}},
		"a SATA disk": {func(r *result.Result) {
			*r.Environment.Device = result.Device{Name: "sda", Transport: "sata",
				SizeBytes: new(int64(16e12)), Rotational: new(true)}
		}, []string{"storage_location: local", "interface: sata", "media_type: HDD"}},
		"a SAS disk": {func(r *result.Result) {
			*r.Environment.Device = result.Device{Name: "sdb", Transport: "sas"}
		}, []string{"storage_location: local", "interface: sas  # nvme, sas, sata, other"}},
		"a disk of an older result": {func(r *result.Result) {
			*r.Environment.Device = result.Device{Name: "sda"}
		}, []string{`storage_location: "FILL IN"`, `interface: "FILL IN"`}},
		"a virtual disk": {func(r *result.Result) {
			*r.Environment.Device = result.Device{Name: "vda", Transport: "virtio",
				Rotational: new(true)} // all virtual disks say so
		}, []string{`storage_location: "FILL IN"`, "interface: other", `media_type: "FILL IN"`}},
		"a mirror of near and far": {func(r *result.Result) {
			*r.Environment.Device = result.Device{Name: "md0", Members: []result.Device{
				{Name: "nvme0n1", Transport: "pcie"}, {Name: "sdb", Transport: "iscsi"}}}
		}, []string{"storage_location: remote_and_local", "unit_count: 2"}},
		"an array with an unknown disk": {func(r *result.Result) {
			*r.Environment.Device = result.Device{Name: "md0", Members: []result.Device{
				{Name: "nvme0n1", Transport: "pcie"}, {Name: "sdb"}}}
		}, []string{`storage_location: "FILL IN"`}},
		"NFS": {func(r *result.Result) {
			r.Environment.Device, r.Environment.Filesystem.Type = nil, "nfs4"
		}, []string{"storage_location: remote ", `product_API: "FILL IN"`, "product_nodes:"}},
		"a bucket": {func(r *result.Result) { r.Objects = &result.Objects{} },
			[]string{"storage_location: remote ", "benchmark_API: object", "product_API: object"}},
	} {
		t.Run(what, func(t *testing.T) {
			r := closed(t, 1, 0, 0)
			c.change(r)
			h := discover.Hardware{Hostname: "node0",
				CPU: discover.CPU{Sockets: new(2), Cores: new(192)}}
			var b bytes.Buffer
			require.NoError(t, writeSystem(&b, "flash7",
				nodes(fileOf(r), map[string]discover.Hardware{"node0": h}), true))
			for _, want := range c.want {
				assert.Contains(t, b.String(), want)
			}
			var parsed map[string]any
			require.NoError(t, yaml.Unmarshal(b.Bytes(), &parsed), "%s", b.String())
			if what == "NFS" {
				golden.Check(t, "nfs.golden.yaml", b.String())
			}
		})
	}
}

// source is a git repository with a commit of some files.
func source(t *testing.T) (dir, commit string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git: ", err)
	}
	dir = t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c",
			"user.email=x@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	for name, text := range map[string]string{"go.mod": "module kvbench\n", ".gitignore": "*.out\n",
		"a/b.go": "package a\n", "a.go": "package kvbench\n", "tests/left.go": "package out\n",
		"a/tests/left.go": "package out\n", "a/__pycache__/x": "x", "a/x.pyc": "x",
		"x.egg-info/PKG": "x", "a/testdata/kept.txt": "kept\n"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	require.NoError(t, os.Symlink("a.go", filepath.Join(dir, "link.go")))
	git("init", "-q")
	git("add", "-A")
	git("commit", "-q", "-m", "x")
	commit = git("rev-parse", "HEAD")
	// Uncommitted changes are not part of it.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("changed"), 0o644))
	return dir, commit
}

// TestCodeImage: the image is the commit without the files that the checker leaves out, and its
// hash equals that of the checker's own tool. The metadata of the same tree has the facts of rule
// 6.3.2.1, in mlpstorage's types.
func TestCodeImage(t *testing.T) {
	code, commit := source(t)
	out := filepath.Join(t.TempDir(), "out")
	built, _, said, err := submit(results(t,
		func(r *result.Result) {
			r.Environment.Version = commit
			if *r.Option > 1 && r.Trial == 0 {
				r.OptionPauseNS = new(int64(90e9)) // as a run records it
			}
		}), out, func(s *Submission) { s.Code = code })
	require.NoError(t, err)
	require.True(t, built, said)
	image := filepath.Join(out, "acme/code-0d036546")
	assert.Equal(t, []string{".code-hash.json", ".gitignore", "a/b.go",
		"a/testdata/kept.txt", "a.go", "go.mod"}, listing(t, image))
	data, err := os.ReadFile(filepath.Join(image, "a.go"))
	require.NoError(t, err)
	assert.Equal(t, "package kvbench\n", string(data), "committed, whatever the working tree has")
	var h codeHash
	data, err = os.ReadFile(filepath.Join(image, ".code-hash.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &h))
	assert.Equal(t, codeHash{Hash: "0d036546a5545723daf82a9b825c235e", Algorithm: "md5-tree-v2",
		CapturedAt: "2026-09-09T08:07:06Z", Version: "kvbench " + commit, GitSHA: commit}, h)
	assert.FileExists(t, filepath.Join(out, "acme/.mlps-image-pool"))
	run := filepath.Join(out, "closed/acme/results/flash7/kv_cache/llama3.1-8b/run/20260908_150000")
	pointer, err := os.ReadFile(filepath.Join(run, ".mlps-code-image"))
	require.NoError(t, err)
	assert.Equal(t, h.Algorithm+":"+h.Hash, string(pointer))

	data, err = os.ReadFile(filepath.Join(run, "kv_cache_20260908_150000_metadata.json"))
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(data, &m))
	args, parameters := m["args"].(map[string]any), m["parameters"].(map[string]any)
	assert.Equal(t, []any{42.0, 3.0, 2.0, "closed", nil}, []any{args["seed"], args["trials"],
		args["num_processes"], args["mode"], args["config"]})
	assert.Equal(t, 90.0, args["inter_option_delay"], "the pause of the option alone, of 2,100 s between windows")
	assert.Equal(t, []any{"llama3.1-8b", 200.0, 300.0, 16.0, 32.0, "realistic", "throughput"}, []any{parameters["model"],
		parameters["num_users"], parameters["duration"], parameters["gpu_mem_gb"], parameters["cpu_mem_gb"],
		parameters["generation_mode"], parameters["performance_profile"]}, "as the official launcher records")
	option := func(model string, users, cpu, allocs float64) any {
		return map[string]any{"model": model, "num_users": users, "duration": 300.0, "gpu_mem_gb": 0.0,
			"cpu_mem_gb": cpu, "max_concurrent_allocs": allocs, "generation_mode": "none"}
	}
	assert.Equal(t, map[string]any{"1": option("llama3.1-8b", 200, 0, 16), "2": option("llama3.1-8b", 100, 4, 16),
		"3": option("llama3.1-70b-instruct", 70, 0, 4)}, parameters["options"], "newer tools read Table KVCache-1 here")
	assert.Equal(t, map[string]any{"seed": 42.0, "trials": 3.0, "inter_option_delay_s": 90.0, "config": "default"},
		parameters["sequence"])
	assert.Equal(t, map[string]any{}, parameters["features"])
	options := m["options"].(map[string]any)
	assert.Equal(t, 4.0, options["2"].(map[string]any)["cpu-mem-gb"])
	assert.Equal(t, "llama3.1-70b-instruct", options["3"].(map[string]any)["model"])
	files := m["command_output_files"].([]any)
	require.Len(t, files, 9)
	for _, f := range files {
		for _, kind := range []string{"stdout", "stderr"} {
			assert.FileExists(t, filepath.Join(run, f.(map[string]any)[kind].(string)))
		}
	}
}

// TestLayouts: each version of MLPerf Storage's checker finds the code image where it looks for it, and no key and
// no word that it refuses.
func TestLayouts(t *testing.T) {
	code, commit := source(t)
	dir := results(t, func(r *result.Result) {
		r.Environment.Version, r.Environment.Device = commit, &result.Device{Name: "sda", Transport: "sata"}
	})
	for checker, want := range map[string]struct {
		image, open, pool string
		keys              bool
	}{
		"3.0.27": {"closed/acme/code", "open/acme/results/flash7/kv_cache/code", "", false},
		"3.0.46": {"acme/code-0d036546", "acme/code-0d036546", "acme/.mlps-image-pool", true},
		"main":   {"code-images/code-0d036546", "code-images/code-0d036546", "code-images/.mlps-image-pool", true},
	} {
		out := filepath.Join(t.TempDir(), "out")
		built, _, said, err := submit(dir, out, func(s *Submission) { s.Code, s.Checker = code, checker })
		require.NoError(t, err)
		require.True(t, built, said)
		assert.FileExists(t, filepath.Join(out, want.image, ".code-hash.json"))
		pools, _ := filepath.Glob(filepath.Join(out, "*", ".mlps-image-pool"))
		assert.Len(t, pools, map[bool]int{true: 1}[want.pool != ""])
		if want.pool != "" {
			assert.FileExists(t, filepath.Join(out, want.pool))
		}
		text, err := os.ReadFile(filepath.Join(out, "closed/acme/systems/flash7.yaml"))
		require.NoError(t, err)
		assert.Equal(t, want.keys, strings.Contains(string(text), "usable_capacity_tib"), checker)
		assert.Equal(t, want.keys, strings.Contains(string(text), "availability"), checker)
		assert.Contains(t, string(text), map[bool]string{true: "interface: sata  # nvme, sas, sata, other",
			false: "interface: SATA  # nvme, SAS, SATA, other"}[want.keys], checker)
		out = filepath.Join(t.TempDir(), "out")
		built, _, said, err = submit(dir, out, open, func(s *Submission) { s.Code, s.Checker = code, checker })
		require.NoError(t, err)
		require.True(t, built, said)
		assert.FileExists(t, filepath.Join(out, want.open, ".code-hash.json"))
	}
	_, _, _, err := submit(dir, filepath.Join(t.TempDir(), "out"), func(s *Submission) { s.Checker = "3.1" })
	assert.ErrorContains(t, err, `-checker: must be one of 3.0.46, main, 3.0.27, given "3.1"`)
}

// TestRulesNameParameters: a name that is no parameter would leave its rule unchecked.
func TestRulesNameParameters(t *testing.T) {
	for _, r := range rules {
		for _, name := range r.parameters {
			found := slices.ContainsFunc(closed(t, 1, 0, 0).Parameters, func(p result.Parameter) bool { return p.Name == name })
			assert.True(t, found, "rule %s: %s", r.Number, name)
		}
	}
}

// TestWithoutACodeImage: the text names what is missing. A named -code has to work.
func TestWithoutACodeImage(t *testing.T) {
	for version, want := range map[string]string{
		"abc":      `version "abc", which is no commit; measure with go test ./benchmarks`,
		"ab+dirty": `version "ab+dirty", a checkout with changes; measure with a clean one`,
		"unknown": "the binary that measured does not know its revision; measure with go " +
			"test ./benchmarks in a git checkout, a binary of make dist",
		strings.Repeat("0", 40): "git archive 00000000",
	} {
		s := Submission{Code: defaultCode, Organisation: "o", now: time.Now,
			tree: &merge.Tree{Files: fileOf(&result.Result{
				Environment: result.Environment{Version: version}})}}
		place := s.addCode(&output{})
		assert.Contains(t, place, want)
		assert.Equal(t, len(version) == 40, strings.Contains(place,
			"The same command with another -o and -code CHECKOUT"), version)
		s.Code = t.TempDir()
		var out output
		s.addCode(&out)
		assert.ErrorContains(t, out.err, "-code: ")
	}
}
