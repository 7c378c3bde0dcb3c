package merge

import (
	"fmt"
	"slices"
	"time"

	"kvbench/kvbench/result"
)

// checkpoint merges the clients' parts of each checkpoint. The bytes are the sum over the clients.
// The time is the time of the slowest accelerator (MLPerf Storage rules, "Checkpointing":
// throughput is the size of the whole checkpoint over the time of the slowest process). If a client
// is missing, the merged result lists no checkpoints, because the other clients have only parts.
func checkpoint(ranks []*result.Result, hists result.Histograms) *result.Checkpoint {
	first := ranks[0].Checkpoint
	if len(ranks) == 1 {
		return first
	}
	parts, accelerators := []*result.Checkpoint{}, 0
	for _, r := range ranks {
		c := r.Checkpoint
		if c == nil || c.Count == nil {
			return nil
		}
		parts, accelerators = append(parts, c), accelerators+*c.Count
	}
	out := merged(parts)
	// Without a lost client's parts no checkpoint is whole. The results of the other clients have
	// their parts.
	if accelerators == first.Accelerators {
		out.Writes = runs(ranks, func(c *result.Checkpoint) []result.CheckpointRun {
			return c.Writes
		})
		out.Reads = runs(ranks, func(c *result.Checkpoint) []result.CheckpointRun {
			return c.Reads
		})
		for i := range out.Reads {
			out.Reads[i].JudgeCold()
		}
	}
	out.Flushes(hists[result.CheckpointFlushes])
	// A negative gap means that two clocks differ. The largest gap would hide it, so a negative gap
	// wins.
	for _, c := range parts {
		if c.GapNS != nil && *c.GapNS < 0 {
			out.GapNS = c.GapNS
		}
	}
	if out.FlushNS != nil && out.GapNS != nil && len(out.Reads) > 0 {
		out.RecoveryNS = new(*out.FlushNS + *out.GapNS + out.Reads[0].DurationNS)
	}
	if out.Stages != nil {
		stages(out, parts)
	}
	for _, r := range first.Rules {
		out.Rules = append(out.Rules, strictest(r, ranks))
	}
	if ok, found := result.ColdReads(out.Reads); len(out.Reads) > 0 {
		for i, r := range out.Rules {
			if r.Name == result.RuleCold {
				out.Rules[i].OK, out.Rules[i].Found = ok, found
			}
		}
	}
	return out
}

// runs merges the clients' parts of each checkpoint. It merges only checkpoints that all clients
// completed.
func runs(ranks []*result.Result, list func(*result.Checkpoint) []result.CheckpointRun) (
	folded []result.CheckpointRun) {
	n := len(list(ranks[0].Checkpoint))
	for _, r := range ranks {
		n = min(n, len(list(r.Checkpoint)))
	}
	for i := range n {
		var parts []*result.CheckpointRun
		for _, r := range ranks {
			parts = append(parts, &list(r.Checkpoint)[i])
		}
		run := merged(parts)
		run.Start = parts[0].Start
		var first time.Time
		// All clients start a checkpoint at the same time. The counters of a shared device count
		// the bytes of all its clients. So the largest value per device is the total of the device.
		counted := map[[2]string]int64{}
		run.DeviceBytes = new(int64(0))
		for k, part := range parts {
			if part.Index != parts[0].Index {
				return folded // not all clients completed this checkpoint
			}
			r := ranks[k]
			if start, err := r.Coordinated(part.Start); err == nil &&
				(first.IsZero() || start.Before(first)) {
				first, run.Start = start, start.UTC().Format(time.RFC3339Nano)
			}
			if part.DeviceBytes == nil {
				run.DeviceBytes = nil
			} else {
				counted[device(r)] = max(counted[device(r)], *part.DeviceBytes)
			}
		}
		if run.DeviceBytes != nil {
			for _, bytes := range counted {
				*run.DeviceBytes += bytes
			}
		}
		run.Slowest = parts[slices.IndexFunc(parts, func(part *result.CheckpointRun) bool {
			return part.DurationNS == run.DurationNS
		})].Slowest // the first of equally slow clients
		folded = append(folded, *run)
	}
	return folded
}

// stages completes the merged pipeline stages. Waits are means per thread over all clients. TotalNS
// is the sum of the merged checkpoints' times. Other wall times are the maximum over the clients,
// because the files do not show which clients waited at the same time. So the overhead is an upper
// bound.
func stages(out *result.Checkpoint, parts []*result.Checkpoint) {
	p := out.Stages
	for _, c := range parts {
		p.ProducerWaitNS += c.Stages.ProducerWaitNS * int64(c.Stages.Producers)
		p.WriterWaitNS += c.Stages.WriterWaitNS * int64(c.Stages.Writers)
	}
	p.ProducerWaitNS /= int64(max(1, p.Producers))
	p.WriterWaitNS /= int64(max(1, p.Writers))
	// A different client may be the slowest in each checkpoint.
	for _, w := range out.Writes {
		p.TotalNS += w.DurationNS
	}
	p.Derive()
}

// strictest returns the worst result of a rule over all clients. A run meets a rule only if every client
// meets it.
func strictest(rule result.CheckpointRule, ranks []*result.Result) result.CheckpointRule {
	// From best to worst: met, unknown, not met.
	badness := func(r result.CheckpointRule) int {
		switch {
		case r.OK == nil:
			return 1
		case *r.OK:
			return 0
		}
		return 2
	}
	worst := rule
	for _, r := range ranks {
		for _, o := range r.Checkpoint.Rules {
			if o.Name == rule.Name && badness(o) > badness(worst) {
				worst = o
				worst.Found = fmt.Sprintf("%s on rank %d", o.Found, r.Rank) // other ranks may differ
			}
		}
	}
	return worst
}
