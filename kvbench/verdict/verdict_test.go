package verdict

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

const (
	gib = 1 << 30
	ms  = time.Millisecond
)

// limited is a run of 10 s by 4 workers that moved 1 GiB/s with 4 requests in flight, and a storage
// that moves no more with 8 and 16: storage-limited.
func limited() *result.Result {
	rungs := []result.Rung{{InFlight: 4, Read: 1.02 * gib}, {InFlight: 8, Read: 1.05 * gib},
		{InFlight: 16, Read: 1.03 * gib}}
	return &result.Result{
		WindowNS: 10e9, Workload: result.Workload{Workers: 4}, IO: result.IO{Depth: 1},
		Limits: result.Limits{Cores: 2},
		Tiers: []result.Tier{{Level: "storage", Read: result.TierTraffic{Bytes: 10 * gib,
			Operations: 1000, Requests: 10000, MeanInFlight: new(3.9)}}},
		Harness: result.Harness{CPUNS: 2e9, WorkerIdleNS: 1e9, WorkerBusyNS: 39e9,
			Busy:   result.BusyTime{StorageNS: 38e9, HandoverNS: 1e9, DispatchNS: 5e8},
			Ladder: &result.Ladder{Rungs: rungs, CPUShare: new(0.1), DiscardShare: new(0.0)}},
		DeviceWitness: result.Witness{BusyShare: new(0.98), DiscardNS: new(int64(0)),
			DiscardBytes: new(int64(0))},
	}
}

type change = func(*result.Result)

func ladder(cpu float64, rates ...float64) change {
	return func(r *result.Result) {
		l := r.Harness.Ladder
		l.CPUShare, l.Rungs = &cpu, nil
		for i, rate := range rates {
			l.Rungs = append(l.Rungs, result.Rung{InFlight: 4 << i, Read: rate * gib, NS: 1e9})
		}
	}
}

// rungsOf sets the duration of each step, and requests of 1 MiB: four for each place in flight are
// 16, 32 and 64 MiB.
func rungsOf(d time.Duration) change {
	return func(r *result.Result) {
		r.IO.ChunkBytes, r.Tiers[0].Read.Requests = 1<<20, 10<<10
		for i := range r.Harness.Ladder.Rungs {
			r.Harness.Ladder.Rungs[i].NS = int64(d)
		}
	}
}

func gpuBusy(share float64) change {
	return func(r *result.Result) { r.FirstToken = &result.FirstToken{GPUBusyShare: &share} }
}

// busy makes the storage's time that of something else.
func busy(of func(*result.BusyTime) *int64, ns int64) change {
	return func(r *result.Result) {
		b := &r.Harness.Busy
		*of(b) += ns
		b.StorageNS -= ns
	}
}

// atDevice is a run with waits for a processor whose requests the kernel counted at the device for
// that long, and others' bytes.
func atDevice(ns, others int64) change {
	return func(r *result.Result) {
		r.Harness.SchedWaitNS, r.IO.Mode = 20e9, "direct"
		w := &r.DeviceWitness
		w.QueueNS, w.AppReadBytes, w.ReadBytes = &ns, 10*gib, new(10*gib+others)
	}
}

func simulated(busy float64, places int) change {
	return func(r *result.Result) {
		r.Simulation = &result.Simulation{Device: &result.SimulatedDevice{Parallelism: places},
			DeviceBusyShare: &busy}
		r.Harness.Ladder, r.Harness.CPUNS = nil, 0
		r.DeviceWitness = result.Witness{Reason: "a simulation"}
	}
}

