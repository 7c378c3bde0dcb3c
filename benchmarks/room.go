package benchmarks

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
	"kvbench/tiers/cache"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
)

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
			fs.Free += workdir.Left(workdir.Options{CacheDir: dir, Rank: rank}).Bytes
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

// memoryFits refuses a tier above the storage that can hold no object of a load whose objects have one
// known size: the run would be one without the tier. Entries of users have many sizes, and a tier may be
// for the small ones.
func memoryFits(v *params.Values) (bad params.Violations) {
	tokens := v.CutTokens()
	switch {
	case v.Bench.Load != params.LoadUsers && v.Bench.Load != params.LoadTrace:
		return nil
	case tokens == 0 && v.OfSessions():
		tokens = v.SessionBlock()
	case tokens == 0 && v.Bench.Blocks():
		if sizes, err := v.BlockSizes(); err == nil { // else others say what is wrong
			tokens = sizes[0]
		}
	}
	size := v.Sizer().Bytes(tokens)
	// -gpu-mem-gb is of each GPU; an object may lie in the memory of several.
	for _, tier := range []struct {
		name  string
		bytes int64 // of one part
		parts int
	}{{"gpu-mem-gb", v.GPUBytes, v.GPUs}, {"cpu-mem-gb", v.CPUBytes, 1}} {
		need := float64(size) / cache.KeepRatio / float64(tier.parts)
		if tokens > 0 && tier.bytes > 0 && need > float64(tier.bytes) {
			bad = append(bad, fmt.Sprintf("-%s: must be at least %v, because an object of %d "+
				"tokens takes %s and the tier keeps %.0f %% of its size (or 0: no such tier), "+
				"given %s", tier.name, math.Ceil(need/float64(units.GiB)*1000)/1000, tokens,
				units.Bytes.Text(size), cache.KeepRatio*100, v.Text(tier.name)))
		}
	}
	return bad
}
