package benchmarks

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/record"
	"kvbench/kvbench/requests"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tracing"
	"kvbench/tracing/collector"
	"kvbench/workloads"
)

// trialConfig returns the configuration of a trial, for every workload. storage is the checked storage
// configuration from the plan.
func trialConfig(v *params.Values, storage kvbench.StorageConfig, trial int) (kvbench.Config, error) {
	var err error
	if !v.Simulated() {
		// Each trial writes other bytes, so that a drive cannot deduplicate them.
		storage.Nonce = v.TrialNonce()
		if storage.Bucket == nil && !v.Bench.Checkpoints() {
			err = chooseRoom(v, &storage) // the free space has changed since the plan
		}
	}
	cfg := kvbench.Config{Info: runInfo(v, trial), Settle: v.Settle, Storage: storage,
		AwaitDiscards: v.Division != result.DivisionClosed, // the rules of closed require a fixed pause
		Unloaded:      300 * time.Millisecond}
	if has := storage.StorageBytes; has > 0 && has < v.StorageBytes { // a default, see params.ChooseCapacity
		cfg.Info.Warnings = append(cfg.Info.Warnings, fmt.Sprintf("-storage-capacity-gb of %s does not fit on the "+
			"filesystem: the storage tier has %s, half of the free space", v.Text("storage-capacity-gb"),
			units.Bytes.Text(has)))
	}
	if v.LatencyTracing && !v.NoStorage() {
		cfg.Trace = &collector.Options{Level: tracing.Level(v.TraceLevel),
			Filter: tracing.Filter(v.TraceFilter)}
	}
	return cfg, err
}

// requestLoad returns the load of inference requests for the parameters v. It creates a new source per
// trial, so that all trials of a benchmark have the same requests, except in the order of ShareGPT.
func requestLoad(v *params.Values, storage kvbench.StorageConfig, trial int) (*requests.Load, error) {
	cfg := requests.Config{
		Source: func() (workloads.Source, error) { return source(v, trial) }, Input: v.Text(v.Bench.Needs),
		Planner: workloads.Planner{Sizer: v.Sizer(), DecodeBatch: v.Profile.DecodeBatch,
			Batched: v.DecodeReads == "batched", ObjectTokens: v.CutTokens()},
		Phase: kvbench.Phase{Window: v.Window.Length, Warmup: v.Warmup,
			Limit: v.Window.Completions},
		Workers: v.WorkerCount(), TokenTime: v.GenerationTime, Overtaking: v.Overtaking(),
		ValidationTrace: v.ValidationTrace, Corpus: corpus(v),
	}
	cfg.Cost, _ = v.Cost()
	cfg.ContextWindow = v.ContextWindow()
	if v.MaxRequests > 0 {
		// The window ends when all requests have completed.
		cfg.EndedBy, cfg.Window = result.EndedByMaxRequests, 0
	}
	if v.Autoscaling {
		cfg.Autoscale = &requests.Autoscale{Mode: v.AutoscalerMode, Target: v.TargetSaturation,
			Interval: v.AutoscalerInterval, Users: v.Users, MinUsers: v.AutoscalerUsers[0],
			MaxUsers: min(v.AutoscalerUsers[1], v.Limits.Users), FixedWorkers: v.Workers > 0}
	}
	// Only the synthetic load of users reads entries that were written before the window.
	if v.DecodeOnly && v.Bench.Load == params.LoadUsers {
		cfg.Population.Entries, cfg.Population.Tokens = v.DecodePopulation()
	}
	if v.Precondition && !v.NoStorage() {
		cfg.Precondition = requests.Precondition{Threads: v.PreconditionThreads,
			Bytes: cmp.Or(v.PreconditionBytes, 2*storage.StorageBytes)}
		cfg.Precondition.Tokens = v.CutTokens()
		if v.LayoutSpec().Blocks && storage.Layout.Bytes > 0 { // largest entry of the block layout
			sizes, err := v.BlockSizes()
			if err != nil {
				return nil, err
			}
			cfg.Precondition.Tokens = sizes[len(sizes)-1]
		}
	}
	return requests.New(cfg), nil
}

// runInfo returns the facts of a trial that the parameters determine, for its result.
func runInfo(v *params.Values, trial int) record.Info {
	in := record.Info{
		Result: result.Result{
			Benchmark: v.Bench.Name, RunName: v.RunName, Division: string(v.Division), Notice: v.Notice(),
			Trial: trial, Count: v.Count, Rank: v.Rank, Ranks: v.Ranks, Seed: uint64(v.Seed),
			Model: result.Model{Key: v.Model.Key, Name: v.Model.Name,
				BytesPerToken: v.Model.BytesPerToken(), TensorParallel: v.TensorParallel,
				StoredAs: v.Model.StoredAs},
			Workload: result.Workload{
				Arrival: v.Arrival, Turns: v.Turns, GenerationMode: v.GenerationMode,
				DecodeReads: v.DecodeReads,
			},
			IO:         result.IO{Mode: v.IO},
			Parameters: v.Parameters(), DiffersFromClosed: v.Differences(), Warnings: warningsOf(v),
		},
		Sizer: v.Sizer(), QoS: v.Profile.QoS,
		Tails: v.Tails(), ObjectTokens: v.ObjectTokens, ContextWindow: v.Model.Window,
	}
	if cost, rate := v.Cost(); !cost.Free() {
		in.FirstToken = &result.FirstToken{Prefill: result.PrefillCost{GPU: rate.GPU, Tokens: rate.Tokens,
			Source: strings.TrimPrefix(rate.What+"; "+rate.Source, "; ")}}
		if cost.PerSquare == 0 {
			in.Workload.PrefillRate = 1 / cost.PerToken
		}
	}
	if n := v.StoringRanks(); n > 1 {
		in.Model.StoringRanks, in.Model.RankObjects = n, v.RankObjects()
	}
	if v.Bench.Option != 0 {
		in.Option = new(v.Bench.Option)
	}
	if v.Bench.Load == params.LoadUsers {
		in.Workload.Users = v.Users
	}
	return in
}
