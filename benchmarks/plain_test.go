package benchmarks

import (
	"cmp"
	"context"
	"fmt"
	"strings"
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
func BenchmarkStorageCeiling(b *testing.B) {
	each(b, "StorageCeiling", ceilingBenchmark)
}

func ceilingBenchmark(b *testing.B, v *params.Values, part string) {
	name := strings.TrimPrefix(part, "op=")
	c := &plainio.Ceiling{ReadShare: v.ReadShare, Churn: name == "churn"}
	switch name {
	case "read":
		c.ReadShare = 1
	case "write":
		c.ReadShare = 0
	}
	res := plain(b, v, func(cfg *kvbench.Config, run *plainio.Config) plainio.Routine {
		st := &cfg.Storage
		c.Footprint, c.Rung = v.CeilingSize(st.StorageBytes), ladderRung(run.Window)
		// One stream has one chunk in flight. Who says how many there are to be gets them; else a
		// ladder finds out.
		if v.Typed("workers") || v.Typed("io-depth") {
			c.InFlight = v.WorkerCount() * st.Depth
		}
		st.GPUBytes, st.CPUBytes, st.Workers, st.Depth, run.Workers = 0, 0, 1, 1, 1
		st.Chained = true
		switch name {
		case "delete":
			run.Window, run.Workers = max(run.Window, removalWindow), max(c.InFlight, 1)
			return &plainio.Removal{Footprint: c.Footprint}
		case "churn": // beside what reading and writing do without removal
			current.attachCeiling(v, &cfg.Info)
		}
		return c
	})
	if name != "delete" && name != "churn" {
		key := v.IOKey()
		current.ceiling[key] = current.ceiling[key].Note(c.ReadShare, res)
	}
}

// ladderRung is how long a rung takes: there are seven at most, which are not to take longer
// than a window.
func ladderRung(window time.Duration) time.Duration {
	return min(max(window/10, 100*time.Millisecond), time.Second)
}

// removalWindow is how long op=delete may take: it ends when the device has nothing left to
// discard.
const removalWindow = 30 * time.Second

// BenchmarkTier measures each tier alone: entries of one size, one direction,
// through the transfer that the cache uses too.
func BenchmarkTier(b *testing.B) {
	each(b, "Tier", func(b *testing.B, v *params.Values, name string) {
		for _, part := range tierParts(v.Division) {
			if part.String() == name {
				tierBenchmark(b, v, part)
			}
		}
	})
}

// tierDefault is the size of a memory tier that was not asked for.
const tierDefault = 1 << 30

func tierBenchmark(b *testing.B, v *params.Values, part tierPart) {
	given := map[tiers.Kind]int64{tiers.GPU: v.GPUTierBytes(), tiers.CPU: v.CPUBytes}[part.tier]
	// Half of a tier is filled, and a worker needs an entry besides the one in its hands.
	if least := 4 * part.size; given > 0 && given < least {
		why := fmt.Sprintf("needs a %s tier of at least %s, 4 entries; -%s-mem-gb gives it %s",
			part.tier, units.Bytes.Text(least), part.tier, units.Bytes.Text(given))
		current.recordSkip(b.Name(), why)
		b.Skip(why)
	}
	plain(b, v, func(cfg *kvbench.Config, run *plainio.Config) plainio.Routine {
		st, size := &cfg.Storage, part.size
		t := &plainio.Tier{Level: part.tier, Op: part.op, Size: size}
		gpu, cpu, storage := st.GPUBytes, st.CPUBytes, st.StorageBytes
		st.GPUBytes, st.CPUBytes, st.StorageBytes = 0, 0, 0
		fits := func(footprint int64) int { // workers: each has an entry, and there is one more
			return int(max(1, min(int64(run.Workers), footprint/size-1)))
		}
		switch part.tier {
		case tiers.GPU:
			st.GPUBytes = cmp.Or(gpu, max(tierDefault, 2*size*int64(run.Workers+1)))
			run.Workers = fits(st.GPUBytes / 2)
		case tiers.CPU:
			st.CPUBytes = cmp.Or(cpu, tierDefault)
			// Memory is not to be taken without being asked for: fewer workers instead.
			run.Workers = fits(st.CPUBytes / 2)
		default:
			st.StorageBytes, t.Footprint = storage, v.CeilingSize(storage)
			run.Workers = fits(t.Footprint)
		}
		all, said := v.WorkerCount(), v.Typed("workers") || v.Typed("num-users")
		if said && run.Workers < all {
			cfg.Info.Warnings = append(cfg.Info.Warnings, fmt.Sprintf("%d of %d workers run: the "+
				"%s tier has no room for more entries of %s", run.Workers, all, part.tier,
				units.Bytes.Text(size)))
		}
		st.Workers = run.Workers
		return t
	})
}

// BenchmarkBlockIO reads and writes blocks of one size at random places inside files, as engines do
// that keep them in slots: requests per second, the latency and the processor time of each.
func BenchmarkBlockIO(b *testing.B) {
	each(b, "BlockIO", func(b *testing.B, v *params.Values, name string) {
		for _, part := range blockParts(v.Division) {
			if part.String() == name {
				blockBenchmark(b, v, part)
			}
		}
	})
}

func blockBenchmark(b *testing.B, v *params.Values, part blockPart) {
	plain(b, v, func(cfg *kvbench.Config, run *plainio.Config) plainio.Routine {
		st := &cfg.Storage
		run.Workers = blocksInFlight(v)
		st.GPUBytes, st.CPUBytes, st.Chained = 0, 0, true
		st.Use = buffer.Use{Chunk: int(part.size), Depth: 1, Workers: 1}
		return &plainio.Blocks{Op: part.op, Size: part.size,
			Footprint: v.FieldSize(st.StorageBytes)}
	})
}

// BenchmarkKnee measures a grid of request sizes and requests in flight, finds the fewest bytes in
// flight that move nearly as much as the best, and measures them: each direction within a minute.
func BenchmarkKnee(b *testing.B) {
	each(b, "Knee", func(b *testing.B, v *params.Values, part string) {
		op := tiers.Read
		if part == "op=write" {
			op = tiers.Write
		}
		plain(b, v, func(cfg *kvbench.Config, run *plainio.Config) plainio.Routine {
			st := &cfg.Storage
			run.Workers = 0 // until there is a knee
			if !v.Typed("benchtime") {
				run.Window = min(run.Window, kneeWindow)
			}
			st.GPUBytes, st.CPUBytes, st.Chained = 0, 0, true
			st.Use = buffer.Use{Chunk: plainio.KneeSize, Depth: 1, Workers: 1}
			k := &plainio.Knee{Blocks: plainio.Blocks{Op: op,
				Footprint: v.FieldSize(st.StorageBytes)}}
			if v.Division == params.Quick {
				k.Brief, k.Limit = true, quickKneeLimit
			}
			return k
		})
	})
}

// kneeWindow is the window after the grid of the knee without -benchtime: both together take less
// than a minute.
const kneeWindow = 10 * time.Second

// plain runs one trial of a benchmark without requests. The routine may change the tiers
// and the window that it is going to have.
func plain(b *testing.B, v *params.Values,
	routine func(*kvbench.Config, *plainio.Config) plainio.Routine) (res *result.Result) {
	measure(b, v, func(ctx context.Context, cfg kvbench.Config) (_ *result.Result, err error) {
		run := plainio.Config{Workers: v.WorkerCount(), Seed: uint64(v.Seed) + uint64(v.Rank),
			Phase: kvbench.Phase{Name: "plain", Window: v.Window.Length, Warmup: v.Warmup,
				Limit: v.Window.Completions}}
		if v.Bench.Load == params.LoadNone && v.Division == params.Quick && !v.Typed("benchtime") {
			run.Window = quickPlainWindow
		}
		r := routine(&cfg, &run)
		res, err = kvbench.Run(ctx, cfg, plainio.New(run, r))
		return res, err
	})
	return res
}

// The quick division shows that everything works: its many sub-benchmarks are short, and the
// grid of the knee has every second number in flight.
const (
	quickPlainWindow = 500 * time.Millisecond
	quickKneeLimit   = 12 * time.Second
)
