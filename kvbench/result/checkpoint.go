package result

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/units"
)

// Checkpoint is the result of MLPerf Storage's checkpoint workload. A result has one direction,
// writes or reads. A result of reads also has the time between the last write and the first read.
type Checkpoint struct {
	Model        string `json:"model" merge:"same"` // llama3-8b …; stream: one file, no model
	Scale        int64  `json:"scale" merge:"same"` // files are 1/scale of their size
	Accelerators int    `json:"accelerators" merge:"same"`
	Mode         string `json:"mode" merge:"same"` // full; subset: fewer accelerators than the model has
	Zero         int    `json:"zero" merge:"same"`
	Tensor       int    `json:"tensor" merge:"same"`
	Pipeline     int    `json:"pipeline" merge:"same"`
	Data         int    `json:"data" merge:"same"`
	Files        int    `json:"files" merge:"same"` // per checkpoint
	Bytes        int64  `json:"bytes" merge:"same"`
	// With several clients, the result of a client has the bytes of Count accelerators from number
	// First on, but all bytes of the device. Null: the result has all accelerators.
	First *int `json:"first_accelerator,omitempty" merge:"drop"`
	Count *int `json:"client_accelerators,omitempty" merge:"drop"`

	Writes []CheckpointRun `json:"writes,omitempty" merge:"-"`
	Reads  []CheckpointRun `json:"reads,omitempty" merge:"-"`

	// FlushP95NS is the p95 latency of a file's fsync, null with too few files. FlushMaxNS is the
	// maximum.
	FlushP95NS *int64 `json:"file_flush_p95_ns,omitempty" merge:"-"`
	FlushMaxNS *int64 `json:"file_flush_max_ns,omitempty" merge:"-"`

	// Flush is how the page cache was emptied between writes and reads, FlushNS how long that took.
	// GapNS is the rest of the time between the end of the last write and the begin of the first
	// read, by the wall clock; it is negative if clocks differ. RecoveryNS is FlushNS + GapNS + the
	// first read. TotalNS is from the begin of the first write to the end of the last read, by the
	// wall clock.
	Flush      string `json:"flush,omitempty" merge:"same"` // none, fadvise, drop
	FlushNS    *int64 `json:"flush_ns,omitempty" merge:"max"`
	GapNS      *int64 `json:"gap_ns,omitempty" merge:"max"`
	RecoveryNS *int64 `json:"recovery_ns,omitempty" merge:"-"`
	TotalNS    *int64 `json:"total_ns,omitempty" merge:"max"`

	Stages *Pipeline        `json:"stages,omitempty"` // of writes
	Rules  []CheckpointRule `json:"rules" merge:"-"`
	Notes  []string         `json:"notes,omitempty" merge:"same"`
}

// CheckpointRun is a write or a read of one checkpoint by all accelerators.
type CheckpointRun struct {
	Index int    `json:"index" merge:"same"` // of the checkpoint, from 1
	Start string `json:"start" merge:"-"`    // RFC 3339, UTC
	// DurationNS is the time of the slowest accelerator, from the common start until its last file
	// is durable or read. MinNS is the time of the fastest accelerator. Slowest is the number of
	// the slowest accelerator, the lowest of equals.
	DurationNS int64 `json:"duration_ns" merge:"max"`
	MinNS      int64 `json:"min_ns" merge:"min"`
	Slowest    int   `json:"slowest" merge:"-"`
	Bytes      int64 `json:"bytes" merge:"sum"`
	// FlushNS is the longest fsync of a written file, or the longest completion of an object
	// upload. Null for reads, and for objects without a completion.
	FlushNS *int64 `json:"flush_ns" merge:"max"`
	// CachedBytes is how many bytes of the files were in the page cache before the read.
	// DeviceBytes is how many bytes the device read or wrote during this run, for all processes.
	// Null: unknown.
	CachedBytes   *int64 `json:"cached_before_bytes" merge:"sum"`
	DeviceBytes   *int64 `json:"device_bytes" merge:"-"`
	Cold          *bool  `json:"cold" merge:"-"`
	VerifiedBytes int64  `json:"verified_bytes" merge:"sum"`
}

// NewCheckpointRun returns a run of which accelerator first+i took took[i].
func NewCheckpointRun(index int, start time.Time, bytes int64, first int, took []time.Duration,
) CheckpointRun {
	slowest := 0
	for i, d := range took {
		if d > took[slowest] {
			slowest = i
		}
	}
	return CheckpointRun{Index: index, Start: start.UTC().Format(time.RFC3339Nano),
		DurationNS: int64(took[slowest]), MinNS: int64(slices.Min(took)), Slowest: first + slowest,
		Bytes: bytes}
}

