package params

import (
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

// traceFiles checks that each trace path leads to at least one file.
func (r *resolver) traceFiles(names ...string) {
	for _, name := range names {
		text := r.v.Text(name)
		_, err := os.Stat(text)
		files, _ := filepath.Glob(text)
		r.want(text == "" || err == nil || len(files) > 0, name, "a file, a directory or a glob that matches "+
			"something")
	}
}
