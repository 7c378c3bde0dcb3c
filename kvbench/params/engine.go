package params

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads/model"
)

// engine has the default settings of an inference engine: its layout of entries and its policy. The name
// is a value of -engine.
type engine struct {
	name, layout string
	// Policy and promotion between memory and storage. All engines write behind the requests and hold an
	// entry in memory until it is written, so that the size of the memory limits the queue.
	policy, promote string
	// keys is the value of -s3-keys for the engine's objects; "": the engine has no known names.
	keys string
	// requests is how many requests the engine has in flight at the store: vLLM's io_threads. LMCache
	// has no limit and requests all keys of a batch at once. Here it has the number of its client's
	// event loops (s3_num_io_threads), because a batch may have thousands of keys.
	requests int
}

// engines are the engines of September 2026, with their defaults. vLLM: secondary tiers are written as
// soon as memory is, and loads pass through it. LMCache: the same, but what it loads does not stay
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

// imitated returns the engine in force, the zero engine if there is none.
func (v *Values) imitated() engine {
	for _, e := range engines {
		if e.name == v.Engine {
			return e
		}
	}
	return engine{}
}

// imitate decides the parameters on which others depend that an engine sets, and adds the layers of
// the engine, of its layout and of an object store. A layout sets things only where the user gives
// no other policy: promotion and the queue of an engine follow the policy in force.
func (r *resolver) imitate() {
	v := r.v
	for _, name := range []string{"engine", "cache-dir", "gpu-mem-gb", "num-gpus", "cpu-mem-gb",
		"storage-capacity-gb"} {
		r.decide(find(name))
	}
	if v.NoStorage() { // other lines of the run may have a storage tier in these directories
		v.CacheDirs = nil
	}
	e := v.imitated()
	set := v.engineSettings(e)
	r.set(FromEngine, v.Engine, set)
	r.decide(find("layout"))
	r.decide(find("tier-policy"))
	if set["tier-policy"] != "" && v.TierPolicy != "waterfall" {
		r.add(FromEngine, v.Engine, "promote", e.promote)
		if v.TierPolicy != "write-back" && v.CPUBytes > 0 {
			r.add(FromEngine, v.Engine, "write-behind-gb", units.FormatGiB(v.CPUBytes))
		}
	}
	r.set(FromLayout, v.Layout, v.layoutSettings())
	r.onObjects()
}

// engineSettings is what an engine sets; it depends on the tiers alone.
func (v *Values) engineSettings(e engine) map[string]string {
	set := make(map[string]string)
	files, known := tiers.EngineLayoutOf(e.layout)
	if !known {
		return set
	}
	set["layout"] = e.layout
	if v.OnObjects() {
		maps.Copy(set, map[string]string{"layout": "block", "s3-keys": cmp.Or(e.keys, "own"),
			"s3-lookup": "head", "s3-requests": strconv.Itoa(e.requests),
			"object-tokens": strconv.Itoa(files.Tokens), "turns": "ordered",
			"decode-reads": "once"})
	}
	if (v.GPUTierBytes() > 0 || v.CPUBytes > 0) && !v.NoStorage() {
		set["tier-policy"] = e.policy
	}
	return set
}

// PolicyWithoutMemory returns the engine's policy if it has no effect, because there is no tier above
// the storage.
func (v *Values) PolicyWithoutMemory() string {
	policy := v.imitated().policy
	if policy == "" || v.GPUTierBytes() > 0 || v.CPUBytes > 0 {
		return ""
	}
	return policy
}

// layoutSettings is what an engine's layout sets.
func (v *Values) layoutSettings() map[string]string {
	l := v.EngineLayout()
	if l.Tokens == 0 {
		return nil
	}
	set := map[string]string{"io": "buffered", "io-engine": "psync",
		"object-tokens": strconv.Itoa(l.Tokens), "turns": "ordered", "decode-reads": "once",
		"read-threads": strconv.Itoa(l.Loads), "write-threads": strconv.Itoa(l.Stores)}
	if l.Direct {
		set["io"] = "direct"
	}
	if l.Buckets && !v.NoStorage() {
		set["evict"] = "bucket"
	}
	return set
}

