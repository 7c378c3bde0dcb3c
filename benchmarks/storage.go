package benchmarks

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/content"
	"kvbench/tiers/filetier"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
	"kvbench/tracing/nvml"
)

// storageConfig returns the storage configuration of a trial. It sets what the parameters leave open:
// the cache directory, and the capacity, which depends on the free space.
func storageConfig(v *params.Values) (c kvbench.StorageConfig, err error) {
	c = kvbench.StorageConfig{Rank: v.Rank, KeepFiles: v.KeepFiles,
		IOEngine: v.IOEngine, IOTimeout: v.IOTimeout, Direct: v.Direct(),
		Verify: map[string]content.Verify{"none": content.VerifyNone,
			"sample": content.VerifySample, "full": content.VerifyFull}[v.Verify]}
	if v.Bench.Checkpoints() {
		err = checkpointStorage(v, &c)
		return c, err
	}
	c.GPUBytes, c.Cards, c.CPUBytes = v.GPUTierBytes(), v.Cards(), v.CPUBytes
	c.GPUBandwidth = v.GPUBandwidth * float64(units.GiB)
	c.FlushOnly = v.Division == params.Closed
	c.Use = buffer.Use{Chunk: int(v.ChunkSize), Depth: v.Depth(), Workers: v.WorkerCount(),
		MaxWriters: v.MaxConcurrentAllocs,
		Most:       params.MostBuffers(v.LocalRanks, host.ReadLimits())}
	switch v.Bench.Name { // these benchmarks need buffers for their largest requests
	case "BlockIO":
		n := v.InFlight()
		c.Use = buffer.Use{Chunk: mostBlock, Depth: 1, Workers: n, Exactly: n}
	case "Knee":
		c.Use = buffer.Use{Chunk: plainio.KneeSize, Depth: 1, Workers: 1,
			Exactly: plainio.KneeFlight / plainio.KneeSize}
	}
	if v.Autoscaling {
		c.Workers = max(c.Workers, autoscaleBuffers)
	}
	c.Policy = kvbench.PolicyOf(v.TierPolicy, v.Promote, v.Evict)
	c.Policy.After, c.Policy.Behind = v.Admission(), v.WriteBehindBytes
	if v.NoStorage() { // the other policies are for entries that the storage tier has, too
		c.Policy = kvbench.PolicyOf("waterfall", "never", v.Evict)
	}
	c.Policy.Keep, c.Policy.Largest = v.KeepShare, v.LargestShare
	// Results in virtual time must not depend on the machine.
	if v.Simulated() {
		c.StorageBytes, c.Engine.Tails = v.StorageBytes, v.Tails() // not limited by this machine
		return c, nil
	}
	if c.Bucket, err = bucketConfig(v); c.Bucket != nil { // an object store reports no free space
		c.StorageBytes, c.Use = v.StorageBytes, pieces(v, c.Use)
		if err == nil {
			_, err = storageLayout(v)
		}
		return c, err
	}
	if err := chooseRoom(v, &c); err != nil {
		return c, err
	}
	if c.Layout, err = storageLayout(v); err != nil {
		return c, err
	}
	if v.EngineLayout().Tokens > 0 {
		c.Layout.Bytes = v.Sizer().Bytes(v.ObjectTokens)
		c.Engine = kvbench.EngineFiles{Imitation: filetier.Imitation{Model: v.Model.Key,
			Layers: v.Model.Layers, Layerwise: v.Layerwise && v.Model.Layers > 1,
			Latents: v.Model.Latents(), SidePools: v.Model.SidePools(), Tokens: v.ObjectTokens,
			Threads: filetier.Threads{Loads: v.ReadThreads, Stores: v.WriteThreads}},
			Ranks: v.RankObjects(), Tails: v.Tails()}
		// One call moves a whole object or one layer of an object, as the engine's call does. An object
		// of an unknown model has 0 bytes: go on, so that the run reports the other mistakes, too.
		n := max(1, int64(len(c.Engine.Tails)))
		if c.Engine.Layerwise {
			n = max(n, int64(c.Engine.Layers))
		}
		c.Use.Chunk = int(tiers.AlignUp(max(1, (c.Layout.Bytes+n-1)/n), buffer.PageSize))
	}
	if v.NoStorage() { // prompts are cut into the engine's objects, but there are no files
		c.Layout, c.Engine = tiers.Layout{}, kvbench.EngineFiles{Tails: c.Engine.Tails}
	}
	return c, nil
}

// mostBlock is the largest block size of BlockIO: the size of an entry of a few dozen tokens.
const mostBlock = 4 << 20

// pieces returns the buffer sizes for a run on an object store. The buffer size does not change the
// size of any request. Without -chunk-size, all buffers together take at most 40 MiB, but no buffer is
// smaller than 64 KiB: smaller buffers cost more CPU time per byte read.
func pieces(v *params.Values, use buffer.Use) buffer.Use {
	const most, least, page = 40 << 20, 64 << 10, 4096
	use.Streamed = true
	if !v.Changed("chunk-size") {
		each := most / (use.Workers * use.Depth) / page * page
		use.Chunk = min(use.Chunk, max(each, least))
	}
	return use
}

// autoscaleBuffers is the minimum number of workers for which an autoscaling run allocates buffers.
// More workers than that wait for a buffer. The result counts this wait as admission.
const autoscaleBuffers = 64

// cacheDirs returns the cache directories of the storage tier, none without one. The default is a directory
// of this user.
func cacheDirs(v *params.Values) []string {
	if len(v.CacheDirs) > 0 || v.NoStorage() {
		return v.CacheDirs
	}
	return []string{workdir.DefaultCacheDir()}
}

