package verdict

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

const gib = 1 << 30

// limited is a run of 10 s by 4 workers that moved 1 GiB/s with 4 requests in flight, each of which
// took 4 times as long as at queue depth 1: storage-limited.
func limited() *result.Result {
	r := &result.Result{
		WindowNS: 10e9, Workload: result.Workload{Workers: 4}, Limits: result.Limits{Cores: 2},
		IO: result.IO{Depth: 1, Mode: "direct"},
		Tiers: []result.Tier{{Level: "storage", Read: result.TierTraffic{Bytes: 10 * gib,
			Operations: 1000, Requests: 10000, InFlightNS: 39e9, MeanInFlight: new(3.9),
			BytesPerSecond: new(float64(gib))}}},
		Harness: result.Harness{CPUNS: 2e9, WorkerIdleNS: 1e9, WorkerBusyNS: 39e9,
			Busy: result.BusyTime{StorageNS: 38e9, HandoverNS: 1e9, DispatchNS: 5e8}},
		DeviceCounters: result.DeviceCounters{BusyShare: new(0.98), AppReadBytes: 10 * gib,
			ReadBytes: new(int64(10 * gib)), WriteBytes: new(int64(0)),
			DiscardNS: new(int64(0)), DiscardBytes: new(int64(0))},
	}
	latency(4)(r)
	return r
}

type change = func(*result.Result)

// latency is a mean of 4 ms, and that at queue depth 1.
func latency(slowdown float64) change {
	return func(r *result.Result) {
		l := result.LevelLatency{}
		l.Read.Request.Mean = new(4e6)
		r.Latency.Levels = map[string]result.LevelLatency{"storage": l}
		r.Harness.Unloaded.Read = []result.UnloadedLatency{{NS: int64(4e6 / slowdown),
			RequestBytes: gib/1000 + 1, Requests: 70}}
	}
}

// busy makes the storage's time that of something else.
func busy(field func(*result.BusyTime) *int64, ns int64) change {
	return func(r *result.Result) {
		b := &r.Harness.Busy
		*field(b) += ns
		b.StorageNS -= ns
	}
}

func idle(share float64) change {
	return func(r *result.Result) {
		r.Harness.WorkerIdleNS = int64(share * 40e9)
		r.Harness.WorkerBusyNS = 40e9 - r.Harness.WorkerIdleNS
		r.Harness.Busy = result.BusyTime{StorageNS: r.Harness.WorkerBusyNS}
	}
}

func queued(n int64) change {
	return func(r *result.Result) {
		r.Load = map[string]result.ClassOutcome{"total": {Queued: n}}
	}
}

func inFlight(n float64) change {
	return func(r *result.Result) { r.Tiers[0].Read.MeanInFlight = &n }
}

func discards(ns int64) change {
	return func(r *result.Result) { r.DeviceCounters.DiscardNS = &ns }
}

func device(bytes int64) change {
	return func(r *result.Result) { r.DeviceCounters.ReadBytes = &bytes }
}

// requests is a device that completed n requests, and moved extra bytes more than the run.
func requests(n, extra int64) change {
	return func(r *result.Result) {
		d := &r.DeviceCounters
		d.ReadIOs, d.WriteIOs, d.ReadBytes = &n, new(int64(0)), new(10*gib+extra)
	}
}

func simulated(busy float64, slots int) change {
	return func(r *result.Result) {
		r.Simulation = &result.Simulation{Device: &result.SimulatedDevice{Parallelism: slots},
			DeviceBusyShare: &busy}
		r.Harness.Unloaded, r.Harness.CPUNS = result.Unloaded{}, 0
		r.DeviceCounters = result.DeviceCounters{Reason: "a simulation"}
	}
}

func memory(r *result.Result) {
	r.Environment.Filesystem = result.Filesystem{Type: "tmpfs", InMemory: true}
	r.DeviceCounters = result.DeviceCounters{Reason: "tmpfs"}
}

