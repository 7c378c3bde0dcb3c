package params

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads/model"
)

// engine is an inference server as it comes: which of its ways to keep entries is taken for it, and
// which entries it keeps where. Its name is the word of -engine.
type engine struct {
	name, layout string
	// Policy and promotion as it has them between memory and storage. All of them write behind the
	// requests, and hold an entry in memory until it is written: memory is the bound.
	policy, promote string
	// keys are those of its objects in a bucket; "": it has none there, or none that are known.
	keys string
	// requests are those that it has under way at the store: vLLM's io_threads. LMCache has no
	// bound, and asks for all keys of a batch at once; it has the number of its client's event
	// loops here (s3_num_io_threads), lest a batch of thousands is a run of its own.
	requests int
}

// engines are those of September 2026, with their defaults. vLLM: secondary tiers are written as
// soon as memory is, and loads pass through it. LMCache: likewise, but what it loads does not stay
// in memory. HiCache: write_through, and prefetches go to memory. Mooncake: offload_on_evict and
// promotion_on_hit off. KVBM: a block goes to the disk when it is registered in memory, if its
// filter has seen it twice; from there it is loaded to the GPU.
var engines = []engine{
	{"vllm", "vllm-fs", "write-through", "on-hit", "vllm", 4},
	{"lmcache", "lmcache-fs", "write-through", "never", "lmcache", 64},
	{"sglang", "hicache-file", "write-through", "on-hit", "", 0},
	{"mooncake", "mooncake-bucket", "write-through", "never", "", 0},
	{"dynamo", "kvbm-slots", "selective", "never", "", 0},
}

// engineNames are the words of -engine.
func engineNames() []string {
	names := []string{"none"}
	for _, e := range engines {
		names = append(names, e.name)
	}
	return names
}

// ranked refuses an Engines that has nothing to rank.
func (r *resolver) ranked() {
	v := r.v
	r.want(v.Bench.Name != result.BenchmarkEngines || v.Skip() != "" ||
		slices.ContainsFunc(v.Sweep, func(a Axis) bool {
			return a.Key == "engine" || a.Key == "layout"
		}), "sweep", "of engine or layout, such as layout=vllm-fs,lmcache-fs, with Engines, "+
		"which ranks them")
}

// imitated is the engine in force, the zero one if there is none.
func (v *Values) imitated() engine {
	for _, e := range engines {
		if e.name == v.Engine {
			return e
		}
	}
	return engine{}
}

// decidedFirst are the parameters on which others hang that an engine sets.
var decidedFirst = []string{"engine", "cache-dir", "gpu-mem-gb", "num-gpus", "cpu-mem-gb", "layout",
	"tier-policy"}

// imitate decides them, and what the engine and its layout set beside them where nobody says
// otherwise. What an engine sets would be refused beside a policy that a person has given: so
// promotion and the queue follow the policy in force.
func (r *resolver) imitate() {
	v := r.v
	var e engine
	set := map[string]string{}
	for _, name := range decidedFirst {
		if name == "layout" {
			e = v.imitated()
			set = v.engineSettings(e)
			r.set(FromEngine, v.Engine, set)
		}
		r.decide(v.row(name))
	}
	r.set(FromLayout, v.Layout, v.layoutSettings())
	if set["tier-policy"] == "" || v.TierPolicy == "waterfall" {
		return
	}
	set["promote"] = e.promote
	if v.TierPolicy != "write-back" && v.CPUBytes > 0 {
		set["write-behind-gb"] = units.FormatGiB(v.CPUBytes)
	}
	r.set(FromEngine, v.Engine, set)
}

// engineSettings is what an engine sets that hangs on the tiers alone.
func (v *Values) engineSettings(e engine) map[string]string {
	set := make(map[string]string)
	files, is := tiers.EngineLayoutOf(e.layout)
	if !is {
		return set
	}
	set["layout"] = e.layout
	if v.OnObjects() {
		maps.Copy(set, map[string]string{"layout": "block", "s3-keys": cmp.Or(e.keys, "own"),
			"s3-lookup": "head", "s3-requests": strconv.Itoa(e.requests),
			"object-tokens": strconv.Itoa(files.Tokens), "turns": "ordered",
			"decode-reads": "once"})
	}
	if v.GPUTierBytes() > 0 || v.CPUBytes > 0 {
		set["tier-policy"] = e.policy
	}
	return set
}

// PolicyWithoutMemory is the policy of the engine in force where it has no meaning, because there
// is no tier above the storage; "" where it is in force, or somebody wanted another.
func (v *Values) PolicyWithoutMemory() string {
	policy := v.imitated().policy
	if policy == "" || v.GPUTierBytes() > 0 || v.CPUBytes > 0 || v.Typed("tier-policy") {
		return ""
	}
	return policy
}

