package benchmarks

import (
	"fmt"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/traces"
	"kvbench/workloads/users"
)

// source makes the requests of one trial: users, with their documents or without, or a trace.
func source(v *params.Values) (workloads.Source, error) {
	seed := v.StreamSeed()
	if v.OfSessions() {
		return traces.NewSynthetic(traces.Config{Profile: v.Profile, Speedup: v.TraceSpeedup,
			Live: v.Users, MaxRequests: v.MaxRequests, Seed: seed}, v.ContextWindow(),
			v.SessionBlock()), nil
	}
	if v.Bench.Load == params.LoadUsers {
		population := users.New(users.Config{
			Profile: v.Profile, Users: users.Population(v.Profile, seed, v.Users,
				v.CPythonPopulation()), Seed: seed,
			ClosedLoop: v.ClosedLoop(), Overtaking: v.Overtaking(),
			MultiTurn: !v.DisableMultiTurn, PrefixCaching: !v.DisablePrefixCaching,
			KeepPrompt:  v.CutTokens() > 0,
			PrefillOnly: v.PrefillOnly, DecodeOnly: v.DecodeOnly, Window: v.ContextWindow(),
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
	format, err := traceFormat(v)
	if err != nil {
		return nil, err
	}
	files, err := format.Files(v.Text(v.Bench.Needs))
	if err != nil {
		return nil, err
	}
	cfg := traces.Config{
		Paths: files, Speedup: v.TraceSpeedup, Cycles: v.ReplayCycles, Start: v.TraceStart,
		Rate: v.RequestRate, ConstantRate: v.ConstantRate(), MaxRequests: v.MaxRequests, Seed: seed,
		Profile: v.Profile, PrefixCaching: !v.DisablePrefixCaching, PrefillOnly: v.PrefillOnly,
		MultiTurn: !v.DisableMultiTurn, Overtaking: v.Overtaking(),
		AllowMalformed:   v.TraceAllowMalformed,
		MaxConversations: v.MaxConversations,
		ObjectTokens:     v.CutTokens(), Live: v.Users,
	}
	if v.Bench.Blocks() && v.ClosedLoop() {
		s, err := traces.NewSessions(format, cfg)
		return s, err
	}
	s, err := traces.New(format, cfg)
	return s, err
}

// traceFormat is the format of the benchmark's recordings.
func traceFormat(v *params.Values) (formats.Format, error) {
	switch v.Bench.Name {
	case "AzureTrace":
		return formats.Azure, nil
	case "BurstGPT":
		return formats.BurstGPT, nil
	case "BlockTrace", result.BenchmarkEngines:
		return formats.Blocks, nil
	// Conversations are text: tokens are counted here, with -tokenizer.
	case "ShareGPT":
		caps := v.Profile.ShareGPT
		counter, err := formats.NewTokenizer(v.Tokenizer, caps.CharsPerToken)
		return formats.ShareGPT(caps.MaxContext, caps.MaxGenerate, counter), err
	}
	return formats.Format{}, fmt.Errorf("%s has no format of recordings", v.Bench.Name)
}

// traceFiles identifies the recording that the benchmark replays, nil for none. It is read once in a
// process: all trials replay the same.
func (s *session) traceFiles(v *params.Values) (*result.TraceFiles, error) {
	path := v.Text(v.Bench.Needs)
	if path == "" || s.traces[path] != nil {
		return s.traces[path], nil
	}
	files := []string{path} // an I/O trace is a file
	if v.Bench.Load == params.LoadTrace {
		format, err := traceFormat(v)
		if err == nil {
			files, err = format.Files(path)
		}
		if err != nil {
			return nil, err
		}
	}
	id, err := formats.Identify(files)
	if err != nil {
		return nil, err
	}
	s.traces[path] = &result.TraceFiles{Files: id.Files, Bytes: id.Bytes, HashedBytes: id.Hashed,
		SHA256: id.SHA256}
	return s.traces[path], nil
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