// CutTokens returns the number of tokens in an engine's object, 0 without an engine's layout.
func (v *Values) CutTokens() int {
	if v.EngineLayout().Tokens == 0 && !(v.OnObjects() && v.imitated().keys != "") {
		return 0
	}
	return v.ObjectTokens
}

// nameless reports whether the engine in force has no names for objects on a store.
func (v *Values) nameless() bool {
	return v.Engine != "none" && v.OnObjects() && v.imitated().keys == ""
}

// Sizer returns the function from tokens to bytes of an entry, on this rank or on all ranks that store,
// see StoringRanks.
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
	l := v.EngineLayout()
	if l.Hybrid == tiers.HybridTokens ||
		l.Hybrid == tiers.HybridStates && v.Model.StateBytes == 0 {
		return model.Sizer{}, nil
	}
	return model.PagedSizer(v.Model, v.TensorParallel, model.TPRule(v.TPRule))
}

// Tails is the part that is read of each object, for layouts with an object per group of layers.
func (v *Values) Tails() tiers.Tails {
	if _, pages := v.paged(); pages != nil && v.EngineLayout().Hybrid == tiers.HybridGroups {
		return pages.Tails(v.ObjectTokens)
	}
	return nil
}

// Paged says whether the states of a model's layers are in its objects.
func (v *Values) Paged() bool {
	_, pages := v.paged()
	return pages != nil
}

// NotCounted returns a text on the state of a sequence that entries do not include, "" if they include
// all. An engine would also write this state, once for each position from which a sequence may continue.
func (v *Values) NotCounted() string {
	n := v.Model.FixedBytes()
	if n == 0 || v.Paged() || v.Bench.Load == LoadNone {
		return ""
	}
	return fmt.Sprintf("%s keeps %s of every sequence besides the %s B of each token, as states "+
		"or as its last tokens: no entry has that", cmp.Or(v.Model.Name, v.Model.Key),
		units.Bytes.Text(n), units.Count.Text(v.Model.BytesPerToken()))
}

// pages makes an object as large as the engine's blocks of the model, unless the user sets another
// number, which has to be a multiple, and refuses objects that are too large.
func (r *resolver) pages() {
	v := r.v
	if v.refused["model"] || v.ObjectTokens < 1 || v.CutTokens() == 0 {
		return
	}
	if _, pages := v.paged(); pages != nil && !v.Changed("object-tokens") {
		v.ObjectTokens = (v.ObjectTokens + pages.Block - 1) / pages.Block * pages.Block
	}
	step, most := v.ObjectSizes()
	r.want(v.ObjectTokens%step == 0, "object-tokens", "a multiple of %d, the tokens of a block of the "+
		"engine: a page of this model has to hold a layer's state", step)
	if most == 0 {
		with := "-layout " + v.Layout
		if v.OnObjects() {
			with = "-engine " + v.Engine
		}
		r.refuse("model", "another with %s: its smallest object, of %d tokens, has %s, and at most "+
			"%d MiB are moved with one call", with, step, units.Bytes.Text(v.objectBytes(step)), mostObject>>20)
		return
	}
	r.want(v.ObjectTokens <= most, "object-tokens", "at most %d: %d tokens have %s, and at most %d MiB "+
		"are moved with one call", most, v.ObjectTokens, units.Bytes.Text(v.objectBytes(v.ObjectTokens)),
		mostObject>>20)
}

// mostObject is the largest object that one call may move: there is a buffer of that size for each
// worker.
const mostObject = 256 << 20

// ObjectSizes returns the sizes in tokens that the engine's objects may have: multiples of step, up to
// most. most is 0 if even the smallest object is too large.
func (v *Values) ObjectSizes() (step, most int) {
	step = 1
	if _, pages := v.paged(); pages != nil && v.Model.StateBytes > 0 {
		step = pages.Block
	}
	each := max(1, v.objectBytes(step))
	return step, int(mostObject/each) * step
}