// layoutSettings is what an engine's layout sets where nobody else does.
func (v *Values) layoutSettings() map[string]string {
	l, is := v.EngineLayout()
	if !is {
		return nil
	}
	set := map[string]string{"io": "buffered", "io-engine": "psync",
		"object-tokens": strconv.Itoa(l.Tokens), "turns": "ordered", "decode-reads": "once",
		"read-threads": strconv.Itoa(l.Loads), "write-threads": strconv.Itoa(l.Stores)}
	if l.Direct {
		set["io"] = "direct"
	}
	if l.Buckets {
		set["evict"] = "bucket"
	}
	return set
}

// CutTokens is how many tokens an object has of those into which an engine cuts prompts, 0 without
// one.
func (v *Values) CutTokens() int {
	_, files := v.EngineLayout()
	if !files && !(v.OnObjects() && v.imitated().keys != "") {
		return 0
	}
	return v.ObjectTokens
}

// Sizer gives the bytes of an entry on this rank, or on all that store, see StoringRanks.
func (v *Values) Sizer() model.Sizer {
	s, pages := v.paged()
	if pages == nil {
		s = model.NewSizer(v.Model, v.TensorParallel, model.TPRule(v.TPRule))
	}
	s.Ranks = int64(v.StoringRanks())
	return s
}

// paged is how the layout in force keeps a model whose layers do not all keep the same, and what
// its objects take then; nil: as if they did.
func (v *Values) paged() (model.Sizer, *model.Paging) {
	l, _ := v.EngineLayout()
	if l.Hybrid == tiers.HybridTokens ||
		l.Hybrid == tiers.HybridStates && v.Model.StateBytes == 0 {
		return model.Sizer{}, nil
	}
	return model.PagedSizer(v.Model, v.TensorParallel, model.TPRule(v.TPRule))
}

// Tails is what is read of objects, where the layout has one for each group of layers.
func (v *Values) Tails() tiers.Tails {
	l, _ := v.EngineLayout()
	if _, pages := v.paged(); pages != nil && l.Hybrid == tiers.HybridGroups {
		return pages.Tails(v.ObjectTokens)
	}
	return nil
}

// Paged says whether the states of a model's layers are in its objects.
func (v *Values) Paged() bool {
	_, pages := v.paged()
	return pages != nil
}

// NotCounted is what the model keeps of a sequence and entries do not have, "" if they have all. An
// engine would write it too, once for each place from which a sequence is to go on.
func (v *Values) NotCounted() string {
	n := v.Model.FixedBytes()
	if n == 0 || v.Paged() || v.Bench.Load == LoadNone {
		return ""
	}
	return fmt.Sprintf("%s keeps %s of every sequence besides the %s B of each token, as states "+
		"or as its last tokens: no entry has that", cmp.Or(v.Model.Name, v.Model.Key),
		units.Bytes.Text(n), units.Count.Text(v.Model.BytesPerToken()))
}

// pages takes as many tokens for an object as the engine's blocks have for the model, where nobody
// wants another number, and refuses others.
func (r *resolver) pages() {
	v := r.v
	_, pages := v.paged()
	if pages == nil || v.row("model").refused || v.ObjectTokens < 1 {
		return
	}
	p := v.row("object-tokens")
	if p.given.origin.Kind == FromLayout {
		v.ObjectTokens = (v.ObjectTokens + pages.Block - 1) / pages.Block * pages.Block
		p.given.text = strconv.Itoa(v.ObjectTokens)
	}
	r.want(v.Model.StateBytes == 0 || v.ObjectTokens%pages.Block == 0, "object-tokens",
		fmt.Sprintf("a multiple of %d, the tokens of a block of the engine: a page of this model "+
			"has to hold a layer's state", pages.Block))
}

// mostObject is the largest object that one call may move: there is a buffer of that size for each
// worker.
const mostObject = 256 << 20

// ObjectSizes are of how many tokens the objects of the engine in force can be: of multiples of
// step, up to most, which is 0 where even the smallest is too large.
func (v *Values) ObjectSizes() (step, most int) {
	step = 1
	if _, pages := v.paged(); pages != nil && v.Model.StateBytes > 0 {
		step = pages.Block
	}
	each := max(1, v.objectBytes(step))
	return step, int(mostObject/each) * step
}

// objectBytes is the size of an object of so many tokens: of one of them where each group of layers
// has its own.
func (v *Values) objectBytes(tokens int) int64 {
	return v.Sizer().Bytes(tokens) / int64(max(1, len(v.Tails())))
}

// objectText is that for people, with what it comes from: a model's layers make one object or one
// for each group of them.
func (v *Values) objectText(tokens int) string {
	text := fmt.Sprintf("%s (%s B per token", units.Bytes.Text(v.objectBytes(tokens)),
		units.Count.Text(v.objectBytes(1)))
	if n := len(v.Tails()); n > 0 {
		text += fmt.Sprintf(" in each of %d groups of layers", n)
	}
	return text + ")"
}

// maxBeside is how many objects of a request may be under way beside each other, which may be so
// many open files.
const maxBeside = 64

