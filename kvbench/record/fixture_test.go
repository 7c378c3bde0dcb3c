package record

import (
	"fmt"
	"sync"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads"
	"kvbench/workloads/compute"
	"kvbench/workloads/model"
	"kvbench/workloads/users"
)

// The fixture is a made-up trial of 30 s on a cpu and a storage tier: 1,200 requests whose sizes
// and latencies follow a fixed pattern, with demotions, a few failures, a backlog and a device that
// saw a little less than the application.

const (
	fixtureStart  = 5 * time.Second
	fixtureWindow = 30 * time.Second
)

// fixtureSize is the pattern of entry sizes: 8 MiB to 400 MiB.
func fixtureSize(i int) int64 { return int64(8+(i*37)%393) << 20 }

// fixtureResult is built once, for tests that only read it: with the race detector it takes seconds.
var fixtureResult = sync.OnceValue(
	func() *result.Result { return Build(fixtureInfo(), fixtureRecorder(2)) })

func fixtureRecorder(shards int) *Recorder {
	r := New(shards)
	r.Open(fixtureStart, fixtureStart+fixtureWindow)
	const requests = 1200
	for i := range requests {
		at := fixtureStart + time.Duration(i+1)*fixtureWindow/requests
		fixtureRequest(r, i, at)
	}
	for i := range 60 {
		at := fixtureStart + time.Duration(i)*fixtureWindow/60
		r.Gauge(at, Gauge{Queued: int64(10 * i), InFlight: 32,
			Bytes: [tiers.NumKinds]int64{tiers.CPU: 3 << 30, tiers.Storage: int64(i) << 28}})
	}
	r.Operation(OpSample{At: fixtureStart + fixtureWindow + time.Millisecond, Shard: 1,
		Level: tiers.Storage, Op: tiers.Write,
		Bytes: 300 << 20, Timing: tiers.Timing{Device: 700 * time.Millisecond}, Partial: true})
	for i := range 3 {
		r.Failure(fixtureStart, result.ErrorSample{Tier: "storage", Operation: "read", Errno: "ETIMEDOUT",
			Key: fmt.Sprintf("u%d/c0/t1", i), Offset: new(int64(2 << 20)),
			Message: "read: connection timed out"})
	}
	r.Retry(fixtureStart+time.Second, 0)
	return r
}

// chunk is a request that took a nanosecond for each byte, and that this process had for two
// microseconds more.
func chunk(r *Recorder, at time.Duration, shard int, l tiers.Kind, op tiers.Op, ph tiers.Phase,
	bytes int64) {
	const before, after = 500 * time.Nanosecond, 1500 * time.Nanosecond
	took := time.Duration(bytes)
	r.Chunk(shard, l, ph, tiers.Chunk{Op: op, Bytes: bytes, Submitted: at - took - before - after,
		Begun: at - took - after, Ended: at - after, Completed: at})
}

func fixtureRequest(r *Recorder, i int, at time.Duration) {
	size := fixtureSize(i)
	class := workloads.Class(i % int(workloads.NumClasses))
	device := time.Duration(size) + time.Duration(i%7)*time.Millisecond // about 1 GB/s
	write := OpSample{At: at, Shard: i, Level: tiers.CPU, Op: tiers.Write, Phase: tiers.Prefill,
		Purpose: workloads.ForPrefill,
		Bytes:   size,
		Timing: tiers.Timing{Device: device / 10, Generation: time.Duration(size / 8),
			Admission: time.Duration(i%2) * time.Millisecond},
		Slot: time.Duration(i%5-i%2) * time.Millisecond}
	if i%4 == 0 {
		write.Space = 3 * time.Millisecond
	}
	chunk(r, at, i, tiers.CPU, tiers.Write, tiers.Prefill, size)
	r.Operation(write)

	probe := OpSample{At: at, Shard: i, Level: tiers.Storage, Op: tiers.Read, Phase: tiers.Decode,
		Purpose: workloads.ForDecodeRead,
		Bytes:   size, First: i%3 != 0, Timing: tiers.Timing{Device: device, Host: device / 50}}
	chunk(r, at, i, tiers.Storage, tiers.Read, tiers.Decode, size)
	r.Operation(probe)
	again := probe
	again.Purpose, again.First, again.Device = workloads.ForReread, false, device/2
	chunk(r, at, i, tiers.Storage, tiers.Read, tiers.Decode, size)
	r.Operation(again)

	if i%2 == 0 { // the entry sinks later
		chunk(r, at, i, tiers.CPU, tiers.Read, tiers.Evict, size)
		chunk(r, at, i, tiers.Storage, tiers.Write, tiers.Evict, size)
		r.Operation(OpSample{At: at, Shard: i, Level: tiers.CPU, Op: tiers.Read, Phase: tiers.Evict,
			Bytes: size, Timing: tiers.Timing{Device: device / 10}})
		r.Operation(OpSample{At: at, Shard: i, Level: tiers.Storage, Op: tiers.Write,
			Phase: tiers.Evict, Bytes: size, Timing: tiers.Timing{Device: 2 * device}})
		r.Demote(at, i, tiers.CPU, tiers.Storage, size)
	}
	if i%10 == 0 {
		r.Evict(at, i, tiers.Storage, size)
		r.Delete(at, i, tiers.Storage, size, 2*time.Millisecond)
	}
	fixtureLookups(r, i, at)
	storage := write.IO() + probe.IO() + again.IO()
	spent := result.RequestTime{Queue: 20e6, Prefill: int64(write.IO()),
		Decode: int64(probe.IO() + again.IO()), Room: int64(write.Space),
		WriteLimit: int64(write.Slot), Buffers: int64(write.Admission),
		Data: int64(write.Generation)}
	spent.EndToEnd = spent.Queue + int64(storage) + spent.Waits() + spent.Data + 1e6
	r.Request(RequestSample{At: at, Shard: i, Class: class, Storage: storage, Time: spent,
		GenerateTokens: 100 + i%50, ContextTokens: 2000, FirstToken: fixtureFirstToken(i),
		Loaded: int64(i % 3 * 500), LoadedBytes: int64(i%3*500) << 12,
		// most of it from the storage, but of one in ten
		LoadedBelow: int64(i%3*500) << 12 * int64(min(i%10, 1)),
		Loading:     time.Duration(i%3*100) * time.Millisecond,
		Prompt: [workloads.NumPurposes]result.PromptTokens{
			workloads.ForPrefill: {Tokens: 2000},
			workloads.ForHistory: {Tokens: 1000, Found: int64(i % 3 * 500),
				NotYetWritten: int64((2 - i%3) / 2 * 250)}}})
}

