package benchmarks

import (
	"context"
	"testing"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// BenchmarkStorageCeiling is what plain sequential direct I/O reaches on the
// same directory with the same chunk and concurrency, without any engine. Run
// before other benchmarks in the same process, it gives them their
// ceiling-ratio.
func BenchmarkStorageCeiling(b *testing.B) {
	each(b, "StorageCeiling", func(b *testing.B, v *params.Values) {
		for _, mix := range []struct {
			name  string
			share float64
		}{{"read", 1}, {"write", 0}, {"mixed", v.ReadShare}} {
			current.sub(b, v, "op="+mix.name, func(b *testing.B) {
				res := plain(b, v, func(st *kvbench.StorageConfig, workers *int) plainio.Routine {
					st.GPUBytes, st.CPUBytes = 0, 0
					// One stream has one chunk in flight: as many streams as a run has chunks.
					*workers *= st.Depth
					st.Workers, st.Depth = *workers, 1
					return &plainio.Ceiling{ReadShare: mix.share, FileSize: 256 << 20}
				})
				current.noteCeiling(v, mix.name, res)
			})
		}
	})
}

// noteCeiling remembers the rates for the ceiling-ratio of later benchmarks.
func (s *session) noteCeiling(v *params.Values, op string, r *result.Result) {
	if r == nil || r.Status != result.StatusComplete {
		return
	}
	c := s.ceiling[cacheDir(v)]
	for _, t := range r.Tiers {
		switch {
		case t.Level != tiers.Storage.String():
		case op == "read" && t.Read.BytesPerSecond != nil:
			c.Read = *t.Read.BytesPerSecond
		case op == "write" && t.Write.BytesPerSecond != nil:
			c.Write = *t.Write.BytesPerSecond
		}
	}
	s.ceiling[cacheDir(v)] = c
}

// BenchmarkTier measures each tier alone: entries of one size, one direction,
// through the transfer that the cache uses too.
func BenchmarkTier(b *testing.B) {
	each(b, "Tier", func(b *testing.B, v *params.Values) {
		for _, level := range []tiers.Kind{tiers.GPU, tiers.CPU, tiers.Storage} {
			for _, op := range []tiers.Op{tiers.Write, tiers.Read} {
				for _, size := range tierSizes(v.Division) {
					current.sub(b, v, tierName(level, op, size), func(b *testing.B) {
						tierBenchmark(b, v, level, op, size)
					})
				}
			}
		}
	})
}

// tierDefault is the size of a memory tier that was not asked for.
const tierDefault = 1 << 30

func tierBenchmark(b *testing.B, v *params.Values, level tiers.Kind, op tiers.Op, size int64) {
	plain(b, v, func(st *kvbench.StorageConfig, workers *int) plainio.Routine {
		need := 2 * size * int64(*workers+1)
		gpu, cpu, storage := st.GPUBytes, st.CPUBytes, st.StorageBytes
		st.GPUBytes, st.CPUBytes, st.StorageBytes = 0, 0, 0
		switch level {
		case tiers.GPU:
			st.GPUBytes = max(gpu, tierDefault, need)
		case tiers.CPU:
			st.CPUBytes = max(cpu, tierDefault)
			// Memory is not to be taken without being asked for: fewer workers instead.
			*workers = int(max(1, min(int64(*workers), st.CPUBytes/(2*size)-1)))
		default:
			st.StorageBytes = storage
			*workers = int(max(1, min(int64(*workers), storage/(2*size)-1)))
		}
		st.Workers = *workers
		return &plainio.Tier{Level: level, Op: op, Size: size, Footprint: 64 * max(size, 16<<20)}
	})
}

// plain runs one trial of a benchmark without requests. The routine may change the tiers
// and the number of workers that it is going to have.
func plain(b *testing.B, v *params.Values,
	routine func(st *kvbench.StorageConfig, workers *int) plainio.Routine) (res *result.Result) {
	measure(b, v, func(ctx context.Context, cfg kvbench.Config) (_ *result.Result, err error) {
		run := plainio.Config{Workers: v.WorkerCount(), Phase: kvbench.Phase{Name: "plain",
			Window: v.Window.Length, Warmup: v.Warmup, Limit: v.Window.Completions}}
		if v.Bench.Load == params.LoadNone && v.Division == params.Quick &&
			v.Origin("benchtime").Kind < params.FromFile {
			run.Window = quickPlainWindow
		}
		r := routine(&cfg.Storage, &run.Workers)
		res, err = kvbench.Run(ctx, cfg, plainio.New(run, r))
		return res, err
	})
	return res
}

// quickPlainWindow keeps the many sub-benchmarks of the quick division short.
const quickPlainWindow = 500 * time.Millisecond
