package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/requests"
	"kvbench/kvbench/result"
	"kvbench/workloads/iotrace"
)

// simulate runs one trial in virtual time and writes its I/O trace, if one is wanted.
func simulate(ctx context.Context, v *params.Values, cfg kvbench.Config,
	load kvbench.Workload) (_ *result.Result, err error) {
	sim, own := kvbench.SimConfig{Deletes: v.IOTraceDeletes, Device: v.Device}, cfg
	if v.IOTraceLog != "" {
		if sim.Trace, err = iotrace.Create(tracePath(v)); err != nil {
			return nil, err
		}
		defer sim.Trace.Close(false) // without a result; a trace that is whole stays
	}
	cfg.Publish = func(r *result.Result) (err error) {
		complete := r.Status == result.StatusComplete
		if s := r.Simulation; v.Device != nil && complete {
			s.Outstanding, s.SustainedUsers = r.Outstanding(), sustained(ctx, v, own, r)
		}
		// Published after the trace is whole: a reader of the result may read the trace.
		if sim.Trace != nil {
			err = sim.Trace.Close(complete)
		}
		return errors.Join(err, own.Publish(r))
	}
	return kvbench.Simulate(ctx, cfg, load, sim)
}

// sustained finds how many users the device keeps up with; nil where the load is not theirs alone,
// and when it was interrupted.
func sustained(ctx context.Context, v *params.Values, cfg kvbench.Config, r *result.Result) *int {
	if v.Bench.Load != params.LoadUsers || v.ClosedLoop() || v.RequestRate > 0 || v.Autoscaling ||
		r.EndedBy != result.EndedByDeadline {
		return nil
	}
	return requests.Sustained(r, v.Users, func(n int) (*result.Result, error) {
		some, cfg := *v, cfg
		some.Users, cfg.Publish = n, nil
		storage, err := storageConfig(&some) // fewer users have deeper queues each
		load, err2 := requestLoad(&some, storage)
		if err = errors.Join(err, err2); err != nil {
			return nil, err
		}
		cfg.Storage = storage
		r, err := kvbench.Simulate(ctx, cfg, load, kvbench.SimConfig{Device: v.Device})
		if r != nil && ctx.Err() == nil {
			err = nil // one that has completed nothing has not kept up
		}
		return r, err
	})
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

// simulationFeasible checks what a simulation needs of this machine: a place for its trace.
func simulationFeasible(v *params.Values) (bad params.Violations) {
	if _, err := v.BlockSizes(); v.Bench.Blocks() && err != nil {
		bad = append(bad, err.Error())
	}
	info, err := os.Stat(filepath.Dir(v.IOTraceLog))
	if v.IOTraceLog == "" || err == nil && info.IsDir() {
		return bad
	}
	return append(bad, "-io-trace-log: must be a file in a directory that exists, "+
		"given "+v.IOTraceLog)
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
