package params

import (
	_ "embed"
	"maps"
	"strings"

	"kvbench/kvbench/result"
)

// Division says how much freedom a run has.
type Division string

// The divisions. Quick is small and short, Open lets everything be set, Closed is the MLPerf
// parameters and nothing else.
const (
	Quick  Division = result.DivisionQuick
	Open   Division = result.DivisionOpen
	Closed Division = result.DivisionClosed
)

// divisions is the order of the defaults in the table.
var divisions = [...]Division{Quick, Open, Closed}

// Load says where a benchmark's requests come from.
type Load uint8

// The loads.
const (
	LoadNone   Load = iota // no requests: tiers, data generation, the ceiling
	LoadUsers              // synthetic users
	LoadTrace              // a request trace
	LoadReplay             // an I/O trace: operations rather than requests
)

// Bench is one benchmark: the layer between the YAML file and the division's defaults. It gives the
// benchmark its character (what it sets in every division) and its size (what it sets in one). Keys
// are parameter names, or dotted keys of the YAML file for the users' profile; values are texts as
// a person would give them.
type Bench struct {
	Name   string // without the word Benchmark
	Option int    // the MLPerf option, 0 = none
	Load   Load   // where requests come from
	Needs  string // a parameter without which it skips
	all    map[string]string
	only   map[Division]map[string]string
	left   []string // parameters that the closed division leaves open with this one alone
}

// settings are the texts that the benchmark sets in a division.
func (b Bench) settings(d Division) map[string]string {
	m := make(map[string]string)
	maps.Copy(m, b.all)
	maps.Copy(m, b.only[d])
	return m
}

// option builds the benchmark of an MLPerf option. Open and closed take the option's own
// parameters. Quick keeps what the option is about (no cache above the storage; a cpu tier on top;
// a larger model with fewer writers) at a size that a laptop's disk serves in seconds.
func option(name string, number int, full, quick map[string]string) Bench {
	return Bench{Name: name, Option: number, Load: LoadUsers,
		all:  map[string]string{"generation-mode": "none", "decode-reads": "batched"},
		only: map[Division]map[string]string{Quick: quick, Open: full, Closed: full}}
}

