package record

import (
	"fmt"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// An HDR histogram of three digits takes some 300 kB of addresses, of which only what is touched
// takes memory. There are about 110 of them in a shard, made when the first value comes.

// opHist is a histogram for each level and operation.
type opHist uint8

const (
	histIO       opHist = iota // device + host
	histDevice                 // demotion writes included
	histHost                   //
	histNormal                 // IO per 100 MiB
	histRate                   // bytes per second of IO of one entry
	histSize                   // entry bytes
	histDemotion               // IO of a demotion's half
	histBySize                 // IO, by size class

	numOpHists = histBySize + numSizeClasses
)

// levelHist is a histogram for each level. First reads are told from later ones, which a cache
// below the filesystem may serve.
type levelHist uint8

const (
	histFirst  levelHist = iota // IO of the first read of an entry
	histReread                  // IO of the reads after it
	histDelete
	numLevelHists
)

// hist is a histogram of the whole trial. Those of requests count from the intended arrival, so
// that a stall cannot hide the queue behind it.
type hist uint8

const (
	histPrefix         hist = iota // IO of prefix reads
	histReadAdmission              // waiting for the write limit and for buffers
	histWriteAdmission             //
	histSpace                      // of those that waited
	histPending                    // of those that waited
	histGenerate                   // data generation per write
	histQueue                      // per request, as all below
	histStorage                    //
	histPrefill                    //
	histDecode                     //
	histGeneration                 // sleep for tokens
	histEndToEnd                   //
	histClass                      // by class: end to end

	numHists = histClass + hist(workloads.NumClasses)
)

// normalBytes is the size to which latencies are scaled, so that those of small and of large
// entries can be told in one number.
const normalBytes = 100 << 20

// histograms is all those of a shard, nil where nothing was recorded: most trials use a fifth of
// them, and an empty one would be in every result.
type histograms struct {
	op    [tiers.NumKinds][tiers.NumOps][numOpHists]*result.Histogram
	level [tiers.NumKinds][numLevelHists]*result.Histogram
	all   [numHists]*result.Histogram
}

// The names are the keys of the result's "histograms"; those of a level begin with its name.
var (
	opHistNames = [...]string{"", "_device", "_host", "_per_100mib", "_rate", "_size",
		"_demotion"}
	levelHistNames = [numLevelHists]string{"_first_read", "_reread", "_delete"}
	histNames      = [...]string{
		"prefix_read", "read_admission", "write_admission", "space_wait", "pending_wait",
		"data_generation", "request_queue", "request_storage", "request_prefill", "request_decode",
		"request_generation", "request_end_to_end",
	}
)

// place is where a histogram of a given name stands: names are needed at the end of a trial alone,
// so that recording a value looks nothing up.
type place struct {
	name string
	unit units.Unit
	at   **result.Histogram
}

// places lists all of them, always in the same order.
func (h *histograms) places() (all []place) {
	add := func(name string, u units.Unit, at **result.Histogram) {
		all = append(all, place{name, u, at})
	}
	for l := range h.op {
		level := tiers.Kind(l).String()
		for op := range h.op[l] {
			name := fmt.Sprintf("%s_%s", level, tiers.Op(op))
			for k := range opHist(numOpHists) {
				if k < histBySize {
					add(name+opHistNames[k], k.unit(), &h.op[l][op][k])
				} else {
					add(fmt.Sprintf("%s_size_class_%d", name, k-histBySize), k.unit(),
						&h.op[l][op][k])
				}
			}
		}
		for k, name := range levelHistNames {
			add(level+name, units.Nanoseconds, &h.level[l][k])
		}
	}
	for k, name := range histNames {
		add(name, units.Nanoseconds, &h.all[k])
	}
	for c := range workloads.Class(workloads.NumClasses) {
		add("request_end_to_end_"+c.String(), units.Nanoseconds, &h.all[histClass+hist(c)])
	}
	return all
}

// merge adds all of o. HDR histograms of one range add up exactly.
func (h *histograms) merge(o *histograms) {
	from := o.places()
	for i, to := range h.places() {
		if *from[i].at == nil {
			continue
		}
		if *to.at == nil {
			*to.at = result.NewHistogram(to.unit)
		}
		(*to.at).Merge(*from[i].at)
	}
}

func (k opHist) unit() units.Unit {
	switch k {
	case histSize:
		return units.Bytes
	case histRate:
		return units.BytesPerSec
	}
	return units.Nanoseconds
}

// record adds a value, making the histogram when it is the first. The shard's mutex is held.
func record(place **result.Histogram, u units.Unit, v int64) {
	if *place == nil {
		*place = result.NewHistogram(u)
	}
	(*place).Record(v)
}
