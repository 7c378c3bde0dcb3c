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
	out := &result.Checkpoint{Model: first.Model, Scale: first.Scale, Mode: first.Mode,
		Accelerators: first.Accelerators, Zero: first.Zero, Tensor: first.Tensor,
		Pipeline: first.Pipeline, Data: first.Data, Files: first.Files, Bytes: first.Bytes,
		Flush: first.Flush, Notes: first.Notes}
	// A client that was lost leaves the others' parts, which are in their own results.
	if accelerators == first.Accelerators {
		out.Writes = together(ranks, func(c *result.Checkpoint) []result.CheckpointRun {
			return c.Writes
		})
		out.Reads = together(ranks, func(c *result.Checkpoint) []result.CheckpointRun {
			return c.Reads
		})
		for i := range out.Reads {
			out.Reads[i].JudgeCold()
		}
	}
	out.Flushes(hists[result.CheckpointFlushes])
	gaps(out, parts)
	out.Stages = stages(out, parts)
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

// together makes each checkpoint of the parts that the clients have of it, of those that all have
// come to the end of.
func together(ranks []*result.Result, of func(*result.Checkpoint) []result.CheckpointRun) (
	list []result.CheckpointRun) {
	n := len(of(ranks[0].Checkpoint))
	for _, r := range ranks {
		n = min(n, len(of(r.Checkpoint)))
	}
	for i := range n {
		sum := of(ranks[0].Checkpoint)[i]
		var first time.Time
		device := map[[2]string]*int64{}
		for k, r := range ranks {
			run := of(r.Checkpoint)[i]
			if run.Index != sum.Index {
				return list // of another checkpoint: it is none of all clients
			}
			// All began at one moment, so that a device's counters, which count for whoever
			// asks, are those of the client that took the longest.
			if start, err := r.Coordinated(run.Start); err == nil &&
				(first.IsZero() || start.Before(first)) {
				first, sum.Start = start, start.UTC().Format(time.RFC3339Nano)
			}
			at := [2]string{r.Environment.KernelID(), r.DeviceWitness.Device}
			if have, seen := device[at]; !seen {
				device[at] = run.DeviceBytes
			} else if have != nil && run.DeviceBytes != nil {
				device[at] = new(max(*have, *run.DeviceBytes))
			} else {
				device[at] = nil
			}
			if k == 0 {
				continue
			}
			sum.Bytes, sum.VerifiedBytes = sum.Bytes+run.Bytes, sum.VerifiedBytes+run.VerifiedBytes
			sum.CachedBytes = plus(sum.CachedBytes, run.CachedBytes)
			if run.FlushNS != nil && (sum.FlushNS == nil || *run.FlushNS > *sum.FlushNS) {
				sum.FlushNS = run.FlushNS
			}
			sum.MinNS = min(sum.MinNS, run.MinNS)
			if run.DurationNS > sum.DurationNS {
				sum.DurationNS, sum.Slowest = run.DurationNS, run.Slowest
			}
		}
		// Judged anew with the bytes of all: of one client nobody knows whose bytes a device's
		// were.
		sum.DeviceBytes, sum.Cold = new(int64(0)), nil
		for _, n := range device {
			sum.DeviceBytes = plus(sum.DeviceBytes, n)
		}
		list = append(list, sum)
	}
	return list
}

// plus adds numbers that are known: of others there is no sum.
func plus(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

// gaps are the longest of any client: a training run begins when the last one has read.
func gaps(out *result.Checkpoint, parts []*result.Checkpoint) {
	longest := func(of func(*result.Checkpoint) *int64) (most *int64) {
		for _, c := range parts {
			if n := of(c); n != nil && (most == nil || *n > *most) {
				most = n
			}
		}
		return most
	}
	out.FlushNS = longest(func(c *result.Checkpoint) *int64 { return c.FlushNS })
	out.GapNS = longest(func(c *result.Checkpoint) *int64 { return c.GapNS })
	// A gap below 0 shows clocks that differ, which a longer one of another client must not hide.
	for _, c := range parts {
		if c.GapNS != nil && *c.GapNS < 0 {
			out.GapNS = c.GapNS
		}
	}
	out.TotalNS = longest(func(c *result.Checkpoint) *int64 { return c.TotalNS })
	if out.FlushNS != nil && out.GapNS != nil && len(out.Reads) > 0 {
		out.RecoveryNS = new(*out.FlushNS + *out.GapNS + out.Reads[0].DurationNS)
	}
}

// stages are the pipelines of all clients side by side. What was made is the sum; waits are those
// of one thread, on average over all; walls are those of the client with the longest: when clients
// waited at the same time and when one after the other nobody knows. So the overhead is no less
// than it was.
func stages(out *result.Checkpoint, parts []*result.Checkpoint) *result.Pipeline {
	// Threads make content beside each other on all hosts, so that rates add up; a client without
	// a rate has made nothing.
	var p result.Pipeline
	rate := 0.0
	var waits, writes int64
	for _, c := range parts {
		s := c.Stages
		if s == nil {
			return nil
		}
		p.ChunkBytes, p.Buffers = s.ChunkBytes, s.Buffers
		p.Producers, p.Writers = p.Producers+s.Producers, p.Writers+s.Writers
		p.Chunks, p.GenerationNS = p.Chunks+s.Chunks, p.GenerationNS+s.GenerationNS
		waits += s.ProducerWaitNS * int64(s.Producers)
		writes += s.WriterWaitNS * int64(s.Writers)
		p.GenerationWallNS = max(p.GenerationWallNS, s.GenerationWallNS)
		p.IONS, p.CloseNS = max(p.IONS, s.IONS), max(p.CloseNS, s.CloseNS)
		if s.GenerationRate != nil {
			rate += *s.GenerationRate
		}
	}
	p.ProducerWaitNS = waits / int64(max(1, p.Producers))
	p.WriterWaitNS = writes / int64(max(1, p.Writers))
	// The time is not that of any client: each checkpoint has ended with another one, perhaps.
	for _, w := range out.Writes {
		p.TotalNS += w.DurationNS
	}
	if rate > 0 {
		p.GenerationRate = &rate
	}
	p.Derive()
	return &p
}

// strictest is a rule as the client found it that kept it least: all have to keep it.
func strictest(of result.CheckpointRule, ranks []*result.Result) result.CheckpointRule {
	// Kept, unknown, not kept: what one client does not know nobody can say of all.
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
