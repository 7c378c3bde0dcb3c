package benchmarks

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

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
)

// storageConfig decides what the parameters leave open: the directory, and the capacity from the free
// space.
func storageConfig(v *params.Values) (c kvbench.StorageConfig, err error) {
	c = kvbench.StorageConfig{CacheDir: cacheDir(v), Rank: v.Rank, KeepFiles: v.KeepFiles,
		IOEngine: v.IOEngine, IOTimeout: v.IOTimeout, Direct: v.Direct(),
		Verify: map[string]content.Verify{"none": content.VerifyNone,
			"sample": content.VerifySample, "full": content.VerifyFull}[v.Verify]}
	if v.Bench.Checkpoints() {
		err = checkpointStorage(v, &c)
		return c, err
	}
	c.GPUBytes, c.GPUBandwidth, c.CPUBytes = v.GPUTierBytes(), v.GPUBytesPerSecond(), v.CPUBytes
	c.FlushOnly = v.Division == params.Closed
	c.Use = buffer.Use{Chunk: int(v.ChunkSize), Depth: v.Depth(), Workers: v.WorkerCount(),
		MaxWriters: v.MaxConcurrentAllocs,
		Most:       params.MostBuffers(v.LocalRanks, host.ReadLimits())}
	switch v.Bench.Name { // for whose largest requests there must be memory
	case "BlockIO":
		n := blocksInFlight(v)
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
	// Results in virtual time must not depend on the machine.
	if v.Simulated() {
		c.StorageBytes, c.Engine.Tails = v.StorageBytes, v.Tails() // whatever this machine has
		return c, nil
	}
	if c.Bucket, err = bucketConfig(v); c.Bucket != nil { // which shows no free space
		c.StorageBytes, c.Use = v.StorageBytes, pieces(v, c.Use)
		if err == nil {
			_, err = storageLayout(v, c.StorageBytes)
		}
		return c, err
	}
	if err := chooseRoom(v, &c); err != nil {
		return c, err
	}
	if c.Layout, err = storageLayout(v, c.StorageBytes); err != nil {
		return c, err
	}
	if _, ok := v.EngineLayout(); ok {
		c.Layout.Bytes = v.Sizer().Bytes(v.ObjectTokens)
		c.Engine = kvbench.EngineFiles{Imitation: filetier.Imitation{Model: v.Model.Key,
			Layers: v.Model.Layers, Layerwise: v.Layerwise && v.Model.Layers > 1,
			Latents: v.Model.Latents(), Tokens: v.ObjectTokens,
			Threads: &filetier.Threads{Loads: v.ReadThreads, Stores: v.WriteThreads}},
			Ranks: v.RankObjects(), Tails: v.Tails()}
		if err := namesFit(&c); err != nil {
			return c, err
		}
		// A call moves an object as a whole, or a layer of it, as the engine's does.
		// An object of an unknown model has no bytes: what else is wrong is reported, too.
		n := max(1, int64(len(c.Engine.Tails)))
		if c.Engine.Layerwise {
			n = max(n, int64(c.Engine.Layers))
		}
		c.Use.Chunk = int(tiers.AlignUp(max(1, (c.Layout.Bytes+n-1)/n), buffer.PageSize))
	}
	return c, nil
}

// mostBlock is the size of BlockIO's largest blocks: of an entry of a few dozen tokens.
const mostBlock = 4 << 20

// blocksInFlight is how many requests BlockIO has in flight: 32, enough for a drive, without a
// parameter.
func blocksInFlight(v *params.Values) int { return cmp.Or(v.InFlight(), 32) }

// pieces is how a run on an object store uses its buffers. Their size is that of no request, and they are
// the memory of the run: without a parameter they take 40 MiB together where more than 160 are in
// flight. Below 64 KiB reading takes more processor time.
func pieces(v *params.Values, use buffer.Use) buffer.Use {
	const most, least, page = 40 << 20, 64 << 10, 4096
	use.Streamed = true
	if !v.Typed("chunk-size") {
		each := most / (use.Workers * use.Depth) / page * page
		use.Chunk = min(use.Chunk, max(each, least))
	}
	return use
}

// autoscaleBuffers is for how many workers a run has buffers whose workers are
// going to be more than at its start. Beyond it they wait for each other, which
// the result calls admission.
const autoscaleBuffers = 64

// cacheDir is where the storage lies: without a parameter, in a directory of this user.
func cacheDir(v *params.Values) string { return cmp.Or(v.CacheDir(), workdir.DefaultCacheDir()) }

// cacheDirs are all of them where it lies in several.
func cacheDirs(v *params.Values) []string {
	if len(v.CacheDirs) > 1 {
		return v.CacheDirs
	}
	return []string{cacheDir(v)}
}

// chooseRoom decides how large the storage tier is, and what each of several directories may take
// of it.
func chooseRoom(v *params.Values, c *kvbench.StorageConfig) error {
	dirs := cacheDirs(v)
	// The directories may not exist yet: the nearest ones above them have the filesystem.
	var on []host.Filesystem
	for _, dir := range dirs {
		fs, err := room(v, dir)
		if errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("%w; this user may not do that there, choose a -cache-dir that it "+
				"owns", err)
		}
		if err != nil {
			return err
		}
		on = append(on, fs)
	}
	// A size that was given is taken, or refused with the reason.
	byDefault := v.Origin("storage-capacity-gb").Kind <= params.FromBenchmark
	// The sum is what the cache may fill, the shares what each directory may take of it.
	bytes, shares, err := params.ChooseShares(dirs, on, sharers(v, dirs), v.StorageBytes, byDefault)
	if c.StorageBytes = bytes; err == nil && len(dirs) == 1 {
		c.FreeFloor = shares[0].Floor
		return nil
	}
	c.Roots = nil
	for i, s := range shares {
		c.Roots = append(c.Roots, kvbench.Root{Dir: dirs[i], Room: s.Room, Floor: s.Floor})
	}
	return err
}

