package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/workloads/iotrace"
)

// simulate runs one trial in virtual time and writes its I/O trace, if one is
// wanted.
func simulate(ctx context.Context, v *params.Values, cfg kvbench.Config,
	load kvbench.Workload) (*result.Result, error) {
	sim := kvbench.SimConfig{Deletes: v.IOTraceDeletes, Device: v.Device}
	if v.IOTraceLog == "" {
		return kvbench.Simulate(ctx, cfg, load, sim)
	}
	trace, err := iotrace.Create(tracePath(v))
	if err != nil {
		return nil, err
	}
	defer trace.Close(false) // without a result; a trace that is whole stays
	sim.Trace = trace
	// The result is published after the trace is whole: who sees the one may read the other.
	publish := cfg.Publish
	cfg.Publish = func(r *result.Result) error {
		return errors.Join(trace.Close(r.Status == result.StatusComplete), publish(r))
	}
	return kvbench.Simulate(ctx, cfg, load, sim)
}

// tracePath is where this rank's I/O trace goes: rank N of several gets rank_<N>_
// before its name.
func tracePath(v *params.Values) string {
	if v.Ranks < 2 {
		return v.IOTraceLog
	}
	return filepath.Join(filepath.Dir(v.IOTraceLog),
		fmt.Sprintf("rank_%d_%s", v.Rank, filepath.Base(v.IOTraceLog)))
}

// simulationFeasible checks what a simulation needs of this machine: a place for
// its trace.
func simulationFeasible(v *params.Values) params.Violations {
	info, err := os.Stat(filepath.Dir(v.IOTraceLog))
	if v.IOTraceLog == "" || err == nil && info.IsDir() {
		return nil
	}
	return params.Violations{"-io-trace-log: must be a file in a directory that exists, given " +
		v.IOTraceLog}
}

// oneTrace refuses several benchmarks, or points of a sweep, that would write
// one trace over the other. Trials of one benchmark write the same bytes.
func oneTrace(plans []*params.Values) params.Violations {
	names := map[string]string{}
	for _, v := range plans {
		if v.IOTraceLog == "" || v.Skip() != "" {
			continue
		}
		path := tracePath(v)
		if other, taken := names[path]; taken {
			return params.Violations{fmt.Sprintf("-io-trace-log: must be of one benchmark without "+
				"a sweep, given for %s and %s: select one with -bench", other, v.Bench.Name)}
		}
		names[path] = v.Bench.Name
	}
	return nil
}
