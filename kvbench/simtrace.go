package kvbench

import (
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/workloads/iotrace"
)

// traceObserver writes the rows of the I/O trace.
type traceObserver struct {
	*observer
	sim *simulation
}

var _ cache.Observer = (*traceObserver)(nil)

var (
	rowOperations = [tiers.NumOps]iotrace.Operation{tiers.Read: iotrace.Read, tiers.Write: iotrace.Write}
	rowPhases     = [tiers.NumPhases]string{tiers.Prefill: "Prefill", tiers.Decode: "Decode", tiers.Evict: "Evict"}
)

// Began implements cache.Observer.
func (o *traceObserver) Began(_ cache.Tag, ob tiers.Object, l tiers.Kind, op tiers.Op, ph tiers.Phase) {
	o.row(rowOperations[op], ob, l, ph)
}

// Deleted implements tiers.Observer.
func (o *traceObserver) Deleted(tag cache.Tag, ob tiers.Object, l tiers.Kind, took time.Duration) {
	o.observer.Deleted(tag, ob, l, took)
	if o.sim.cfg.Deletes {
		o.row(iotrace.Delete, ob, l, tiers.Evict)
	}
}

func (o *traceObserver) row(operation iotrace.Operation, ob tiers.Object, l tiers.Kind, ph tiers.Phase) {
	if o.sim.over {
		return
	}
	err := o.sim.cfg.Trace.Row(iotrace.Row{
		At: o.clock.Now(), Operation: operation, Bytes: ob.Size, Tier: int(l), Key: ob.Key, Phase: rowPhases[ph],
	})
	if err != nil {
		o.sim.trial.fail(err, result.EndedByError)
	}
}