// buffered has writes through the page cache: flushes of 39 ms each, and alone of a quarter.
func inMemory(r *result.Result) {
	r.IO.Mode, r.Tiers[0].Level = result.IOMemory, "cpu"
	r.Harness.Unloaded = result.Unloaded{Reason: "the run has no storage tier"}
	r.DeviceCounters = result.DeviceCounters{Reason: "the run has no storage tier"}
	r.Harness.Busy.StorageNS, r.Harness.Busy.HandoverNS = 25e9, 0
}

func buffered(r *result.Result) {
	r.IO.Mode = "buffered"
	t := &r.Tiers[0]
	t.Write, t.Read = t.Read, result.TierTraffic{}
	t.Write.Requests = 0
	r.Harness.Unloaded = result.Unloaded{Write: []result.UnloadedLatency{{NS: 39e6 / 4,
		RequestBytes: 10*gib/1000 + 1, Requests: 7}}}
}

func TestVerdict(t *testing.T) {
	var (
		generating = busy(func(b *result.BusyTime) *int64 { return &b.GenerationNS }, 25e9)
		nowhere    = busy(func(*result.BusyTime) *int64 { return new(int64) }, 25e9)
		memoryTier = busy(func(b *result.BusyTime) *int64 { return &b.OtherTiersNS }, 25e9)
		thinking   = busy(func(b *result.BusyTime) *int64 { return &b.ThinkingNS }, 20e9)
		writeLimit = busy(func(b *result.BusyTime) *int64 { return &b.WriteLimitNS }, 25e9)
		noCapacity = func(r *result.Result) {
			busy(func(b *result.BusyTime) *int64 { return &b.RoomNS }, 25e9)(r)
			r.Tiers[0].RoomNS = 25e9
		}
		noBuffer   = busy(func(b *result.BusyTime) *int64 { return &b.BuffersNS }, 25e9)
		deleting   = busy(func(b *result.BusyTime) *int64 { return &b.RemovalNS }, 20e9)
		engine     = func(r *result.Result) { r.Harness.Busy.EngineNS = 25e9 }
		signal     = func(r *result.Result) { r.EndedBy = result.EndedBySignal }
		cpu        = func(ns int64) change { return func(r *result.Result) { r.Harness.CPUNS = ns } }
		workers    = func(n int) change { return func(r *result.Result) { r.Workload.Workers = n } }
		unmeasured = func(r *result.Result) { r.Harness.Unloaded = result.Unloaded{Reason: "so"} }
		larger     = func(r *result.Result) { r.Harness.Unloaded.Read[0].RequestBytes /= 3 }
		between    = func(r *result.Result) {
			r.Harness.Unloaded.Read = []result.UnloadedLatency{{NS: 1e6, RequestBytes: 1}, {NS: 3e6, RequestBytes: gib / 500}}
		}
		fewReads = func(r *result.Result) { r.Tiers[0].Write.InFlightNS = 50e9 }
		ofRank   = func(r *result.Result) { r.Ranks = 4 }
	)
	for _, c := range []struct {
		name    string
		changes []change
		want    string
		says    string
	}{
		{"the base", nil, result.StorageLimited, "the run moved 1 GiB/s with 3.90 I/O requests in flight: an I/O " +
			"request took 4 ms, 4 times the 1 ms at queue depth 1 before the window (limit 2), so I/O " +
			"requests waited in the storage; the device was busy for 98 % of the window"},
		{"no window", []change{func(r *result.Result) { r.WindowNS = 0 }}, result.NoVerdict, ""},

		{"idle workers", []change{idle(.5)}, result.LoadLimited,
			"workers had no request for 50 % of the time (limit 20 %)"},
		{"idle workers, and a turn that waits for the turn before", []change{idle(.201), queued(1)},
			result.LoadLimited, ""},
		{"a GPU", []change{idle(.06), thinking, queued(9)}, result.LoadLimited,
			"and waited for a GPU, or as long as one would compute, for 50 %: 56 % together"},
		{"a server that computes all the time", []change{thinking, func(r *result.Result) {
			r.FirstToken = &result.FirstToken{GPUBusyShare: new(.99)}
		}}, result.LoadLimited, "(the GPU was busy for 99 % of the window; -prefill-rate, -gpu)"},
		{"each share under its own name", []change{idle(.15), func(r *result.Result) {
			r.Harness.Busy.ThinkingNS = 4e9
		}}, result.LoadLimited, "no request for 15 % of the time and waited for a GPU, or as " +
			"long as one would compute, for 10 %: 25 % together (limit 20 %)"},

		{"another process", []change{device(13 * gib)}, result.Shared, "the device moved 13 GiB, " +
			"1.30 times the 10 GiB of the run and its files' metadata (limit 1.20): another process used it"},
		{"a little more", []change{device(11 * gib)}, result.StorageLimited, ""},
		{"another process with small requests", []change{requests(12001, 2001*blockBytes)}, result.Shared,
			"the device completed 12001 I/O requests, 1.20 times those of the run (limit 1.20): another process"},
		{"a few of them", []change{requests(12000, 2000*blockBytes)}, result.StorageLimited, ""},
		{"requests for the metadata of many files", []change{requests(18000, 24000*blockBytes), func(r *result.Result) {
			r.Tiers[0].Write.Operations = 1000
		}}, result.StorageLimited, ""},
		{"requests that the kernel splits", []change{requests(30000, 100*blockBytes)}, result.StorageLimited, ""},
		{"an idle load on a shared device", []change{idle(.5), device(13 * gib)},
			result.LoadLimited, ""},
		{"other ranks", []change{device(13 * gib), ofRank}, result.StorageLimited, ""},
		{"metadata of many files", []change{device(13 * gib), func(r *result.Result) {
			r.Tiers[0].Write.Operations = 3 * gib / metadataBytes
		}}, result.StorageLimited, ""},

		{"a small tier", []change{noCapacity}, result.CapacityLimited,
			"workers waited for capacity for 64.1 % of their busy time (limit 30 %), for 100 % of it in the storage " +
				"tier, until the entries to evict were no longer read or written (-storage-capacity-gb)"},
		{"a small tier of memory", []change{noCapacity, func(r *result.Result) {
			r.Tiers = append([]result.Tier{{Level: "cpu", RoomNS: 20e9}}, r.Tiers...)
			r.Tiers[1].RoomNS = 5e9
		}}, result.CapacityLimited, "for 80 % of it in the cpu tier, until the entries to evict were no longer " +
			"read or written (-cpu-mem-gb)"},

		{"deletions", []change{deleting}, result.DiscardLimited,
			"deleting entries took 51.3 % of the workers' busy time (limit 30 %); an I/O request took"},
		{"parallel discards", []change{discards(15.3e9)}, result.DiscardLimited,
			"for up to 100 % of the window"},
		{"discards that slowed nothing", []change{discards(3.05e9), latency(1.4)},
			result.LatencyLimited, ""},

		{"cores", []change{cpu(18e9)}, result.CPULimited,
			"the process used 90 % of the 2 cores that 4 workers can use (limit 85 %)"},
		{"the core of one worker", []change{cpu(9e9), workers(1)}, result.CPULimited,
			"90 % of the 1 cores that 1 worker can use"},
		{"two of many cores", []change{cpu(9e9)}, result.StorageLimited, ""},
		{"memory", []change{memory}, result.CPULimited, "the files lie in memory (tmpfs)"},
		{"a slow generator", []change{generating}, result.CPULimited, "workers spent 69.2 % of their " +
			"busy time in this process (limit 50 %): generating data 64.1 %; the process used 10 %"},
		{"memory tiers", []change{memoryTier}, result.CPULimited, "memory tiers 64.1 %"},
		{"unknown work", []change{nowhere}, result.CPULimited, "outside of operations 65.4 %"},
		{"plain I/O whose threads are blocked while they submit", []change{nowhere, func(r *result.Result) {
			r.PlainIO = &result.PlainIO{}
		}}, result.StorageLimited, ""},
		{"operations of an interrupted run", []change{nowhere, signal}, result.StorageLimited, ""},

		{"as fast as single requests", []change{latency(1.4)}, result.LatencyLimited,
			"1.40 times the 2.86 ms at queue depth 1 before the window; more in flight is bounded by " +
				"depth (each of 4 workers had 1 at most; -io-depth), and -bench Knee shows"},
		{"a little faster than single requests", []change{latency(.9)}, result.LatencyLimited, "0.90 times"},
		{"much faster than single requests", []change{latency(.22)}, result.Undecided, "an I/O request took 4 ms, " +
			"0.22 times the 18.2 ms at queue depth 1 before the window, so the latency before the window was not the storage's alone"},
		{"one in flight", []change{inFlight(1), workers(1)}, result.LatencyLimited,
			"the number of workers (1, each with 1 at most; -workers)"},
		{"one worker that uses its depth", []change{workers(1), latency(1)}, result.LatencyLimited,
			"the number of workers (1, each with 1 at most; -workers)"},
		{"one in flight, and no measurement", []change{inFlight(1), unmeasured},
			result.LatencyLimited, "no I/O request waited for another one; more in flight"},
		{"the write limit", []change{writeLimit, latency(1)}, result.LatencyLimited,
			"the write limit (0 at a time, for which workers waited 64.1 % of their busy time"},
		{"an engine's threads", []change{engine, latency(1)}, result.LatencyLimited,
			"the inference engine's threads (I/O requests waited for one for 64.1 %"},
		{"buffers", []change{noBuffer, latency(1)}, result.LatencyLimited,
			"the memory for buffers (workers waited for one for 64.1 % of their busy time; -chunk-size)"},
		{"buffers that wait for the storage", []change{noBuffer}, result.StorageLimited, ""},
		{"requests of three times the size", []change{larger}, result.LatencyLimited,
			"1.33 times the 3 ms"},
		{"requests of a size between the measured ones", []change{between}, result.StorageLimited,
			"2 times the 2 ms"},
		{"flushes behind the page cache", []change{buffered}, result.StorageLimited,
			"an I/O request took 39 ms, 4 times the 9.75 ms"},

		{"checkpoints without the pauses between them", []change{func(r *result.Result) {
			r.Checkpoint = &result.Checkpoint{Reads: []result.CheckpointRun{{DurationNS: 5e9, Bytes: 10 * gib}}}
			r.Derive()
		}}, result.StorageLimited, "the run moved 2 GiB/s with 7.80 I/O requests in flight"},
		{"a checkpoint that failed", []change{func(r *result.Result) {
			r.Checkpoint, r.Tiers[0].Read = &result.Checkpoint{}, result.TierTraffic{}
		}}, result.Undecided, "the run moved 0 B/s with 0 I/O requests in flight"},
		{"a removal, and the filesystem's own bytes", []change{func(r *result.Result) {
			r.Removal, r.Tiers[0].Read, r.DeviceCounters.AppReadBytes = &result.Removal{}, result.TierTraffic{}, 0
		}, busy(func(b *result.BusyTime) *int64 { return &b.RemovalNS }, 38e9)}, result.DiscardLimited,
			"deleting entries took 97.4 % of the workers' busy time"},

		{"no measurement", []change{unmeasured}, result.Undecided,
			"the run moved 1 GiB/s with 3.90 I/O requests in flight: the latency at queue depth 1 " +
				"before the window is missing: so"},
		{"a measurement of the other direction", []change{fewReads}, result.Undecided,
			"it was not measured"},
		{"no storage tier", []change{func(r *result.Result) { r.Tiers = nil }}, result.Undecided,
			"the run had no storage tier: the latency of its I/O requests is missing"},
		{"copies in memory", []change{inMemory, memoryTier}, result.MemoryLimited, "the run had no storage tier " +
			"and moved 1 GiB/s in memory: the largest parts of the workers' busy time are memory tiers " +
			"64.1 %, outside of operations 34.6 %; the process used 10 % of the 2 cores that 4 workers can use"},
		{"all cores copy", []change{inMemory, memoryTier, cpu(18e9)}, result.MemoryLimited, ""},
		{"data for memory", []change{inMemory, generating}, result.CPULimited, "generating data 64.1 %"},
		{"the write limit in memory", []change{inMemory, writeLimit}, result.LoadLimited,
			"waiting for the write limit or another write (-max-concurrent-allocs) 64.1 %"},
		{"a small tier in memory", []change{inMemory, noCapacity}, result.CapacityLimited, "(-cpu-mem-gb)"},
		{"demotions in memory", []change{inMemory, func(r *result.Result) {
			r.Harness.Busy.ClearingNS, r.Harness.Busy.RemovalNS = 38e9, 13e9
		}}, result.MemoryLimited, "are demoting and deleting entries 97.4 %; the process"},
		{"an idle load in memory", []change{inMemory, idle(.5)}, result.LoadLimited, "no request for 50 %"},
		{"no times in memory", []change{inMemory, func(r *result.Result) {
			r.Harness = result.Harness{}
		}}, result.Undecided, "the times of its workers are missing"},
		{"nothing is known", []change{func(r *result.Result) {
			*r = result.Result{WindowNS: 1e9}
		}}, result.Undecided, ""},

		{"a model's medium", []change{simulated(.95, 64)}, result.StorageLimited,
			"the simulated device was busy for 95 % of the window and takes 64 I/O requests at a time"},
		{"a model's slots", []change{simulated(.5, 4)}, result.StorageLimited, ""},
		{"a model with more of both", []change{simulated(.5, 64)}, result.LatencyLimited,
			"more in flight is bounded by depth"},
		{"a model without time", []change{simulated(.5, 64),
			func(r *result.Result) { r.Simulation.Device = nil }}, result.Undecided,
			"this simulated storage takes no time"},
	} {
		r := limited()
		for _, change := range c.changes {
			change(r)
		}
		before, err := json.Marshal(r)
		require.NoError(t, err)
		v := Judge(r)
		after, err := json.Marshal(r)
		require.NoError(t, err)
		assert.Equal(t, c.want, v.Kind, "%s: %s", c.name, v.Reason)
		assert.Equal(t, c.want == result.LatencyLimited, v.Bound != "", "%s: %s", c.name, v.Reason)
		assert.Contains(t, v.Reason, c.says, c.name)
		assert.NotContains(t, v.Reason, "%!", c.name)
		assert.JSONEq(t, string(before), string(after), "%s: Judge changed it", c.name)
	}
}

