package record

import (
	"fmt"
	"math/bits"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads"
)

// histograms are the histograms of a shard, about 110, each allocated at its first value. An HDR
// histogram of three digits has about 300 kB of address space, and memory only for the pages in
// use. Most trials use a fifth of the histograms. A result has no empty histogram.
type histograms [numHists]*result.Histogram

// opHist is a kind of histogram that each level and operation has.
type opHist uint8

const (
	histIO       opHist = iota // device + host
	histDevice                 // demotion writes included
	histHost                   //
	histNormal                 // IO per 100 MiB
	histRate                   // bytes per second of IO of one entry
	histSize                   // entry bytes
	histDemotion               // IO of a demotion's half
	histRequest                // time of one request at the device, demotions included
	histBySize                 // IO, by size class

	numOpHists = histBySize + result.SizeClasses
)

// levelHist is a kind of histogram that each level has. First reads are separate, because later
// reads may come from a cache below the filesystem.
type levelHist uint8

const (
	histFirst  levelHist = iota // IO of the first read of an entry
	histReread                  // IO of the reads after it
	histDelete
	numLevelHists
)

// hist is the index of a histogram in histograms. The histograms of the whole trial come first.
// Latencies of requests count from the intended arrival, so they include the queue behind a stall.
type hist uint8

const (
	histPrefix         hist = iota // IO of prefix reads
	histReadAdmission              // waiting for the write limit and for buffers
	histWriteAdmission             //
	histSpace                      // of operations that waited
	histPending                    // of operations that waited
	histGenerate                   // data generation per write
	histQueue                      // per request, as all below, in the order of shard.request
	histStorage                    //
	histContext                    //
	histPrefill                    //
	histDecode                     //
	histWait                       //
	histGeneration                 // sleep for tokens
	histRest                       //
	histEndToEnd                   //
	histTTFT                       // of requests that had to compute, as all below, in the order of
	histLoad                       // shard.firstToken
	histGPUWait                    //
	histCompute                    //
	histClass                      // by class: end to end

	histTTFTClass = histClass + hist(workloads.NumClasses)     // by class: TTFT
	histLoading   = histTTFTClass + hist(workloads.NumClasses) // by loadClass, per loadingUnit
	histLevels    = histLoading + numLoadClasses               // by level and levelHist
	// by level, operation and opHist
	histOps = histLevels + hist(tiers.NumKinds)*hist(numLevelHists)
	// of the storage tier per 100 MiB, since the last TakeRound; not in results
	histRound = histOps + hist(tiers.NumKinds)*hist(tiers.NumOps)*hist(numOpHists)
	numHists  = histRound + hist(tiers.NumOps)
)

// ofLevel returns the index of a histogram of a level.
func ofLevel(l tiers.Kind, k levelHist) hist {
	return histLevels + hist(l)*hist(numLevelHists) + hist(k)
}

// ofOp returns the index of a histogram of an operation on a level.
func ofOp(l tiers.Kind, op tiers.Op, k opHist) hist {
	return histOps + (hist(l)*hist(tiers.NumOps)+hist(op))*hist(numOpHists) + hist(k)
}

// normalBytes is the size to which latencies are scaled, so that one distribution has small and
// large entries.
const normalBytes = 100 << 20

// histNames are the keys of a result's "histograms". Recording a value needs no name.
var histNames = func() (names [numHists]string) {
	copy(names[:], []string{
		"prefix_read", "read_admission", "write_admission", "space_wait", "pending_wait",
		"data_generation", "request_queue", "request_storage", "request_context",
		"request_prefill", "request_decode", "request_wait", "request_generation", "request_rest",
		"request_end_to_end", "request_ttft", "request_load", "request_gpu_wait",
		"request_compute",
	})
	for c := range workloads.Class(workloads.NumClasses) {
		names[histClass+hist(c)] = "request_end_to_end_" + c.String()
		names[histTTFTClass+hist(c)] = "request_ttft_" + c.String()
	}
	for k := range hist(numLoadClasses) {
		names[histLoading+k] = fmt.Sprintf("loading_per_1k_tokens_class_%d", k)
	}
	ofLevels := [numLevelHists]string{"_first_read", "_reread", "_delete"}
	ofOps := [numOpHists]string{"", "_device", "_host", "_per_100mib", "_rate", "_size",
		"_demotion", "_request", "_size_class_0", "_size_class_1", "_size_class_2", "_size_class_3",
		"_size_class_4", "_size_class_5", "_size_class_6", "_size_class_7"}
	for l := range tiers.NumKinds {
		for k, name := range ofLevels {
			names[ofLevel(l, levelHist(k))] = l.String() + name
		}
		for op := range tiers.NumOps {
			for k, name := range ofOps {
				names[ofOp(l, op, opHist(k))] = opName(l, op) + name
			}
		}
	}
	return names
}()

// opName returns the prefix of the names of an operation's histograms on a level.
func opName(l tiers.Kind, op tiers.Op) string { return l.String() + "_" + op.String() }

// at returns a histogram. It allocates the histogram at the first use.
func (h *histograms) at(place hist) *result.Histogram {
	if h[place] == nil {
		h[place] = result.NewHistogram(result.HistogramUnit(histNames[place]))
	}
	return h[place]
}

// Loads are in classes by number of tokens: class k has 2^k to 2^(k+1)-1 tokens, the last class
// also all above. Load times are per loadingUnit tokens.
const (
	numLoadClasses = 24
	loadingUnit    = 1024
)

func loadClass(tokens int64) int { return min(bits.Len64(uint64(tokens))-1, numLoadClasses-1) }

// sizeClass returns 0 for less than 1 MiB, 1 for [1 MiB, 4 MiB), and so on.
func sizeClass(bytes int64) int {
	return min((bits.Len64(uint64(max(bytes, 0)>>20))+1)/2, result.SizeClasses-1)
}