// CheckpointFlushes is the name of the histogram of the latencies of a file's fsync, in ns.
const CheckpointFlushes = "checkpoint_file_flush"

// Flushes sets FlushP95NS and FlushMaxNS from the histogram of flushes, which may be nil.
func (c *Checkpoint) Flushes(h *Histogram) {
	if h == nil || h.Count() == 0 {
		return
	}
	p95, _ := h.Percentile(0.95)
	longest, _ := h.Percentile(1)
	c.FlushMaxNS = &longest
	if Supported(0.95, h.Count()) {
		c.FlushP95NS = &p95
	}
}

// Rate returns the checkpoint's bytes ÷ the time of the slowest accelerator, in bytes/s: the
// throughput of MLPerf Storage's rules.
func (r CheckpointRun) Rate() float64 {
	return float64(r.Bytes) / time.Duration(r.DurationNS).Seconds()
}

// A read is cold if at most coldCached of its bytes were in the page cache, and at least coldDevice
// of its bytes came from the device.
const (
	coldCached = 0.01
	coldDevice = 0.95
)

// JudgeCold sets Cold from CachedBytes and DeviceBytes. Cold is nil if both are unknown.
func (r *CheckpointRun) JudgeCold() {
	r.Cold = nil
	if r.CachedBytes == nil && r.DeviceBytes == nil {
		return
	}
	cold := r.CachedBytes == nil || float64(*r.CachedBytes) <= coldCached*float64(r.Bytes)
	r.Cold = new(cold && (r.DeviceBytes == nil ||
		float64(*r.DeviceBytes) >= coldDevice*float64(r.Bytes)))
}

// RuleCold is the name of the rule that reads are cold.
const RuleCold = "cold reads"

// ColdReads reports whether all runs are cold: false if one is not, else nil if one is unknown.
// found is the answer as text.
func ColdReads(runs []CheckpointRun) (ok *bool, found string) {
	cold, warm := 0, 0
	for _, r := range runs {
		switch {
		case r.Cold == nil:
		case *r.Cold:
			cold++
		default:
			warm++
		}
	}
	// Cold and unknown reads together are unknown.
	switch {
	case warm > 0:
		return new(false), fmt.Sprintf("%d of %d came from memory", warm, len(runs))
	case cold > 0 && cold == len(runs):
		return new(true), "all cold"
	}
	return nil, "not provable: neither the page cache nor the device can be asked"
}

// CheckpointRuns has the means and population standard deviations over checkpoints, as DLIO's
// summary has them.
type CheckpointRuns struct {
	Count                      int
	Duration, DurationStdev    float64 // ns
	Rate, RateStdev, RateWorst float64 // bytes/s
}

// Reading returns the reads to average, and apart from these the reads that came from memory (not
// cold). If all reads came from memory, runs has them.
func (c *Checkpoint) Reading() (runs, warm []CheckpointRun) {
	for _, r := range c.Reads {
		if r.Cold != nil && !*r.Cold {
			warm = append(warm, r)
		} else {
			runs = append(runs, r)
		}
	}
	if len(runs) == 0 {
		return warm, nil
	}
	return runs, warm
}

// Sum returns the means and deviations over runs, zero without runs.
func Sum(runs []CheckpointRun) (s CheckpointRuns) {
	if s.Count = len(runs); s.Count == 0 {
		return s
	}
	var took, rates []float64
	for _, r := range runs {
		took, rates = append(took, float64(r.DurationNS)), append(rates, r.Rate())
	}
	s.Duration, s.DurationStdev = stat.PopMeanStdDev(took, nil)
	s.Rate, s.RateStdev = stat.PopMeanStdDev(rates, nil)
	s.RateWorst = slices.Min(rates)
	return s
}

// Rates returns the mean throughputs of the rules in bytes/s, 0 for a direction without
// checkpoints. They differ from bytes ÷ window, because the window has the pauses between
// checkpoints.
func (c *Checkpoint) Rates() (read, write float64) {
	reads, _ := c.Reading()
	return Sum(reads).Rate, Sum(c.Writes).Rate
}

