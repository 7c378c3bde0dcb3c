package params

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/units"
	"kvbench/workloads/compute"
	"kvbench/workloads/model"
)

// model finds the model that was named: one of the file, which may redefine those that are built
// in, or a config.json as Hugging Face publishes it. A word without a slash or .json is taken for a
// slip of the finger in a key rather than for a missing file.
func (r *resolver) model() {
	var keys []string
	for _, m := range slices.Concat(r.v.Models, model.BuiltIn()) {
		if !slices.Contains(keys, m.Key) {
			keys = append(keys, m.Key)
		}
	}
	refuse := func(required string) {
		r.refuse("model", required)
		r.v.row("model").refused = true
	}
	name := r.v.ModelName
	if !slices.Contains(keys, name) {
		file, _ := path(nil, r.in.Base).parse(name)
		if _, err := os.Stat(file); err != nil && !strings.HasSuffix(name, ".json") &&
			!strings.Contains(name, "/") {
			refuse("one of " + strings.Join(keys, ", ") + " or the path of a Hugging Face " +
				"config.json" + units.Suggestion(name, keys))
			return
		}
		name = file
	}
	m, err := model.Find(name, r.v.Models)
	if err != nil {
		refuse("a usable model (" + strings.ReplaceAll(err.Error(), "\n", "; ") + ")")
		return
	}
	r.v.ModelName = name
	if r.v.Model, err = m.In(r.v.KVDType); err != nil {
		r.refuse("kv-dtype", "a type that this model can have ("+
			strings.ReplaceAll(err.Error(), "\n", "; ")+")")
	}
}

// profile builds the users' profile: the defaults, then the benchmark's keys, then the file's.
func (r *resolver) profile() {
	v := r.v
	for i := range v.keys {
		r.decide(&v.keys[i])
	}
	v.Profile.RAG.Uniform = v.retrieval == "uniform"
	v.GenerationTime = v.timing[slices.Index(generationModes, v.GenerationMode)]
	v.Models = r.file.models
	// Rules between keys.
	p := &v.Profile
	r.want(p.InteractiveShare <= p.ResponsiveThreshold, "qos_distribution.interactive_probability",
		fmt.Sprintf("at most qos_distribution.responsive_threshold (%v): both cut the same draw",
			p.ResponsiveThreshold))
	r.want(p.SystemPromptShare == 0 || len(p.SystemPromptTokens) > 0,
		"prefix_cache.system_prompt_hit_probability", "0 without prefix_cache.system_prompt_tokens")
	r.want(p.RAG.LargeModelTokens[0] <= p.RAG.LargeModelTokens[1],
		"rag.large_model_doc_tokens_min", "at most rag.large_model_doc_tokens_max")
	r.want(p.RAG.SmallModelTokens[0] <= p.RAG.SmallModelTokens[1],
		"rag.small_model_doc_tokens_min", "at most rag.small_model_doc_tokens_max")
}

