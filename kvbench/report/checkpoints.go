package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// checkpoints reports the bytes and rates of the checkpoints, what limited them, and which rules of the
// closed division the run met. The table has a row for each checkpoint.
func checkpoints(r *result.Result) (s Section) {
	c := r.Checkpoint
	if c == nil {
		return s
	}
	s = Section{Title: "Checkpoints", Columns: columns("operation", units.Count, "checkpoint",
		units.Nanoseconds, "time", "fastest accelerator", units.Number, "slowest one", units.Bytes,
		"bytes", units.BytesPerSec, "rate", units.Bytes, "cached before", "at the device",
		units.Number, "cold")}
	for i, runs := range [][]result.CheckpointRun{c.Writes, c.Reads} {
		for _, x := range runs {
			var cold any // unknown; a pointer to a bool is no value of a table
			if x.Cold != nil {
				cold = *x.Cold
			}
			s.add([]string{"write", "read"}[i], x.Index, x.DurationNS, x.MinNS, x.Slowest, x.Bytes,
				x.Rate(), x.CachedBytes, x.DeviceBytes, cold)
		}
	}
	if c.Streamed() {
		s.line("stream", "one file, %s each time", bytes(c.Bytes))
	} else {
		text := fmt.Sprintf("%s, %d accelerators (ZeRO %d, TP %d × PP %d × DP %d), %d files, %s "+
			"each time", c.Model, c.Accelerators, c.Zero, c.Tensor, c.Pipeline, c.Data, c.Files,
			bytes(c.Bytes))
		if c.Scale != 1 { // next to the size, which readers compare
			text += fmt.Sprintf(" (scale 1/%d: not for comparison)", c.Scale)
		}
		s.put("checkpoint", text)
		if c.First != nil && c.Count != nil {
			s.line("", "A PART of it, that of one client: accelerators %d to %d", *c.First,
				*c.First+*c.Count-1)
		}
	}
	// A result has one of the two, but for one that was put together.
	if len(c.Writes) > 0 {
		s.line("write", "%s; flush of a file %s", spread(c, c.Writes), flushes(c))
	}
	if runs, warm := c.Reading(); len(runs) > 0 {
		s.line("read", "%s; %s", spread(c, runs), origin(c, runs, r.Network))
		if len(warm) > 0 {
			s.line("", "WARM, and no part of these numbers: %s", spread(c, warm))
		}
		s.recovery(c)
	}
	if p := c.Stages; p != nil && len(c.Writes) > 0 {
		s.put("pipeline", pipeline(p, c.Writes))
	}
	s.put("rules", rulesText(c.Rules))
	for _, n := range c.Notes {
		s.put("", n)
	}
	return s
}

// recovery reports the time after which a training run could continue from its last checkpoint.
func (s *Section) recovery(c *result.Checkpoint) {
	switch {
	case c.GapNS == nil:
	case *c.GapNS < 0:
		s.line("", "recovery unknown: by the wall clocks the first read began %s before the last "+
			"write ended, so the clocks differ", seconds(-*c.GapNS))
	default:
		emptied := ""
		if *c.FlushNS > 0 {
			emptied = fmt.Sprintf("%s for emptying the page cache (%s) and ", ns(*c.FlushNS),
				c.Flush)
		}
		s.line("", "recovery %s: %s%s after the last write, then the first read",
			seconds(*c.RecoveryNS), emptied, seconds(*c.GapNS))
	}
}

// spread returns the means and standard deviations of the checkpoints' times and rates.
func spread(c *result.Checkpoint, runs []result.CheckpointRun) string {
	// The text also has the slowest checkpoint, with its slowest accelerator, because a mean hides it.
	s := result.Sum(runs)
	slowest := slices.MaxFunc(runs, func(a, b result.CheckpointRun) int {
		return int(a.DurationNS - b.DurationNS)
	})
	what, basis, by := "time", "", ""
	if !c.Streamed() {
		what, basis = "checkpoint", " (mean of the rates, each total ÷ slowest accelerator)"
		by = fmt.Sprintf(", by accelerator %d", slowest.Slowest)
	}
	return fmt.Sprintf("%s, %.3f ± %.3f s, %s%s, the slowest %s%s",
		units.Plural(int64(s.Count), what), s.Duration/1e9, s.DurationStdev/1e9, rate(s.Rate), basis,
		rate(s.RateWorst), by)
}

// flushes returns the time of a file's fsync, or the longest time if there are too few for a percentile.
func flushes(c *result.Checkpoint) string {
	if c.FlushP95NS != nil {
		return ns(*c.FlushP95NS) + " p95"
	}
	if c.FlushMaxNS == nil { // objects of one request have none
		return "with its only request"
	}
	return "at most " + ns(*c.FlushMaxNS)
}

