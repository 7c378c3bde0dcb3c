package submission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
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
)

// mistakes compares a value with its rule of testdata/schema.yaml.
func mistakes(at string, rule, v any) (bad []string) {
	switch rule := rule.(type) {
	case map[string]any:
		m, ok := v.(map[string]any)
		if !ok {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(rule)) {
			key, optional := strings.CutSuffix(name, "?")
			if v, ok := m[key]; ok {
				bad = append(bad, mistakes(at+"."+key, rule[name], v)...)
			} else if !optional {
				bad = append(bad, at+"."+key+": missing")
			}
		}
		for key := range m {
			if rule[key] == nil && rule[key+"?"] == nil {
				bad = append(bad, at+"."+key+": unknown")
			}
		}
		return bad
	case []any:
		list, _ := v.([]any)
		if len(list) == 0 {
			break
		}
		for i, v := range list {
			bad = append(bad, mistakes(fmt.Sprintf("%s[%d]", at, i), rule[0], v)...)
		}
		return bad
	case int:
		if n, ok := v.(int); ok && n >= rule {
			return nil
		}
	case bool:
		if _, ok := v.(bool); ok {
			return nil
		}
	case string:
		s, _ := v.(string)
		if s != "" && (rule == "text" || slices.Contains(strings.Split(rule, "|"), s)) {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: %v is not %v", at, v, rule)}
}

// describedBadly are the rules for a description: the schema's, and those of MLPerf Storage's validator
// between its keys.
func describedBadly(t *testing.T, data []byte) []string {
	t.Helper()
	var schema, doc map[string]any
	rules, err := os.ReadFile("testdata/schema.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(rules, &schema))
	require.NoError(t, yaml.Unmarshal(data, &doc))
	bad := mistakes("", schema, doc)
	if len(bad) > 0 {
		return bad
	}
	at := func(v any, keys ...string) any {
		for _, k := range keys {
			m, _ := v.(map[string]any)
			v = m[k]
		}
		return v
	}
	must := func(holds bool, what string) {
		if !holds {
			bad = append(bad, what)
		}
	}
	sut := at(doc, "system_under_test")
	able := at(sut, "solution", "capabilities")
	both := at(able, "simultaneous_write") == true && at(able, "simultaneous_read") == true
	must(both == (at(able, "remap_time_in_seconds") == 0),
		"remap time is 0 where both are simultaneous, and only there")
	arch := at(sut, "solution", "architecture")
	must((at(arch, "client_footprint") == "n/a") == (at(arch, "client_installation") == "n/a"),
		"footprint and installation are n/a together")
	units := 0
	for _, kind := range []string{"product_nodes", "clients"} {
		list, _ := at(sut, kind).([]any)
		for _, n := range list {
			rack, has := at(n, "chassis", "rack_units").(int)
			onprem := at(sut, "deployment") == "onprem"
			must(has == onprem && (at(n, "chassis", "power") != nil) == onprem,
				kind+": rack units and power on premises, and only there")
			must(at(n, "networking") != nil || at(arch, "storage_location") == "local",
				kind+": networking where storage is remote")
			if kind == "product_nodes" {
				units += rack * at(n, "quantity").(int)
			}
		}
	}
	if total, ok := at(sut, "total_rack_units").(int); ok {
		must(total == units, "rack units add up")
	}
	return bad
}

// fileOf is a tree's file of a result.
func fileOf(r *result.Result) []merge.File { return []merge.File{{Result: r}} }

// fillIn fills in the description's gaps: the first word of the line's choices, a text, or a
// number.
func fillIn(description string) string {
	given := map[string]string{"multi_host": "true", "simultaneous_write": "true",
		"simultaneous_read": "false", "remap_time_in_seconds": "30", "deployment": "onprem",
		"total_rack_units": "2", "traffic": "[data]"}
	var b strings.Builder
	for line := range strings.Lines(description) {
		key, rest, _ := strings.Cut(strings.TrimLeft(line, " -"), ":")
		if !strings.Contains(rest, `"FILL IN"`) || strings.HasPrefix(line, "#") {
			b.WriteString(line)
			continue
		}
		value := "2"
		_, words, offered := strings.Cut(rest, "# ")
		switch {
		case given[key] != "":
			value = given[key]
		case offered && strings.Contains(words, ", "):
			value, _, _ = strings.Cut(words, ", ")
		case strings.HasSuffix(key, "_description") || strings.HasSuffix(key, "name") ||
			key == "cpu_model" || key == "version":
			value = "some " + key
		}
		at := strings.Index(line, key+":")
		fmt.Fprintf(&b, "%s%s: %s\n", line[:at], key, value)
	}
	return b.String()
}

// TestDescriptionPassesTheSchema: for any storage the description lacks nothing but the submitter's
// facts.
func TestDescriptionPassesTheSchema(t *testing.T) {
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
		}, []string{"storage_location: local", "interface: SATA", "media_type: HDD"}},
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
				nodes(fileOf(r), map[string]discover.Hardware{"node0": h})))
			for _, want := range c.want {
				assert.Contains(t, b.String(), want)
			}
			assert.NotEmpty(t, describedBadly(t, b.Bytes()), "the submitter's answers are missing")
			assert.Empty(t, describedBadly(t, []byte(fillIn(b.String()))), "%s", b.String())
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
		func(r *result.Result) { r.Environment.Version = commit }), out,
		func(s *Submission) { s.Code = code })
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
	assert.Equal(t, 2099.999, args["inter_option_delay"], "as it was, not as it should be")
	assert.Equal(t, []any{"llama3.1-8b", 200.0, 300.0, 0.0, 0.0, "none"}, []any{parameters["model"],
		parameters["num_users"], parameters["duration"], parameters["gpu_mem_gb"],
		parameters["cpu_mem_gb"], parameters["generation_mode"]})
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
		place, err := s.writeCode(t.TempDir())
		require.NoError(t, err)
		assert.Contains(t, place, want)
		assert.Equal(t, len(version) == 40, strings.Contains(place,
			"The same command with another -o and -code CHECKOUT"), version)
		s.Code = t.TempDir()
		_, err = s.writeCode(t.TempDir())
		assert.ErrorContains(t, err, "-code: ")
	}
}
