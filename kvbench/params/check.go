package params

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/units"
	"kvbench/workloads/model"
)

// model finds the model that was named.
func (r *resolver) model() {
	var keys []string
	for _, m := range append(append([]model.Model(nil), r.v.Models...), model.BuiltIn()...) {
		if !slices.Contains(keys, m.Key) {
			keys = append(keys, m.Key)
		}
	}
	name := r.v.ModelName
	if !slices.Contains(keys, name) {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.in.Base, path)
		}
		if _, err := os.Stat(path); err != nil && !strings.HasSuffix(name, ".json") &&
			!strings.Contains(name, "/") {
			r.refused["model"] = true
			r.refuse("model", "one of "+strings.Join(keys, ", ")+
				" or the path of a Hugging Face config.json"+units.Suggestion(name, keys))
			return
		}
		name = path
	}
	m, err := model.Find(name, r.v.Models)
	if err != nil {
		r.refused["model"] = true
		r.refuse("model", "a usable model ("+strings.ReplaceAll(err.Error(), "\n", "; ")+")")
		return
	}
	r.v.Model, r.v.ModelName = m, name
}

// place decides rank, ranks and local-ranks: as given, else as the launcher says.
func (r *resolver) place() {
	v := r.v
	auto := v.Rank == automatic || v.Ranks == automatic || v.LocalRanks == automatic
	var found membership
	if auto {
		var bad Violations
		if found, bad = findPlace(r.in.Env); v.Rank == automatic {
			r.bad = append(r.bad, bad...) // with -rank given the variables are not needed
		}
	}
	fill := func(name string, field *int, value int, from Origin) {
		if *field != automatic {
			return
		}
		origin := v.Origin(name)
		if found.found {
			origin = from
		}
		*field = value
		v.origins[name] = origin
	}
	ranksGiven := v.Ranks != automatic
	fill("rank", &v.Rank, found.rank, found.rankFrom)
	fill("ranks", &v.Ranks, found.ranks, found.ranksFrom)
	local := found.local
	if ranksGiven && !found.found {
		// unknown: all here is the careful guess, it divides the free space by the most
		local = v.Ranks
	}
	fill("local-ranks", &v.LocalRanks, min(local, v.Ranks), found.localFrom)
	if v.Rank >= v.Ranks && !r.refused["rank"] && !r.refused["ranks"] &&
		(v.Origin("rank").byUser() || v.Origin("ranks").byUser()) {
		r.refuse("rank", fmt.Sprintf("below -ranks (%d)", v.Ranks))
	}
	if v.LocalRanks > v.Ranks {
		r.refuse("local-ranks", fmt.Sprintf("at most -ranks (%d)", v.Ranks))
	}
}

// check applies the rules that tie parameters together or ask the file system.
func (r *resolver) check() {
	v := r.v
	if v.TensorParallel > v.GPUs {
		r.refuse("tensor-parallel", fmt.Sprintf("in 1…%d, the number of -num-gpus", v.GPUs))
	}
	if total := float64(v.GPUBytes) / float64(units.GiB) * float64(v.GPUs); total > maxGPUGiB {
		r.refuse("gpu-mem-gb",
			fmt.Sprintf("at most %d GiB over all -num-gpus (%d)", maxGPUGiB, v.GPUs))
	}
	if v.PrefillOnly && v.DecodeOnly {
		r.refuse("decode-only",
			fmt.Sprintf("false with -prefill-only (%s): they exclude each other",
				v.Origin("prefill-only")))
	}
	if v.ChunkSize%4096 != 0 {
		r.refuse("chunk-size", "a multiple of 4KiB")
	}
	if v.CacheDir != "" {
		if err := r.in.CheckCacheDir(v.CacheDir); err != nil {
			r.refuse("cache-dir", "a directory that may be worked in ("+err.Error()+")")
		}
	}
	if v.Layout != "entry" && v.Layout != "block" && r.in.Bench.Name != "" &&
		r.in.Bench.Name != "BlockTrace" {
		r.refuse("layout", "entry or block but for BlockTrace: the others are made of blocks of "+
			"one size")
	}
	r.traceStart()
	r.traceFiles("burst-trace-path")
	r.traceFiles("azure-trace-path")
	r.traceFiles("io-trace-replay")
	r.simulation()
	r.autoscaling()
	r.traceFiles("block-trace-path")
	r.traceFiles("dataset-path")
	r.traceFiles("validation-trace")
	if v.StorageBytes > 0 && !r.refused["model"] && !r.refused["num-users"] &&
		!r.refused["storage-capacity-gb"] {
		r.bad = append(r.bad, v.CheckFit(v.StorageBytes)...)
	}
}

// traceStart refuses a start in what has no times, or where it would take away what later rows
// need.
func (r *resolver) traceStart() {
	v := r.v
	if v.TraceStart <= 0 || r.refused["trace-start"] || v.Skip() != "" {
		return
	}
	switch v.Bench.Name {
	case "ShareGPT":
		r.refuse("trace-start", "0s with ShareGPT, whose conversations have no times")
	case "IOTraceReplay":
		r.refuse("trace-start", "0s with IOTraceReplay: rows after it would read what rows "+
			"before it wrote")
	}
}