// cacheDir returns the first directory of the storage tier, "" without one.
func cacheDir(v *params.Values) string {
	if dirs := cacheDirs(v); len(dirs) > 0 {
		return dirs[0]
	}
	return ""
}

// chooseRoom sets the capacity of the storage tier. With several cache directories it also sets the
// share of each.
func chooseRoom(v *params.Values, c *kvbench.StorageConfig) error {
	dirs := cacheDirs(v)
	if len(dirs) == 0 {
		return nil // no storage tier
	}
	on, err := spaces(v, dirs)
	if err != nil {
		return err
	}
	// ChooseShares takes a capacity from a flag, the environment or a file as it is, or refuses it.
	byDefault := !v.Changed("storage-capacity-gb")
	// bytes is the capacity of the cache, shares are the parts of it per directory.
	bytes, shares, err := params.ChooseShares(dirs, on, sharers(v, dirs), v.StorageBytes, byDefault)
	c.StorageBytes, c.Roots = bytes, nil
	for i, s := range shares {
		c.Roots = append(c.Roots, kvbench.Root{Dir: dirs[i], Room: s.Bytes, Floor: s.Floor})
	}
	return err
}

// machine returns what the word auto takes sizes from.
func machine() *params.Machine {
	return &params.Machine{Limits: host.ReadLimits(), Capacity: capacityToGive,
		Card: sync.OnceValue(func() int64 {
			cards, err := nvml.Cards()
			if err != nil || len(cards) == 0 {
				return 0
			}
			return units.OrZero(cards[0].MemoryBytes)
		})}
}

// capacityToGive returns the bytes of the storage tier where they have to be given, else 0.
func capacityToGive(v *params.Values) (bytes int64) {
	if v.OnObjects() {
		return 0
	}
	dirs := cacheDirs(v)
	on, err := spaces(v, dirs)
	if err != nil {
		return 0 // chooseRoom reports it
	}
	sharing := sharers(v, dirs)
	if _, _, err := params.ChooseShares(dirs, on, sharing, 0, false); err == nil {
		return 0
	}
	least := int64(math.MaxInt64)
	for i, fs := range on {
		least = min(least, params.AutoCapacity(fs.Free/int64(sharing[i])))
	}
	return least * int64(len(dirs))
}

// spaces returns the filesystem of each directory. A directory that does not exist yet has that of its
// nearest existing parent.
func spaces(v *params.Values, dirs []string) (on []host.Filesystem, err error) {
	for _, dir := range dirs {
		fs, err := space(v, dir)
		if err != nil {
			return nil, err
		}
		on = append(on, fs)
	}
	return on, nil
}

// space returns the filesystem of dir. Its free space includes files that a killed run left in the
// ranks' directories, because this run deletes them when it opens the directories.
func space(v *params.Values, dir string) (host.Filesystem, error) {
	fs, err := host.FilesystemOf(dir)
	if err == nil && fs.ReadOnly {
		err = fmt.Errorf("-cache-dir: must be on a filesystem that can be written; the %s "+
			"filesystem of %s is mounted read-only", fs.Type, dir)
	}
	if err != nil {
		return fs, err
	}
	// List the directory instead of trying each rank, because -ranks may be any number.
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		rank, err := strconv.Atoi(strings.TrimPrefix(e.Name(), "rank_"))
		ours := err == nil && e.Name() == fmt.Sprint("rank_", rank)
		if ours && rank >= 0 && rank < max(1, v.Ranks) {
			fs.Free += workdir.Reclaimable(workdir.Options{CacheDir: dir, Rank: rank}).Freed
		}
	}
	return fs, nil
}

// sharers returns, for each directory, how many cache directories of all ranks share its filesystem,
// and so its free space. Before the ranks are connected, it counts only the ranks of this host.
func sharers(v *params.Values, dirs []string) []int {
	sharing := make([]int, len(dirs))
	for i, dir := range dirs {
		for j, other := range dirs {
			if i == j || host.SameFilesystem(dir, other) {
				sharing[i] += max(1, v.LocalRanks)
			}
		}
		if i < len(v.FilesystemShares) && v.FilesystemShares[i] > 0 {
			sharing[i] = v.FilesystemShares[i]
		}
	}
	return sharing
}

// storageLayout returns how the storage tier keeps the blocks of a trace in files. For the block sizes
// it reads the first rows of the traces. The error says that blocks and objects do not divide each other.
func storageLayout(v *params.Values) (l tiers.Layout, err error) {
	spec := v.LayoutSpec()
	l.Kind = spec.Name
	if !v.Bench.Blocks() {
		return l, nil
	}
	sizes, err := v.BlockSizes()
	if err != nil {
		return l, err
	}
	if v.CutTokens() > 0 {
		return l, cutsInto(v, sizes)
	}
	if l.Places = v.Packed(); spec.Blocks && l.Places == 0 {
		l.Bytes = v.Sizer().Bytes(sizes[len(sizes)-1])
	}
	return l, nil
}

// cutsInto returns an error if the objects of the engine have no keys. The trace has one hash per
// block. An object that is a whole number of blocks has a key, and so has an object that divides a
// block. An object that ends inside a block otherwise has no key.
func cutsInto(v *params.Values, sizes []int) error {
	alike := func(n int) bool { return n%v.ObjectTokens == 0 || v.ObjectTokens%n == 0 }
	if !slices.ContainsFunc(sizes, func(n int) bool { return !alike(n) }) {
		return nil
	}
	step, most := v.ObjectSizes() // of a model with states: multiples of the engine's page
	return fmt.Errorf("-layout %s: the trace has blocks of %s tokens and an object has %d; one has to divide "+
		"the other: give another -object-tokens, a multiple of %d up to %d", v.Layout, units.List(sizes),
		v.ObjectTokens, step, most)
}