// objectBytes returns the size in bytes of an object of so many tokens. If each group of layers has an
// object, it is the size of one of them.
func (v *Values) objectBytes(tokens int) int64 {
	return v.Sizer().Bytes(tokens) / int64(max(1, len(v.Tails())))
}

// layoutsThat names the words of -layout that can do something.
func layoutsThat(can func(tiers.LayoutSpec) bool) string { return strings.Join(layoutWords(can), ", ") }

// layoutWords are the words of -layout that can do something. packed=N is not a word.
func layoutWords(can func(tiers.LayoutSpec) bool) (names []string) {
	for _, l := range tiers.Layouts {
		if l.Help != "" && l.Name != tiers.LayoutPacked && can(l) {
			names = append(names, l.Name)
		}
	}
	return names
}

// layoutTexts are the words in braces that name layouts and engines, each with its text.
func layoutTexts() []string {
	var own, ofBlocks, ofEngines, kept []string
	for _, l := range tiers.Layouts {
		text := fmt.Sprintf("%s (%s)", l.Name, l.Help)
		switch {
		case l.Tokens > 0:
			ofEngines = append(ofEngines, text)
		case l.Name == tiers.LayoutPacked:
			ofBlocks = append(ofBlocks, fmt.Sprintf("%sN (%s)", packedPrefix, l.Help))
		case l.Blocks:
			ofBlocks = append(ofBlocks, text)
		case l.Help != "":
			own = append(own, text)
		}
	}
	for _, e := range engines {
		kept = append(kept, e.layout)
	}
	list := func(names []string) string { return strings.Join(names, ", ") }
	return []string{"{layouts}", list(own), "{layouts of blocks}", list(ofBlocks),
		"{layouts of engines}", list(ofEngines), "{engines}", list(engineNames()[1:]),
		"{engines' layouts}", list(kept),
		"{sharing}", layoutsThat(func(l tiers.LayoutSpec) bool { return l.Shared }),
		"{layerwise}", layoutsThat(func(l tiers.LayoutSpec) bool { return l.Layerwise }),
		"{with buckets}", layoutsThat(func(l tiers.LayoutSpec) bool { return l.Buckets }),
		"{layouts of directories}", layoutsThat(func(l tiers.LayoutSpec) bool { return l.Several }),
		"{layouts of ranks}", layoutsThat(func(l tiers.LayoutSpec) bool {
			return l.Ranks != tiers.RanksUnsaid
		}),
		"{shared by ranks}", layoutsThat(func(l tiers.LayoutSpec) bool {
			return l.Ranks == tiers.RanksTogether
		}),
	}
}

// layouts are the words of -layout: the suite's own, then the engines'.
var layouts = layoutWords(func(tiers.LayoutSpec) bool { return true })

// LayoutSpec describes the layout in force.
func (v *Values) LayoutSpec() tiers.LayoutSpec {
	name, _, _ := strings.Cut(v.Layout, "=")
	l, _ := tiers.Layout{Kind: name}.Spec()
	return l
}

// packedPrefix begins the layout of several blocks per file, minPacked…maxPacked of them.
const (
	packedPrefix         = "packed="
	minPacked, maxPacked = 2, 1024
)

// Packed returns N of the layout packed=N, 0 with another.
func (v *Values) Packed() int {
	count, _ := strings.CutPrefix(v.Layout, packedPrefix)
	n, _ := strconv.Atoi(count) // other layouts are no numbers
	return n
}

// parseLayout reads one of a few words, or packed=N. Which of them a trace's blocks can have is
// known when the trace is read.
func parseLayout(s string) (string, error) {
	if slices.Contains(layouts, s) {
		return s, nil
	}
	rule := fmt.Sprintf("one of %s or packed=N with N in %d…%d", strings.Join(layouts, ", "),
		minPacked, maxPacked)
	count, packed := strings.CutPrefix(s, packedPrefix)
	n, err := strconv.Atoi(count)
	switch {
	case !packed:
		return "", errors.New(rule + units.Suggestion(s, layouts))
	case err != nil || n < minPacked || n > maxPacked:
		return "", errors.New(rule)
	}
	return packedPrefix + strconv.Itoa(n), nil
}
