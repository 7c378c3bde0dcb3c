package xlsx

import (
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

const simulatedHead = "Simulated"

func simulated(r *load.Record) any {
	var settings load.SettingsReader
	if how := settings.Simulation(r); how != "" {
		return how != load.Measured
	}
	return nil
}

// ownColumns follow those of the Python benchmark: what says which result a row is, whether it is
// to be believed, and what the Python benchmark does not measure.
func ownColumns() []column {
	scaled := func(title, path string, by float64) column {
		return column{title: title, value: func(r *load.Record) any {
			if v, ok := r.Float(path); ok {
				return v * by
			}
			return nil
		}}
	}
	const gib = 1.0 / (1 << 30)
	return []column{
		{title: "Run", value: func(r *load.Record) any { return r.Source }, width: 24},
		{title: "Benchmark", value: func(r *load.Record) any { return stats.NameOf(r) }, width: 34},
		at("Trial", "trial"),
		at("Rank", "rank"),
		at("Division", "division"),
		at("Status", "status"),
		at("Ended By", "ended_by"),
		at("Notice", "notice"),
		{title: simulatedHead, value: simulated},
		at("I/O Mode", "io.mode"),
		at("Device", "device_witness.device"),
		at("Filesystem", "environment.filesystem.type"),
		at("Verdict", "harness.verdict.kind"),
		at("Operations", "requests.operations"),
		at("Failed Operations", "requests.failed_operations"),
		at("Unique Hit Rate", "lookups.hit_rate"),
		at("Served Ratio", "load.total.served_ratio"),
		scaled("Storage Read per 100 MiB P50 (ms)", "latency.levels.storage.read.per_100mib.p50",
			1e-6),
		scaled("Storage Read per 100 MiB P95 (ms)", "latency.levels.storage.read.per_100mib.p95",
			1e-6),
		scaled("Storage Write per 100 MiB P50 (ms)", "latency.levels.storage.write.per_100mib.p50",
			1e-6),
		scaled("Storage Write per 100 MiB P95 (ms)", "latency.levels.storage.write.per_100mib.p95",
			1e-6),
		scaled("Entry Size Read P50 (MiB)", "entry_sizes.read.p50", 1.0/(1<<20)),
		scaled("Entry Size Write P50 (MiB)", "entry_sizes.write.p50", 1.0/(1<<20)),
		scaled("Device Read (GiB)", "device_witness.read_bytes", gib),
		scaled("Device Write (GiB)", "device_witness.write_bytes", gib),
		at("Device Read Ratio", "device_witness.read_ratio"),
		at("Device Busy Share", "device_witness.busy_share"),
		at("Ceiling Ratio", "ceiling_ratio"),
		at("CPU per Byte (ns)", "harness.cpu_ns_per_byte"),
		scaled("Peak Memory (MiB)", "harness.peak_rss_bytes", 1.0/(1<<20)),
		at("Users Sustained", "summary.autoscaling_summary.sustained_users"),
		at("Peak Users", "summary.autoscaling_summary.peak_users"),
		scaled("Autoscaling Peak Rate (GiB/s)", "summary.autoscaling_summary.peak_bytes_per_s",
			gib),
		at("Block Hit Ratio", "block_cache.hit_ratio"),
		at("Ideal Block Hit Ratio", "block_cache.ideal_hit_ratio"),
		at("Prefix-hit Ratio", "block_cache.prefix_hit_ratio"),
		scaled("Bytes Saved (GiB)", "block_cache.bytes_saved", gib),
		at("Validation Passed", "validation.passed"),
		{title: "Warnings", value: warnings},
		{title: "File", value: file, width: 50},
	}
}

func warnings(r *load.Record) any {
	list, ok := r.Lookup("warnings").([]any)
	if !ok {
		return nil
	}
	return float64(len(list))
}

func file(r *load.Record) any {
	if r.Path != "" {
		return r.Path
	}
	return r.File
}
