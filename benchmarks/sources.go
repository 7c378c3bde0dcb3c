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

// source returns the requests of one trial: of synthetic users, with or without the documents of RAG, of
// generated sessions, or of a trace. Only the order of conversations without times differs between trials.
func source(v *params.Values, trial int) (workloads.Source, error) {
	seed := v.StreamSeed()
	if v.OfSessions() {
		return traces.NewSynthetic(traces.Config{Profile: v.Profile, Speedup: v.TraceSpeedup,
			Live: v.Users, MaxRequests: v.MaxRequests, Seed: seed}, v.ContextWindow(),
			v.SessionBlock()), nil
	}
	if v.Bench.Load == params.LoadUsers {
		return users.New(users.Config{
			Profile: v.Profile, Users: users.Population(v.Profile, seed, v.Users,
				v.CPythonPopulation()), Seed: seed,
			ClosedLoop: v.ClosedLoop(), Overtaking: v.Overtaking(),
			MultiTurn: !v.DisableMultiTurn, PrefixCaching: !v.DisablePrefixCaching,
			KeepPrompt:  v.CutTokens() > 0,
			PrefillOnly: v.PrefillOnly, DecodeOnly: v.DecodeOnly, Window: v.ContextWindow(),
			Rate: v.RequestRate, ConstantRate: v.RequestSpacing == "constant", MaxRequests: v.MaxRequests,
			Corpus: corpus(v),
		}), nil
	}
	return traceSource(v, seed, trial)
}

// corpus returns the documents that synthetic users retrieve (-enable-rag). It returns nil without RAG.
func corpus(v *params.Values) *users.Corpus {
	if !v.EnableRAG || v.Bench.Load != params.LoadUsers {
		return nil
	}
	return users.NewCorpus(v.Profile.RAG, v.RAGDocuments, v.Model, v.Sizer(), v.StreamSeed())
}

// traceSource opens the recorded requests that the benchmark replays. Each trace format has its own flag for
// the path, because a path does not show the format.
func traceSource(v *params.Values, seed uint64, trial int) (workloads.Source, error) {
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
		Rate: v.RequestRate, ConstantRate: v.RequestSpacing == "constant", MaxRequests: v.MaxRequests, Seed: seed, Trial: trial,
		Profile: v.Profile, PrefixCaching: !v.DisablePrefixCaching, PrefillOnly: v.PrefillOnly,
		MultiTurn: !v.DisableMultiTurn, Overtaking: v.Overtaking(),
		AllowMalformed:   v.TraceAllowMalformed,
		MaxConversations: v.MaxConversations,
		ObjectTokens:     v.CutTokens(), Live: v.Users,
	}
	if v.Bench.Blocks() && v.ClosedLoop() {
		return traces.NewSessions(format, cfg)
	}
	return traces.New(format, cfg)
}

// traceFormat returns the format of the traces that the benchmark replays.
func traceFormat(v *params.Values) (formats.Format, error) {
	switch v.Bench.Name {
	case "AzureTrace":
		return formats.Azure, nil
	case "BurstGPT":
		return formats.BurstGPT, nil
	case "BlockTrace", result.BenchmarkEngines:
		return formats.Blocks, nil
	// ShareGPT files have text and no token counts: the tokenizer (-tokenizer) counts the tokens.
	case "ShareGPT":
		caps := v.Profile.ShareGPT
		counter := formats.NewTokenizer(v.Tokenizer, caps.CharsPerToken)
		return formats.ShareGPT(caps.MaxContext, caps.MaxGenerate, counter), nil
	}
	return formats.Format{}, fmt.Errorf("%s has no format of recordings", v.Bench.Name)
}

// traceFiles identifies the trace that the benchmark replays by its size and hash. It returns nil if the
// benchmark replays none. A process reads the files of a trace once for this, and all trials get the same
// answer.
func (s *session) traceFiles(v *params.Values) (*result.TraceFiles, error) {
	path := v.Text(v.Bench.Needs)
	if path == "" || s.traces[path] != nil {
		return s.traces[path], nil
	}
	files := []string{path} // an I/O trace is one file; the other formats may have several
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
	s.traces[path] = new(result.TraceFiles(id))
	return s.traces[path], nil
}

// The values of -io-trace-tiers and -io-trace-phases, and the tiers and phases that they select. A value
// that is not in replayPhases selects all phases.
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

// replayRoutine returns the replay of an I/O trace with the parameters in v. It removes the gpu and cpu tier
// from st, because a replay sends the operations of all tiers to the storage tier.
func replayRoutine(v *params.Values, st *kvbench.StorageConfig) plainio.Routine {
	st.GPUBytes, st.CPUBytes = 0, 0
	return &plainio.Replay{
		Path: v.IOTraceReplay, Speed: v.TraceSpeedup, Cycles: v.ReplayCycles,
		Allow: v.TraceAllowMalformed,
		Tiers: replayTiers[v.IOTraceTiers], Phases: replayPhases[v.IOTracePhases],
	}
}