// setRates sets the rates of the tiers to those of Rates, and the mean number in flight to that of the
// checkpoints' time, without the pauses. A direction without whole checkpoints has no rate.
func (c *Checkpoint) setRates(all []Tier) {
	if c == nil {
		return
	}
	read, write := c.Rates()
	for i := range all {
		for _, d := range []struct {
			to   *TierTraffic
			rate float64
			runs []CheckpointRun
		}{{&all[i].Read, read, c.Reads}, {&all[i].Write, write, c.Writes}} {
			var took int64
			for _, run := range d.runs {
				took += run.DurationNS
			}
			d.to.BytesPerSecond, d.to.MeanInFlight = nil, units.Ratio(d.to.InFlightNS, took)
			if took > 0 {
				d.to.BytesPerSecond = new(d.rate)
			}
		}
	}
}

// Pipeline describes how checkpoints were written: producers fill buffers, and writers write the
// buffers. GenerationWallNS and IONS are times in which at least one thread worked. Waits are means
// per thread.
type Pipeline struct {
	ChunkBytes  int64 `json:"chunk_bytes" merge:"same"`
	Buffers     int   `json:"buffers" merge:"max"`      // of the accelerator with most
	BufferBytes int64 `json:"buffer_bytes" merge:"sum"` // of all buffers
	Producers   int   `json:"producers" merge:"sum"`
	Writers     int   `json:"writers" merge:"sum"` // of all accelerators
	Chunks      int64 `json:"chunks" merge:"sum"`
	// Each checkpoint was generated before its time started: no other time has the generation.
	Before bool `json:"generated_before" merge:"same"`

	GenerationNS     int64 `json:"generation_ns" merge:"sum"` // in producers, summed
	GenerationWallNS int64 `json:"generation_wall_ns" merge:"max"`
	IONS             int64 `json:"io_ns" merge:"max"`          // writes, flushes, file creation
	CloseNS          int64 `json:"close_ns" merge:"max"`       // flushes
	ProducerWaitNS   int64 `json:"producer_wait_ns" merge:"-"` // for a free buffer
	WriterWaitNS     int64 `json:"writer_wait_ns" merge:"-"`   // for a full buffer
	TotalNS          int64 `json:"total_ns" merge:"-"`         // of the checkpoints

	// GenerationRate is the rate of the producers without waits, in bytes/s. Ratio is that rate ÷
	// the rate of the storage; it should be at least 2, so that the storage is the limit. Overhead
	// is the share of the time in which neither producers nor writers worked; it should be below
	// 0.1.
	GenerationRate *float64 `json:"generation_bytes_per_s" merge:"any"`
	Ratio          *float64 `json:"throughput_ratio" merge:"-"`
	Overhead       *float64 `json:"overhead" merge:"-"`
	Bottleneck     string   `json:"bottleneck" merge:"-"`
}

// Values of Pipeline.Bottleneck, in the words of the reference.
const (
	BottleneckGeneration = "Generation" // writers waited longer than producers
	BottleneckIO         = "I/O"
)

// Derive computes Ratio, Overhead and Bottleneck.
func (p *Pipeline) Derive() {
	alone := float64(p.GenerationNS) / float64(max(1, p.Producers))
	p.Ratio = units.Ratio(float64(p.IONS), alone)
	busy := max(p.GenerationWallNS, p.IONS)
	if p.Before {
		busy = p.IONS
	}
	p.Overhead = units.Ratio(float64(p.TotalNS-busy), p.TotalNS)
	if p.Bottleneck = BottleneckIO; !p.Before && p.WriterWaitNS > p.ProducerWaitNS {
		p.Bottleneck = BottleneckGeneration
	}
}

// CheckpointRule is a rule of the closed division, and whether the run meets it. OK is null if
// unknown.
type CheckpointRule struct {
	Name     string `json:"name"`
	Required string `json:"required"`
	Found    string `json:"found"`
	OK       *bool  `json:"ok"`
}

// Broken returns the rules of the closed division that the run does not meet, as text. It returns
// "" if there are none or c is nil. Unknown rules do not count.
func (c *Checkpoint) Broken() string {
	if c == nil {
		return ""
	}
	var list []string
	for _, r := range c.Rules {
		if r.OK != nil && !*r.OK {
			list = append(list, fmt.Sprintf("%s: must be %s, found %s", r.Name, r.Required,
				r.Found))
		}
	}
	return strings.Join(list, "; ")
}

// DeviceRatio returns the device's bytes ÷ the bytes of the reads of Reading. It returns nil if one
// of these is unknown. It also returns nil for a client's part of a checkpoint, because the device
// counts the bytes of all clients.
func (c *Checkpoint) DeviceRatio() *float64 {
	if c.Count != nil {
		return nil
	}
	var device, bytes int64
	runs, _ := c.Reading()
	for _, r := range runs {
		if r.DeviceBytes == nil {
			return nil
		}
		device, bytes = device+*r.DeviceBytes, bytes+r.Bytes
	}
	return units.Ratio(device, bytes)
}

