package xlsx

import (
	"strconv"
	"strings"
	"time"

	"kvbench/tools/load"
)

// column is one column of the Summary sheet.
type column struct {
	title string
	value func(*load.Record) any // string, float64, bool, time.Time, or nil for an empty cell
	width float64
}

// pythonColumns is the number of columns that the Python benchmark's sheet has too; ours follow
// after them.
const pythonColumns = 99

// at is the column of a key of the result file, ours and the Python benchmark's alike.
func at(title, path string) column {
	return column{title: title, value: func(r *load.Record) any { return r.Lookup(path) }}
}

// parameter is the column of a run parameter.
func parameter(title, name string) column {
	return column{title: title, value: func(r *load.Record) any { return typed(r.Parameter(name)) }}
}

// enabled is a parameter that the flag of the opposite name sets.
func enabled(title, disable string) column {
	return column{title: title, value: func(r *load.Record) any {
		if v, ok := typed(r.Parameter(disable)).(bool); ok {
			return !v
		}
		return nil
	}}
}

// typed turns a parameter's text into the value that it means. Empty and – are nothing.
func typed(v any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	if s == "" || s == "–" {
		return nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f
	}
	if b, err := strconv.ParseBool(s); err == nil && len(s) > 1 {
		return b
	}
	return s
}

// summaryColumns are those of the Python benchmark's sheet in its order, then ours.
func summaryColumns() []column {
	list := []column{
		{title: "Timestamp", value: timestamp, width: 19},
		parameter("Model", "model"),
		parameter("Num Users", "num-users"),
		{title: "Duration (s)", value: window},
		parameter("GPU Memory per Card (GiB)", "gpu-mem-gb"),
		parameter("Num GPUs", "num-gpus"),
		parameter("Tensor Parallel", "tensor-parallel"),
		{title: "Total GPU Memory (GiB)", value: gpuMemory},
		parameter("CPU Memory (GiB)", "cpu-mem-gb"),
		parameter("Generation Mode", "generation-mode"),
		parameter("Performance Profile", "performance-profile"),
		enabled("Multi-turn", "disable-multi-turn"),
		enabled("Prefix Caching", "disable-prefix-caching"),
		parameter("RAG Enabled", "enable-rag"),
		parameter("Autoscaling", "enable-autoscaling"),
		at("Seed", "seed"),
		parameter("Max Concurrent Allocs", "max-concurrent-allocs"),
		parameter("Request Rate", "request-rate"),
		parameter("Max Requests", "max-requests"),
		parameter("Dataset Path", "dataset-path"),
		parameter("Cache Dir", "cache-dir"),
		parameter("Storage Capacity (GiB)", "storage-capacity-gb"),
		parameter("Precondition", "precondition"),
		parameter("Precondition Size (GiB)", "precondition-size-gb"),
		parameter("Precondition Threads", "precondition-threads"),
		parameter("Trace Speedup", "trace-speedup"),
		parameter("Replay Cycles", "replay-cycles"),
		at("Total Requests", "summary.total_requests"),
		at("Total Tokens", "summary.total_tokens"),
		at("Elapsed Time (s)", "summary.elapsed_time"),
		orLine(at("Avg Throughput (tok/s)", "summary.avg_throughput_tokens_per_sec"), "tok/s", 1),
		orLine(at("Storage Throughput (tok/s)", "summary.storage_throughput_tokens_per_sec"),
			"storage-tok/s", 1),
		orLine(at("Requests/sec", "summary.requests_per_second"), "req/s", 1),
	}
	list = append(list, request("E2E Latency", "end_to_end_latency_ms", 6)...)
	list = append(list, request("Storage Latency", "storage_io_latency_ms", 6)...)
	list = append(list, request("Gen Latency", "generation_latency_ms", 4)...)
	for _, part := range []struct{ title, key string }{
		{"Read Total", "read"}, {"Write Total", "write"}, {"Read Device", "read_device"},
		{"Write Device", "write_device"},
		{"Read Host", "read_host"}, {"Write Host", "write_host"},
	} {
		for _, p := range percentiles {
			list = append(list, at("Storage Tier "+part.title+" "+p.title+" (ms)",
				"summary.cache_stats.storage_"+part.key+"_"+p.key+"_ms"))
		}
	}
	list = append(list,
		at("Cache Hit Rate", "summary.cache_stats.cache_hit_rate"),
		at("Read/Write Ratio", "summary.cache_stats.read_write_ratio"),
		at("Total Read (GiB)", "summary.cache_stats.total_read_gb"),
		at("Total Write (GiB)", "summary.cache_stats.total_write_gb"),
	)
	for _, way := range []struct{ title, key string }{{"Written", "written"}, {"Read", "read"}} {
		for _, t := range tierNames {
			list = append(list, at("Tier "+t.title+" KV Bytes "+way.title+" (GiB)",
				"summary.cache_stats.tier_"+t.key+"_kv_bytes_"+way.key+"_gb"))
		}
	}
	for _, t := range tierNames {
		for _, op := range []struct{ title, key string }{{"Read", "read"}, {"Write", "write"}} {
			c := at("Tier "+t.title+" "+op.title+" Bandwidth (GiB/s)",
				"summary.cache_stats.tier_"+t.key+"_"+op.key+"_bandwidth_gbps")
			if t.key == "storage" {
				c = orLine(c, op.key+"-B/s", 1.0/(1<<30))
			}
			list = append(list, c)
		}
	}
	for _, t := range tierNames {
		list = append(list, at(t.title+" Entries", "summary.cache_stats."+t.key+"_entries"))
	}
	list = append(list, at("Multi-turn Hit Rate", "summary.multi_turn_stats.hit_rate"))
	return append(list, ownColumns()...)
}

