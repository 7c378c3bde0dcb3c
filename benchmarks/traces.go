package benchmarks

import (
	"kvbench/params"
	"kvbench/workloads"
)

// traceSource opens the recorded requests that the benchmark replays.
func traceSource(v *params.Values, seed uint64) (workloads.Source, error) {
	path, open := v.AzureTracePath, workloads.NewAzure
	var extensions []string
	switch v.Bench.Name {
	case "BurstGPT":
		path, open = v.BurstTracePath, workloads.NewBurstGPT
	case "BlockTrace":
		path, open, extensions = v.BlockTracePath, workloads.NewBlockTrace, workloads.BlockExtensions()
	case "ShareGPT":
		counter, err := workloads.NewTokenizer(v.Tokenizer, v.Profile.ShareGPT.CharsPerToken)
		if err != nil {
			return nil, err
		}
		path, extensions = v.DatasetPath, workloads.ConversationExtensions()
		open = func(c workloads.TraceConfig) (*workloads.Trace, error) {
			return workloads.NewShareGPT(c, workloads.ShareGPTConfig{Counter: counter, MaxConversations: v.MaxConversations})
		}
	}
	files, err := workloads.ExpandPaths(path, extensions...)
	if err != nil {
		return nil, err
	}
	t, err := open(workloads.TraceConfig{
		Paths: files, Speedup: v.TraceSpeedup, Cycles: v.ReplayCycles, Start: v.TraceStart,
		Rate: v.RequestRate, ConstantRate: v.ConstantRate(), MaxRequests: v.MaxRequests, Seed: seed,
		Profile: v.Profile, PrefixCaching: !v.DisablePrefixCaching, PrefillOnly: v.PrefillOnly,
		MultiTurn: !v.DisableMultiTurn, Overtaking: v.Overtaking(), AllowMalformed: v.TraceAllowMalformed,
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}
