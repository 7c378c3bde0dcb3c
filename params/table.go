package params

import "math"

// parameter is one row of the table: everything there is to know about a parameter.
type parameter struct {
	name    string
	kind    kind
	def     defaults
	choices []string          // of an enum
	refused map[string]string // enum values that exist elsewhere but not here, and what must be given instead
	min     float64           // in the unit that kind names
	max     float64
	help    string
	free    bool // may be set in the closed division
	place   bool // says where the run happens, what it shows or how runs are named, never what one run measures
	noSweep bool
	goFlag  bool   // belongs to the testing package (test.<name>): neither our flag nor in environment and file
	action  bool   // does something instead of a run
	empty   string // what an empty value is called
	field   func(*Values) any
}

// defaults are texts per division: quick, open, closed.
type defaults [len(divisions)]string

func same(text string) defaults { return defaults{text, text, text} }

// show is the value as a person reads it.
func (p *parameter) show(text string) string {
	if text == "" {
		return p.empty
	}
	return text
}

const none = "–"

// unbounded is the upper limit of what the specification only calls non-negative.
var unbounded = math.Inf(1)

// tierLimits of spec 19, in GiB. A storage tier has no limit of its own: 1 EiB keeps byte counts inside an int64.
const (
	maxGPUGiB     = 65536
	maxCPUGiB     = 131072
	maxStorageGiB = 1 << 30
	maxUsers      = 100000
	daySeconds    = 24 * 60 * 60
)