// metrics adds the values of the benchmark line, for the direction that c has.
func (c *Checkpoint) metrics(add func(unit string, v *float64)) {
	reads, _ := c.Reading()
	for _, d := range []struct {
		name string
		runs []CheckpointRun
	}{{"write", c.Writes}, {"read", reads}} {
		if len(d.runs) == 0 {
			continue
		}
		s := Sum(d.runs)
		add("ns/op", &s.Duration)
		add(d.name+"-B/s", &s.Rate)
		add("slowest-"+d.name+"-B/s", &s.RateWorst)
	}
	add("flush-p95-ns", number(c.FlushP95NS))
}

// Streamed reports whether the checkpoint was a stream: one file without a model.
func (c *Checkpoint) Streamed() bool { return c.Model == "stream" }

// StreamSummary returns the pipeline of a stream with the keys of the reference's streaming
// checkpoint: times in seconds, keys in gbps in GiB/s, gen_time of one producer without waits. What was
// generated before adds to total_time. It returns nil if c is no written stream.
func (c *Checkpoint) StreamSummary() map[string]any {
	p := c.Stages
	if !c.Streamed() || p == nil || len(c.Writes) == 0 {
		return nil
	}
	written := c.Bytes * int64(len(c.Writes))
	alone, total := float64(p.GenerationNS)/1e9/float64(max(1, p.Producers)), p.TotalNS
	if p.Before {
		total += p.GenerationWallNS
	}
	s := map[string]any{
		"gen_time":              alone,
		"io_time":               float64(p.IONS) / 1e9,
		"close_time":            float64(p.CloseNS) / 1e9,
		"total_time":            float64(total) / 1e9,
		"total_bytes":           written,
		"chunks":                p.Chunks,
		"gen_throughput_gbps":   units.Ratio(gib(written), alone),
		"io_throughput_gbps":    units.Ratio(gib(written), float64(p.IONS)/1e9),
		"throughput_ratio":      p.Ratio,
		"pipeline_overhead_pct": nil,
		"bottleneck":            p.Bottleneck,
		"notice": "made by kvbench in the form of the reference's streaming checkpoint; " +
			"gbps are GiB/s",
	}
	if p.Overhead != nil {
		s["pipeline_overhead_pct"] = 100 * *p.Overhead
	}
	return s
}

// CheckpointSummary returns the trial's checkpoints with the keys of the summary that DLIO, the
// engine of MLPerf Storage's checkpoint workload, writes at the end of a run (dlio_benchmark,
// utils/statscounter.py), as far as DLIO's report reads them. GB is GiB. Means and population
// standard deviations are over checkpoints: the mean rate is not size ÷ mean duration. A direction
// without checkpoints has no keys. r.Checkpoint must not be nil.
func (r *Result) CheckpointSummary() map[string]any {
	c, hosts, end := r.Checkpoint, 1, ""
	if r.Clients != nil {
		hosts = max(1, len(r.Clients.Hosts))
	}
	if begun, err := time.Parse(time.RFC3339Nano, r.StartTime); err == nil {
		end = begun.Add(time.Duration(r.WindowNS)).Format(time.RFC3339Nano)
	}
	metric := map[string]any{"checkpoint_size_GB": gib(c.Bytes)}
	reads, _ := c.Reading()
	for name, runs := range map[string][]CheckpointRun{"save": c.Writes, "load": reads} {
		if s := Sum(runs); s.Count > 0 {
			metric[name+"_checkpoint_io_mean_GB_per_second"] = gib(s.Rate)
			metric[name+"_checkpoint_io_stdev_GB_per_second"] = gib(s.RateStdev)
			metric[name+"_checkpoint_duration_mean_seconds"] = s.Duration / 1e9
			metric[name+"_checkpoint_duration_stdev_seconds"] = s.DurationStdev / 1e9
		}
	}
	return map[string]any{
		"num_accelerators": c.Accelerators,
		"num_hosts":        hosts,
		// If hosts differ in memory, a merged result has no memory size, and the list has zeros.
		"host_memory_GB": slices.Repeat([]float64{gib(r.Environment.MemoryBytes)}, hosts),
		"start":          r.StartTime,
		"end":            end,
		"metric":         metric,
		"notice":         "made by kvbench in the form of DLIO's summary.json: no MLPerf result",
	}
}
