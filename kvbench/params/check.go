package params

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbench/kvbench/units"
	"kvbench/workloads/compute"
	"kvbench/workloads/model"
)

// model finds the named model: a model of the YAML file, which may redefine a built-in model, a built-in
// model, or a config.json of Hugging Face.
func (r *resolver) model() {
	var keys []string
	for _, m := range slices.Concat(r.v.Models, model.BuiltIn()) {
		keys = append(keys, m.Key)
	}
	name := r.v.ModelName
	file := absolute(r.in.Base, name)
	_, err := os.Stat(file)
	if !slices.Contains(keys, name) &&
		(err == nil || strings.HasSuffix(name, ".json") || strings.Contains(name, "/")) {
		name = file
	}
	inline := func(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
	m, err := model.Find(name, r.v.Models)
	if err != nil {
		r.refuse("model", "a usable model (%s)%s", inline(err), units.Suggestion(name, keys))
		r.v.refused["model"] = true
		return
	}
	r.v.ModelName = name
	if r.v.Model, err = m.In(r.v.KVDType); err != nil {
		r.refuse("kv-dtype", "a type that this model can have (%s)", inline(err))
	}
}

// check applies the rules between parameters, and the rules that need the filesystem.
func (r *resolver) check() {
	v := r.v
	if _, err := compute.On(v.Model.Key, v.GPU); v.GPU != "" && !v.refused["model"] {
		const open = "llama3.1-8b" // the model of the other divisions
		_, other := compute.On(open, v.GPU)
		if err != nil && other == nil && v.Division == Quick && !v.Typed("model") {
			err = fmt.Errorf("used with -model %s or -division open, because %s, the quick division's "+
				"model, has no published rate; -prefill-rate takes a rate of your own", open, v.ModelName)
		}
		r.want(err == nil, "gpu", "%v", err)
	}
	// The temporary directory is the suite's own and needs no check.
	for _, dir := range v.CacheDirs {
		if v.OnObjects() || r.in.CheckCacheDir == nil || v.Simulated() {
			break
		}
		if err := r.in.CheckCacheDir(dir); err != nil {
			r.refuse("cache-dir", "a directory that may be worked in (%v)", err)
		}
	}
	r.rules()
	r.traceFiles("burst-trace-path", "azure-trace-path", "io-trace-replay")
	r.checkpoint()
	r.traceFiles("block-trace-path", "dataset-path", "validation-trace")
	// Without a given capacity the free space decides, which is looked at later.
	if last, size, _ := v.LastTier(); size > 0 && !v.Bench.Blocks() && !v.refused["model"] &&
		!v.refused["num-users"] && !v.refused[last] {
		r.bad = append(r.bad, v.CheckFit(v.StorageBytes)...)
	}
}

// traceFiles checks that a trace path leads to at least one file and that all files are readable. It
// does not check their content.
func (r *resolver) traceFiles(names ...string) {
	for _, name := range names {
		text := r.v.Text(name)
		if text == "" {
			continue
		}
		files := []string{text}
		if _, err := os.Stat(text); err != nil {
			files, _ = filepath.Glob(text)
		}
		r.want(len(files) > 0, name, "a file, a directory or a glob that matches something")
		for _, file := range files {
			f, err := os.Open(file)
			if err != nil {
				r.want(false, name, "something that can be read (%v)", err)
				break
			}
			_ = f.Close()
		}
	}
}