var tierNames = []struct{ title, key string }{{"GPU", "gpu"}, {"CPU", "cpu"},
	{"Storage", "storage"}}

var percentiles = []struct{ title, key string }{
	{"P50", "p50"}, {"P95", "p95"}, {"P99", "p99"}, {"P99.9", "p999"}, {"P99.99", "p9999"},
}

// request are the first n of mean and percentiles of a distribution per request.
func request(title, key string, n int) []column {
	list := []column{at(title+" Mean (ms)", "summary."+key+".mean")}
	for _, p := range percentiles {
		list = append(list, at(title+" "+p.title+" (ms)", "summary."+key+"."+p.key))
	}
	return list[:n]
}

// orLine takes the value from the benchmark line where there is no result file.
func orLine(c column, unit string, scale float64) column {
	from := c.value
	c.value = func(r *load.Record) any {
		if len(r.Raw) > 0 {
			return from(r)
		}
		if strings.HasSuffix(unit, "B/s") && !onStorage(r.Name) {
			return nil
		}
		for _, v := range r.Values {
			if v.Unit == unit {
				return v.Value * scale
			}
		}
		return nil
	}
	return c
}

// onStorage says whether the rates on a benchmark's line are the storage tier's. A benchmark of
// single operations gives those of the one tier that its name tells.
func onStorage(name string) bool {
	return !strings.Contains(name, "/tier=") || strings.Contains(name, "/tier=storage")
}

func timestamp(r *load.Record) any {
	if r.Result == nil {
		return nil
	}
	if t, err := time.Parse(time.RFC3339Nano, r.Result.StartTime); err == nil {
		return t.UTC()
	}
	return nil
}

// window is the nominal length, or the real one where the run ended by a count.
func window(r *load.Record) any {
	if r.Result == nil {
		return nil
	}
	if n := r.Result.NominalWindowNS; n != nil && *n > 0 {
		return float64(*n) / 1e9
	}
	return float64(r.Result.WindowNS) / 1e9
}

func gpuMemory(r *load.Record) any {
	card, ok1 := typed(r.Parameter("gpu-mem-gb")).(float64)
	cards, ok2 := typed(r.Parameter("num-gpus")).(float64)
	if !ok1 || !ok2 {
		return nil
	}
	return card * cards
}
