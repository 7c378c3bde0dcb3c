package benchmarks

import (
	"kvbench/kvbench"
	"kvbench/params"
	"kvbench/tiers"
	"kvbench/workloads"
)

// source makes the requests of one trial.
func source(v *params.Values) (workloads.Source, error) {
	seed := v.StreamSeed()
	if v.Bench.Load == params.LoadUsers {
		users := workloads.NewUsers(workloads.UsersConfig{
			Profile: v.Profile, Users: workloads.Population(v.Profile, seed, v.Users, v.CPythonPopulation()), Seed: seed,
			ClosedLoop: v.ClosedLoop(), Overtaking: v.Overtaking(),
			MultiTurn: !v.DisableMultiTurn, PrefixCaching: !v.DisablePrefixCaching,
			PrefillOnly: v.PrefillOnly, DecodeOnly: v.DecodeOnly,
			Rate: v.RequestRate, ConstantRate: v.ConstantRate(), MaxRequests: v.MaxRequests,
		})
		if c := corpus(v); c != nil {
			return workloads.WithRAG(users, c), nil
		}
		return users, nil
	}
	return traceSource(v, seed)
}

// corpus returns the documents of a run with RAG, else nil.
func corpus(v *params.Values) *workloads.DrawnCorpus {
	if !v.EnableRAG || v.Bench.Load != params.LoadUsers {
		return nil
	}
	return workloads.NewCorpus(v.Profile.RAG, v.RAGDocuments, v.Model, v.Sizer(), v.StreamSeed())
}

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