var (
	idle     = func(r *result.Result) { r.Harness.WorkerIdleNS = 20e9 }
	noLadder = func(r *result.Result) { r.Harness.Ladder = &result.Ladder{Reason: "so"} }
	short    = func(r *result.Result) { r.WindowNS = 140e6 }
	memory   = func(r *result.Result) {
		r.Environment.Filesystem = result.Filesystem{Type: "tmpfs", InMemory: true}
	}
	quiet      = func(r *result.Result) { r.DeviceWitness.BusyShare = new(0.5) }
	uncounted  = func(r *result.Result) { r.DeviceWitness = result.Witness{Reason: "tmpfs"} }
	fullCPU    = func(r *result.Result) { r.Harness.CPUNS = 18e9 }
	discarding = func(r *result.Result) {
		r.DeviceWitness.DiscardNS = new(int64(21e9))
		r.DeviceWitness.DiscardBytes = new(int64(5 * gib / 2))
	}
	engineThreads = func(r *result.Result) { r.Harness.Busy.EngineNS = 25e9 }
	stillDeleting = func(r *result.Result) { r.Harness.Ladder.DiscardShare = new(0.5) }
	generating    = busy(func(b *result.BusyTime) *int64 { return &b.GenerationNS }, 20e9)
	dispatched    = busy(func(b *result.BusyTime) *int64 { return &b.DispatchNS }, 20e9)
	thinking      = busy(func(b *result.BusyTime) *int64 { return &b.ThinkingNS }, 20e9)
	writeLimit    = busy(func(b *result.BusyTime) *int64 { return &b.WriteLimitNS }, 25e9)
	noRoom        = busy(func(b *result.BusyTime) *int64 { return &b.RoomNS }, 25e9)
	otherTiers    = busy(func(b *result.BusyTime) *int64 { return &b.OtherTiersNS }, 25e9)
	nothing       = busy(func(b *result.BusyTime) *int64 { return new(int64) }, 20e9)
	deleting      = busy(func(b *result.BusyTime) *int64 { return &b.RemovalNS }, 20e9)
)

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

