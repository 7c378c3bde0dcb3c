package report

import (
	"cmp"
	"encoding/json"
	"fmt"

	"kvbench/kvbench/result"
	"kvbench/tracing"
	"kvbench/tracing/fio"
)

// fioInput is the result's input for the header of a fio job and its fallbacks. Without a trace the
// job's sizes, mix and depth come from the application's own numbers.
func fioInput(r *result.Result) fio.Input {
	in := fio.Input{
		Title: fmt.Sprintf("%s, trial %d, %s division", r.Benchmark, r.Trial+1, r.Division),
		Model: r.Model.Name, Users: r.Workload.Users, BytesPerToken: r.Model.BytesPerToken,
		HugePages: hugeBuffers(r.IO.Pool.HugePages), Concurrency: storageConcurrency(r),
	}
	if r.Benchmark == result.BenchmarkTrace {
		in.Title = r.Name
	}
	// A network mount has no block layer: its transfers are the requests. Of several directories
	// one on such a mount is enough for a trace not to have seen all.
	for _, fs := range r.Filesystems() {
		chunk := int64(r.IO.ChunkBytes)
		in.ReadSize = max(in.ReadSize, transferSize(fs.ReadSizeBytes, chunk))
		in.WriteSize = max(in.WriteSize, transferSize(fs.WriteSizeBytes, chunk))
		in.InMemory = in.InMemory || fs.InMemory
	}
	if r.CompletionUnit == result.UnitOperation {
		in.Model = ""
	}
	read, write := r.StorageTraffic()
	if r.Objects != nil {
		in.ReadSize, in.WriteSize = requestSize(read), requestSize(write)
		in.SizesOf = "the requests to an object store (their mean size)"
	}
	in.ReadBytes, in.WriteBytes = read.Bytes, write.Bytes
	in.Remote = in.ReadSize > 0 || r.Objects != nil
	return in
}

// requestSize is the mean size of the requests of one direction, in whole pages, because a device
// takes pages; 0 = there were none. An object is read in one request or in ranges of one size, so a
// mean is enough for entries of one size; where sizes differ it keeps the rate and the number of
// requests, though not their spread.
func requestSize(t result.TierTraffic) int64 {
	const page = 4096
	if t.Requests == 0 {
		return 0
	}
	return max(1, (t.Bytes/t.Requests+page/2)/page) * page
}

// transferSize is how many bytes a network mount moves at a time for requests of chunk bytes; 0 =
// it is none.
func transferSize(mount *int64, chunk int64) int64 {
	if mount == nil {
		return 0
	}
	return min(*mount, cmp.Or(chunk, *mount))
}

// storageConcurrency is the mean number of requests in flight at the storage tier. If it was not
// counted, because bytes pass the page cache, it is the number of operations by Little's law, and
// else the number of workers as an upper bound: an entry may be a single chunk, whatever the depth
// would allow.
func storageConcurrency(r *result.Result) float64 {
	read, write := r.StorageTraffic()
	for _, ns := range []int64{read.InFlightNS + write.InFlightNS,
		read.DeviceNS + write.DeviceNS} {
		if ns > 0 && r.WindowNS > 0 {
			return float64(ns) / float64(r.WindowNS)
		}
	}
	return float64(r.Workload.Workers)
}

// hugeBuffers reports whether the pool consists mostly of huge pages. Then fio uses huge pages,
// too, since ordinary pages split a large request into more pieces than a device may take.
func hugeBuffers(pool string) bool {
	var got, all int
	n, _ := fmt.Sscanf(pool, "%d of %d MiB in huge pages", &got, &all)
	return n == 2 && 2*got >= all
}

// FioJob makes a fio job of the result's block trace, so that another device can get the same load;
// the error says why it cannot. Requests to an object store are known without a trace, and pass no
// block device of this host.
func FioJob(r *result.Result) (string, error) {
	tr, err := captured(r)
	if err != nil {
		return "", err
	}
	if r.Objects != nil {
		window := tracing.Capture{WindowNS: r.WindowNS, Reason: "the storage is an object store, " +
			"whose requests pass none of this host"}
		return fio.Job(&tracing.Trace{Capture: window}, fioInput(r))
	}
	if tr == nil {
		return "", fmt.Errorf("%s was not traced: run it with -enable-latency-tracing", r.Benchmark)
	}
	return fio.Job(tr, fioInput(r))
}

// Trace returns the kernel's trace in a few lines, nil without one.
func Trace(r *result.Result) []string {
	tr, err := captured(r)
	if tr == nil || err != nil {
		return nil
	}
	return tr.Brief(fioInput(r).Application)
}

// captured returns the kernel's trace, nil without one. A result carries it as JSON, with the keys
// of package tracing.
func captured(r *result.Result) (*tracing.Trace, error) {
	if r.DeviceLatencyTracing == nil {
		return nil, nil
	}
	tr := new(tracing.Trace)
	if err := json.Unmarshal(r.DeviceLatencyTracing, tr); err != nil {
		return nil, fmt.Errorf("device_latency_tracing of %s: %w", r.Benchmark, err)
	}
	// A result is a file that people may edit: the trace has to be consistent.
	for _, h := range tr.All() {
		if err := h.Check(); err != nil {
			return nil, fmt.Errorf("device_latency_tracing of %s, %s: %w", r.Benchmark, h.Key, err)
		}
	}
	return tr, nil
}
