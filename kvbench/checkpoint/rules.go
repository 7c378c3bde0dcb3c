package checkpoint

import (
	"fmt"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/content"
	files "kvbench/workloads/checkpoint"
)

// Facts has the inputs of the rules: facts of a trial, and parameters of the run.
type Facts struct {
	Spec   files.Spec
	Op     tiers.Op
	Verify content.Verify
	Flush  Flush // before the first read

	Writes, Reads int   // requested checkpoints
	PerHost       int   // accelerators per host
	Apart         bool  // the results directory is on another filesystem
	Memory        int64 // bytes of an accelerator's memory, 0 = not given
	HostMemory    int64 // bytes, 0 = unknown
	Buffered      bool  // I/O through the page cache
	Objects       bool  // objects of a store instead of files

	// Known after the trial.
	Runs []result.CheckpointRun
	Gap  *int64 // ns
}

// The numbers of the rules (MLPerf Storage rules, "Checkpointing").
const (
	ruleRuns    = 10               // number of writes, and of reads
	rulePerHost = 4                // a host needs more accelerators than this
	ruleGap     = 30 * time.Second // maximum from the last write to the first read
	ruleMemory  = 3                // times the memory of a host, written bytes that empty its page cache
)

// Rules returns the rules of the closed division, each with the value found and whether the run meets
// it.
func (f Facts) Rules() (list []result.CheckpointRule) {
	if f.Spec.Stream > 0 { // the rules have no streams
		return []result.CheckpointRule{}
	}
	add := func(ok *bool, name, required, format string, args ...any) {
		list = append(list, result.CheckpointRule{Name: name, Required: required,
			Found: fmt.Sprintf(format, args...), OK: ok})
	}
	count := func(n int) *bool { return new(n == ruleRuns || n == 0) }
	// The newest rules allow a subset only for the smallest model, with this number of accelerators.
	full := f.Spec.Model.Accelerators()
	add(new(f.Spec.Scale == 1), "scale", "1", "1/%d", f.Spec.Scale)
	add(new(f.Spec.Accelerators == full), "accelerators", fmt.Sprint(full), "%d",
		f.Spec.Accelerators)
	add(new(f.PerHost > rulePerHost), "accelerators per host", fmt.Sprintf("more than %d",
		rulePerHost), "%d", f.PerHost)
	add(count(f.Writes), "writes", "10, or 0", "%d", f.Writes)
	add(count(f.Reads), "reads", "10, or 0", "%d", f.Reads)
	flush, results := "fsync per file", "on the same filesystem"
	if f.Objects {
		flush = "complete objects"
	}
	if f.Apart {
		results = "on another filesystem"
	}
	add(new(true), "flush", "each file, then the directory", "%s", flush)
	add(new(f.Apart), "results", "on another filesystem", "%s", results)
	// A checkpoint has to fit its accelerators' memory, which is unknown without their type.
	_, bytes := f.Spec.Totals()
	memory, found := f.Memory*int64(f.Spec.Accelerators), "not given"
	if f.Memory > 0 {
		found = units.Bytes.Text(memory)
	}
	add(new(f.Memory > 0 && memory >= bytes), "accelerator memory",
		"at least "+units.Bytes.Text(bytes)+" in all", "%s", found)
	add(new(f.Verify != content.VerifyNone), "verification", "sample", "%s", f.Verify)
	if f.Op != tiers.Read {
		return list
	}
	// A negative gap means that clocks differ, so the rule is not met.
	if f.Gap == nil {
		add(nil, "gap", "at most 30 s", "unknown")
	} else {
		gap := time.Duration(*f.Gap)
		add(new(gap >= 0 && gap <= ruleGap), "gap", "at most 30 s", "%.1f s", gap.Seconds())
	}
	ok, found := result.ColdReads(f.Runs)
	add(ok, result.RuleCold, "from the device", "%s", found)
	return list
}

// Notes returns remarks on the workload.
func (f Facts) Notes() (list []string) {
	if f.Spec.Subset() {
		list = append(list, fmt.Sprintf("%d of %d accelerators: not valid under the newest rules",
			f.Spec.Accelerators, f.Spec.Model.Accelerators()))
	}
	if f.Spec.Key == "1t" {
		list = append(list, "the rules' table has 18 TiB for this model: its optimizer, 15,426 "+
			"GiB, is the formula's total, so that the table's sum is 7/6 of it")
	}
	return list
}

// Warnings returns reasons to doubt the numbers, in any division.
func (f Facts) Warnings() (list []string) {
	if f.Op != tiers.Read {
		return nil
	}
	warn := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if f.Gap != nil {
		switch gap := time.Duration(*f.Gap); {
		case gap < 0:
			warn("reading began %.1f s before the last write ended, by the wall clocks: they "+
				"differ", -gap.Seconds())
		case gap > ruleGap:
			warn("reading began %.1f s after the last write ended, at most 30 s may pass",
				gap.Seconds())
		}
	}
	// ok is nil if there is no proof that the reads were cold. Then the rule on memory applies: compare
	// the written bytes with the host's memory.
	ok, found := result.ColdReads(f.Runs)
	_, bytes := f.Spec.Totals()
	// This host's page cache can hold only the part of its own accelerators.
	here := float64(min(f.PerHost, f.Spec.Accelerators)) / float64(max(1, f.Spec.Accelerators))
	written := int64(float64(bytes) * here * float64(f.Writes))
	switch {
	case ok != nil && !*ok:
		warn("reads of checkpoints: %s; give -io direct, -fadvise dontneed or -checkpoint-flush",
			found)
	case ok == nil && f.Buffered && f.Flush == FlushNone && f.HostMemory > 0 &&
		written < ruleMemory*f.HostMemory:
		warn("reads may have come from the page cache: %s were written through it here, which is "+
			"less than %d times the memory of %s; give -checkpoint-flush",
			units.Bytes.Text(written), ruleMemory, units.Bytes.Text(f.HostMemory))
	}
	return list
}