// Each word, what shows it, and for each the run from which the opposite could be argued.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes []change
		want    string
		bound   string
		says    string
	}{
		{"the base", nil, result.StorageLimited, "", "plain I/O right after it moved for a moment " +
			"1.02 GiB/s with 4 in flight and 1.05 GiB/s, 1.03 GiB/s with 8, 16"},
		{"no window", []change{func(r *result.Result) { r.WindowNS = 0 }}, result.NoVerdict, "",
			""},

		{"workers had nothing to do", []change{idle, ladder(.1, 2, 3)}, result.LoadLimited, "",
			"workers had no request for 33.9 %"},
		{"and the device all it could", []change{idle}, result.StorageLimited, "", "98 %"},
		{"and the device was not busy", []change{idle, quiet}, result.LoadLimited, "", ""},
		{"for a moment", []change{idle, quiet, short}, result.Undecided, "",
			"a window of 140 ms is too short"},
		{"before a signal", []change{idle, quiet, short, func(r *result.Result) {
			r.EndedBy, r.Harness.Ladder = result.EndedBySignal, nil
		}}, result.Undecided, "", "too short to tell a load that asks for little"},
		{"sleeping for a GPU", []change{thinking}, result.StorageLimited, "", ""},
		{"sleeping for a GPU, more to be had", []change{thinking, ladder(.1, 2, 3)},
			result.LoadLimited, "", "slept as long as one would compute"},
		{"a server that computes all the time", []change{thinking, gpuBusy(.99), ladder(.1, 2, 3)},
			result.LoadLimited, "", "(-prefill-rate, -gpu) was busy 99 % of the window and was"},
		{"and one in a short window", []change{thinking, quiet, short}, result.Undecided, "",
			"workers were idle or waited for a GPU for"},
		{"and one that does not", []change{thinking, gpuBusy(.4), ladder(.1, 2, 3)},
			result.LoadLimited, "", "was busy 40 % of the window"},

		{"the processor", []change{fullCPU, ladder(.1, 2, 2)}, result.HarnessLimited, "",
			"90 % of the 2 cores"},
		{"the processor, also for plain I/O", []change{fullCPU, ladder(.9, 1, 1)},
			result.HarnessLimited, "", ""},
		{"the processor, and all that the device has", []change{fullCPU}, result.StorageLimited, "",
			""},
		{"a slow generator", []change{generating, ladder(.1, 2, 2)}, result.HarnessLimited, "",
			"making data took 51.3 %"},
		{"a held lock", []change{dispatched, ladder(.1, 2, 2)}, result.HarnessLimited, "",
			"taking requests (lock, input, plan) took 52.6 %"},
		{"unknown work", []change{nothing, ladder(.1, 2, 2)}, result.HarnessLimited, "",
			"what belongs to no operation took 52.6"},
		{"operations of an interrupted run", []change{nothing, ladder(.1, 2, 2),
			func(r *result.Result) { r.EndedBy, r.Harness.Ladder = result.EndedBySignal, nil }},
			result.Undecided, "", "whose operations had not ended"},
		{"locks elsewhere", []change{quiet,
			func(r *result.Result) { r.Harness.LockWaitNS = 20e9 }}, result.HarnessLimited, "",
			"this process's locks came to 51.3 %"},
		{"locks elsewhere, in a short run", []change{quiet, func(r *result.Result) {
			r.Harness.WorkerIdleNS, r.Harness.WorkerBusyNS = 0, 2e9
			r.Harness.Busy = result.BusyTime{StorageNS: 19e8}
			r.Harness.LockWaitNS, r.Harness.SchedWaitNS = 8e8, 8e8
		}}, result.StorageLimited, "", "more would not have moved more"},
		{"no processor for runnable threads", []change{quiet,
			func(r *result.Result) { r.Harness.SchedWaitNS = 20e9 }}, result.HarnessLimited, "",
			"waits for a processor"},
		// Go reports waits of half of the time, and the device had the requests for 32 s of the 39
		// that they took.
		{"waits that the device refutes", []change{quiet, atDevice(32e9, 0)},
			result.StorageLimited, "", "more would not have moved more"},
		{"a device that had them for half of it", []change{quiet, atDevice(20e9, 0)},
			result.HarnessLimited, "",
			"waits for a processor came to 51.3 % of the time of workers"},
		{"a device with deletions", []change{quiet, atDevice(32e9, 0), func(r *result.Result) {
			r.DeviceWitness.DiscardNS = new(int64(12e9))
		}}, result.HarnessLimited, "", "waits for a processor"},
		{"a device with other processes", []change{quiet, atDevice(32e9, 3*gib)},
			result.HarnessLimited, "", "waits for a processor"},
		{"the page cache", []change{quiet, atDevice(32e9, 0),
			func(r *result.Result) { r.IO.Mode = "buffered" }},
			result.HarnessLimited, "", "waits for a processor"},
		{"waits of many in flight", []change{quiet, func(r *result.Result) {
			r.Harness.SchedWaitNS, r.Tiers[0].Read.MeanInFlight = 20e9, new(8.)
		}}, result.StorageLimited, "", "more would not have moved more"},
		{"the collector", []change{func(r *result.Result) { r.Harness.GCPauseNS = 4e9 },
			ladder(.1, 2, 2)}, result.HarnessLimited, "", "garbage collector"},

		{"few workers", []change{ladder(.1, 1, 1.9, 3)}, result.ConcurrencyLimited, Depth,
			"3.90 requests were in flight"},
		{"a slice of a throttle more", []change{ladder(.1, 2, 2.7), rungsOf(300 * ms)},
			result.Undecided, "", "within the noise of both"},
		{"more than such slices", []change{ladder(.1, 1, 1.9), rungsOf(300 * ms)},
			result.ConcurrencyLimited, Depth, "more would have moved more"},
		{"entries of one chunk", []change{ladder(.1, 1, 1.9, 3),
			func(r *result.Result) { r.Tiers[0].Read.Operations = 10000 }},
			result.ConcurrencyLimited, Workers, "the number of workers (4"},
		{"one worker", []change{ladder(.1, 1, 1.9, 3),
			func(r *result.Result) { r.Workload.Workers = 1 }}, result.ConcurrencyLimited, Workers,
			""},
		{"the write limit", []change{writeLimit, ladder(.1, 1, 1.9)}, result.ConcurrencyLimited,
			WriteLimit, "waited 64.1 %"},
		{"the write limit of a device without more", []change{writeLimit}, result.StorageLimited,
			"", ""},
		{"an engine's threads", []change{engineThreads, ladder(.1, 1, 1.9)},
			result.ConcurrencyLimited, Engine, "requests waited for one of them for 64.1 %"},
		{"an engine's threads on a device without more", []change{engineThreads},
			result.StorageLimited, "", ""},
		{"room", []change{noRoom, ladder(.1, 1, 1.9)}, result.ConcurrencyLimited, Room, ""},
		{"a little more", []change{ladder(.1, 1, 1.15)}, result.Undecided, "", "noise"},

		{"workers that delete", []change{deleting, ladder(.1, 2, 2)}, result.DiscardLimited, "",
			"deleting entries took 51.3 % of the workers' busy time (limit 30 %); the device " +
				"discarded nothing meanwhile"},
		{"workers that free memory", []change{deleting, uncounted, memory}, result.DiscardLimited,
			"", "nothing was discarded: the files lie in memory"},
		{"workers that delete where discards are not counted", []change{deleting, uncounted},
			result.DiscardLimited, "", "discards are not counted"},
		{"discards", []change{discarding, ladder(.1, 2, 2.1)}, result.DiscardLimited, "",
			"discards of 2.50 GiB, all processes' together, were at the device for up to 100 %"},
		{"discards, also during the ladder",
			[]change{discarding, stillDeleting, ladder(.1, 2, 2.1)}, result.DiscardLimited, "",
			"with discards in 50 % of its time plain I/O moved 2 GiB/s"},
		{"discards of other processes", []change{discarding, ladder(.1, 2, 2.1)},
			result.DiscardLimited, "", "though this run deleted nothing"},
		{"discards that slowed nothing", []change{discarding}, result.StorageLimited, "", ""},
		{"discards during the ladder", []change{discarding, stillDeleting}, result.Undecided, "",
			"up to 50 % of the time while plain I/O was tried"},
		{"several discards at a time during the ladder", []change{discarding, stillDeleting,
			func(r *result.Result) { r.Harness.Ladder.DiscardShare = new(1.5) }},
			result.Undecided, "", "up to 100 % of the time while plain I/O was tried"},
		{"and before it", []change{discarding, stillDeleting}, result.Undecided, "",
			"shows nothing; discards of 2.50 GiB"},

		{"no ladder", []change{noLadder}, result.Undecided, "", "because so"},
		{"none was asked for", []change{func(r *result.Result) { r.Harness.Ladder = nil }},
			result.Undecided, "", "not tried"},
		{"one step", []change{ladder(.1, 1)}, result.Undecided, "", "no room or memory"},
		{"a ladder without processors", []change{ladder(.9, 1, 1)}, result.Undecided, "",
			"took 90 % of the processors"},
		{"a cache answered", []change{func(r *result.Result) {
			r.DeviceWitness.ServedFromCache = new(true)
		}}, result.Undecided, "", "a cache answered"},
		{"something above the device", []change{quiet}, result.StorageLimited, "", "io.max"},
		{"a device without counters", []change{uncounted}, result.StorageLimited, "", ""},
		{"a device that waits, and plain I/O that moves more", []change{quiet, ladder(.1, 2.1, 2)},
			result.Undecided, "", "the device was busy 50 % of the window only"},
		{"a throttle's slices", []change{quiet, ladder(.1, 1.33, 1.3)}, result.StorageLimited, "",
			"io.max"},
		{"the same without counters", []change{uncounted, ladder(.1, 2.1, 2)}, result.Undecided,
			"", "the device's busy time is unknown"},
		{"at most three tenths without work", []change{uncounted, ladder(.1, 1.46, 1.46)},
			result.StorageLimited, "", ""},
		{"perhaps more", []change{uncounted, ladder(.1, 1.48, 1.48)}, result.Undecided, "",
			"busy time is unknown"},
		{"memory, and no more of it", []change{uncounted, memory}, result.HarnessLimited, "",
			"in memory (tmpfs), where what a request takes is copying"},
		{"memory, for which a processor was left", []change{uncounted, memory,
			ladder(.1, 1, 1.9, 3)}, result.ConcurrencyLimited, Depth, ""},
		{"a run that moves as much as the best step", []change{ladder(.1, .3, .6, 1.1)},
			result.Undecided, "", "within the noise"},
		{"a burst is faster than what lasts", []change{ladder(.1, 2, 2)}, result.StorageLimited,
			"", "for a moment 2 GiB/s with 4 in flight"},
		{"rungs of enough requests", []change{ladder(.1, 1, 1.9, 3), rungsOf(25 * ms)},
			result.Undecided, "", "1.90 GiB/s, 3 GiB/s with 8, 16, which is within"},
		{"a last step of a few requests", []change{ladder(.1, 1, 1.9, 3), rungsOf(18 * ms)},
			result.Undecided, "", "1.90 GiB/s with 8, which is within"},
		{"and without it no more", []change{ladder(.1, 1, 1, 1), rungsOf(40 * ms)},
			result.StorageLimited, "", "1 GiB/s with 8, the"},
		{"a first step alone", []change{ladder(.1, 1, 1, 1), rungsOf(20 * ms)}, result.Undecided, "",
			"fewer than four requests ended"},
		{"rungs of a few requests", []change{ladder(.1, 1, 1.9, 3), rungsOf(10 * ms)},
			result.Undecided, "", "fewer than four requests ended"},
		{"rungs of a few requests, which entries smaller than a chunk are",
			[]change{ladder(.1, 1, 1.9, 3), rungsOf(10 * ms), func(r *result.Result) {
				r.Tiers[0].Read.Requests *= 100
			}}, result.Undecided, "", "within the noise of both"},
		{"less than one in flight", []change{ladder(.1, 1, 1.05), func(r *result.Result) {
			r.Tiers[0].Read.MeanInFlight, r.Workload.Workers = new(0.75), 1
			r.Tiers[0].Read.Bytes = 15 * gib / 2
			r.Harness.Ladder.Rungs[0].InFlight = 1
		}}, result.ConcurrencyLimited, Workers, "0.75 requests"},
		{"a little more than plain I/O in any concurrency", []change{ladder(.1, .85, .85)},
			result.StorageLimited, "", ""},
		{"much more", []change{ladder(.1, .8, .8)}, result.Undecided, "", "no measure of it"},
		{"much more, of growing rungs", []change{ladder(.1, .4, .8)}, result.Undecided, "",
			"no measure of it"},
		{"memory above the storage", []change{otherTiers, ladder(.1, 1.2, 1.2)}, result.Undecided,
			"", "other tiers took 64.1 %"},
		{"nothing is known", []change{func(r *result.Result) {
			*r = result.Result{WindowNS: 1e9}
		}}, result.Undecided, "", "not tried"},

		{"a model's medium", []change{simulated(.95, 64)}, result.StorageLimited, "",
			"the device's medium was busy 95 %"},
		{"a model's places", []change{simulated(.5, 4)}, result.StorageLimited, "",
			"4 requests at"},
		{"a model with more of both", []change{simulated(.5, 64)}, result.ConcurrencyLimited, Depth,
			""},
		{"a model without load", []change{simulated(.5, 64), idle}, result.LoadLimited, "", ""},
		{"no model", []change{simulated(.5, 64),
			func(r *result.Result) { r.Simulation.Device = nil }}, result.Undecided, "",
			"takes no time"},
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
		assert.Equal(t, c.bound, v.Bound, "%s: %s", c.name, v.Reason)
		assert.Contains(t, v.Reason, c.says, c.name)
		assert.NotContains(t, v.Reason, "%!", c.name)
		assert.JSONEq(t, string(before), string(after), "%s: Judge changed it", c.name)
	}
}

func TestVerdictTellsItsNumbers(t *testing.T) {
	v := Judge(limited())
	assert.InDelta(t, 1.0/40, *v.IdleShare, 1e-9)
	assert.InDelta(t, 0.1, *v.CPUShare, 1e-9)
	assert.InDelta(t, 2.0/39, *v.HarnessShare, 1e-9, "handed over, dispatched, and unaccounted for")
	assert.InDelta(t, 3.9, *v.InFlight, 1e-9)
	v = Judge(&result.Result{WindowNS: int64(time.Second)})
	assert.Nil(t, v.IdleShare)
	assert.Nil(t, v.CPUShare)
	assert.Nil(t, v.HarnessShare)
	assert.Nil(t, v.InFlight)
}
