package kvbench

import (
	"context"
	"fmt"

	"kvbench/tracing"
)

// startTracing loads the programs before the window: it takes some 50 ms. A run
// that cannot be traced goes on; its trace then says why and what it would need.
func (t *trial) startTracing(ctx context.Context) {
	if t.cfg.Trace == nil || t.sim != nil { // a simulated run has no device
		return
	}
	device := t.device
	if t.stack.dir == nil {
		// The zero device would mean every device of the machine.
		device = tracing.Device{Reason: "the run has no storage tier on a filesystem"}
	}
	c, err := tracing.Start(ctx, tracing.Options{Device: device, Level: t.cfg.Trace.Level, Filter: t.cfg.Trace.Filter})
	if err != nil {
		t.warnTrace("starting", err)
		return
	}
	t.tracer = c
}

// openTrace and closeTrace stand at the window's edges.
func (t *trial) openTrace() {
	if t.tracer != nil {
		t.tracer.OpenWindow()
	}
}

func (t *trial) closeTrace() {
	if t.tracer != nil {
		t.tracer.CloseWindow()
	}
}

// readTrace takes the histograms when the window is over.
func (t *trial) readTrace() {
	if t.tracer == nil {
		return
	}
	tr, err := t.tracer.Snapshot()
	if err != nil {
		t.warnTrace("reading", err)
		return
	}
	t.info.Trace = tr
}

// stopTracing detaches the programs. It is not for the window: perf tracepoints
// take half a second.
func (t *trial) stopTracing() {
	if t.tracer != nil {
		_ = t.tracer.Close()
	}
}

func (t *trial) warnTrace(act string, err error) {
	t.info.Warnings = append(t.info.Warnings, fmt.Sprintf("%s the block trace failed: %v", act, err))
}

// trace puts the block trace into the result, with the fio job that makes the
// same load elsewhere.
func (b *builder) trace(r *Result) {
	tr := b.info.Trace
	if tr == nil {
		return
	}
	r.DeviceLatencyTracing = tr
	r.Warnings = append(r.Warnings, tr.Capture.Warnings...)
	job, err := tracing.FioJob(tr, fioInput(r))
	if err == nil {
		r.FioWorkload = job
	}
}

// fioInput is what a fio job's header and its fallbacks need of a result.
func fioInput(r *Result) tracing.FioInput {
	in := tracing.FioInput{
		Title: fmt.Sprintf("%s, trial %d, %s division", r.Benchmark, r.Trial+1, r.Division),
		Model: r.Model.Name, Users: r.Workload.Users, BytesPerToken: r.Model.BytesPerToken,
		HugePages: hugeBuffers(r.IO.Pool.HugePages), Concurrency: float64(r.Workload.Workers),
	}
	if r.CompletionUnit == UnitOperation {
		in.Model = ""
	}
	read, write := r.storageTraffic()
	in.ReadBytes, in.WriteBytes = read.Bytes, write.Bytes
	return in
}

// hugeBuffers reads what the pool says of itself: mostly huge pages or not.
func hugeBuffers(pool string) bool {
	var got, all int
	n, _ := fmt.Sscanf(pool, "%d of %d MiB in huge pages", &got, &all)
	return n == 2 && 2*got >= all
}

// FioJob distils the result's block trace; the error says why it cannot.
func (r *Result) FioJob() (string, error) {
	if r.DeviceLatencyTracing == nil {
		return "", fmt.Errorf("%s was not traced: run it with -enable-latency-tracing", r.Benchmark)
	}
	return tracing.FioJob(r.DeviceLatencyTracing, fioInput(r))
}

func (s *summaryWriter) trace() {
	if tr := s.r.DeviceLatencyTracing; tr != nil {
		fmt.Fprintln(s.w)
		_ = tr.WriteText(s.w, fioInput(s.r)) // s.w keeps the error for Flush
	}
}
