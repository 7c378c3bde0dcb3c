package params

import (
	"flag"
	"math"
	"time"

	"kvbench/kvbench/units"
)

// parameter is one row of the table: everything there is to know about a parameter. A new one is a
// row and a field of Values; README's table, -help and the environment name follow from the row.
type parameter struct {
	name  string
	def   defaults
	is    traits
	empty string     // what an empty value is called
	value flag.Value // its kind, limits and field; see kinds.go
	help  string
}

// defaults are texts per division: quick, open, closed. They are read as typed texts are, so that a
// default is never a value that nobody could give.
type defaults [len(divisions)]string

func same(text string) defaults { return defaults{text, text, text} }

// A parameter that is not a place decides what a run measures, and so stands in the lines by which
// benchstat keeps outputs apart, and in what the gate compares.
//
// traits are what sets a parameter apart from the others.
type traits uint8

const (
	free    traits = 1 << iota // may be set in the closed division
	place                      // where a run happens or what it shows, never what it measures
	unswept                    // cannot be swept
	// the testing package's: neither our flag nor in environment and file
	goFlag
	action // does something instead of a run
)

func (p *parameter) has(t traits) bool { return p.is&t != 0 }

// show is the value as a person reads it.
func (p *parameter) show(text string) string {
	if text == "" {
		return p.empty
	}
	return text
}

// inFile tells whether a parameter may stand in the section parameters.
func (p *parameter) inFile() bool { return !p.has(goFlag|action) && p.name != "config" }

