package record

import (
	"maps"
	"reflect"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
	"kvbench/workloads/compute"
	"kvbench/workloads/model"
)

// Info is what the engine knows about one trial in addition to what the Recorder counted. [Build]
// turns both into a Result and touches nothing else: no clock, no file, no system call.
//
// The engine fills the sections of the Result itself; Build adds the numbers. It makes Status worse
// where the counts ask for it, and adds the rank to the Seed. Of Load it takes what each class was
// offered and what has not completed, of Tiers what a tier is and holds, of Harness what the
// process took, of DeviceWitness what the kernel counted, of Simulation the model and the costs.
// Warnings come first, TraceWarnings with the trace.
type Info struct {
	result.Result
	TraceWarnings []string

	Sizer model.Sizer
	// What is read of objects of so many tokens that a prompt finds.
	Tails        tiers.Tails
	ObjectTokens int
	QoS          [workloads.NumClasses]workloads.QoS

	// What computing costs that was not found, the zero Cost is free, and for how long of the
	// window the server computed. ContextWindow is the longest prompt of the model in tokens, 0 =
	// unknown.
	Cost          compute.Cost
	Computing     time.Duration
	ContextWindow int

	// Distributions that only some runs have, of requests to an object store and of flushes, by the
	// names that results have for them.
	Times result.Histograms

	// For how long of the window the storage device had requests, and the simulated one's medium
	// bytes.
	DeviceBusy, MediumBusy time.Duration
}

// builder makes the sections of r, one method each. Later ones read what earlier ones made: the
// keys of the Python benchmark are made of ours, the simulation's of the load's, and the judgements
// come last, because they are about all the rest.
type builder struct {
	rec    *Recorder
	info   *Info
	r      *result.Result // info's own
	window time.Duration
	levels []tiers.Kind // that exist, fastest first

	// All shards together.
	n         counters
	hists     result.Histograms // of all that has one
	oldest    int64             // as a shard's
	intervals timeline
	parts     [][tiers.NumOps]result.RootTraffic

	failedAround int64 // operations, before and after the window
}

// newBuilder adds the shards up. Each is locked on its own: a Recorder at rest gives the sum of one
// moment, one in use a sum in which no sample is torn.
func newBuilder(info *Info, rec *Recorder) *builder {
	b := &builder{rec: rec, info: info, r: &info.Result, hists: make(result.Histograms)}
	rec.each(b.add)
	maps.Copy(b.hists, info.Times)
	if start, end := rec.Window(); end != workloads.Never {
		b.window = max(end-start, 0)
	}
	return b
}

// add adds all of a shard. HDR histograms of one range add up exactly.
func (b *builder) add(s *shard) {
	add(reflect.ValueOf(&b.n).Elem(), reflect.ValueOf(&s.n).Elem())
	for _, u := range s.underway { // a copy: what never ended is still in flight
		b.n.settle(&u, cutBytes)
	}
	for i, p := range s.parts {
		if i == len(b.parts) {
			b.parts = append(b.parts, [tiers.NumOps]result.RootTraffic{})
		}
		for op := range p {
			add(reflect.ValueOf(&b.parts[i][op]).Elem(), reflect.ValueOf(p[op]))
		}
	}
	b.oldest = max(b.oldest, s.oldest)
	b.intervals.merge(&s.timeline)
	for place, name := range histNames[:histRound] {
		if h := s.hists[place]; h != nil && b.hists[name] == nil {
			b.hists[name] = result.NewHistogram(result.HistogramUnit(name))
		}
		b.hists[name].Merge(s.hists[place])
	}
}

// perSecond returns n ÷ window, nil for an empty window: a trial that ended before its window
// opened has no rates.
func (b *builder) perSecond(n int64) *float64 { return units.Ratio(n, b.window.Seconds()) }