// mostRanks is how many tensor-parallel ranks a run may have at a time, each with files and calls
// of its own for every object.
const mostRanks = 64

// tensorRanks checks who can have the files of all tensor-parallel ranks.
func (r *resolver) tensorRanks() {
	v := r.v
	if v.TPIO != "all" {
		return
	}
	var known []string
	for _, l := range tiers.EngineLayouts {
		if l.Ranks != tiers.RanksUnsaid {
			known = append(known, l.Name)
		}
	}
	l, _ := v.EngineLayout()
	r.want(l.Ranks != tiers.RanksUnsaid, "tp-io", "one but with -layout "+
		strings.Join(known, ", ")+": of the others nobody says how ranks share files")
	r.want(v.TPRule == "engine", "tp-io", "one with -tp-rule mlperf, which is no engine's")
	r.want(v.TensorParallel <= mostRanks, "tensor-parallel", fmt.Sprintf("at most %d with -tp-io "+
		"all, where each rank has files of its own", mostRanks))
}

// layerwise checks who can keep objects layer by layer.
func (r *resolver) layerwise() {
	v := r.v
	if !v.Layerwise {
		return
	}
	var known []string
	for _, l := range tiers.EngineLayouts {
		if l.Layerwise {
			known = append(known, l.Name)
		}
	}
	l, _ := v.EngineLayout()
	r.want(l.Layerwise, "layerwise", "false but with -layout "+strings.Join(known, ", ")+
		": the other engines' files have all layers, and no others load any by themselves")
	r.want(v.GPUTierBytes() == 0 && v.CPUBytes == 0, "layerwise", "false with -gpu-mem-gb or "+
		"-cpu-mem-gb: what passes through a tier above moves as a whole here")
	r.want(v.StoringRanks() == 1, "layerwise", "false with -tp-io all: of the layers of several "+
		"ranks nobody knows here when all have come")
	r.want(len(v.CacheDirs) < 2, "layerwise", "false with several -cache-dir, which share out "+
		"whole objects")
	if !v.row("model").refused {
		r.want(v.Model.Alike(), "layerwise", "false with "+v.Model.Key+", whose layers keep "+
			"different things: each would count as the same part of the bytes")
		r.want(v.Model.Layers > 1, "layerwise", "false with a model of one layer")
	}
}

// engineLayout checks what an engine, or its layout, cannot be told.
func (r *resolver) engineLayout() {
	v := r.v
	l, is := v.EngineLayout()
	with := "-layout " + l.Name
	if !is {
		with = "-engine " + v.Engine
	}
	nowhere := v.Engine != "none" && v.OnObjects() && v.imitated().keys == ""
	r.want(!nowhere, "engine", "vllm or lmcache with -cache-dir s3://…: the keys of others are "+
		"not known, or they have no object store")
	for name, n := range map[string]int{"read-threads": v.ReadThreads,
		"write-threads": v.WriteThreads} {
		r.want(is || n == automatic, name, "auto but with an engine's layout in files: -workers "+
			"and -io-depth are what the others have under way")
	}
	if v.CutTokens() == 0 {
		r.want(nowhere || v.ObjectTokens == automatic, "object-tokens",
			"auto but with an engine's layout: the others keep blocks as they are")
		return
	}
	r.want(!v.EnableRAG || v.Bench.Load != LoadUsers, "enable-rag", "false with "+with+
		": engines find beginnings of prompts alone, and keep nothing else")
	r.want(v.DecodeReads == "once", "decode-reads", "once with "+with+
		": no engine loads again what it has loaded")
	r.want(!v.Overtaking(), "turns", "ordered with "+with+
		": a turn that does not wait for its predecessor computes all of it again")
	if !v.row("model").refused {
		step, most := v.ObjectSizes()
		r.want(most > 0, "model", fmt.Sprintf("another with %s: its smallest object, of %d "+
			"tokens, has %s, and at most %d MiB are moved with one call", with, step,
			v.objectText(step), mostObject>>20))
		r.want(most == 0 || v.ObjectTokens <= most, "object-tokens", fmt.Sprintf("at most %d: %d "+
			"tokens have %s, and at most %d MiB are moved with one call", most, v.ObjectTokens,
			v.objectText(v.ObjectTokens), mostObject>>20))
	}
	if !is {
		return
	}
	r.want(!v.Typed("chunk-size"), "chunk-size",
		"absent with "+with+", whose engine moves each object with one call")
	r.want(v.IOEngine == "psync", "io-engine", "psync with "+with+
		": its calls are the engine's, and io_uring makes others")
	r.want(v.IODepth <= maxBeside, "io-depth", fmt.Sprintf("at most %d with %s: so many objects "+
		"of a request are under way beside each other", maxBeside, with))
	r.want(l.Either || v.Direct() == l.Direct, "io", "absent with "+with+
		", whose engine has no setting for it")
}