// check applies the rules that tie parameters together or ask the file system. What has been
// refused already is not checked again: its default would be told as if somebody had given it.
func (r *resolver) check() {
	v := r.v
	r.want(v.TensorParallel <= v.GPUs, "tensor-parallel",
		fmt.Sprintf("in 1…%d, the number of -num-gpus", v.GPUs))
	r.want(float64(v.GPUBytes)/float64(units.GiB)*float64(v.GPUs) <= maxGPUGiB, "gpu-mem-gb",
		fmt.Sprintf("at most %d GiB over all -num-gpus (%d)", maxGPUGiB, v.GPUs))
	r.want(!v.PrefillOnly || !v.DecodeOnly, "decode-only", fmt.Sprintf(
		"false with -prefill-only (%s): they exclude each other", v.Origin("prefill-only")))
	r.want(v.GPU == "" || v.PrefillRate.Free(), "gpu", "absent with -prefill-rate: both say how "+
		"fast the server computes")
	if _, err := compute.On(v.Model.Key, v.GPU); v.GPU != "" && !v.row("model").refused {
		r.want(err == nil, "gpu", fmt.Sprint(err))
	}
	// Direct I/O wants whole sectors, and 4 KiB is the largest that drives have.
	r.want(v.ChunkSize%4096 == 0, "chunk-size", "a multiple of 4KiB")
	// The temporary directory is the suite's own and needs no check.
	for _, dir := range v.CacheDirs {
		if v.OnObjects() || r.in.CheckCacheDir == nil || v.Simulated() {
			break
		}
		if err := r.in.CheckCacheDir(dir); err != nil {
			r.refuse("cache-dir", "a directory that may be worked in ("+err.Error()+")")
		}
	}
	r.roots()
	blocks := v.Layout != "entry" && v.Layout != "block" // the others are made of blocks
	_, engines := v.EngineLayout()                       // which make them of any prompt
	r.want(!blocks || engines || v.Bench.Name == "" || v.Bench.Blocks(), "layout",
		"entry, block or an engine's but for block traces: the others are made of blocks of one "+
			"size")
	r.engineLayout()
	r.tensorRanks()
	r.layerwise()
	r.named()
	r.ranked()
	r.tierPolicy()
	starts := v.TraceStart > 0 && v.Skip() == ""
	r.want(!starts || v.Bench.Name != "ShareGPT", "trace-start",
		"0s with ShareGPT, whose conversations have no times")
	r.want(!starts || v.Bench.Name != "IOTraceReplay", "trace-start",
		"0s with IOTraceReplay: rows after it would read what rows before it wrote")
	live := v.Bench.Blocks() && v.ClosedLoop() && v.Skip() == ""
	r.want(!live || v.RequestRate == 0, "request-rate",
		"0 with BlockTrace and -arrival closed-loop: what waits for answers has no rate")
	r.want(!live || v.TraceStart == 0, "trace-start",
		"0s with BlockTrace and -arrival closed-loop: what waits for answers has no times")
	r.traceFiles("burst-trace-path", "azure-trace-path", "io-trace-replay")
	r.checkpoint()
	r.simulation(blocks)
	r.objects()
	r.autoscaling()
	r.metrics()
	r.traceFiles("block-trace-path", "dataset-path", "validation-trace")
	// Without a given capacity the free space decides, which is asked for later.
	if v.StorageBytes > 0 && !v.row("model").refused && !v.row("num-users").refused &&
		!v.row("storage-capacity-gb").refused {
		r.bad = append(r.bad, v.CheckFit(v.StorageBytes)...)
	}
}

// tierPolicy checks what policies ask for: a tier above the storage above all.
func (r *resolver) tierPolicy() {
	v := r.v
	alone := v.GPUTierBytes() == 0 && v.CPUBytes == 0
	for _, p := range []struct {
		name string
		only string
		is   bool
	}{
		{"tier-policy", "waterfall", v.TierPolicy == "waterfall"},
		{"promote", "never", v.Promote == "never"},
		{"admit-after", "0", v.AdmitAfter == 0},
	} {
		r.want(p.is || !alone, p.name,
			p.only+" without a tier above the storage: give -cpu-mem-gb")
	}
	r.want(v.Promote == "never" || v.TierPolicy != "waterfall" || alone, "promote",
		"never with -tier-policy waterfall, whose "+
			"entries live in one tier: write-back keeps copies")
	r.want(v.TierPolicy != "write-through" || v.AdmitAfter < 2, "admit-after",
		"0 with -tier-policy write-through, which copies everything; selective copies at the N-th "+
			"request")
	r.want(v.TierPolicy != "selective" || v.AdmitAfter != 1, "admit-after",
		"at least 2 with -tier-policy selective: at the first request it is write-through")
	copies := v.TierPolicy == "write-through" || v.TierPolicy == "selective"
	r.want(v.WriteBehindBytes == 0 || copies, "write-behind-gb",
		"0 but with -tier-policy write-through or selective: others write what has to leave")
	r.want(v.WriteBehindBytes == 0 || !v.Simulated(), "write-behind-gb",
		"0 in virtual time: what is not written depends on how fast the run is")
	l, is := v.EngineLayout()
	r.want(v.Evict != "bucket" || is && l.Buckets, "evict",
		"lru, fifo, lfu or s3-fifo but with -layout mooncake-bucket, which has buckets")
}

