package sizing

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
)

// Device derives the parameters of the device model from plain I/O runs on one drive, with a reason for
// each. It passes doubts to warn. Runs that are not of one drive are an error that names all of them.
func Device(in []string, stdin io.Reader, warn func(error)) (*Drive, error) {
	records, _, err := load.All(in, load.Options{Stdin: stdin, Warn: warn, Trials: true})
	if err != nil {
		return nil, err
	}
	var runs []measured
	used := drives{places: map[string]map[string]string{}}
	for _, rec := range records {
		if rec.Missing != "" {
			warn(errors.New(rec.Missing))
		}
		m, ok := read(rec.Result)
		if !ok {
			continue
		}
		if v := rec.Result.Harness.Verdict; v.Kind == result.CPULimited {
			warn(fmt.Errorf("%s was limited by this machine, not by the drive: %s", rec.Name,
				v.Reason))
		}
		// The ranks of one host share its drive: the sum of their rates is the drive's rate. Ranks of
		// several hosts have several drives.
		if e := rec.Result.Environment; len(rec.Ranks) > 1 && e.Hostname == "" {
			warn(fmt.Errorf("%s was left out: its ranks ran on several hosts, which have not one "+
				"drive", rec.Name))
			continue
		}
		used.add(rec.Name, rec.Result)
		runs = append(runs, m)
	}
	err = used.refuse()
	if err == nil && len(runs) == 0 {
		err = errors.New("no run of StorageCeiling or Tier/tier=storage in the input, or none " +
			"whose result JSON is still there")
	}
	if err != nil {
		return nil, err
	}
	d, err := derive(runs)
	m := d.device
	return &Drive{params.FormatDevice(m), m.Read, m.Write, m.ReadIOPS, m.WriteIOPS,
		int64(m.ReadLatency), int64(m.WriteLatency), m.Parallelism, m.Duplex, int64(m.Slice),
		d.reasons}, err
}

// Drive is the device model of a drive. Rates are in bytes/s and requests/s, times in ns. IOPS of 0 are no
// limit.
type Drive struct {
	SimulateDevice string   `json:"simulate_device"` // the value of -simulate-device
	ReadRate       float64  `json:"read_bytes_per_second"`
	WriteRate      float64  `json:"write_bytes_per_second"`
	ReadIOPS       float64  `json:"read_iops"`
	WriteIOPS      float64  `json:"write_iops"`
	ReadLatencyNS  int64    `json:"read_latency_ns"`
	WriteLatencyNS int64    `json:"write_latency_ns"`
	Parallelism    int      `json:"parallelism"`
	Duplex         bool     `json:"duplex"`
	SliceNS        int64    `json:"slice_ns"`
	Reasons        []string `json:"reasons"` // one per parameter, as text
}

// Text is the value of -simulate-device.
func (d *Drive) Text() string { return d.SimulateDevice + "\n" }

// drives collects the reasons why the runs are not measurements of one drive.
type drives struct {
	refused []error
	places  map[string]map[string]string // kind of place → name of the place → a run on it
}

// add adds the origin of a run, and the reasons against it, such as a cache that served its reads.
func (d *drives) add(run string, r *result.Result) {
	refuse := func(when bool, format string, args ...any) {
		if when {
			d.refused = append(d.refused, fmt.Errorf("%s %s", run, fmt.Sprintf(format, args...)))
		}
	}
	fs, device := r.Environment.Filesystem, r.DeviceCounters
	refuse(r.IO.Mode == "buffered", "was written and read through the page cache (-io buffered): "+
		"its rates are of memory, too")
	refuse(len(r.IO.Roots) > 1, "was spread over %d directories: its rates are of all of their "+
		"drives", len(r.IO.Roots))
	refuse(fs.InMemory, "was on %s, whose files lie in memory", fs.Type)
	refuse(device.ServedFromCache != nil && *device.ServedFromCache, "was served from a cache: "+
		"%s read %.0f%% of its bytes", cmp.Or(device.Device, "the device"),
		100*units.OrZero(device.ReadRatio))
	place := func(kind, name string) {
		if d.places[kind] == nil {
			d.places[kind] = map[string]string{}
		}
		if name != "" {
			d.places[kind][name] = cmp.Or(d.places[kind][name], run)
		}
	}
	place("machines", r.Environment.Hostname)
	place("drives", units.OrZero(r.Environment.Device).Name)
	place("filesystems", fs.Type)
}

// refuse returns why the runs are not measurements of one drive, nil if they are.
func (d *drives) refuse() error {
	errs := d.refused
	for _, kind := range slices.Sorted(maps.Keys(d.places)) {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(d.places[kind])) {
			names = append(names, fmt.Sprintf("%s (%s)", name, d.places[kind][name]))
		}
		if len(names) > 1 {
			errs = append(errs, fmt.Errorf("the runs are of different %s: %s", kind,
				strings.Join(names, ", ")))
		}
	}
	return errors.Join(errs...)
}

// measured is a trial of a plain run on the storage tier.
type measured struct {
	kind
	read, write float64 // bytes/s
	// Seconds per file: p50, p95, p99, p99.9, as far as known.
	times []float64
}

// kind is equal for trials of one measurement.
type kind struct {
	name        string // the benchmark's name, without GOMAXPROCS
	outstanding int    // requests in flight
	chunk       int64  // bytes per request
	entry       int64  // bytes per file
	// A sweep searched the number of requests in flight and so the file size. Each trial has its own,
	// but all are trials of one measurement.
	found bool
}

// trial returns the kind without the values that a sweep found, as a map key.
func (k kind) trial() kind {
	if k.found {
		k.outstanding, k.entry = 0, 0
	}
	return k
}

// read returns the inputs of the rules. ok is false for another benchmark, a simulation and a failed
// trial.
func read(r *result.Result) (m measured, ok bool) {
	if r == nil || r.Status != result.StatusComplete || r.Simulation != nil ||
		(r.Benchmark != "StorageCeiling" && r.Benchmark != "Tier") || r.IO.ChunkBytes <= 0 {
		return m, false
	}
	tier := r.Tier("storage")
	if tier.Level == "" || tier.Deleted.Entries > 0 { // deletions slow a run down
		return m, false
	}
	depth, chunk := r.IO.Depth, int64(r.IO.ChunkBytes)
	entry := max(units.OrZero(r.EntrySizes.Read.Max), units.OrZero(r.EntrySizes.Write.Max))
	// workers × depth requests are in flight, but a worker has at most the chunks of one entry.
	if entry > 0 {
		chunk = min(chunk, entry)
		depth = min(depth, int((entry+chunk-1)/chunk))
	}
	m.kind = kind{r.Name, r.Workload.Workers * depth, chunk, entry,
		r.PlainIO != nil && len(r.PlainIO.Sweep) > 0}
	m.read, m.write = units.OrZero(tier.Read.BytesPerSecond), units.OrZero(tier.Write.BytesPerSecond)
	// Times of entries show a limiter: fast ones, and ones that waited.
	l := r.Latency.Levels["storage"]
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