// origin reports where the bytes came from. The caches of a store are unknown: the counters show only
// that the bytes came from it.
func origin(c *result.Checkpoint, runs []result.CheckpointRun, network *result.Network) string {
	if network == nil {
		return cold(c, runs)
	}
	text := "from the store, whose own caches are unknown"
	if network.ReadRatio != nil {
		text += fmt.Sprintf(": it sent %.3f times their bytes", *network.ReadRatio)
	}
	return text
}

// cold reports where the bytes of files came from: the bytes in the page cache before the reads, and the
// device's counters. It reports the number that is known if the other one is unknown.
func cold(c *result.Checkpoint, runs []result.CheckpointRun) string {
	word, cached := "cold", new(int64)
	// They are all warm, or none is. One unknown makes all of them unproven.
	for _, r := range runs {
		if r.Cold == nil && word == "cold" {
			word = "not provably cold"
		} else if r.Cold != nil && !*r.Cold {
			word = "WARM"
		}
		if cached == nil || r.CachedBytes == nil {
			cached = nil
		} else {
			*cached += *r.CachedBytes
		}
	}
	text := word + ": the page cache's content before is unknown"
	if cached != nil {
		text = word + ": " + bytes(*cached) + " in the page cache before"
	}
	// A ratio above one includes reads of other processes, or the filesystem's own.
	if ratio := c.DeviceRatio(); ratio != nil {
		return text + fmt.Sprintf(", the device read %.3f of the bytes", *ratio)
	}
	if c.Count != nil {
		return text + ", the device has read for all clients"
	}
	return text + ", the device's counters are not known"
}

// pipeline reports whether the writes or the generation of the bytes limited the rate.
func pipeline(p *result.Pipeline, writes []result.CheckpointRun) string {
	buffers := ""
	if p.BufferBytes > 0 { // older results do not have it
		buffers = bytes(p.BufferBytes) + " of buffers; "
	}
	if p.Before {
		mean := float64(p.GenerationWallNS) / 1e9 / float64(len(writes))
		return fmt.Sprintf("generated BEFORE the writes, in %.3f s more of each checkpoint: %.3f s in all; "+
			"%soverhead %s", mean, mean+result.Sum(writes).Duration/1e9, buffers, percent(p.Overhead))
	}
	// A share is of the time of the checkpoints. The window also has pauses.
	share := func(wait int64) string {
		return percent(new(float64(wait) / float64(max(p.TotalNS, 1))))
	}
	// Both shares are reported: where they are alike, neither was much of a limit. The text does not
	// name the storage as the limit: with more writers it may do more.
	limit := fmt.Sprintf("writing was the limit, not generation (producers waited %s, writers %s)",
		share(p.ProducerWaitNS), share(p.WriterWaitNS))
	if p.Bottleneck == result.BottleneckGeneration {
		limit = fmt.Sprintf("GENERATION WAS THE LIMIT (writers waited %s, producers %s): more "+
			"-stream-producers, or cores", share(p.WriterWaitNS), share(p.ProducerWaitNS))
	}
	// Without any generation there is no rate of it: a trial that ended in its first checkpoint.
	var text string
	if p.GenerationRate != nil && p.Ratio != nil {
		text = fmt.Sprintf("generation alone %s, %s × the rate of writes and flushes alone; ",
			rate(*p.GenerationRate), number(*p.Ratio))
	}
	return text + fmt.Sprintf("%soverhead %s; %s", buffers, percent(p.Overhead), limit)
}

// rulesText lists the rules that the run met, the unknown rules, and the rules that it did not meet,
// with their requirements.
func rulesText(checked []result.CheckpointRule) string {
	var kept, unknown, not []string
	for _, r := range checked {
		switch {
		case r.OK == nil:
			unknown = append(unknown, r.Name+" ("+r.Found+")")
		case *r.OK:
			kept = append(kept, r.Name+" "+r.Found)
		default:
			not = append(not, fmt.Sprintf("%s (%s, required: %s)", r.Name, r.Found, r.Required))
		}
	}
	var parts []string
	for i, list := range [][]string{kept, unknown, not} {
		if len(list) > 0 {
			parts = append(parts, []string{"", "not known: ", "differs from closed: "}[i]+
				strings.Join(list, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// seconds returns a time in seconds with one decimal, as the rules give it.
func seconds(n int64) string { return fmt.Sprintf("%.1f s", time.Duration(n).Seconds()) }