// traceFiles wants at least one file behind a trace path, and all of them readable. Whether it is a
// trace is seen when it is read; a path that leads nowhere must not cost a window first.
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
				r.want(false, name, "something that can be read ("+err.Error()+")")
				break
			}
			_ = f.Close()
		}
	}
}

// simulation checks what a run in virtual time cannot have: what asks for a disk, compares with
// one, or never ends where waiting costs nothing. What only says how to use one is not heard: see
// [Unheard].
func (r *resolver) simulation(blocks bool) {
	v := r.v
	if !v.Simulated() {
		r.want(!v.IOTraceDeletes, "io-trace-deletes", "false without -io-trace-log")
		return
	}
	for _, not := range []struct {
		name      string
		asked     bool
		only, why string
	}{
		{"precondition", v.Precondition, "false", "nothing is written"},
		{"validation-trace", v.ValidationTrace != "", "none",
			"a recorded run is compared with a real one"},
		{"layout", blocks, "entry or block",
			"there are no files, and every block is an operation of its own"},
		{"enable-latency-tracing", v.LatencyTracing, "false", "no kernel sees a request"},
		{"verify", v.Verify != "none", "none", "there are no bytes to check"},
		{"cache-dir", v.OnObjects(), "absent", "no store is asked"},
	} {
		if not.name == "layout" && v.row("layout").given.origin.Kind == FromEngine {
			not.why += " (leave out -engine)"
		}
		r.want(!not.asked, not.name,
			not.only+" with -io-trace-log and -simulate-device: "+not.why)
	}
	r.want(!strings.HasSuffix(v.IOTraceLog, ".gz"), "io-trace-log", "a name that ends in .zst, "+
		"which is written compressed, or another, which is plain; gzip is only read")
	ends := v.TraceSpeedup > 0 || v.RequestRate > 0 || v.ReplayCycles > 0 || v.MaxRequests > 0
	r.want(v.Bench.Load != LoadTrace || ends, "replay-cycles",
		"at least 1 with -trace-speedup 0 in virtual time, where it would never end")
}

// metrics checks where a run's metrics may be served: by default only to who is on this machine,
// because nobody is asked who he is.
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

// named refuses to take from a benchmark what it is named after: another one runs without it.
func (r *resolver) named() {
	for _, name := range []string{"prefill-only", "decode-only", "enable-rag",
		"enable-autoscaling", "autoscaler-mode"} {
		is, named := r.v.Bench.all[name]
		r.want(!named || r.v.Text(name) == is, name,
			is+" with "+r.v.Bench.Name+", which is named after it")
	}
}

// autoscaling checks what an autoscaler cannot work with. It acts by the number of users, so the
// load has to depend on them and to go on until it has found the limit.
func (r *resolver) autoscaling() {
	v := r.v
	if !v.Autoscaling {
		return
	}
	const name = "enable-autoscaling"
	r.want(v.Bench.Name == "" || v.Bench.Load == LoadUsers, name,
		"false with "+v.Bench.Name+", which has no users")
	r.want(v.RequestRate == 0, name,
		"false with -request-rate: the rate does not depend on the users")
	// The loop of the autoscaler is time: rounds, not a number of requests.
	r.want(v.MaxRequests == 0, name,
		"false with -max-requests: the load would end with the requests")
	r.want(v.IOTraceLog == "" || v.Device != nil, name, "false with -io-trace-log alone: "+
		"infinitely fast storage has no limit; give -simulate-device")
}
