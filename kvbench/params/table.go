package params

import (
	"flag"
	"math"
	"strings"
	"time"

	"kvbench/kvbench/units"
)

// parameter is one row of the table: everything there is to know about a parameter. A new one is a
// row and a field of Values; README's table, -help and the environment name follow from the row.
type parameter struct {
	name  string
	def   [len(divisions)]string // texts per division: quick, open, closed
	value flag.Value             // its kind, limits and field; see kinds.go
	help  string
	is    traits
}

// traits are what sets a parameter apart from the others.
//
// A parameter that is not a place decides what a run measures, and so stands in the lines by which
// benchstat keeps outputs apart, and in what the gate compares.
type traits uint8

const (
	free    traits = 1 << iota // may be set in the closed division
	place                      // where a run happens or what it shows, never what it measures
	unswept                    // cannot be swept
	// the testing package's: neither our flag nor in environment and file
	goFlag
	action // does something instead of a run
)

// row makes a parameter. Defaults are one text for all divisions or one for each, with a space
// between them; they are read as typed texts are, so that none is a value that nobody could give.
func row(name, defaults string, value flag.Value, help string, is ...traits) parameter {
	p := parameter{name: name, value: value, help: help}
	texts := strings.Split(defaults, " ")
	for i := range p.def {
		p.def[i] = texts[min(i, len(texts)-1)]
	}
	for _, t := range is {
		p.is |= t
	}
	return p
}

func (p *parameter) has(t traits) bool { return p.is&t != 0 }

// uniform tells whether all divisions have the same default.
func (p *parameter) uniform() bool { return p.def[0] == p.def[1] && p.def[1] == p.def[2] }

// show is the value as a person reads it; what an empty one means is told.
func (p *parameter) show(text string) string {
	switch {
	// which has no default to show but a new one per run
	case text != "" || p.name == "results-dir":
		return text
	case p.name == "cache-dir":
		return "temporary"
	}
	return "–"
}

// inFile tells whether a parameter may stand in the section parameters.
func (p *parameter) inFile() bool { return !p.has(goFlag|action) && p.name != "config" }

// The upper limits of what the specification only calls non-negative.
const endless = math.MaxInt

var unbounded = math.Inf(1)

// Limits of spec 19, tiers in GiB. A storage tier has none of its own: 1 EiB keeps byte counts
// inside an int64.
const (
	maxGPUGiB     = 65536
	maxCPUGiB     = 131072
	maxStorageGiB = 1 << 30
	maxUsers      = 100000
	day           = 24 * time.Hour
)

