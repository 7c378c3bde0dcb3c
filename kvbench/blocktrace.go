package kvbench

import (
	"context"
	"encoding/json"
	"fmt"

	"kvbench/tracing"
	"kvbench/tracing/collector"
	"kvbench/tracing/host"
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
		device = host.Device{Reason: "the run has no storage tier on a filesystem"}
	}
	c, err := collector.Start(ctx,
		collector.Options{Device: device, Level: t.cfg.Trace.Level, Filter: t.cfg.Trace.Filter})
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
	t.keepTrace(tr)
}

// stopTracing detaches the programs. It is not for the window: kprobes take up
// to a second.
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

// untraced leaves a trace that says why there is none: who asked for one finds the answer in the
// result.
func (t *trial) untraced(why string) {
	t.keepTrace(&tracing.Trace{Capture: tracing.Capture{
		Status: tracing.StatusNone, Reason: why, Level: t.cfg.Trace.Level,
		Filter: t.cfg.Trace.Filter,
	}})
}

// keepTrace hands the trace to the result, which carries it as its JSON.
func (t *trial) keepTrace(tr *tracing.Trace) {
	raw, err := json.Marshal(tr)
	if err != nil {
		t.info.Warnings = append(t.info.Warnings,
			fmt.Sprintf("writing the block trace failed: %v", err))
		return
	}
	t.info.DeviceLatencyTracing, t.info.TraceWarnings = raw, tr.Capture.Warnings
}
