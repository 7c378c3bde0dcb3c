package benchmarks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/content"
	"kvbench/tiers/enginetier"
	"kvbench/tiers/workdir"
)

// cacheDir is where the storage lies: without a parameter, in a directory of this user.
func cacheDir(v *params.Values) string { return cmp.Or(v.CacheDir(), workdir.DefaultCacheDir()) }

// cacheDirs are all of them where it lies in several.
func cacheDirs(v *params.Values) []string {
	if len(v.CacheDirs) > 1 {
		return v.CacheDirs
	}
	return []string{cacheDir(v)}
}

// verification is -verify.
func verification(v *params.Values) content.Verify {
	return map[string]content.Verify{"none": content.VerifyNone, "sample": content.VerifySample,
		"full": content.VerifyFull}[v.Verify]
}

// storageLayout says how the storage tier keeps the blocks of a trace in files. It reads the
// traces' first rows, because that depends on the size of their blocks, and refuses what cannot be.
func storageLayout(v *params.Values, capacity int64) (l tiers.Layout, err error) {
	if !v.Bench.Blocks() {
		return l, nil
	}
	sizes, err := v.BlockSizes()
	if err != nil {
		return l, err
	}
	// kvreport datasize names the same number as the minimum. Engines store objects of their own
	// size, so that a tier may be smaller than a block of the trace.
	if tokens, bytes := v.LargestEntry(); bytes > capacity {
		what := "a block"
		if v.CutTokens() > 0 {
			what = "an object"
		}
		return l, fmt.Errorf("-storage-capacity-gb: %s of %d tokens takes %s, the storage "+
			"tier has %s; give it room for many of them", what, tokens, units.Bytes.Text(bytes),
			units.Bytes.Text(capacity))
	}
	// entry and block keep a file for each, which needs no preparation.
	if v.CutTokens() > 0 {
		return l, cutsInto(v, sizes)
	}
	switch {
	case v.Layout == "slots":
		return tiers.Layout{Kind: tiers.LayoutSlots,
			Bytes: v.Sizer().Bytes(sizes[len(sizes)-1])}, nil
	case v.Packed() > 0:
		return tiers.Layout{Kind: tiers.LayoutPacked, Places: v.Packed()}, nil
	}
	return l, nil
}

// mostName is the longest file name, in bytes, that the usual filesystems take, see NAME_MAX in
// https://man7.org/linux/man-pages/man7/path_resolution.7.html. One that takes less refuses the
// name when the storage tier is made.
const mostName = 255

// namesFit refuses a model whose name is too long to be a part of file names. They have all of its
// path, with other characters for the slashes, see newLayout in tiers/enginetier. Checked with the
// parameters, because a run of several ranks would otherwise find it after all have started.
func namesFit(c *kvbench.StorageConfig) error {
	y := c.Engine
	if n := enginetier.LongestName(enginetier.Config{Layout: y.Layout, Model: y.Model, Rank: c.Rank,
		World: y.Ranks, Latents: y.Latents}); n > mostName {
		return fmt.Errorf("-model: must be a shorter path, because it is part of file names: a "+
			"name in the files of %s takes %d bytes, filesystems take %d; given %s", y.Layout, n,
			mostName, y.Model)
	}
	return nil
}

// cutsInto refuses blocks that an engine's objects cannot be made of: a trace has been cut already,
// and what lies between two of its ids is the same only where both are, so that an object that ends
// in the middle of one, and is not a part of it, has no key.
func cutsInto(v *params.Values, sizes []int) error {
	fits := func(object int) bool {
		return !slices.ContainsFunc(sizes, func(n int) bool {
			return n%object != 0 && object%n != 0
		})
	}
	if fits(v.ObjectTokens) {
		return nil
	}
	// A user needs a size that works, or to know that none does: an object of a model with states has
	// whole pages of the engine, which may divide no block. The largest size up to the trace's blocks
	// is suggested, because small objects cost most; else the smallest of the others.
	step, most := v.ObjectSizes()
	best := 0
	for n := step; n <= most && (best == 0 || n <= sizes[0]); n += step {
		if fits(n) {
			best = n
		}
	}
	if best == 0 {
		return fmt.Errorf("-block-trace-path: block traces of %s tokens cannot be replayed with "+
			"this model and -layout %s: an object has a multiple of %d tokens, at most %d, and "+
			"none of these and a block divide each other", listed(sizes), v.Layout, step, most)
	}
	return fmt.Errorf("-layout %s: the trace has blocks of %s tokens and an object has %d; one "+
		"has to divide the other: give -object-tokens %d", v.Layout, listed(sizes), v.ObjectTokens,
		best)
}

// listed are sizes as a sentence has them.
func listed(sizes []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(sizes)), ", "), "[]")
}
