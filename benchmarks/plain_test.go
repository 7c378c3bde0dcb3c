package benchmarks

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
)

// BenchmarkStorageCeiling is what plain sequential I/O reaches on the same directory with chunks of
// the same size, without any engine: reads, writes and a mix of both while nothing is removed; the
// mix while each file written removes another, as a full cache does; and removal alone. Run before
// other benchmarks in the same process, the first three give them their ceiling-ratio.
func BenchmarkStorageCeiling(b *testing.B) { run(b) }

// ceilingParts: those that remove come last, because what a filesystem discards afterwards would slow
// the others.
func ceilingParts(v *params.Values) (list []part) {
	for _, p := range []struct {
		name  string
		share float64 // of the bytes that are read
	}{{"read", 1}, {"write", 0}, {"mixed", v.ReadShare}, {"churn", v.ReadShare},
		{"delete", v.ReadShare}} {
		ceiling := part{name: "op=" + p.name,
			load: plain(func(cfg *kvbench.Config, run *plainio.Config) plainio.Routine {
				return ceiling(v, p.name, p.share, cfg, run)
			})}
		if p.name != "churn" && p.name != "delete" {
			ceiling.done = func(r *result.Result) {
				key := v.IOKey()
				current.ceiling[key] = current.ceiling[key].Note(p.share, r)
			}
		}
		list = append(list, ceiling)
	}
	return list
}

func ceiling(v *params.Values, name string, share float64, cfg *kvbench.Config,
	run *plainio.Config) plainio.Routine {
	st := &cfg.Storage
	c := &plainio.Ceiling{ReadShare: share, Churn: name == "churn",
		Footprint: v.CeilingSize(st.StorageBytes), StepTime: sweepStepTime(run.Window),
		InFlight: v.InFlight()} // streams, each of which has one chunk in flight; 0: a sweep finds how many
	st.GPUBytes, st.CPUBytes, st.Workers, st.Depth, run.Workers = 0, 0, 1, 1, 1
	st.Chained = true
	switch name {
	case "delete":
		run.Window, run.Workers = max(run.Window, removalWindow), max(c.InFlight, 1)
		return &plainio.Removal{Ceiling: plainio.Ceiling{Footprint: c.Footprint}}
	case "churn": // compared with what reading and writing do without removal
		current.attachCeiling(v, &cfg.Info)
	}
	return c
}

// sweepStepTime is how long a step takes: there are seven at most, which are not to take longer than a
// window.
func sweepStepTime(window time.Duration) time.Duration {
	return min(max(window/10, 100*time.Millisecond), time.Second)
}

// removalWindow is how long op=delete may take: it ends when the device has nothing left to discard.
const removalWindow = 30 * time.Second

// BenchmarkTier measures each tier alone: entries of one size, one direction, through the transfer
// that the cache uses too.
func BenchmarkTier(b *testing.B) { run(b) }

func tierParts(v *params.Values) (list []part) {
	sizes := []int64{1 << 20, 16 << 20, 256 << 20}
	if v.Division == params.Quick {
		sizes = sizes[:2]
	}
	for _, tier := range []tiers.Kind{tiers.GPU, tiers.CPU, tiers.Storage} {
		for _, op := range []tiers.Op{tiers.Write, tiers.Read} {
			for _, size := range sizes {
				list = append(list, tierPart(v, tier, op, size))
			}
		}
	}
	return list
}

// tierDefault is the size of a memory tier without a parameter.
const tierDefault = 1 << 30

func tierPart(v *params.Values, tier tiers.Kind, op tiers.Op, size int64) part {
	p := part{name: fmt.Sprintf("tier=%s/op=%s/size=%dMiB", tier, op, size>>20)}
	given := map[tiers.Kind]int64{tiers.GPU: v.GPUTierBytes(), tiers.CPU: v.CPUBytes}[tier]
	// Half of a tier is filled, and a worker needs an entry besides the one that it moves.
	if least := 4 * size; given > 0 && given < least {
		p.skip = fmt.Sprintf("needs a %s tier of at least %s, 4 entries; -%s-mem-gb gives it %s",
			tier, units.Bytes.Text(least), tier, units.Bytes.Text(given))
	}
	if tier == tiers.Storage && v.NoStorage() {
		p.skip = "needs a storage tier, and -storage-capacity-gb is none"
	}
	p.load = plain(func(cfg *kvbench.Config, run *plainio.Config) plainio.Routine {
		st := &cfg.Storage
		t := &plainio.Tier{Level: tier, Op: op, Size: size}
		gpu, cpu, storage := st.GPUBytes, st.CPUBytes, st.StorageBytes
		st.GPUBytes, st.CPUBytes, st.StorageBytes = 0, 0, 0
		fits := func(footprint int64) int { // workers: each has an entry, and there is one more
			return int(max(1, min(int64(run.Workers), footprint/size-1)))
		}
		switch tier {
		case tiers.GPU:
			st.GPUBytes = cmp.Or(gpu, max(tierDefault, 2*size*int64(run.Workers+1)))
			run.Workers = fits(st.GPUBytes / 2)
		case tiers.CPU:
			st.CPUBytes = cmp.Or(cpu, tierDefault)
			// No more memory is taken without a parameter: fewer workers instead.
			run.Workers = fits(st.CPUBytes / 2)
		default:
			st.StorageBytes, t.Footprint = storage, v.CeilingSize(storage)
			run.Workers = fits(t.Footprint)
		}
		all, changed := v.WorkerCount(), v.Changed("workers") || v.Changed("num-users")
		if changed && run.Workers < all {
			cfg.Info.Warnings = append(cfg.Info.Warnings, fmt.Sprintf("%d of %d workers run: the "+
				"%s tier has no room for more entries of %s", run.Workers, all, tier,
				units.Bytes.Text(size)))
		}
		st.Workers = run.Workers
		return t
	})
	return p
}

