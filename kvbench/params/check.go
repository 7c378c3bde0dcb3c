package params

import (
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/workloads/compute"
	"kvbench/workloads/model"
)

// model finds the named model: a model of the YAML file, which may redefine a built-in model, a built-in
// model, or a config.json of Hugging Face. For an unknown name without a slash and without .json the
// error lists the known names.
func (r *resolver) model() {
	var keys []string
	for _, m := range slices.Concat(r.v.Models, model.BuiltIn()) {
		if !slices.Contains(keys, m.Key) {
			keys = append(keys, m.Key)
		}
	}
	refuse := func(required string, args ...any) {
		r.refuse("model", required, args...)
		r.v.refused["model"] = true
	}
	name := r.v.ModelName
	if !slices.Contains(keys, name) {
		file := absolute(r.in.Base, name)
		if _, err := os.Stat(file); err != nil && !strings.HasSuffix(name, ".json") &&
			!strings.Contains(name, "/") {
			refuse("one of %s or the path of a Hugging Face config.json%s", strings.Join(keys, ", "),
				units.Suggestion(name, keys))
			return
		}
		name = file
	}
	inline := func(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
	m, err := model.Find(name, r.v.Models)
	if err != nil {
		refuse("a usable model (%s)", inline(err))
		return
	}
	r.v.ModelName = name
	if r.v.Model, err = m.In(r.v.KVDType); err != nil {
		r.refuse("kv-dtype", "a type that this model can have (%s)", inline(err))
	}
}

// maxGPUGiB is the largest gpu tier in GiB, of one card and of all.
const maxGPUGiB = 65536

// check applies the rules between parameters, and the rules that need the filesystem.
func (r *resolver) check() {
	v := r.v
	r.want(v.TensorParallel <= v.GPUs, "tensor-parallel", "in 1…%d, the number of -num-gpus", v.GPUs)
	r.want(float64(v.GPUBytes)/float64(units.GiB)*float64(v.GPUs) <= maxGPUGiB, "gpu-mem-gb",
		"at most %d GiB over all -num-gpus (%d)", maxGPUGiB, v.GPUs)
	if _, err := compute.On(v.Model.Key, v.GPU); v.GPU != "" && !v.refused["model"] {
		r.want(err == nil, "gpu", "%v", err)
	}
	// Direct I/O needs whole sectors, and the largest sectors of drives have 4 KiB.
	r.want(v.ChunkSize%4096 == 0, "chunk-size", "a multiple of 4KiB")
	// The temporary directory is the suite's own and needs no check.
	for _, dir := range v.CacheDirs {
		if v.OnObjects() || r.in.CheckCacheDir == nil || v.Simulated() {
			break
		}
		if err := r.in.CheckCacheDir(dir); err != nil {
			r.refuse("cache-dir", "a directory that may be worked in (%v)", err)
		}
	}
	r.roots()
	r.engineLayout()
	r.tensorRanks()
	r.layerwise()
	r.rules()
	r.want(v.Bench.Name != result.BenchmarkEngines || v.Skip() != "" ||
		slices.ContainsFunc(v.Sweep, func(a Axis) bool {
			return a.Key == "engine" || a.Key == "layout"
		}), "sweep", "of engine or layout, such as layout=vllm-fs,lmcache-fs, with Engines, "+
		"which ranks them")
	r.traceFiles("burst-trace-path", "azure-trace-path", "io-trace-replay")
	r.checkpoint()
	// In virtual time an endless replay without gaps would never end.
	ends := v.TraceSpeedup > 0 || v.RequestRate > 0 || v.ReplayCycles > 0 || v.MaxRequests > 0
	r.want(!v.Simulated() || v.Bench.Load != LoadTrace || ends, "replay-cycles",
		"at least 1 with -trace-speedup 0 in virtual time, where it would never end")
	r.want(!strings.HasSuffix(v.IOTraceLog, ".gz"), "io-trace-log", "a name that ends in .zst, "+
		"which is written compressed, or another, which is plain; gzip is only read")
	r.want(v.TierPolicy != "selective" || v.AdmitAfter != 1, "admit-after",
		"at least 2 with -tier-policy selective: at the first request it is write-through")
	r.objects()
	r.metrics()
	r.traceFiles("block-trace-path", "dataset-path", "validation-trace")
	// Without a given capacity the free space decides, which is looked at later.
	if v.StorageBytes > 0 && !v.refused["model"] && !v.refused["num-users"] &&
		!v.refused["storage-capacity-gb"] {
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

// metrics checks where a run's metrics may be served: by default only on this machine, because
// there is no authentication.
func (r *resolver) metrics() {
	v := r.v
	if v.MetricsListen == "" {
		return
	}
	host, port, err := net.SplitHostPort(v.MetricsListen)
	n, noNumber := strconv.ParseUint(port, 10, 16)
	// Ranks add their number, see the table.
	fits := noNumber == nil && n+uint64(max(v.Rank, 0)) <= math.MaxUint16
	r.want(err == nil && fits, "metrics-listen", "HOST:PORT, such as 127.0.0.1:9464")
	// Other names may mean any address, and an empty host means all of them.
	address, _ := netip.ParseAddr(host)
	r.want(v.MetricsRemote || host == "localhost" || address.IsLoopback(), "metrics-listen",
		"an address of the loopback, such as 127.0.0.1:9464, without -metrics-remote: others "+
			"could read what is measured")
}