// Benchmarks returns all benchmarks that take parameters, in the order in which they run.
func Benchmarks() []Bench {
	type m = map[string]string
	type divided = map[Division]map[string]string
	fewer := divided{Open: m{"num-users": "32"}}
	// What Engines ranks where nobody says otherwise: all there are (TestEveryEngineIsRanked).
	const everyEngine = "engine=vllm,lmcache,sglang,mooncake,dynamo"
	// Recorded requests are played as fast as it goes in quick: their own gaps take hours.
	fast := divided{Quick: m{"trace-speedup": "0"}}
	// They start small and grow on their own.
	growing := divided{Quick: m{"num-users": "2"}, Open: m{"num-users": "10"}}
	return []Bench{
		// The three workloads of MLPerf Storage v3.0.
		option("MaxStorageStress", 1,
			m{"model": "llama3.1-8b", "num-users": "200", "gpu-mem-gb": "0", "cpu-mem-gb": "0",
				"max-concurrent-allocs": "16"},
			m{"model": "tiny-1b", "num-users": "8", "max-concurrent-allocs": "4"}),
		option("StorageThroughput", 2,
			m{"model": "llama3.1-8b", "num-users": "100", "gpu-mem-gb": "0", "cpu-mem-gb": "4",
				"max-concurrent-allocs": "16"},
			m{"model": "tiny-1b", "num-users": "6", "max-concurrent-allocs": "4",
				"cpu-mem-gb": "0.5"}),
		option("LargeModel", 3,
			m{"model": "llama3.1-70b-instruct", "num-users": "70", "gpu-mem-gb": "0",
				"cpu-mem-gb": "0", "max-concurrent-allocs": "4"},
			m{"model": "gpt-oss-20b", "num-users": "4", "max-concurrent-allocs": "2"}),
		{Name: "Synthetic", Load: LoadUsers},
		{Name: "PrefillOnly", Load: LoadUsers, all: m{"prefill-only": "true"}},
		// Ten entries of 2048 tokens per user are written before the window: 0.9 GiB in quick, 40
		// GiB in open.
		{Name: "DecodeOnly", Load: LoadUsers, all: m{"decode-only": "true"},
			only: divided{Quick: m{"num-users": "2"}, Open: m{"num-users": "16"}}},
		// Long conversations: on average twenty turns, so that history reads outweigh everything
		// else.
		{Name: "MultiTurn", Load: LoadUsers, only: fewer,
			all: m{"conversation.end_conversation_probability": "0.05"}},
		{Name: "RAG", Load: LoadUsers, only: fewer, all: m{"enable-rag": "true"}},
		{Name: "ShareGPT", Load: LoadTrace, Needs: "dataset-path"},
		{Name: "BurstGPT", Load: LoadTrace, Needs: "burst-trace-path", only: fast},
		{Name: "AzureTrace", Load: LoadTrace, Needs: "azure-trace-path", only: fast},
		{Name: "AutoscaleQoS", Load: LoadUsers, only: growing,
			all: m{"enable-autoscaling": "true", "autoscaler-mode": "qos"}},
		{Name: "AutoscaleCapacity", Load: LoadUsers, only: growing,
			all: m{"enable-autoscaling": "true", "autoscaler-mode": "capacity"}},
		{Name: "IOTraceReplay", Load: LoadReplay, Needs: "io-trace-replay", only: fast},
		// Blocks are read once: there are no decode re-reads to batch.
		{Name: "BlockTrace", Load: LoadTrace, Needs: "block-trace-path", only: fast},
		// One after the other on the same requests, the trace as a whole but in quick. In closed it
		// does not run.
		{Name: result.BenchmarkEngines, Load: LoadTrace, Needs: "block-trace-path",
			all: m{"trace-speedup": "0"}, only: divided{Quick: m{"sweep": everyEngine},
				Open: m{"sweep": everyEngine, "benchtime": "21600s"}}},
		// Closed is a model as a whole, once; how requests come to the storage, and which files are
		// read where, is the submitter's (MLPerf Storage rules, "Checkpointing"). What else they
		// say of the parameters that are left open stands in closedCheckpoint.
		{Name: "Checkpoint", all: m{"verify": "sample"},
			only: divided{Closed: m{"checkpoint-accelerators": "0", "count": "1", "settle": "0s",
				"io": "direct", "io-engine": "auto"}},
			left: []string{"checkpoint-model", "checkpoint-accelerators", "checkpoint-writes",
				"checkpoint-reads", "checkpoint-flush", "checkpoint-shift", closedNeeds, "io",
				"io-engine", "fadvise", "verify"}},
		// One file, as large chunks as the reference's; quick has room for a laptop's memory.
		{Name: "CheckpointStream", all: m{"verify": "sample", "checkpoint-writes": "1",
			"checkpoint-reads": "1", "checkpoint-pause": "0s", "stream-chunk": "32MiB",
			"stream-buffers": "64", "stream-readers": "8"},
			only: divided{Quick: m{"stream-chunk": "8MiB", "stream-buffers": "16",
				"stream-range": "16MiB"}}},
		{Name: "Tier"},
		{Name: "DataGen"},
		{Name: "StorageCeiling"},
		{Name: "BlockIO"},
		{Name: "Knee"},
	}
}

// closedNeeds is what the closed division asks of checkpoints: accelerators that could hold them.
const closedNeeds = "checkpoint-accelerator-type"

// closedTypes are the accelerators that it knows.
var closedTypes = []string{"b200", "mi355"}

// Blocks tells whether its requests are those of a block trace.
func (b Bench) Blocks() bool { return b.Needs == "block-trace-path" }

// Checkpoints tells whether it writes and reads checkpoints, of a model or as one stream.
func (b Bench) Checkpoints() bool { return b.Name == "Checkpoint" || b.Name == streamBench }

const streamBench = "CheckpointStream"

//go:embed benchmarks.txt
var benchmarksText string

// About is what the benchmark does, in one sentence.
func (b Bench) About() string {
	_, rest, _ := strings.Cut(benchmarksText, "\n"+b.Name+" | ")
	about, _, _ := strings.Cut(rest, "\n")
	return about
}

// Benchmark finds a benchmark by its name without the word Benchmark.
func Benchmark(name string) (Bench, bool) {
	for _, b := range Benchmarks() {
		if b.Name == name {
			return b, true
		}
	}
	return Bench{}, false
}