// table is every parameter, bound to the fields of v, in the order in which they are listed.
// Resolve, flags, environment, file, sweep, help and the closed division all read it; nothing else
// knows all names.
func table(v *Values) []parameter {
	return []parameter{
		row("division", "quick", oneOf(&v.Division, "quick", "open", "closed"),
			"quick (small and short), open (everything may be set), closed (MLPerf parameters)",
			free, unswept),
		row("benchtime", "2s 30s 300s", window{&v.Window},
			"Go's: the measured window, or 500x = until 500 requests are complete",
			unswept, goFlag),
		row("count", "1 1 3", whole(&v.Count, 1, endless),
			"Go's: trials", unswept, goFlag),
		row("config", "", path{&v.ConfigFile, v.base},
			"YAML file; unknown keys are errors", place, unswept),

		// Who asks. Quick is a model of 24 KiB per token: a laptop moves some entries in 2 s.
		row("model", "tiny-1b llama3.1-8b llama3.1-8b", word{&v.ModelName},
			"model key or path of a Hugging Face config.json"),
		row("num-users", "4 100 200", whole(&v.Users, 1, maxUsers),
			"simulated users"),
		row("arrival", "open-loop", oneOf(&v.Arrival, "open-loop", "closed-loop"),
			"open-loop: users do not wait for answers; closed-loop: think time starts when the "+
				"answer is complete"),
		row("turns", "ordered ordered overtaking", oneOf(&v.Turns, "ordered", "overtaking"),
			"whether a turn waits until its predecessor's entry is written"),
		row("generation-mode", "none", oneOf(&v.GenerationMode, generationModes...),
			"sleep per generated token: none 0, fast 2 ms, realistic 30 ms"),
		row("decode-reads", "once once batched", oneOf(&v.DecodeReads, "once", "batched"),
			"once: decoding reads an entry once; batched: again for every 32 generated tokens"),
		row("seed", "42", whole(&v.Seed, 0, endless),
			"of every stream, plus the rank"),

		// Where entries live. The gpu tier is simulated: no build has a CUDA tier yet.
		row("gpu-mem-gb", "0", gib(&v.GPUBytes, maxGPUGiB),
			"GiB of one card, 0 = no gpu tier"),
		row("num-gpus", "1", whole(&v.GPUs, 1, 65536),
			"cards; the gpu tier is all of them"),
		row("tensor-parallel", "1", whole(&v.TensorParallel, 1, 65536),
			"tensor parallel ranks, at most num-gpus; one rank's I/O is simulated"),
		row("tp-rule", "engine engine mlperf", oneOf(&v.TPRule, "engine", "mlperf"),
			"engine: KV heads are split, latents replicated; mlperf: 1/TP always"),
		row("cpu-mem-gb", "0", gib(&v.CPUBytes, maxCPUGiB),
			"GiB of the cpu tier, 0 = none"),
		row("storage-capacity-gb", "4 0 0", gib(&v.StorageBytes, maxStorageGiB),
			"GiB of the storage tier, 0 = 95 % of the free space over the ranks of the host", free),
		row("gpu-backend", "simulated", choice[string]{&v.GPUBackend, []string{"simulated"},
			map[string]string{"cuda": "simulated: this build has no CUDA tier yet"}},
			"simulated: a capacity and a bandwidth, no bytes"),
		row("gpu-bandwidth-gbps", "64", number(&v.GPUBandwidth, 0.001, 1e6),
			"GiB/s per direction of the simulated gpu's link"),

		// How the storage tier does its I/O, and how fast requests come. Closed is buffered with
		// one chunk in flight, as the program of MLPerf is.
		row("cache-dir", "", directory{path{&v.CacheDir, v.base}},
			"directory of the storage tier; the run works in rank_<N> inside it", free, place),
		row("io", "direct direct buffered", oneOf(&v.IO, "direct", "buffered"),
			"direct I/O, or buffered with fsync and dropped pages"),
		row("chunk-size", "1MiB", size(&v.ChunkSize, 4*units.KiB, 256*units.MiB),
			"bytes per I/O, a multiple of 4KiB"),
		row("io-depth", "auto auto 1", auto{whole(&v.IODepth, 1, 1024)},
			"chunks in flight per operation; auto: 8 over the workers, at least 1"),
		row("read-share", "0.5", number(&v.ReadShare, 0, 1),
			"of the bytes of StorageCeiling/op=mixed, 0 to 1", place),
		row("max-concurrent-allocs", "0", whole(&v.MaxConcurrentAllocs, 0, endless),
			"entries being written at a time, 0 = no bound"),
		row("request-rate", "0", number(&v.RequestRate, 0, 1e6),
			"requests/s over all users, replaces think time and trace timing; 0 = off"),
		row("request-spacing", "poisson", oneOf(&v.RequestSpacing, "poisson", "constant"),
			"how request-rate spaces arrivals"),
		row("max-requests", "0", whole(&v.MaxRequests, 0, endless),
			"requests per trial, all of which finish; 0 = no bound"),
		row("workers", "0", whole(&v.Workers, 0, 100000),
			"requests being served at a time; 0 = one per user up to 500, 16 for traces"),

		// Which of several clients this is. No result depends on it beyond the streams' seed.
		row("rank", "auto", auto{whole(&v.Rank, 0, math.MaxInt32)},
			"this client's number; auto: Open MPI, PMI or Slurm variables, else 0",
			free, place, unswept),
		row("ranks", "auto", auto{whole(&v.Ranks, 1, math.MaxInt32)},
			"clients in all; auto as for rank, else 1", free, place, unswept),
		row("local-ranks", "auto", auto{whole(&v.LocalRanks, 1, math.MaxInt32)},
			"clients on this host, sharing its filesystem; auto as for rank, else ranks",
			free, place, unswept),

		// What surrounds the window, and what the users do in it.
		row("warmup", "0s", span(&v.Warmup, 0, day),
			"load before the window"),
		row("settle", "0s 0s 90s", span(&v.Settle, 0, day),
			"rest before and after the window"),
		row("performance-profile", "latency", oneOf(&v.PerformanceProfile, "latency", "throughput"),
			"what the storage health of the result judges"),
		row("disable-multi-turn", "false", boolean{&v.DisableMultiTurn},
			"no history reads"),
		row("disable-prefix-caching", "false", boolean{&v.DisablePrefixCaching},
			"no common system prompts"),
		row("enable-rag", "false", boolean{&v.EnableRAG},
			"users retrieve from documents that are written before the window"),
		row("rag-num-docs", "10 100 100", whole(&v.RAGDocuments, 1, 1e7),
			"documents to write"),
		row("prefill-only", "false", boolean{&v.PrefillOnly},
			"requests write and do not decode"),
		row("decode-only", "false", boolean{&v.DecodeOnly},
			"requests read entries that were written before the window"),

		// Recorded requests. Paths are places: results do not differ by where a file lies.
		row("burst-trace-path", "", path{&v.BurstTracePath, v.base},
			"BurstGPT CSV: file, directory or glob", place, unswept),
		row("azure-trace-path", "", path{&v.AzureTracePath, v.base},
			"Azure LLM inference CSV: file, directory or glob", place, unswept),
		row("dataset-path", "", path{&v.DatasetPath, v.base},
			"ShareGPT JSON: file, directory or glob", place, unswept),
		row("max-conversations", "0", whole(&v.MaxConversations, 0, endless),
			"conversations of the dataset, 0 = all"),
		row("tokenizer", "cl100k", oneOf(&v.Tokenizer, "cl100k", "chars"),
			"of the dataset: cl100k (byte pair encoding) or chars (characters/4)"),
		row("block-trace-path", "", path{&v.BlockTracePath, v.base},
			"Mooncake JSON lines or agent session JSON: file, directory or glob", place, unswept),
		row("validation-trace", "", path{&v.ValidationTrace, v.base},
			"JSON list of recorded requests; the run's hit rate and read/write ratio are "+
				"compared with theirs", place, unswept),
		row("layout", "entry", layout{&v.Layout},
			"how the storage tier keeps entries: entry, block (a file each, flushed); for block"+
				" traces also packed=N (N blocks side by side in a file, flushed as written), "+
				"lmcache (files of 256 tokens, no flush), slots (one preallocated file, no flush)"),
		row("trace-speedup", "1", number(&v.TraceSpeedup, 0, unbounded),
			"divides the trace's time gaps; 0 = as fast as possible"),
		row("trace-start", "0s", span(&v.TraceStart, 0, 1000*day),
			"passes over this much of a request trace, counted on its own clock from its first "+
				"request (before trace-speedup): the replay, and every cycle of it, begins there"),
		row("replay-cycles", "1", whole(&v.ReplayCycles, 0, endless),
			"passes through the trace, whose end ends the window; 0 = until the window ends"),
		row("trace-allow-malformed", "false", boolean{&v.TraceAllowMalformed},
			"go on with more than 1 % malformed rows"),

		// Users that follow the storage.
		row("enable-autoscaling", "false", boolean{&v.Autoscaling},
			"let users and workers follow what the storage can do"),
		row("autoscaler-mode", "qos", oneOf(&v.AutoscalerMode, "qos", "capacity"),
			"qos: hold the storage at target-saturation; capacity: add users until throughput "+
				"stops growing"),
		row("target-saturation", "0.8", number(&v.TargetSaturation, 0, 1),
			"of the qos mode, 0 to 1"),
		row("autoscaler-interval", "500ms 10s 10s",
			span(&v.AutoscalerInterval, 100*time.Millisecond, day),
			"between two decisions"),

		// What is written before the window, so that a drive is in its steady state.
		row("precondition", "false", boolean{&v.Precondition},
			"write before the window until the drive is in its steady state"),
		row("precondition-size-gb", "0", gib(&v.PreconditionBytes, maxStorageGiB),
			"GiB to write, 0 = twice the storage tier"),
		row("precondition-threads", "0", whole(&v.PreconditionThreads, 0, 100000),
			"writers, 0 = one per core"),

		// Operations instead of requests, and drives that one does not have.
		row("io-trace-log", "", path{&v.IOTraceLog, v.base},
			"CSV of every cache operation (.zst: compressed), in virtual time: no storage is "+
				"touched, operations take no time, so the mix is that of infinitely fast storage; "+
				"storage-capacity-gb 0 = unlimited", place, unswept),
		row("io-trace-deletes", "false", boolean{&v.IOTraceDeletes},
			"rows for deleted entries, too"),
		row("io-trace-replay", "", path{&v.IOTraceReplay, v.base},
			"I/O trace to carry out on the storage tier, at trace-speedup times its speed, 0 = "+
				"as fast as the workers can", place, unswept),
		row("io-trace-tiers", "storage", oneOf(&v.IOTraceTiers, "storage", "cpu", "gpu", "all"),
			"whose rows are replayed"),
		row("io-trace-phases", "all",
			oneOf(&v.IOTracePhases, "all", "prefill", "decode", "evict", "requests"),
			"which rows are replayed; requests: prefill and decode"),
		row("simulate-device", "", device{&v.Device},
			"run in virtual time on a model of a drive: "+
				"read=14GiB/s,write=7GiB/s,read-latency=80us,write-latency=20us,parallelism=128; "+
				"also read-iops, write-iops, duplex, slice; kvreport device derives it", unswept),

		// What is observed, checked, kept and shown. Most are places: they change nothing that is
		// measured.
		row("sweep", "", word{&v.sweep},
			"key=a,b,c: runs each value (repeatable: each combination) as a sub-benchmark",
			place, unswept),
		row("enable-latency-tracing", "false", boolean{&v.LatencyTracing},
			"count the device's requests in the kernel (eBPF) during the window", free, place),
		row("latency-trace-level", "block", oneOf(&v.TraceLevel, "block", "file"),
			"block: requests at the device; file: read, write and fsync calls too; without "+
				"fexit in the kernel that costs each system call of the machine some 100 ns",
			free, place),
		row("latency-trace-filter", "device", oneOf(&v.TraceFilter, "device", "process"),
			"device: everybody's requests; process: only this run's", free, place),
		row("prefill-rate", "0", number(&v.PrefillRate, 0, unbounded),
			"tokens/s of recomputation, for the break-even line; 0 = not given"),
		row("verify", "none", oneOf(&v.Verify, "none", "sample", "full"),
			"check the bytes that are read"),
		row("nonce", "random", nonce{&v.Nonce},
			"of the content, 1 to 32 hexadecimal digits; random: new per trial", place, unswept),
		row("keep-files", "false", boolean{&v.KeepFiles},
			"leave the run's files in the cache directory", free, place, unswept),
		row("results-dir", "", path{&v.ResultsDir, v.base},
			"of result JSON and summary.txt; default kvbench-results/<time>-<pid>",
			free, place, unswept),
		row("progress", "auto", oneOf(&v.Progress, "auto", "none"),
			"auto: a live line on the controlling terminal, if any", free, place, unswept),
		row("help-parameters", "false", boolean{new(bool)},
			"print this table and end", free, unswept, action),
	}
}

// rows is the table for those who ask about parameters, not about their values.
var rows = table(new(Values))

// position finds rows, in the table of any Values.
var position = func() map[string]int {
	index := make(map[string]int, len(rows))
	for i := range rows {
		index[rows[i].name] = i
	}
	return index
}()

// find returns the row of a name, nil when there is no such parameter.
func find(name string) *parameter {
	if i, ok := position[name]; ok {
		return &rows[i]
	}
	return nil
}