// fixtureFirstToken is of a prompt of 3000 tokens at 10,000/s, of which 0, 500 or 1000 were found.
func fixtureFirstToken(i int) result.FirstTokenTime {
	found := int64(i % 3)
	return result.FirstTokenTime{Queue: 20e6, Load: found * 100e6, GPUWait: int64(i%7) * 10e6,
		Compute: 300e6 - found*50e6, ComputeAll: 300e6}
}

func fixtureLookups(r *Recorder, i int, at time.Duration) {
	probe := Hit
	switch {
	case i%20 == 0:
		probe = Miss
	case i%20 == 1:
		probe = Pending
	case i%400 == 2:
		probe = Gone
	}
	r.Lookup(at, i, workloads.ForPrefill, probe) // of what the request wrote: no lookup
	history := Hit
	switch i % 8 {
	case 0:
		history = Miss
	case 1:
		history = NotYetWritten
	}
	r.Lookup(at, i, workloads.ForHistory, history)
	r.Lookup(at, i, workloads.ForReread, Miss) // counted, in no rate
	if i%5 == 0 {
		r.Lookup(at, i, workloads.ForPrefix, Hit)
		chunk(r, at, i, tiers.Storage, tiers.Read, tiers.Decode, 1<<20)
		r.Operation(OpSample{At: at, Shard: i, Level: tiers.Storage, Op: tiers.Read,
			Phase: tiers.Decode, Purpose: workloads.ForPrefix,
			Bytes: 1 << 20, Timing: tiers.Timing{Device: time.Millisecond}})
	}
}