// traceFiles wants at least one file behind a trace path.
func (r *resolver) traceFiles(name string) {
	text := r.v.Text(name)
	if text == "" {
		return
	}
	if _, err := os.Stat(text); err == nil {
		return
	}
	if files, err := filepath.Glob(text); err != nil || len(files) == 0 {
		r.refuse(name, "a file, a directory or a glob that matches something")
	}
}

// entriesPerUser and populationTokens describe what decode-only writes before its window.
const (
	entriesPerUser   = 10
	populationTokens = 2048
)

// DecodePopulation is what decode-only writes before its window: entries of so many tokens.
func (v *Values) DecodePopulation() (entries, tokens int) {
	return entriesPerUser * v.Users, populationTokens
}

// LargestEntry is the largest entry that the users can ask for, in tokens and in bytes of this
// rank.
func (v *Values) LargestEntry() (tokens int, bytes int64) {
	tokens = v.Profile.MaxContextTokens()
	if v.DecodeOnly {
		tokens = populationTokens
	}
	return tokens, v.Sizer().Bytes(tokens)
}

// CheckFit refuses a storage tier of capacity bytes that can never hold the largest entry of the
// users, or the entries that decode-only reads, with the numbers that would fit. Resolve asks it
// when the capacity is given; whoever derives the capacity from the free space asks again.
// Benchmarks without users always fit.
func (v *Values) CheckFit(capacity int64) Violations {
	if v.Bench.Load != LoadUsers {
		return nil
	}
	given := formatRoughGiB(capacity)
	storage := Violation{Name: "-storage-capacity-gb", Given: given,
		Origin: v.Origin("storage-capacity-gb")}
	tokens, size := v.LargestEntry()
	if size > capacity {
		storage.Required = fmt.Sprintf("at least %s (one entry of %d tokens of %s takes that "+
			"many GiB) or -model smaller",
			formatUpGiB(size), tokens, v.ModelName)
		return Violations{storage}
	}
	if population := size * entriesPerUser * int64(v.Users); v.DecodeOnly && population > capacity {
		fit := capacity / (size * entriesPerUser)
		storage.Required = fmt.Sprintf("at least %s (decode-only reads %d entries of %d tokens "+
			"of each of %d users) or -num-users at most %d",
			formatUpGiB(population), entriesPerUser, tokens, v.Users, fit)
		return Violations{storage}
	}
	return nil
}

// formatUpGiB rounds up to a hundredth of a GiB: what is named must be enough.
func formatUpGiB(n int64) string {
	return strconv.FormatFloat(math.Ceil(float64(n)/float64(units.GiB)*100)/100, 'f', -1, 64)
}

func formatRoughGiB(n int64) string {
	return strconv.FormatFloat(float64(n)/float64(units.GiB), 'g', 4, 64)
}

// Simulated tells whether the run happens in virtual time, without storage.
func (v *Values) Simulated() bool { return v.IOTraceLog != "" || v.Device != nil }

// simulation checks what a run in virtual time cannot have.
func (r *resolver) simulation() {
	v := r.v
	if !v.Simulated() {
		if v.IOTraceDeletes && !r.refused["io-trace-deletes"] {
			r.refuse("io-trace-deletes", "false without -io-trace-log")
		}
		return
	}
	if v.Precondition {
		r.refuse("precondition",
			"false with -io-trace-log and -simulate-device: nothing is written")
	}
	if v.ValidationTrace != "" && !r.refused["validation-trace"] {
		r.refuse("validation-trace",
			"none with -io-trace-log and -simulate-device: a recorded run is compared with a "+
				"real one")
	}
	if v.Layout != "entry" && v.Layout != "block" && !r.refused["layout"] {
		r.refuse("layout", "entry or block with -io-trace-log and -simulate-device: there are no "+
			"files, and every block is an operation of its own")
	}
	if strings.HasSuffix(v.IOTraceLog, ".gz") {
		r.refuse("io-trace-log",
			"a name that ends in .zst, which is written compressed, or another, which is plain; "+
				"gzip is only read")
	}
	if v.Bench.Load == LoadTrace && v.TraceSpeedup == 0 && v.RequestRate == 0 &&
		v.ReplayCycles == 0 && v.MaxRequests == 0 {
		r.refuse("replay-cycles",
			"at least 1 with -trace-speedup 0 in virtual time, where it would never end")
	}
}

// autoscaling checks what an autoscaler cannot work with.
func (r *resolver) autoscaling() {
	v := r.v
	if !v.Autoscaling || r.refused["enable-autoscaling"] {
		return
	}
	refuse := func(required string) { r.refuse("enable-autoscaling", required) }
	if mode, ok := v.Bench.all["autoscaler-mode"]; ok && mode != v.AutoscalerMode &&
		!r.refused["autoscaler-mode"] {
		r.refuse("autoscaler-mode", mode+" with "+v.Bench.Name+", which is named after it")
	}
	switch {
	case v.Bench.Name != "" && v.Bench.Load != LoadUsers:
		refuse("false with " + v.Bench.Name + ", which has no users")
	case v.RequestRate > 0:
		refuse("false with -request-rate: the rate does not depend on the users")
	case v.MaxRequests > 0:
		refuse("false with -max-requests: the load would end with the requests")
	case v.IOTraceLog != "" && v.Device == nil:
		refuse("false with -io-trace-log alone: infinitely fast storage has no limit; give " +
			"-simulate-device")
	}
}
