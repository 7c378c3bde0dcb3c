package params

import (
	"flag"
	"math"
	"slices"
	"time"

	"kvbench/kvbench/units"
	"kvbench/workloads/model"
)

// Limits of tiers in GiB. A storage tier has none of its own: 1 EiB keeps byte counts
// inside an int64.
const (
	maxGPUGiB     = 65536
	maxCPUGiB     = 131072
	maxStorageGiB = 1 << 30
	maxUsers      = 100000
	maxRange      = 64 * units.GiB // 64 chunks of the largest size
)

var generationModes = []string{"none", "fast", "realistic"}

// table is every parameter, bound to the fields of v, in the order in which they are listed.
// Resolve, flags, environment, file, sweep, help and the closed division all read it; nothing else
// knows all names.
func table(v *Values) []parameter {
	values := map[string]flag.Value{
		"division":  oneOf(&v.Division, "quick", "open", "closed"),
		"benchtime": window(&v.Window),
		"count":     whole(&v.Count, 1, endless),
		"config":    path(&v.ConfigFile, v.base),

		"model":           word(&v.ModelName),
		"kv-dtype":        oneOf(&v.KVDType, model.DTypes()...),
		"num-users":       whole(&v.Users, 1, maxUsers),
		"profile":         oneOf(&v.ProfileName, Profiles...),
		"arrival":         oneOf(&v.Arrival, "open-loop", "closed-loop"),
		"turns":           oneOf(&v.Turns, "ordered", "overtaking"),
		"generation-mode": oneOf(&v.GenerationMode, generationModes...),
		"decode-reads":    oneOf(&v.DecodeReads, "once", "batched"),
		"seed":            whole(&v.Seed, 0, endless),

		"gpu-mem-gb":          gib(&v.GPUBytes, maxGPUGiB),
		"num-gpus":            whole(&v.GPUs, 1, 65536),
		"tensor-parallel":     whole(&v.TensorParallel, 1, 65536),
		"tp-rule":             oneOf(&v.TPRule, "engine", "mlperf"),
		"tp-io":               oneOf(&v.TPIO, "one", "all"),
		"cpu-mem-gb":          gib(&v.CPUBytes, maxCPUGiB),
		"storage-capacity-gb": gib(&v.StorageBytes, maxStorageGiB),
		"gpu-backend":         backend(&v.GPUBackend),
		"tier-policy":         oneOf(&v.TierPolicy, TierPolicies...),
		"promote":             oneOf(&v.Promote, "never", "on-hit"),
		"admit-after":         whole(&v.AdmitAfter, 0, 1000),
		"write-behind-gb":     gib(&v.WriteBehindBytes, maxStorageGiB),
		"evict":               oneOf(&v.Evict, "lru", "fifo", "lfu", "s3-fifo", "bucket"),
		"gpu-bandwidth-gbps":  number(&v.GPUBandwidth, 0.001, 1e6),

		"cache-dir":             directories(&v.CacheDirs, v.base),
		"io":                    oneOf(&v.IO, "direct", "buffered"),
		"chunk-size":            size(&v.ChunkSize, 4*units.KiB, 256*units.MiB),
		"io-engine":             oneOf(&v.IOEngine, "auto", "psync", "uring"),
		"io-timeout":            span(&v.IOTimeout, 0, day),
		"io-depth":              auto(whole(&v.IODepth, 1, 1024)),
		"read-share":            number(&v.ReadShare, 0, 1),
		"ceiling-size-gb":       gib(&v.CeilingBytes, maxStorageGiB),
		"max-concurrent-allocs": whole(&v.MaxConcurrentAllocs, 0, endless),
		"request-rate":          number(&v.RequestRate, 0, 1e6),
		"request-spacing":       oneOf(&v.RequestSpacing, "poisson", "constant"),
		"max-requests":          whole(&v.MaxRequests, 0, endless),
		"workers":               whole(&v.Workers, 0, 100000),

		"prefill-rate": cost(&v.PrefillRate),
		"gpu":          word(&v.GPU),

		"rank":         auto(whole(&v.Rank, 0, math.MaxInt32)),
		"ranks":        auto(whole(&v.Ranks, 1, math.MaxInt32)),
		"local-ranks":  auto(whole(&v.LocalRanks, 1, math.MaxInt32)),
		"rank-failure": oneOf(&v.RankFailure, "stop", "continue"),

		"rendezvous": meeting(&v.Rendezvous),
		"shared-dir": oneOf(&v.SharedDir, "auto", "true", "false"),

		"rendezvous-timeout": span(&v.RendezvousTimeout, time.Second, time.Hour),

		"warmup":                 span(&v.Warmup, 0, day),
		"rehearse":               boolean(&v.Rehearse),
		"settle":                 span(&v.Settle, 0, day),
		"performance-profile":    oneOf(&v.PerformanceProfile, "latency", "throughput"),
		"disable-multi-turn":     boolean(&v.DisableMultiTurn),
		"disable-prefix-caching": boolean(&v.DisablePrefixCaching),
		"enable-rag":             boolean(&v.EnableRAG),
		"rag-num-docs":           whole(&v.RAGDocuments, 1, 1e7),
		"prefill-only":           boolean(&v.PrefillOnly),
		"decode-only":            boolean(&v.DecodeOnly),

		"burst-trace-path":      path(&v.BurstTracePath, v.base),
		"azure-trace-path":      path(&v.AzureTracePath, v.base),
		"dataset-path":          path(&v.DatasetPath, v.base),
		"max-conversations":     whole(&v.MaxConversations, 0, endless),
		"tokenizer":             oneOf(&v.Tokenizer, "cl100k", "chars"),
		"block-trace-path":      path(&v.BlockTracePath, v.base),
		"validation-trace":      path(&v.ValidationTrace, v.base),
		"engine":                oneOf(&v.Engine, engineNames()...),
		"layout":                layout(&v.Layout),
		"object-tokens":         auto(whole(&v.ObjectTokens, 1, 1<<20)),
		"read-threads":          auto(whole(&v.ReadThreads, 0, 1024)),
		"write-threads":         auto(whole(&v.WriteThreads, 0, 1024)),
		"layerwise":             boolean(&v.Layerwise),
		"trace-speedup":         number(&v.TraceSpeedup, 0, unbounded),
		"trace-start":           span(&v.TraceStart, 0, 1000*day),
		"replay-cycles":         whole(&v.ReplayCycles, 0, endless),
		"trace-allow-malformed": boolean(&v.TraceAllowMalformed),

		"s3-endpoint":        word(&v.S3.Endpoint),
		"s3-region":          word(&v.S3.Region),
		"s3-addressing":      oneOf(&v.S3.Addressing, "auto", "path", "virtual"),
		"s3-anonymous":       boolean(&v.S3.Anonymous),
		"s3-ca-file":         path(&v.S3.CAFile, v.base),
		"s3-skip-verify":     boolean(&v.S3.SkipVerify),
		"s3-balance":         balance(&v.S3.Balance),
		"s3-payload":         oneOf(&v.S3.Payload, "unsigned", "signed", "crc32c", "crc64nvme"),
		"s3-requests":        whole(&v.S3.Requests, 0, 4096),
		"s3-multipart-above": size(&v.S3.MultipartAbove, 5*units.MiB, 5*units.GiB),
		"s3-part-size":       size(&v.S3.PartSize, 5*units.MiB, 5*units.GiB),
		"s3-range-size":      size(&v.S3.RangeSize, 0, 5*units.GiB),
		"s3-lookup":          oneOf(&v.S3.Lookup, "none", "head"),
		"s3-keys":            oneOf(&v.S3.Keys, "own", "lmcache", "vllm"),
		"s3-retries":         whole(&v.S3.Retries, 0, 10),
		"s3-timeout":         span(&v.S3.Timeout, 100*time.Millisecond, time.Hour),
		"s3-connect-timeout": span(&v.S3.ConnectTimeout, 100*time.Millisecond, time.Hour),

		"enable-autoscaling":  boolean(&v.Autoscaling),
		"autoscaler-mode":     oneOf(&v.AutoscalerMode, "qos", "capacity"),
		"target-saturation":   number(&v.TargetSaturation, 0, 1),
		"autoscaler-interval": span(&v.AutoscalerInterval, 100*time.Millisecond, day),

		"precondition":         boolean(&v.Precondition),
		"precondition-size-gb": gib(&v.PreconditionBytes, maxStorageGiB),
		"precondition-threads": whole(&v.PreconditionThreads, 0, 100000),

		"io-trace-log":     path(&v.IOTraceLog, v.base),
		"io-trace-deletes": boolean(&v.IOTraceDeletes),
		"io-trace-replay":  path(&v.IOTraceReplay, v.base),
		"io-trace-tiers":   oneOf(&v.IOTraceTiers, "storage", "cpu", "gpu", "all"),
		"io-trace-phases": oneOf(&v.IOTracePhases, "all", "prefill", "decode", "evict",
			"requests"),
		"simulate-device": device(&v.Device),

		"checkpoint-model":            checkpointModel(&v.Checkpoint.Model),
		"checkpoint-accelerators":     whole(&v.Checkpoint.Accelerators, 0, 1<<20),
		"checkpoint-scale":            scale(&v.Checkpoint.Scale),
		"checkpoint-writes":           whole(&v.Checkpoint.Writes, 0, 1000),
		"checkpoint-reads":            whole(&v.Checkpoint.Reads, 0, 1000),
		"checkpoint-pause":            span(&v.Checkpoint.Pause, 0, day),
		"checkpoint-keep":             whole(&v.Checkpoint.Keep, 0, 1000),
		"checkpoint-flush":            oneOf(&v.Checkpoint.Flush, "none", "fadvise", "drop"),
		"checkpoint-shift":            shift(&v.Checkpoint.Shift),
		"checkpoint-accelerator-type": accelerator(&v.Checkpoint.AcceleratorType),
		"stream-size-gb":              gib(&v.Stream.Bytes, maxStorageGiB),
		"stream-chunk":                size(&v.Stream.Chunk, 64*units.KiB, units.GiB),
		"stream-buffers":              whole(&v.Stream.Buffers, 2, 4096),
		"stream-producers":            auto(whole(&v.Stream.Producers, 1, 4096)),
		"stream-writers":              whole(&v.Stream.Writers, 1, 4096),
		"stream-readers":              whole(&v.Stream.Readers, 1, 4096),
		"stream-range":                named(size(&v.Stream.Range, 4096, maxRange), "auto", 0),
		"fadvise":                     oneOf(&v.Fadvise, "dontneed", "sequential", "none"),

		"sweep":                  word(&v.sweep),
		"enable-latency-tracing": boolean(&v.LatencyTracing),
		"latency-trace-level":    oneOf(&v.TraceLevel, "block", "file"),
		"latency-trace-filter":   oneOf(&v.TraceFilter, "device", "process"),
		"verify":                 oneOf(&v.Verify, "none", "sample", "full"),
		"nonce":                  nonce(&v.Nonce),
		"keep-files":             boolean(&v.KeepFiles),
		"results-dir":            path(&v.ResultsDir, v.base),
		"progress":               oneOf(&v.Progress, "auto", "none"),
		"metrics-listen":         word(&v.MetricsListen),
		"metrics-remote":         boolean(&v.MetricsRemote),
		"help-parameters":        word(new(string)), // or true
		"version":                boolean(new(bool)),
	}
	list := slices.Clone(listed)
	for i := range list {
		list[i].value = values[list[i].name]
		if list[i].name == "profile" {
			list[i].help += ". " + profilesHelp()
		}
	}
	return list
}

// rows is the table for those who ask about parameters, not about their values.
var rows = table(new(Values))

// find returns the row of a name, nil when there is no such parameter.
func find(name string) *parameter { return row(rows, name) }