func fixtureInfo() Info {
	mdl := model.Model{Key: "llama3.1-8b", Name: "Llama 3.1 8B", Layers: 32, Hidden: 4096,
		Heads: 32, KVHeads: 8, HeadDim: 128,
		Attention: model.GQA}
	info := Info{
		Result: result.Result{
			Benchmark: "StorageThroughput", Option: new(2), Division: result.DivisionOpen, Trial: 1,
			Count: 3, Rank: 1, Ranks: 2, Seed: 42,
			Nonce: "000102030405060708090a0b0c0d0e0f", Digest: "c0ffee",
			Parameters: []result.Parameter{
				{Name: "num-users", Value: 32, Origin: "flag"},
				{Name: "io", Value: "direct", Origin: "division"},
				{Name: "arrival", Value: "open-loop", Origin: "default"},
			},
			DiffersFromClosed: []result.Difference{
				{Name: "num-users", Closed: 100, Value: 32},
				{Name: "io", Closed: "buffered", Value: "direct"},
			},
			Status: result.StatusComplete, EndedBy: result.EndedByDeadline,
			StartTime:       "2026-03-04T05:06:07.000008Z",
			NominalWindowNS: new(int64(fixtureWindow)), ElapsedNS: 34e9, DrainNS: 120e6,
			WarmupNS: 2e9,
			Model: result.Model{Key: mdl.Key, Name: mdl.Name, BytesPerToken: mdl.BytesPerToken(),
				TensorParallel: 1},
			Workload: result.Workload{Users: 32, Workers: 32, Arrival: "open-loop",
				Turns: "ordered", GenerationMode: "none",
				DecodeReads: "batched"},
			IO: result.IO{CacheDir: "/mnt/nvme/kv/rank_1", Mode: "direct",
				WriteDevice: result.WriteDeviceTransfer,
				ChunkBytes:  2 << 20, Depth: 4, MaxConcurrentAllocs: 16,
				Pool: result.Pool{Buffers: 128, BufferBytes: 2 << 20, HugePages: "transparent",
					Covers: false}},
			Harness: result.Harness{CPUNS: 30e9,
				PeakRSSBytes: new(int64(600 << 20)), Mallocs: 50000, AllocBytes: 30 << 20,
				GCCount: 6, GCPauseNS: 3e6, VolCtxSw: 90000, InvolCtxSw: 800, WorkerIdleNS: 15e9,
				WorkerBusyNS: 465e9, Unloaded: result.Unloaded{
					Read:  []result.UnloadedLatency{{NS: 1e6, RequestBytes: 2 << 20, Requests: 140}},
					Write: []result.UnloadedLatency{{NS: 2e6, RequestBytes: 2 << 20, Requests: 70}}}},
			Limits: result.Limits{Cores: 2, CoresSource: "affinity", GOMAXPROCS: 2,
				MemoryLimit: 16 << 30, MemoryLimitSource: "cgroup"},
			Environment: result.Environment{Hostname: "lab7", OS: "linux", Arch: "amd64",
				Cores: 8},
			Ceiling: &result.Ceiling{Read: 20e9, Write: 12e9, Points: []result.CeilingPoint{
				{Rate: 12e9, InFlight: 16, FileBytes: 64 << 20},
				{ReadShare: 0.5, Rate: 14e9, InFlight: 16, FileBytes: 64 << 20,
					Sweep: []result.SweepStep{{InFlight: 16, Read: 7e9, Write: 7e9, NS: 1e9}}},
				{ReadShare: 1, Rate: 20e9, InFlight: 32, FileBytes: 64 << 20}}},
			Precondition: &result.Precondition{Bytes: 64 << 30, DurationNS: int64(40 * time.Second),
				Writers: 2, LastRates: []float64{1.6e9, 1.5e9}, Spread: 0.0645},
			Input: &result.Input{Rows: 5000, Failed: 12, Malformed: 1, Cycles: 2,
				Problems: []string{"azure.csv:17: not a number"}},
			Warnings: []string{"results and cache are on the same filesystem"},
			Tiers: []result.Tier{
				{Level: "cpu", Description: "2 MiB slabs, huge pages",
					CapacityBytes: new(int64(4 << 30)), Entries: 16, UsedBytes: 3 << 30,
					PeakBytes: 3<<30 + 5<<20, WasteBytes: 12 << 20},
				{Level: "storage", Description: "files, O_DIRECT",
					CapacityBytes: new(int64(64 << 30)), Entries: 290, UsedBytes: 58 << 30,
					PeakBytes: 64 << 30},
			},
		},
		Sizer: model.NewSizer(mdl, 1, model.TPEngine),
		QoS:   users.Default().QoS, ContextWindow: 131072,
		Cost: compute.Cost{PerToken: 1e-4}, Computing: compute.Work{Prompts: 1300,
			Busy: fixtureWindow / 2, All: 3 * fixtureWindow / 2},
	}
	info.FirstToken = &result.FirstToken{}
	info.Load = make(map[string]result.ClassOutcome)
	for c := range workloads.Class(workloads.NumClasses) {
		o := result.ClassOutcome{Offered: 605, OfferedBytes: 1_200_000 * 131072, CarriedIn: 5,
			Started: 410, InFlight: 11, OldestInFlightAgeS: new(0.9), Queued: 194 * int64(2-c)}
		if o.Queued > 0 {
			o.OldestQueuedAgeS = new(12.0)
		}
		info.Load[c.String()] = o
	}
	var bytes int64
	for i := range 1200 {
		bytes += fixtureSize(i)
	}
	info.DeviceCounters = result.DeviceCounters{Device: "nvme0n1", ReadBytes: new(bytes*2*9/10 + 1<<20),
		WriteBytes: new(bytes / 2),
		ReadIOs:    new(int64(240000)), WriteIOs: new(int64(60000)),
		DiscardIOs: new(int64(480)), DiscardBytes: new(int64(5 << 29)),
		DiscardNS: new(int64(21600 * time.Millisecond)), FlushIOs: new(int64(900)),
		FlushNS: new(int64(4 * time.Second)), QueueNS: new(int64(90 * time.Second)), BusyShare: new(29. / 30)}
	return info
}
