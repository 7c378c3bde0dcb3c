package sizing

import (
	"errors"
	"fmt"
	"io"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tools/command"
	"kvbench/tools/load"
)

// Device is kvreport device.
var Device = command.Command{
	Name:  "device",
	Args:  "IN…",
	Short: "the -simulate-device text of a drive, from runs of StorageCeiling and Tier on it",
	Long: `
Derives the parameters of the device model from plain runs on a drive and prints them as -simulate-device wants them, so that
other loads can be predicted in virtual time. The reasons, one line for each parameter, go to standard error.

  read, write      the most bytes/s that a run moved in that direction
  slice            how long the drive waits after a burst, where single requests mostly take less than their share of the
                   bandwidth allows: a limiter hands it out in slices of time (Tier/…/size=1MiB with one request at a time)
  duplex           whether StorageCeiling/op=mixed moved what two media would, or one
  read-latency, …  n·c ÷ X - c ÷ bandwidth, the least of all runs (n outstanding requests of c bytes moved X bytes/s: by
                   Little's law the time of one request, without its passing the medium)
  read-iops, …     the most requests/s of any run, where bandwidth and latency would have allowed many more

read and write need one run in each direction with enough outstanding requests (-workers 8 or more), latencies one with
-workers 1 -io-depth 1, IOPS one with a small -chunk-size and many workers. Only the storage tier counts; of several trials the
median. parallelism is left at its default: these runs do not tell it from IOPS.`,
	Example: `
go test ./benchmarks -run '^$' -bench StorageCeiling -workers 16 -division open -benchtime 10s -cache-dir /mnt/nvme > drive.txt
go test ./benchmarks -run '^$' -bench StorageCeiling -workers 16 -chunk-size 16KiB -storage-capacity-gb 1 -division open -benchtime 10s -cache-dir /mnt/nvme >> drive.txt
go test ./benchmarks -run '^$' -bench Tier/tier=storage -workers 1 -io-depth 1 -division open -benchtime 10s -cache-dir /mnt/nvme >> drive.txt
go test ./benchmarks -run '^$' -bench Synthetic -num-users 40 -division open -simulate-device "$(go tool kvreport device drive.txt)"`,
	Run: device,
}

func device(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	in, err := command.Parse(command.Flags("device"), args)
	if err != nil {
		return command.Fail(stderr, "device", err)
	}
	var runs []measured
	warn := func(err error) { fmt.Fprintf(stderr, "kvreport device: %v\n", err) }
	_, err = load.Each(in, load.Options{Stdin: stdin, Warn: warn}, func(rec *load.Record) error {
		if rec.Missing != nil {
			warn(rec.Missing)
		}
		m, ok := read(rec.Result)
		if ok && rec.Result.Harness.Verdict.Kind == result.HarnessLimited {
			warn(fmt.Errorf("%s was limited by this machine, not by the drive: %s", rec.Name, rec.Result.Harness.Verdict.Reason))
		}
		if ok {
			runs = append(runs, m)
		}
		return nil
	})
	if err == nil && len(runs) == 0 {
		err = errors.New("no run of StorageCeiling or Tier/tier=storage in the input, or none whose result JSON is still there")
	}
	var d derived
	if err == nil {
		d, err = derive(runs)
	}
	if err != nil {
		return command.Fail(stderr, "device", err)
	}
	for _, why := range d.reasons {
		fmt.Fprintln(stderr, why)
	}
	fmt.Fprintln(stdout, params.FormatDevice(d.device))
	return command.Done
}

// measured is one plain run on the storage tier.
type measured struct {
	kind        kind
	read, write float64   // bytes/s
	times       []float64 // seconds that one file took: p50, p95, p99, p99.9, as far as they are known
}

// kind is what makes runs trials of the same measurement.
type kind struct {
	name        string // as in the result, without the number of processors
	outstanding int    // requests at a time
	chunk       int64  // bytes of one
	entry       int64  // bytes of a file
}

// read takes from a result what the rules need; false for one of another benchmark, of a simulation, or that failed.
func read(r *result.Result) (measured, bool) {
	if r == nil || r.Status != result.StatusComplete || r.Simulation != nil || (r.Benchmark != "StorageCeiling" && r.Benchmark != "Tier") {
		return measured{}, false
	}
	for _, t := range r.Tiers {
		if t.Level != tiers.Storage.String() || r.IO.ChunkBytes <= 0 {
			continue
		}
		m := measured{kind: kind{name: r.Name, chunk: int64(r.IO.ChunkBytes)}}
		for _, s := range []*int64{r.EntrySizes.Read.Max, r.EntrySizes.Write.Max} {
			if s != nil {
				m.kind.entry = max(m.kind.entry, *s)
			}
		}
		m.kind.outstanding = r.Workload.Workers * r.IO.Depth
		if m.kind.entry > 0 {
			m.kind.chunk = min(m.kind.chunk, m.kind.entry)
			m.kind.outstanding = r.Workload.Workers * min(r.IO.Depth, int((m.kind.entry+m.kind.chunk-1)/m.kind.chunk))
		}
		if t.Read.BytesPerSecond != nil {
			m.read = *t.Read.BytesPerSecond
		}
		if t.Write.BytesPerSecond != nil {
			m.write = *t.Write.BytesPerSecond
		}
		op := r.Latency.Levels[t.Level].Read.Device
		if m.read == 0 {
			op = r.Latency.Levels[t.Level].Write.Device
		}
		for _, p := range []*int64{op.P50, op.P95, op.P99, op.P999} {
			if p != nil {
				m.times = append(m.times, float64(*p)/1e9)
			}
		}
		return m, m.read > 0 || m.write > 0
	}
	return measured{}, false
}