// table is every parameter, in the order in which they are listed. Resolve, flags, environment, file, sweep, help and the
// closed division all read it; nothing else knows a parameter's name.
var table = []parameter{
	{name: "division", kind: kindEnum, def: same("quick"), choices: []string{"quick", "open", "closed"}, free: true, noSweep: true,
		help:  "quick (small and short), open (everything may be set), closed (MLPerf parameters)",
		field: func(v *Values) any { return &v.Division }},
	{name: "benchtime", kind: kindWindow, def: defaults{"2s", "30s", "300s"}, goFlag: true, noSweep: true,
		help:  "Go's: the measured window, or 500x = until 500 requests are complete",
		field: func(v *Values) any { return &v.Window }},
	{name: "count", kind: kindInt, def: defaults{"1", "1", "3"}, min: 1, max: unbounded, goFlag: true, noSweep: true,
		help:  "Go's: trials",
		field: func(v *Values) any { return &v.Count }},
	{name: "config", kind: kindPath, def: same(""), empty: none, noSweep: true, place: true,
		help:  "YAML file; unknown keys are errors",
		field: func(v *Values) any { return &v.ConfigFile }},

	{name: "model", kind: kindModel, def: defaults{"tiny-1b", "llama3.1-8b", "llama3.1-8b"},
		help:  "model key or path of a Hugging Face config.json",
		field: func(v *Values) any { return &v.ModelName }},
	{name: "num-users", kind: kindInt, def: defaults{"4", "100", "200"}, min: 1, max: maxUsers,
		help:  "simulated users",
		field: func(v *Values) any { return &v.Users }},
	{name: "arrival", kind: kindEnum, def: same("open-loop"), choices: []string{"open-loop", "closed-loop"},
		help:  "open-loop: users do not wait for answers; closed-loop: think time starts when the answer is complete",
		field: func(v *Values) any { return &v.Arrival }},
	{name: "turns", kind: kindEnum, def: defaults{"ordered", "ordered", "overtaking"}, choices: []string{"ordered", "overtaking"},
		help:  "whether a turn waits until its predecessor's entry is written",
		field: func(v *Values) any { return &v.Turns }},
	{name: "generation-mode", kind: kindEnum, def: same("none"), choices: []string{"none", "fast", "realistic"},
		help:  "sleep per generated token: none 0, fast 2 ms, realistic 30 ms",
		field: func(v *Values) any { return &v.GenerationMode }},
	{name: "decode-reads", kind: kindEnum, def: defaults{"once", "once", "batched"}, choices: []string{"once", "batched"},
		help:  "once: decoding reads an entry once; batched: again for every 32 generated tokens",
		field: func(v *Values) any { return &v.DecodeReads }},
	{name: "seed", kind: kindInt, def: same("42"), max: unbounded,
		help:  "of every stream, plus the rank",
		field: func(v *Values) any { return &v.Seed }},

	{name: "gpu-mem-gb", kind: kindGiB, def: same("0"), max: maxGPUGiB,
		help:  "GiB of one card, 0 = no gpu tier",
		field: func(v *Values) any { return &v.GPUBytes }},
	{name: "num-gpus", kind: kindInt, def: same("1"), min: 1, max: 65536,
		help:  "cards; the gpu tier is all of them",
		field: func(v *Values) any { return &v.GPUs }},
	{name: "tensor-parallel", kind: kindInt, def: same("1"), min: 1, max: 65536,
		help:  "tensor parallel ranks, at most num-gpus; one rank's I/O is simulated",
		field: func(v *Values) any { return &v.TensorParallel }},
	{name: "tp-rule", kind: kindEnum, def: defaults{"engine", "engine", "mlperf"}, choices: []string{"engine", "mlperf"},
		help:  "engine: KV heads are split, latents replicated; mlperf: 1/TP always",
		field: func(v *Values) any { return &v.TPRule }},
	{name: "cpu-mem-gb", kind: kindGiB, def: same("0"), max: maxCPUGiB,
		help:  "GiB of the cpu tier, 0 = none",
		field: func(v *Values) any { return &v.CPUBytes }},
	{name: "storage-capacity-gb", kind: kindGiB, def: defaults{"4", "0", "0"}, max: maxStorageGiB, free: true,
		help:  "GiB of the storage tier, 0 = 95 % of the free space over the ranks of the host",
		field: func(v *Values) any { return &v.StorageBytes }},
	{name: "gpu-backend", kind: kindEnum, def: same("simulated"), choices: []string{"simulated"},
		refused: map[string]string{"cuda": "simulated: this build has no CUDA tier yet"},
		help:    "simulated: a capacity and a bandwidth, no bytes",
		field:   func(v *Values) any { return &v.GPUBackend }},
	{name: "gpu-bandwidth-gbps", kind: kindFloat, def: same("64"), min: 0.001, max: 1e6,
		help:  "GiB/s per direction of the simulated gpu's link",
		field: func(v *Values) any { return &v.GPUBandwidth }},

	{name: "cache-dir", kind: kindCacheDir, def: same(""), empty: "temporary", free: true, place: true,
		help:  "directory of the storage tier; the run works in rank_<N> inside it",
		field: func(v *Values) any { return &v.CacheDir }},
	{name: "io", kind: kindEnum, def: defaults{"direct", "direct", "buffered"}, choices: []string{"direct", "buffered"},
		help:  "direct I/O, or buffered with fsync and dropped pages",
		field: func(v *Values) any { return &v.IO }},
	{name: "chunk-size", kind: kindSize, def: same("1MiB"), min: 4096, max: float64(256 * MiB),
		help:  "bytes per I/O, a multiple of 4KiB",
		field: func(v *Values) any { return &v.ChunkSize }},
	{name: "io-depth", kind: kindAuto, def: defaults{"auto", "auto", "1"}, min: 1, max: 1024,
		help:  "chunks in flight per operation; auto: 8 over the workers, at least 1",
		field: func(v *Values) any { return &v.IODepth }},
	{name: "read-share", kind: kindFloat, def: same("0.5"), max: 1, place: true,
		help:  "of the bytes of StorageCeiling/op=mixed, 0 to 1",
		field: func(v *Values) any { return &v.ReadShare }},
	{name: "max-concurrent-allocs", kind: kindInt, def: same("0"), max: unbounded,
		help:  "entries being written at a time, 0 = no bound",
		field: func(v *Values) any { return &v.MaxConcurrentAllocs }},
	{name: "request-rate", kind: kindFloat, def: same("0"), max: 1e6,
		help:  "requests/s over all users, replaces think time and trace timing; 0 = off",
		field: func(v *Values) any { return &v.RequestRate }},
	{name: "request-spacing", kind: kindEnum, def: same("poisson"), choices: []string{"poisson", "constant"},
		help:  "how request-rate spaces arrivals",
		field: func(v *Values) any { return &v.RequestSpacing }},
	{name: "max-requests", kind: kindInt, def: same("0"), max: unbounded,
		help:  "requests per trial, all of which finish; 0 = no bound",
		field: func(v *Values) any { return &v.MaxRequests }},
	{name: "workers", kind: kindInt, def: same("0"), max: 100000,
		help:  "requests being served at a time; 0 = one per user up to 500, 16 for traces",
		field: func(v *Values) any { return &v.Workers }},

	{name: "rank", kind: kindAuto, def: same("auto"), max: math.MaxInt32, free: true, place: true, noSweep: true,
		help:  "this client's number; auto: Open MPI, PMI or Slurm variables, else 0",
		field: func(v *Values) any { return &v.Rank }},
	{name: "ranks", kind: kindAuto, def: same("auto"), min: 1, max: math.MaxInt32, free: true, place: true, noSweep: true,
		help:  "clients in all; auto as for rank, else 1",
		field: func(v *Values) any { return &v.Ranks }},
	{name: "local-ranks", kind: kindAuto, def: same("auto"), min: 1, max: math.MaxInt32, free: true, place: true, noSweep: true,
		help:  "clients on this host, sharing its filesystem; auto as for rank, else ranks",
		field: func(v *Values) any { return &v.LocalRanks }},

	{name: "warmup", kind: kindDuration, def: same("0s"), max: daySeconds,
		help:  "load before the window",
		field: func(v *Values) any { return &v.Warmup }},
	{name: "settle", kind: kindDuration, def: defaults{"0s", "0s", "90s"}, max: daySeconds,
		help:  "rest before and after the window",
		field: func(v *Values) any { return &v.Settle }},
	{name: "performance-profile", kind: kindEnum, def: same("latency"), choices: []string{"latency", "throughput"},
		help:  "what the storage health of the result judges",
		field: func(v *Values) any { return &v.PerformanceProfile }},
	{name: "disable-multi-turn", kind: kindBool, def: same("false"),
		help:  "no history reads",
		field: func(v *Values) any { return &v.DisableMultiTurn }},
	{name: "disable-prefix-caching", kind: kindBool, def: same("false"),
		help:  "no common system prompts",
		field: func(v *Values) any { return &v.DisablePrefixCaching }},
	{name: "enable-rag", kind: kindBool, def: same("false"),
		help:  "users retrieve from documents that are written before the window",
		field: func(v *Values) any { return &v.EnableRAG }},
	{name: "rag-num-docs", kind: kindInt, def: defaults{"10", "100", "100"}, min: 1, max: 1e7,
		help:  "documents to write",
		field: func(v *Values) any { return &v.RAGDocuments }},
	{name: "prefill-only", kind: kindBool, def: same("false"),
		help:  "requests write and do not decode",
		field: func(v *Values) any { return &v.PrefillOnly }},
	{name: "decode-only", kind: kindBool, def: same("false"),
		help:  "requests read entries that were written before the window",
		field: func(v *Values) any { return &v.DecodeOnly }},

	{name: "burst-trace-path", kind: kindPath, def: same(""), empty: none, noSweep: true, place: true,
		help:  "BurstGPT CSV: file, directory or glob",
		field: func(v *Values) any { return &v.BurstTracePath }},
	{name: "azure-trace-path", kind: kindPath, def: same(""), empty: none, noSweep: true, place: true,
		help:  "Azure LLM inference CSV: file, directory or glob",
		field: func(v *Values) any { return &v.AzureTracePath }},
	{name: "dataset-path", kind: kindPath, def: same(""), empty: none, noSweep: true, place: true,
		help:  "ShareGPT JSON: file, directory or glob",
		field: func(v *Values) any { return &v.DatasetPath }},
	{name: "max-conversations", kind: kindInt, def: same("0"), max: unbounded,
		help:  "conversations of the dataset, 0 = all",
		field: func(v *Values) any { return &v.MaxConversations }},
	{name: "tokenizer", kind: kindEnum, def: same("cl100k"), choices: []string{"cl100k", "chars"},
		help:  "of the dataset: cl100k (byte pair encoding) or chars (characters/4)",
		field: func(v *Values) any { return &v.Tokenizer }},
	{name: "block-trace-path", kind: kindPath, def: same(""), empty: none, noSweep: true, place: true,
		help:  "Mooncake JSON lines or agent session JSON: file, directory or glob",
		field: func(v *Values) any { return &v.BlockTracePath }},
	{name: "validation-trace", kind: kindPath, def: same(""), empty: none, noSweep: true, place: true,
		help:  "JSON list of recorded requests; the run's hit rate and read/write ratio are compared with theirs",
		field: func(v *Values) any { return &v.ValidationTrace }},
	{name: "layout", kind: kindLayout, def: same("entry"), choices: []string{"entry", "block", "slots", "lmcache"}, min: 2, max: 1024,
		help: "how the storage tier keeps entries: entry, block (a file each, flushed); for block traces also packed=N (N blocks " +
			"side by side in a file, flushed as written), lmcache (files of 256 tokens, no flush), slots (one preallocated file, no flush)",
		field: func(v *Values) any { return &v.Layout }},
	{name: "trace-speedup", kind: kindFloat, def: same("1"), max: unbounded,
		help:  "divides the trace's time gaps; 0 = as fast as possible",
		field: func(v *Values) any { return &v.TraceSpeedup }},
	{name: "trace-start", kind: kindDuration, def: same("0s"), max: 1000 * daySeconds,
		help:  "passes over this much of a request trace, counted on its own clock from its first request (before trace-speedup): the replay, and every cycle of it, begins there",
		field: func(v *Values) any { return &v.TraceStart }},
	{name: "replay-cycles", kind: kindInt, def: same("1"), max: unbounded,
		help:  "passes through the trace, whose end ends the window; 0 = until the window ends",
		field: func(v *Values) any { return &v.ReplayCycles }},
	{name: "trace-allow-malformed", kind: kindBool, def: same("false"),
		help:  "go on with more than 1 % malformed rows",
		field: func(v *Values) any { return &v.TraceAllowMalformed }},

	{name: "enable-autoscaling", kind: kindBool, def: same("false"),
		help:  "let users and workers follow what the storage can do",
		field: func(v *Values) any { return &v.Autoscaling }},
	{name: "autoscaler-mode", kind: kindEnum, def: same("qos"), choices: []string{"qos", "capacity"},
		help:  "qos: hold the storage at target-saturation; capacity: add users until throughput stops growing",
		field: func(v *Values) any { return &v.AutoscalerMode }},
	{name: "target-saturation", kind: kindFloat, def: same("0.8"), max: 1,
		help:  "of the qos mode, 0 to 1",
		field: func(v *Values) any { return &v.TargetSaturation }},
	{name: "autoscaler-interval", kind: kindDuration, def: defaults{"500ms", "10s", "10s"}, min: 0.1, max: daySeconds,
		help:  "between two decisions",
		field: func(v *Values) any { return &v.AutoscalerInterval }},

	{name: "precondition", kind: kindBool, def: same("false"),
		help:  "write before the window until the drive is in its steady state",
		field: func(v *Values) any { return &v.Precondition }},
	{name: "precondition-size-gb", kind: kindGiB, def: same("0"), max: maxStorageGiB,
		help:  "GiB to write, 0 = twice the storage tier",
		field: func(v *Values) any { return &v.PreconditionBytes }},
	{name: "precondition-threads", kind: kindInt, def: same("0"), max: 100000,
		help:  "writers, 0 = one per core",
		field: func(v *Values) any { return &v.PreconditionThreads }},

	{name: "io-trace-log", kind: kindPath, def: same(""), empty: none, place: true, noSweep: true,
		help:  "CSV of every cache operation (.zst: compressed), in virtual time: no storage is touched, operations take no time, so the mix is that of infinitely fast storage; storage-capacity-gb 0 = unlimited",
		field: func(v *Values) any { return &v.IOTraceLog }},
	{name: "io-trace-deletes", kind: kindBool, def: same("false"),
		help:  "rows for deleted entries, too",
		field: func(v *Values) any { return &v.IOTraceDeletes }},
	{name: "io-trace-replay", kind: kindPath, def: same(""), empty: none, noSweep: true, place: true,
		help:  "I/O trace to carry out on the storage tier, at trace-speedup times its speed, 0 = as fast as the workers can",
		field: func(v *Values) any { return &v.IOTraceReplay }},
	{name: "io-trace-tiers", kind: kindEnum, def: same("storage"), choices: []string{"storage", "cpu", "gpu", "all"},
		help:  "whose rows are replayed",
		field: func(v *Values) any { return &v.IOTraceTiers }},
	{name: "io-trace-phases", kind: kindEnum, def: same("all"), choices: []string{"all", "prefill", "decode", "evict", "requests"},
		help:  "which rows are replayed; requests: prefill and decode",
		field: func(v *Values) any { return &v.IOTracePhases }},
	{name: "simulate-device", kind: kindDevice, def: same(""), empty: none, noSweep: true,
		help:  "run in virtual time on a model of a drive: read=14GiB/s,write=7GiB/s,read-latency=80us,write-latency=20us,parallelism=128; also read-iops, write-iops, duplex, slice; kvreport device derives it",
		field: func(v *Values) any { return &v.SimulateDevice }},

	{name: "sweep", kind: kindSweep, def: same(""), empty: none, noSweep: true, place: true,
		help:  "key=a,b,c: runs each value (repeatable: each combination) as a sub-benchmark",
		field: func(*Values) any { return nil }},
	{name: "enable-latency-tracing", kind: kindBool, def: same("false"), free: true, place: true,
		help:  "count the device's requests in the kernel (eBPF) during the window",
		field: func(v *Values) any { return &v.LatencyTracing }},
	{name: "latency-trace-level", kind: kindEnum, def: same("block"), choices: []string{"block", "file"}, free: true, place: true,
		help:  "block: requests at the device; file: read, write and fsync calls too; without fexit in the kernel that costs each system call of the machine some 100 ns",
		field: func(v *Values) any { return &v.TraceLevel }},
	{name: "latency-trace-filter", kind: kindEnum, def: same("device"), choices: []string{"device", "process"}, free: true, place: true,
		help:  "device: everybody's requests; process: only this run's",
		field: func(v *Values) any { return &v.TraceFilter }},
	{name: "prefill-rate", kind: kindFloat, def: same("0"), max: unbounded,
		help:  "tokens/s of recomputation, for the break-even line; 0 = not given",
		field: func(v *Values) any { return &v.PrefillRate }},
	{name: "verify", kind: kindEnum, def: same("none"), choices: []string{"none", "sample", "full"},
		help:  "check the bytes that are read",
		field: func(v *Values) any { return &v.Verify }},
	{name: "nonce", kind: kindNonce, def: same("random"), noSweep: true, place: true,
		help:  "of the content, 1 to 32 hexadecimal digits; random: new per trial",
		field: func(v *Values) any { return &v.nonce }},
	{name: "keep-files", kind: kindBool, def: same("false"), free: true, place: true, noSweep: true,
		help:  "leave the run's files in the cache directory",
		field: func(v *Values) any { return &v.KeepFiles }},
	{name: "results-dir", kind: kindPath, def: same(""), free: true, place: true, noSweep: true,
		help:  "of result JSON and summary.txt; default kvbench-results/<time>-<pid>",
		field: func(v *Values) any { return &v.ResultsDir }},
	{name: "progress", kind: kindEnum, def: same("auto"), choices: []string{"auto", "none"}, free: true, place: true, noSweep: true,
		help:  "auto: a live line on the controlling terminal, if any",
		field: func(v *Values) any { return &v.Progress }},
	{name: "help-parameters", kind: kindBool, def: same("false"), free: true, noSweep: true, action: true,
		help:  "print this table and end",
		field: func(*Values) any { return new(bool) }},
}

// byName finds rows.
var byName = func() map[string]*parameter {
	index := make(map[string]*parameter, len(table))
	for i := range table {
		index[table[i].name] = &table[i]
	}
	return index
}()
