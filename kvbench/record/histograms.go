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
type histograms []*result.Histogram

// hist is the index of a histogram in histograms and of its name in histNames.
type hist int

// histNames are the keys of a result's "histograms". Recording a value needs no name.
var histNames []string

// named returns the index of a new histogram.
func named(name string) hist {
	histNames = append(histNames, name)
	return hist(len(histNames) - 1)
}

// Histograms of the whole trial. Latencies of requests count from the intended arrival, so they
// include the queue behind a stall.
var (
	histPrefix         = named("prefix_read") // IO of prefix reads
	histReadAdmission  = named("read_admission")
	histWriteAdmission = named("write_admission")
	histSpace          = named("space_wait")      // of operations that waited
	histPending        = named("pending_wait")    // of operations that waited
	histGenerate       = named("data_generation") // per write
	histEndToEnd       = named("request_end_to_end")
	histTTFT           = named("request_ttft") // of requests that had to compute
	// In the order of shard.request.
	histParts = [...]hist{named("request_queue"), named("request_storage"),
		named("request_context"), named("request_prefill"), named("request_decode"),
		named("request_wait"), named("request_generation"), named("request_rest"), histEndToEnd}
	// In the order of shard.firstToken.
	histFirstToken = [...]hist{histTTFT, named("request_load"), named("request_gpu_wait"),
		named("request_compute")}
)

// levelHists are the histograms of a level. First reads are separate, because later reads may come
// from a cache below the filesystem.
type levelHists struct {
	first, reread, delete hist // IO of the first read of an entry and of later ones
	op                    [tiers.NumOps]opHists
}

// opHists are the histograms of an operation on a level.
type opHists struct {
	io       hist // device + host
	device   hist // demotion writes included
	host     hist
	normal   hist // io per 100 MiB
	rate     hist // bytes per second of io of one entry
	size     hist // entry bytes
	demotion hist // io of a demotion's half
	request  hist // time of one request at the device, demotions included
	bySize   [result.SizeClasses]hist
}

// Histograms by level, by class of requests (end to end, TTFT), and by loadClass (time per
// loadingUnit tokens).
var (
	histLevels  = levelsNamed()
	histClasses = namedEach(len(result.Classes), func(c int) string {
		return "request_end_to_end_" + workloads.Class(c).String()
	})
	histTTFTs = namedEach(len(result.Classes), func(c int) string {
		return "request_ttft_" + workloads.Class(c).String()
	})
	histLoading = namedEach(numLoadClasses, func(k int) string {
		return fmt.Sprintf("loading_per_1k_tokens_class_%d", k)
	})
)

func levelsNamed() (levels [tiers.NumKinds]levelHists) {
	for l := range levels {
		level := tiers.Kind(l).String()
		h := &levels[l]
		h.first, h.reread = named(level+"_first_read"), named(level+"_reread")
		h.delete = named(level + "_delete")
		for op := range h.op {
			name := level + "_" + tiers.Op(op).String()
			h.op[op] = opHists{io: named(name), device: named(name + "_device"),
				host: named(name + "_host"), normal: named(name + "_per_100mib"),
				rate: named(name + "_rate"), size: named(name + "_size"),
				demotion: named(name + "_demotion"), request: named(name + "_request")}
			for c := range result.SizeClasses {
				h.op[op].bySize[c] = named(fmt.Sprintf("%s_size_class_%d", name, c))
			}
		}
	}
	return levels
}

func namedEach(n int, name func(i int) string) (all []hist) {
	for i := range n {
		all = append(all, named(name(i)))
	}
	return all
}

// at returns a histogram. It allocates the histogram at the first use.
func (h histograms) at(place hist) *result.Histogram {
	if h[place] == nil {
		h[place] = result.NewHistogram(result.HistogramUnit(histNames[place]))
	}
	return h[place]
}

// normalBytes is the size to which latencies are scaled, so that one distribution has small and
// large entries.
const normalBytes = 100 << 20

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
