package sizing

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tools/load"
)

// Device derives the parameters of the device model from plain runs on a drive, as -simulate-device
// wants them, and gives a reason for each. What casts doubt on a run goes to warn.
func Device(in []string, stdin io.Reader, warn func(error)) (text string, reasons []string,
	err error) {
	var runs []measured
	_, err = load.Each(in, load.Options{Stdin: stdin, Warn: warn, Trials: true,
		Formats: &load.Formats{}}, func(rec *load.Record) error {
		if rec.Missing != "" {
			warn(errors.New(rec.Missing))
		}
		m, ok := read(rec.Result)
		if !ok {
			return nil
		}
		if v := rec.Result.Harness.Verdict; v.Kind == result.HarnessLimited {
			warn(fmt.Errorf("%s was limited by this machine, not by the drive: %s", rec.Name,
				v.Reason))
		}
		// Clients of one host load its drive together: their sum is what it does. Those of several
		// hosts have a drive each.
		if e := rec.Result.Environment; len(rec.Ranks) > 1 && e.Hostname == "" {
			warn(fmt.Errorf("%s was left out: its ranks ran on several hosts, which have not one "+
				"drive", rec.Name))
			return nil
		}
		runs = append(runs, m)
		return nil
	})
	if err == nil && len(runs) == 0 {
		err = errors.New("no run of StorageCeiling or Tier/tier=storage in the input, or none " +
			"whose result JSON is still there")
	}
	if err != nil {
		return "", nil, err
	}
	d, err := derive(runs)
	return params.FormatDevice(d.device), d.reasons, err
}

// measured is one plain run on the storage tier, or several trials of one.
type measured struct {
	kind
	read, write float64 // bytes/s
	// seconds that one file took: p50, p95, p99, p99.9, as far as they are known
	times []float64
}

// kind is what makes runs trials of the same measurement.
type kind struct {
	name        string // as in the result, without the number of processors
	outstanding int    // requests at a time
	chunk       int64  // bytes of one
	entry       int64  // bytes of a file
	// A ladder found how many requests at a time there are, and with that the size of the files:
	// each trial has its own, and all are trials of the same all the same.
	found bool
}

// trial is what trials of a kind have in common.
func (k kind) trial() kind {
	if k.found {
		k.outstanding, k.entry = 0, 0
	}
	return k
}

// read takes from a result what the rules need; false for one of another benchmark, of a
// simulation, or that failed.
func read(r *result.Result) (m measured, ok bool) {
	if r == nil || r.Status != result.StatusComplete || r.Simulation != nil ||
		(r.Benchmark != "StorageCeiling" && r.Benchmark != "Tier") || r.IO.ChunkBytes <= 0 {
		return m, false
	}
	i := slices.IndexFunc(r.Tiers, func(t result.Tier) bool {
		return t.Level == tiers.Storage.String()
	})
	if i < 0 || r.Tiers[i].Deleted.Entries > 0 { // what removes is slower than the device
		return m, false
	}
	depth, chunk := r.IO.Depth, int64(r.IO.ChunkBytes)
	entry := max(units.OrZero(r.EntrySizes.Read.Max), units.OrZero(r.EntrySizes.Write.Max))
	// What is outstanding is workers × depth, but no more chunks than an entry has.
	if entry > 0 {
		chunk = min(chunk, entry)
		depth = min(depth, int((entry+chunk-1)/chunk))
	}
	m.kind = kind{r.Name, r.Workload.Workers * depth, chunk, entry,
		r.PlainIO != nil && len(r.PlainIO.Ladder) > 0}
	t, l := r.Tiers[i], r.Latency.Levels[r.Tiers[i].Level]
	m.read, m.write = units.OrZero(t.Read.BytesPerSecond), units.OrZero(t.Write.BytesPerSecond)
	// The times of entries show a limiter's slices: the fast ones and those that had to wait.
	op := l.Read.Device
	if m.read == 0 {
		op = l.Write.Device
	}
	for _, p := range []*int64{op.P50, op.P95, op.P99, op.P999} {
		if p != nil {
			m.times = append(m.times, float64(*p)/1e9)
		}
	}
	return m, m.read > 0 || m.write > 0
}
