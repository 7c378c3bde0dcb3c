package benchmarks

import (
	"kvbench/kvbench"
	"kvbench/params"
	"kvbench/tiers"
)

// replayRoutine turns the values in force into the replay of an I/O trace. It
// changes the configuration to the one tier that is replayed on.
func replayRoutine(v *params.Values, cfg *kvbench.Config) kvbench.Routine {
	cfg.Storage.GPUBytes, cfg.Storage.CPUBytes = 0, 0
	cfg.EndedBy = kvbench.EndedByInput
	r := &kvbench.ReplayRoutine{
		Path: v.IOTraceReplay, Speed: v.TraceSpeedup, Cycles: v.ReplayCycles, Allow: v.TraceAllowMalformed,
	}
	switch v.IOTraceTiers {
	case "storage":
		r.Tiers = []int{int(tiers.Storage)}
	case "cpu":
		r.Tiers = []int{int(tiers.CPU)}
	case "gpu":
		r.Tiers = []int{int(tiers.GPU)}
	case "all":
		r.Tiers = []int{int(tiers.GPU), int(tiers.CPU), int(tiers.Storage)}
	}
	prefill, decode, evict := tiers.Prefill.String(), tiers.Decode.String(), tiers.Evict.String()
	switch v.IOTracePhases {
	case "prefill":
		r.Phases = []string{prefill}
	case "decode":
		r.Phases = []string{decode}
	case "evict":
		r.Phases = []string{evict}
	case "requests":
		r.Phases = []string{prefill, decode}
	}
	return r
}
