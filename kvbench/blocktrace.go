package kvbench

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"kvbench/tracing"
	"kvbench/tracing/collector"
)

// noDevice is why a run on an object store has no block-device data.
const noDevice = "the storage tier is an object store: no block device of this machine is behind it"

// startTracing loads the BPF programs before the window. Loading takes about 50 ms. If tracing is not
// possible, the run continues and the result's trace has the reason.
func (t *trial) startTracing(ctx context.Context) {
	if t.cfg.Trace == nil {
		return
	}
	if t.sim != nil {
		t.untraced("a simulated device has no kernel below it")
		return
	}
	if t.bucket != nil {
		t.untraced(noDevice + "; the requests to the store are counted in the result's objects")
		return
	}
	options := *t.cfg.Trace
	options.Device = t.device
	var err error
	if t.tracer, err = collector.Start(ctx, options); err != nil {
		t.traceFailed("starting", err)
	}
}

// readTrace writes the histograms of the window into the result.
func (t *trial) readTrace() {
	if t.tracer == nil {
		return
	}
	tr, err := t.tracer.Snapshot()
	switch {
	case err != nil:
		t.traceFailed("reading", err)
	case tr == nil:
		t.untraced("the window was not opened")
	default:
		tr.Course = t.course.Course(tr)
		t.keepTrace(tr)
	}
}

// lookAtTrace takes a snapshot of the trace once a second, until ctx ends. In a window below 20 s it
// takes 20 snapshots, at least 100 ms apart. A snapshot takes about 1 ms of CPU time.
func (t *trial) lookAtTrace(ctx context.Context) {
	if t.tracer == nil || t.tracer.Unavailable() != nil {
		return
	}
	interval := time.Second
	if w := t.phase.Window; w > 0 {
		interval = min(interval, max(w/20, 100*time.Millisecond))
	}
	t.Clock.Every(ctx, interval, func() {
		if tr, err := t.tracer.Snapshot(); err == nil { // readTrace reports an error
			t.course.Record(tr)
		}
	})
}

func (t *trial) traceFailed(act string, err error) {
	why := fmt.Sprintf("%s the block trace failed: %v", act, err)
	t.warn(why)
	t.untraced(why)
}

// untraced writes a trace without histograms into the result. The trace has the reason.
func (t *trial) untraced(why string) {
	t.keepTrace(&tracing.Trace{Capture: tracing.Capture{
		Status: tracing.StatusNone, Reason: why, Level: t.cfg.Trace.Level,
		Filter: t.cfg.Trace.Filter,
	}})
}

// keepTrace writes the trace into the result as JSON.
func (t *trial) keepTrace(tr *tracing.Trace) {
	raw, err := json.Marshal(tr)
	if err != nil {
		t.warn(fmt.Sprintf("writing the block trace failed: %v", err))
		return
	}
	t.info.DeviceLatencyTracing, t.info.TraceWarnings = raw, tr.Capture.Warnings
}