// BenchmarkBlockIO reads and writes blocks of one size at random places inside files, as engines do
// that keep them in slots: requests per second, the latency and the processor time of each.
func BenchmarkBlockIO(b *testing.B) { run(b) }

// blockParts: sizes are four times each other, because a drive does nothing between two of them that
// their lines do not show. Quick has the sizes of a page, of a layer and of a chunk.
func blockParts(v *params.Values) (list []part) {
	step := int64(4)
	if v.Division == params.Quick {
		step = 16
	}
	for _, op := range []tiers.Op{tiers.Read, tiers.Write} {
		for size := int64(4 << 10); size <= mostBlock; size *= step {
			list = append(list, part{
				name: fmt.Sprintf("op=%s/size=%s", op, units.FormatSize(size)),
				load: plain(func(cfg *kvbench.Config, run *plainio.Config) plainio.Routine {
					st := &cfg.Storage
					run.Workers = v.InFlight()
					st.GPUBytes, st.CPUBytes, st.Chained = 0, 0, true
					st.Use = buffer.Use{Chunk: int(size), Depth: 1, Workers: 1}
					return &plainio.Blocks{Op: op, Size: size,
						Footprint: v.FieldSize(st.StorageBytes)}
				})})
		}
	}
	return list
}

// BenchmarkKnee measures a grid of request sizes and requests in flight, finds the fewest bytes in
// flight that move nearly as much as the best, and measures them: each direction within a minute.
func BenchmarkKnee(b *testing.B) { run(b) }

// kneeParts has no mix of both directions: where a drive bends with it lies between them, and engines
// set the two apart.
func kneeParts(v *params.Values) (list []part) {
	for _, op := range []tiers.Op{tiers.Read, tiers.Write} {
		list = append(list, part{name: "op=" + op.String(),
			load: plain(func(cfg *kvbench.Config, run *plainio.Config) plainio.Routine {
				st := &cfg.Storage
				run.Workers = 0 // until there is a knee
				st.GPUBytes, st.CPUBytes, st.Chained = 0, 0, true
				st.Use = buffer.Use{Chunk: plainio.KneeSize, Depth: 1, Workers: 1}
				k := &plainio.Knee{Blocks: plainio.Blocks{Op: op,
					Footprint: v.FieldSize(st.StorageBytes)}}
				if v.Division == params.Quick {
					k.Brief, k.Limit = true, quickKneeLimit
				}
				return k
			})})
	}
	return list
}

// lanes returns the number of lanes of plain I/O: one per worker that the user asks for, at most one per
// processor. So one worker with many requests in flight uses one processor.
func lanes(v *params.Values) int {
	switch {
	case v.Simulated(): // results in virtual time must not depend on the machine
		return 1
	case v.Workers > 0:
		return min(kvbench.Shards(), v.Workers)
	}
	return kvbench.Shards()
}

// plain makes a workload without requests. The routine may change the tiers and the window.
func plain(routine func(*kvbench.Config, *plainio.Config) plainio.Routine) func(*session, *trial,
	*kvbench.Config) (kvbench.Workload, error) {
	return func(_ *session, t *trial, cfg *kvbench.Config) (kvbench.Workload, error) {
		v := t.v
		run := plainio.Config{Workers: v.WorkerCount(), Lanes: lanes(v), Seed: uint64(v.Seed) + uint64(v.Rank),
			Phase: kvbench.Phase{Window: v.Window.Length, Warmup: v.Warmup,
				Limit: v.Window.Completions}}
		cfg.Storage.Lanes = run.Lanes
		if tier := cfg.Storage.StorageBytes; v.CeilingBytes > tier && tier > 0 {
			cfg.Info.Warnings = append(cfg.Info.Warnings, fmt.Sprintf("-ceiling-size-gb of %s is cut to the storage "+
				"tier, %s", v.Origin("ceiling-size-gb"), units.Bytes.Text(tier)))
		}
		r := routine(cfg, &run)
		return plainio.New(run, r), nil
	}
}

// quickKneeLimit is for the quick division, which shows that everything works: its grid has every second
// number in flight.
const quickKneeLimit = 12 * time.Second