func TestNumbersOfTheVerdict(t *testing.T) {
	v := Judge(limited())
	assert.InDelta(t, 1.0/40, *v.IdleShare, 1e-9)
	assert.InDelta(t, 0.1, *v.CPUShare, 1e-9)
	assert.InDelta(t, 2.0/39, *v.HarnessShare, 1e-9, "handed over, dispatched, and unaccounted for")
	assert.InDelta(t, 3.9, *v.InFlight, 1e-9)
	assert.InDelta(t, 4, *v.Slowdown, 1e-9)
	v = Judge(&result.Result{WindowNS: 1e9})
	for _, number := range []*float64{v.IdleShare, v.CPUShare, v.HarnessShare, v.InFlight, v.Slowdown} {
		assert.Nil(t, number)
	}
}

// Of several directories all have to lie in memory, or a device has its part.
func TestSeveralDirectoriesInMemory(t *testing.T) {
	in := func(roots ...bool) bool {
		r := &result.Result{}
		memory(r)
		for _, is := range roots {
			r.IO.Roots = append(r.IO.Roots, result.Root{Mount: result.Filesystem{InMemory: is}})
		}
		return (&evidence{Result: r}).inMemory()
	}
	assert.Equal(t, []bool{true, true, false, false}, []bool{in(), in(true, true), in(true, false),
		in(false, true)})
}