// room is a filesystem as the run is going to find it: what its ranks' directories hold of a run that was
// killed is removed when they are opened.
func room(v *params.Values, dir string) (host.Filesystem, error) {
	fs, err := host.FilesystemOf(dir)
	if err == nil && fs.ReadOnly {
		err = fmt.Errorf("-cache-dir: must be on a filesystem that can be written; the %s "+
			"filesystem of %s is mounted read-only", fs.Type, dir)
	}
	if err != nil {
		return fs, err
	}
	// The directory is listed because -ranks may be any number.
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

// sharers are how many directories, of all ranks, are on the filesystem of each. Ranks that have not met
// know those of this host. Two directories on one filesystem share its free space.
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

// storageLayout says how the storage tier keeps the blocks of a trace in files. It reads the
// traces' first rows, because that depends on the size of their blocks, and refuses what cannot be.
func storageLayout(v *params.Values, capacity int64) (l tiers.Layout, err error) {
	spec := v.LayoutSpec()
	l.Kind = spec.Name
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
	if v.CutTokens() > 0 {
		return l, cutsInto(v, sizes)
	}
	if l.Places = v.Packed(); spec.Blocks && l.Places == 0 {
		l.Bytes = v.Sizer().Bytes(sizes[len(sizes)-1])
	}
	return l, nil
}

// mostName is the longest file name, in bytes, that the usual filesystems take, see NAME_MAX in
// https://man7.org/linux/man-pages/man7/path_resolution.7.html. One that takes less refuses the
// name when the storage tier is made.
const mostName = 255

// namesFit refuses a model whose name is too long to be a part of file names. They have all of its
// path, with other characters for the slashes. Checked with the parameters, because a run of several ranks would otherwise find it after all have started.
func namesFit(c *kvbench.StorageConfig) error {
	y := c.Engine.Imitation
	y.Rank, y.World = c.Rank, c.Engine.Ranks
	if n := filetier.LongestName(filetier.Config{Layout: c.Layout, Imitation: y}); n > mostName {
		return fmt.Errorf("-model: must be a shorter path, because it is part of file names: a "+
			"name in the files of %s takes %d bytes, filesystems take %d; given %s", c.Layout.Kind, n,
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
			"none of these and a block divide each other", units.List(sizes), v.Layout, step, most)
	}
	return fmt.Errorf("-layout %s: the trace has blocks of %s tokens and an object has %d; one "+
		"has to divide the other: give -object-tokens %d", v.Layout, units.List(sizes), v.ObjectTokens,
		best)
}