const none = "–"

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
		{name: "division", def: same("quick"), is: free | unswept,
			value: oneOf(&v.Division, "quick", "open", "closed"),
			help: "quick (small and short), open (everything may be set), closed (MLPerf " +
				"parameters)"},
		{name: "benchtime", def: defaults{"2s", "30s", "300s"}, is: unswept | goFlag,
			value: window{&v.Window},
			help:  "Go's: the measured window, or 500x = until 500 requests are complete"},
		{name: "count", def: defaults{"1", "1", "3"}, is: unswept | goFlag,
			value: whole(&v.Count, 1, endless),
			help:  "Go's: trials"},
		{name: "config", def: same(""), is: place | unswept, empty: none,
			value: path{&v.ConfigFile, v.base},
			help:  "YAML file; unknown keys are errors"},

		// Who asks. Quick is a model of 24 KiB per token, so that a laptop moves some entries in 2
		// s.
		{name: "model", def: defaults{"tiny-1b", "llama3.1-8b", "llama3.1-8b"},
			value: word{&v.ModelName},
			help:  "model key or path of a Hugging Face config.json"},
		{name: "num-users", def: defaults{"4", "100", "200"},
			value: whole(&v.Users, 1, maxUsers),
			help:  "simulated users"},
		{name: "arrival", def: same("open-loop"),
			value: oneOf(&v.Arrival, "open-loop", "closed-loop"),
			help: "open-loop: users do not wait for answers; closed-loop: think time starts " +
				"when the answer is complete"},
		{name: "turns", def: defaults{"ordered", "ordered", "overtaking"},
			value: oneOf(&v.Turns, "ordered", "overtaking"),
			help:  "whether a turn waits until its predecessor's entry is written"},
		{name: "generation-mode", def: same("none"),
			value: oneOf(&v.GenerationMode, generationModes...),
			help:  "sleep per generated token: none 0, fast 2 ms, realistic 30 ms"},
		{name: "decode-reads", def: defaults{"once", "once", "batched"},
			value: oneOf(&v.DecodeReads, "once", "batched"),
			help: "once: decoding reads an entry once; batched: again for every 32 generated " +
				"tokens"},
		{name: "seed", def: same("42"), value: whole(&v.Seed, 0, endless),
			help: "of every stream, plus the rank"},

		// Where entries live. The gpu tier is simulated: no build has a CUDA tier yet.
		{name: "gpu-mem-gb", def: same("0"), value: gib(&v.GPUBytes, maxGPUGiB),
			help: "GiB of one card, 0 = no gpu tier"},
		{name: "num-gpus", def: same("1"), value: whole(&v.GPUs, 1, 65536),
			help: "cards; the gpu tier is all of them"},
		{name: "tensor-parallel", def: same("1"), value: whole(&v.TensorParallel, 1, 65536),
			help: "tensor parallel ranks, at most num-gpus; one rank's I/O is simulated"},
		{name: "tp-rule", def: defaults{"engine", "engine", "mlperf"},
			value: oneOf(&v.TPRule, "engine", "mlperf"),
			help:  "engine: KV heads are split, latents replicated; mlperf: 1/TP always"},
		{name: "cpu-mem-gb", def: same("0"), value: gib(&v.CPUBytes, maxCPUGiB),
			help: "GiB of the cpu tier, 0 = none"},
		{name: "storage-capacity-gb", def: defaults{"4", "0", "0"}, is: free,
			value: gib(&v.StorageBytes, maxStorageGiB),
			help: "GiB of the storage tier, 0 = 95 % of the free space over the ranks of the " +
				"host"},
		{name: "gpu-backend", def: same("simulated"),
			value: choice[string]{&v.GPUBackend, []string{"simulated"},
				map[string]string{"cuda": "simulated: this build has no CUDA tier yet"}},
			help: "simulated: a capacity and a bandwidth, no bytes"},
		{name: "gpu-bandwidth-gbps", def: same("64"), value: number(&v.GPUBandwidth, 0.001, 1e6),
			help: "GiB/s per direction of the simulated gpu's link"},

		// How the storage tier does its I/O, and how fast requests come. Closed is buffered with
		// one chunk in flight, as the program of MLPerf is.
		{name: "cache-dir", def: same(""), is: free | place, empty: "temporary",
			value: directory{path{&v.CacheDir, v.base}},
			help:  "directory of the storage tier; the run works in rank_<N> inside it"},
		{name: "io", def: defaults{"direct", "direct", "buffered"},
			value: oneOf(&v.IO, "direct", "buffered"),
			help:  "direct I/O, or buffered with fsync and dropped pages"},
		{name: "chunk-size", def: same("1MiB"),
			value: size(&v.ChunkSize, 4*units.KiB, 256*units.MiB),
			help:  "bytes per I/O, a multiple of 4KiB"},
		{name: "io-depth", def: defaults{"auto", "auto", "1"},
			value: auto{whole(&v.IODepth, 1, 1024)},
			help:  "chunks in flight per operation; auto: 8 over the workers, at least 1"},
		{name: "read-share", def: same("0.5"), is: place, value: number(&v.ReadShare, 0, 1),
			help: "of the bytes of StorageCeiling/op=mixed, 0 to 1"},
		{name: "max-concurrent-allocs", def: same("0"),
			value: whole(&v.MaxConcurrentAllocs, 0, endless),
			help:  "entries being written at a time, 0 = no bound"},
		{name: "request-rate", def: same("0"), value: number(&v.RequestRate, 0, 1e6),
			help: "requests/s over all users, replaces think time and trace timing; 0 = off"},
		{name: "request-spacing", def: same("poisson"),
			value: oneOf(&v.RequestSpacing, "poisson", "constant"),
			help:  "how request-rate spaces arrivals"},
		{name: "max-requests", def: same("0"),
			value: whole(&v.MaxRequests, 0, endless),
			help:  "requests per trial, all of which finish; 0 = no bound"},
		{name: "workers", def: same("0"), value: whole(&v.Workers, 0, 100000),
			help: "requests being served at a time; 0 = one per user up to 500, 16 for traces"},

		// Which of several clients this is. No result depends on it beyond the streams' seed.
		{name: "rank", def: same("auto"), is: free | place | unswept,
			value: auto{whole(&v.Rank, 0, math.MaxInt32)},
			help:  "this client's number; auto: Open MPI, PMI or Slurm variables, else 0"},
		{name: "ranks", def: same("auto"), is: free | place | unswept,
			value: auto{whole(&v.Ranks, 1, math.MaxInt32)},
			help:  "clients in all; auto as for rank, else 1"},
		{name: "local-ranks", def: same("auto"), is: free | place | unswept,
			value: auto{whole(&v.LocalRanks, 1, math.MaxInt32)},
			help:  "clients on this host, sharing its filesystem; auto as for rank, else ranks"},

		// What surrounds the window, and what the users do in it.
		{name: "warmup", def: same("0s"), value: span(&v.Warmup, 0, day),
			help: "load before the window"},
		{name: "settle", def: defaults{"0s", "0s", "90s"}, value: span(&v.Settle, 0, day),
			help: "rest before and after the window"},
		{name: "performance-profile", def: same("latency"),
			value: oneOf(&v.PerformanceProfile, "latency", "throughput"),
			help:  "what the storage health of the result judges"},
		{name: "disable-multi-turn", def: same("false"), value: boolean{&v.DisableMultiTurn},
			help: "no history reads"},
		{name: "disable-prefix-caching", def: same("false"),
			value: boolean{&v.DisablePrefixCaching},
			help:  "no common system prompts"},
		{name: "enable-rag", def: same("false"), value: boolean{&v.EnableRAG},
			help: "users retrieve from documents that are written before the window"},
		{name: "rag-num-docs", def: defaults{"10", "100", "100"},
			value: whole(&v.RAGDocuments, 1, 1e7),
			help:  "documents to write"},
		{name: "prefill-only", def: same("false"), value: boolean{&v.PrefillOnly},
			help: "requests write and do not decode"},
		{name: "decode-only", def: same("false"), value: boolean{&v.DecodeOnly},
			help: "requests read entries that were written before the window"},

		// Recorded requests. Paths are places: results do not differ by where a file lies.
		{name: "burst-trace-path", def: same(""), is: place | unswept, empty: none,
			value: path{&v.BurstTracePath, v.base},
			help:  "BurstGPT CSV: file, directory or glob"},
		{name: "azure-trace-path", def: same(""), is: place | unswept, empty: none,
			value: path{&v.AzureTracePath, v.base},
			help:  "Azure LLM inference CSV: file, directory or glob"},
		{name: "dataset-path", def: same(""), is: place | unswept, empty: none,
			value: path{&v.DatasetPath, v.base},
			help:  "ShareGPT JSON: file, directory or glob"},
		{name: "max-conversations", def: same("0"),
			value: whole(&v.MaxConversations, 0, endless),
			help:  "conversations of the dataset, 0 = all"},
		{name: "tokenizer", def: same("cl100k"), value: oneOf(&v.Tokenizer, "cl100k", "chars"),
			help: "of the dataset: cl100k (byte pair encoding) or chars (characters/4)"},
		{name: "block-trace-path", def: same(""), is: place | unswept, empty: none,
			value: path{&v.BlockTracePath, v.base},
			help:  "Mooncake JSON lines or agent session JSON: file, directory or glob"},
		{name: "validation-trace", def: same(""), is: place | unswept, empty: none,
			value: path{&v.ValidationTrace, v.base},
			help: "JSON list of recorded requests; the run's hit rate and read/write ratio are " +
				"compared with theirs"},
		{name: "layout", def: same("entry"), value: layout{&v.Layout},
			help: "how the storage tier keeps entries: entry, block (a file each, flushed); for" +
				" block traces also packed=N (N blocks side by side in a file, flushed as " +
				"written), lmcache (files of 256 tokens, no flush), slots (one preallocated " +
				"file, no flush)"},
		{name: "trace-speedup", def: same("1"), value: number(&v.TraceSpeedup, 0, unbounded),
			help: "divides the trace's time gaps; 0 = as fast as possible"},
		{name: "trace-start", def: same("0s"), value: span(&v.TraceStart, 0, 1000*day),
			help: "passes over this much of a request trace, counted on its own clock from its " +
				"first request (before trace-speedup): the replay, and every cycle of it, " +
				"begins there"},
		{name: "replay-cycles", def: same("1"),
			value: whole(&v.ReplayCycles, 0, endless),
			help: "passes through the trace, whose end ends the window; 0 = until the window " +
				"ends"},
		{name: "trace-allow-malformed", def: same("false"), value: boolean{&v.TraceAllowMalformed},
			help: "go on with more than 1 % malformed rows"},

		// Users that follow the storage.
		{name: "enable-autoscaling", def: same("false"), value: boolean{&v.Autoscaling},
			help: "let users and workers follow what the storage can do"},
		{name: "autoscaler-mode", def: same("qos"),
			value: oneOf(&v.AutoscalerMode, "qos", "capacity"),
			help: "qos: hold the storage at target-saturation; capacity: add users until " +
				"throughput stops growing"},
		{name: "target-saturation", def: same("0.8"), value: number(&v.TargetSaturation, 0, 1),
			help: "of the qos mode, 0 to 1"},
		{name: "autoscaler-interval", def: defaults{"500ms", "10s", "10s"},
			value: span(&v.AutoscalerInterval, 100*time.Millisecond, day),
			help:  "between two decisions"},

		// What is written before the window, so that a drive is in its steady state.
		{name: "precondition", def: same("false"), value: boolean{&v.Precondition},
			help: "write before the window until the drive is in its steady state"},
		{name: "precondition-size-gb", def: same("0"),
			value: gib(&v.PreconditionBytes, maxStorageGiB),
			help:  "GiB to write, 0 = twice the storage tier"},
		{name: "precondition-threads", def: same("0"),
			value: whole(&v.PreconditionThreads, 0, 100000),
			help:  "writers, 0 = one per core"},

		// Operations instead of requests, and drives that one does not have.
		{name: "io-trace-log", def: same(""), is: place | unswept, empty: none,
			value: path{&v.IOTraceLog, v.base},
			help: "CSV of every cache operation (.zst: compressed), in virtual time: no storage" +
				" is touched, operations take no time, so the mix is that of infinitely fast " +
				"storage; storage-capacity-gb 0 = unlimited"},
		{name: "io-trace-deletes", def: same("false"), value: boolean{&v.IOTraceDeletes},
			help: "rows for deleted entries, too"},
		{name: "io-trace-replay", def: same(""), is: place | unswept, empty: none,
			value: path{&v.IOTraceReplay, v.base},
			help: "I/O trace to carry out on the storage tier, at trace-speedup times its " +
				"speed, 0 = as fast as the workers can"},
		{name: "io-trace-tiers", def: same("storage"),
			value: oneOf(&v.IOTraceTiers, "storage", "cpu", "gpu", "all"),
			help:  "whose rows are replayed"},
		{name: "io-trace-phases", def: same("all"),
			value: oneOf(&v.IOTracePhases, "all", "prefill", "decode", "evict", "requests"),
			help:  "which rows are replayed; requests: prefill and decode"},
		{name: "simulate-device", def: same(""), is: unswept, empty: none,
			value: device{&v.Device},
			help: "run in virtual time on a model of a drive: read=14GiB/s,write=7GiB/s," +
				"read-latency=80us,write-latency=20us,parallelism=128; also read-iops, " +
				"write-iops, duplex, slice; kvreport device derives it"},

		// What is observed, checked, kept and shown. Most are places: they change nothing that is
		// measured.
		{name: "sweep", def: same(""), is: place | unswept, empty: none, value: word{&v.sweep},
			help: "key=a,b,c: runs each value (repeatable: each combination) as a sub-benchmark"},
		{name: "enable-latency-tracing", def: same("false"), is: free | place,
			value: boolean{&v.LatencyTracing},
			help:  "count the device's requests in the kernel (eBPF) during the window"},
		{name: "latency-trace-level", def: same("block"), is: free | place,
			value: oneOf(&v.TraceLevel, "block", "file"),
			help: "block: requests at the device; file: read, write and fsync calls too; " +
				"without fexit in the kernel that costs each system call of the machine some " +
				"100 ns"},
		{name: "latency-trace-filter", def: same("device"), is: free | place,
			value: oneOf(&v.TraceFilter, "device", "process"),
			help:  "device: everybody's requests; process: only this run's"},
		{name: "prefill-rate", def: same("0"), value: number(&v.PrefillRate, 0, unbounded),
			help: "tokens/s of recomputation, for the break-even line; 0 = not given"},
		{name: "verify", def: same("none"), value: oneOf(&v.Verify, "none", "sample", "full"),
			help: "check the bytes that are read"},
		{name: "nonce", def: same("random"), is: place | unswept, value: nonce{&v.Nonce},
			help: "of the content, 1 to 32 hexadecimal digits; random: new per trial"},
		{name: "keep-files", def: same("false"), is: free | place | unswept,
			value: boolean{&v.KeepFiles},
			help:  "leave the run's files in the cache directory"},
		{name: "results-dir", def: same(""), is: free | place | unswept,
			value: path{&v.ResultsDir, v.base},
			help:  "of result JSON and summary.txt; default kvbench-results/<time>-<pid>"},
		{name: "progress", def: same("auto"), is: free | place | unswept,
			value: oneOf(&v.Progress, "auto", "none"),
			help:  "auto: a live line on the controlling terminal, if any"},
		{name: "help-parameters", def: same("false"), is: free | unswept | action,
			value: boolean{new(bool)},
			help:  "print this table and end"},
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
