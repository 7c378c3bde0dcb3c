package merge

import (
	"fmt"
	"slices"
	"time"

	"kvbench/kvbench/result"
)

// checkpoint makes the checkpoints of all clients of what each has done of them: the bytes are
// theirs together, the time that of the slowest accelerator of all (MLPerf Storage rules,
// "Checkpointing": throughput is of the whole checkpoint and the slowest process). Without one of
// the clients there are no checkpoints: what the others have is a part of them.
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
	// A client that was lost leaves the others' parts, which are in their own results.
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
	// A gap below 0 shows clocks that differ, which a longer one of another client must not hide.
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

// runs folds each checkpoint of the parts that the clients have of it, of those that all clients
// have completed.
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
		// All began at one moment, so that a device's counters, which count the bytes of every
		// client, are those of the client that took the longest. One client's result does not show
		// whose bytes the device counted.
		counted := map[[2]string]int64{}
		run.DeviceBytes = new(int64(0))
		for k, part := range parts {
			if part.Index != parts[0].Index {
				return folded // of another checkpoint: it is none of all clients
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
		})].Slowest // of several that took as long the first
		folded = append(folded, *run)
	}
	return folded
}

// stages completes the pipelines of all clients that ran concurrently. What was made is the sum;
// waits are those of one thread, on average over all; wall times are those of the client with the
// longest: which clients waited at the same time is unknown. So the overhead is no less than it
// was.
func stages(out *result.Checkpoint, parts []*result.Checkpoint) {
	p := out.Stages
	for _, c := range parts {
		p.ProducerWaitNS += c.Stages.ProducerWaitNS * int64(c.Stages.Producers)
		p.WriterWaitNS += c.Stages.WriterWaitNS * int64(c.Stages.Writers)
	}
	p.ProducerWaitNS /= int64(max(1, p.Producers))
	p.WriterWaitNS /= int64(max(1, p.Writers))
	// Each checkpoint may have ended with another client.
	for _, w := range out.Writes {
		p.TotalNS += w.DurationNS
	}
	p.Derive()
}

// strictest is a rule as the client found it that kept it least: all have to keep it.
func strictest(of result.CheckpointRule, ranks []*result.Result) result.CheckpointRule {
	// Kept, unknown, not kept: what one client does not know is unknown of all.
	badness := func(r result.CheckpointRule) int {
		switch {
		case r.OK == nil:
			return 1
		case *r.OK:
			return 0
		}
		return 2
	}
	worst := of
	for _, r := range ranks {
		i := slices.IndexFunc(r.Checkpoint.Rules,
			func(o result.CheckpointRule) bool { return o.Name == of.Name })
		if i < 0 { // another version's
			continue
		}
		// Whose it is, because the others' own results say otherwise.
		if o := r.Checkpoint.Rules[i]; badness(o) > badness(worst) {
			worst = o
			worst.Found = fmt.Sprintf("%s on rank %d", o.Found, r.Rank)
		}
	}
	return worst
}
