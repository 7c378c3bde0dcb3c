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

// simulate runs one trial in virtual time. With -io-trace-log it writes the I/O trace.
func simulate(ctx context.Context, v *params.Values, cfg kvbench.Config,
	load kvbench.Workload) (_ *result.Result, err error) {
	sim, own := kvbench.SimConfig{Deletes: v.IOTraceDeletes, Device: v.Device}, cfg
	if v.IOTraceLog != "" {
		if sim.Trace, err = iotrace.Create(tracePath(v)); err != nil {
			return nil, err
		}
		defer sim.Trace.Close(false) // after an error; a complete trace stays
	}
	cfg.Publish = func(r *result.Result) (err error) {
		complete := r.Status == result.StatusComplete
		if s := r.Simulation; v.Device != nil && complete {
			s.Outstanding, s.SustainedUsers = r.Outstanding(), sustained(ctx, v, own, r)
		}
		// Close the trace before the result is published: a reader of the result may read the trace.
		if sim.Trace != nil {
			err = sim.Trace.Close(complete)
		}
		return errors.Join(err, own.Publish(r))
	}
	return kvbench.Simulate(ctx, cfg, load, sim)
}

// sustained returns the largest number of users whose load the device sustains. It returns nil if the
// load does not come from the users alone, or if the run did not end at its deadline.
func sustained(ctx context.Context, v *params.Values, cfg kvbench.Config, r *result.Result) *int {
	if v.Bench.Load != params.LoadUsers || v.ClosedLoop() || v.RequestRate > 0 || v.Autoscaling ||
		r.EndedBy != result.EndedByDeadline {
		return nil
	}
	return requests.Sustained(r, v.Users, func(n int) (*result.Result, error) {
		some, cfg := *v, cfg
		some.Users, cfg.Publish = n, nil
		storage, err := storageConfig(&some)         // with fewer users each user has a deeper queue
		load, err2 := requestLoad(&some, storage, 0) // users are the same in all trials
		if err = errors.Join(err, err2); err != nil {
			return nil, err
		}
		cfg.Storage = storage
		r, err := kvbench.Simulate(ctx, cfg, load, kvbench.SimConfig{Device: v.Device})
		if r != nil && ctx.Err() == nil {
			err = nil // a run that completed no request did not sustain the load
		}
		return r, err
	})
}

// tracePath returns the path of this rank's I/O trace. With several ranks the file name of rank N
// begins with rank_<N>_.
func tracePath(v *params.Values) string {
	if v.Ranks < 2 {
		return v.IOTraceLog
	}
	return filepath.Join(filepath.Dir(v.IOTraceLog),
		fmt.Sprintf("rank_%d_%s", v.Rank, filepath.Base(v.IOTraceLog)))
}

// simulationFeasible checks what a simulation needs of this machine: the directory of the I/O trace.
func simulationFeasible(v *params.Values) params.Violations {
	info, err := os.Stat(filepath.Dir(v.IOTraceLog))
	if v.IOTraceLog == "" || err == nil && info.IsDir() {
		return nil
	}
	return params.Violations{"-io-trace-log: must be a file in a directory that exists, given " + v.IOTraceLog}
}

// oneTrace returns a violation if several benchmarks, or points of a sweep, would write the same I/O
// trace file. Trials of one benchmark may share a file, because they write the same bytes.
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
