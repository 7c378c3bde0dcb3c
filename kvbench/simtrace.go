package kvbench

import (
	"time"

	"kvbench/tiers"
	"kvbench/tracing"
)

// traceObserver writes the rows of the I/O trace.
type traceObserver struct {
	*observer
	sim *simulation
}

var _ tiers.Beginner = (*traceObserver)(nil)

var (
	rowOperations = [tiers.NumOps]string{tiers.Read: "Read", tiers.Write: "Write"}
	rowPhases     = [tiers.NumPhases]string{tiers.Prefill: "Prefill", tiers.Decode: "Decode", tiers.Evict: "Evict"}
)

// Began implements tiers.Beginner.
func (o *traceObserver) Began(_ tiers.Tag, ob tiers.Object, l tiers.Level, op tiers.Op, ph tiers.Phase) {
	o.row(rowOperations[op], ob, l, ph)
}

// Deleted implements tiers.Observer.
func (o *traceObserver) Deleted(tag tiers.Tag, ob tiers.Object, l tiers.Level, took time.Duration) {
	o.observer.Deleted(tag, ob, l, took)
	if o.sim.cfg.Deletes {
		o.row("Delete", ob, l, tiers.Evict)
	}
}

func (o *traceObserver) row(operation string, ob tiers.Object, l tiers.Level, ph tiers.Phase) {
	if o.sim.over {
		return
	}
	err := o.sim.cfg.Trace.Row(tracing.IOTraceRow{
		At: o.clock.Now(), Operation: operation, Bytes: ob.Size, Tier: int(l), Key: ob.Key, Phase: rowPhases[ph],
	})
	if err != nil {
		o.sim.trial.fail(err, EndedByError)
	}
}
