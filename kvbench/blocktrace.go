package kvbench

import (
	"context"
	"fmt"

	"kvbench/tracing"
)

// startTracing loads the programs before the window: it takes some 50 ms. A run
// that cannot be traced goes on; its trace then says why and what it would need.
func (t *trial) startTracing(ctx context.Context) {
	if t.cfg.Trace == nil {
		return
	}
	if t.sim != nil {
		t.untraced("a simulated device has no kernel below it")
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
	why := fmt.Sprintf("%s the block trace failed: %v", act, err)
	t.info.Warnings = append(t.info.Warnings, why)
	t.untraced(why)
}

// untraced leaves a trace that says why there is none: who asked for one finds the answer in the result.
func (t *trial) untraced(why string) {
	t.info.Trace = &tracing.Trace{Capture: tracing.Capture{
		Status: tracing.StatusNone, Reason: why, Level: t.cfg.Trace.Level.String(), Filter: t.cfg.Trace.Filter.String(),
	}}
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
