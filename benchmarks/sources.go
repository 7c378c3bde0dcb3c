package benchmarks

import (
	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
	"kvbench/tiers"
	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/traces"
	"kvbench/workloads/users"
)

// source makes the requests of one trial: users, with their documents or without, or a trace.
func source(v *params.Values) (workloads.Source, error) {
	seed := v.StreamSeed()
	if v.Bench.Load == params.LoadUsers {
		population := users.New(users.Config{
			Profile: v.Profile, Users: users.Population(v.Profile, seed, v.Users,
				v.CPythonPopulation()), Seed: seed,
			ClosedLoop: v.ClosedLoop(), Overtaking: v.Overtaking(),
			MultiTurn: !v.DisableMultiTurn, PrefixCaching: !v.DisablePrefixCaching,
			PrefillOnly: v.PrefillOnly, DecodeOnly: v.DecodeOnly,
			Rate: v.RequestRate, ConstantRate: v.ConstantRate(), MaxRequests: v.MaxRequests,
		})
		if c := corpus(v); c != nil {
			return users.WithRAG(population, c), nil
		}
		return population, nil
	}
	return traceSource(v, seed)
}

// corpus returns the documents of a run with RAG, else nil.
func corpus(v *params.Values) *users.Corpus {
	if !v.EnableRAG || v.Bench.Load != params.LoadUsers {
		return nil
	}
	return users.NewCorpus(v.Profile.RAG, v.RAGDocuments, v.Model, v.Sizer(), v.StreamSeed())
}

// traceSource opens the recorded requests that the benchmark replays. Each format has a flag of its
// own, because a path does not tell which it is.
func traceSource(v *params.Values, seed uint64) (workloads.Source, error) {
	path, format := v.AzureTracePath, formats.Azure
	switch v.Bench.Name {
	case "BurstGPT":
		path, format = v.BurstTracePath, formats.BurstGPT
	case "BlockTrace":
		path, format = v.BlockTracePath, formats.Blocks
	// Conversations are text: tokens are counted here, with the tokenizer that was asked for.
	case "ShareGPT":
		caps := v.Profile.ShareGPT
		counter, err := formats.NewTokenizer(v.Tokenizer, caps.CharsPerToken)
		if err != nil {
			return nil, err
		}
		path, format = v.DatasetPath, formats.ShareGPT(caps.MaxContext, caps.MaxGenerate, counter)
	}
	files, err := format.Files(path)
	if err != nil {
		return nil, err
	}
	t, err := traces.New(format, traces.Config{
		Paths: files, Speedup: v.TraceSpeedup, Cycles: v.ReplayCycles, Start: v.TraceStart,
		Rate: v.RequestRate, ConstantRate: v.ConstantRate(), MaxRequests: v.MaxRequests, Seed: seed,
		Profile: v.Profile, PrefixCaching: !v.DisablePrefixCaching, PrefillOnly: v.PrefillOnly,
		MultiTurn: !v.DisableMultiTurn, Overtaking: v.Overtaking(),
		AllowMalformed:   v.TraceAllowMalformed,
		MaxConversations: v.MaxConversations,
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// What -io-trace-tiers and -io-trace-phases mean to a replay; all phases need no list.
var (
	replayTiers = map[string][]int{
		"storage": {int(tiers.Storage)}, "cpu": {int(tiers.CPU)}, "gpu": {int(tiers.GPU)},
		"all": {int(tiers.GPU), int(tiers.CPU), int(tiers.Storage)},
	}
	replayPhases = map[string][]string{
		"prefill": {tiers.Prefill.String()}, "decode": {tiers.Decode.String()},
		"evict":    {tiers.Evict.String()},
		"requests": {tiers.Prefill.String(), tiers.Decode.String()},
	}
)

// replayRoutine turns the values in force into the replay of an I/O trace. It
// changes the configuration to the one tier that is replayed on.
func replayRoutine(v *params.Values, st *kvbench.StorageConfig) plainio.Routine {
	st.GPUBytes, st.CPUBytes = 0, 0
	return &plainio.Replay{
		Path: v.IOTraceReplay, Speed: v.TraceSpeedup, Cycles: v.ReplayCycles,
		Allow: v.TraceAllowMalformed,
		Tiers: replayTiers[v.IOTraceTiers], Phases: replayPhases[v.IOTracePhases],
	}
}
