package result

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result/python"
	"kvbench/kvbench/units"
)

// Checkpoint is what became of checkpoints that were written, or read: MLPerf Storage's workload.
// A result holds one direction; that of the reads knows of the writes before it when they ended.
type Checkpoint struct {
	Model        string `json:"model" merge:"same"` // llama3-8b …; stream: one file of no model
	Scale        int64  `json:"scale" merge:"same"` // files are 1/scale of their size
	Accelerators int    `json:"accelerators" merge:"same"`
	Mode         string `json:"mode" merge:"same"` // full, or subset: accelerators of the model are missing
	Zero         int    `json:"zero" merge:"same"`
	Tensor       int    `json:"tensor" merge:"same"`
	Pipeline     int    `json:"pipeline" merge:"same"`
	Data         int    `json:"data" merge:"same"`
	Files        int    `json:"files" merge:"same"` // of one checkpoint
	Bytes        int64  `json:"bytes" merge:"same"`
	// Of several clients, each has those of its Count accelerators from First on in its own result:
	// their bytes, and all bytes of the device. Null where it is all of them.
	First *int `json:"first_accelerator,omitempty" merge:"drop"`
	Count *int `json:"client_accelerators,omitempty" merge:"drop"`

	Writes []CheckpointRun `json:"writes,omitempty" merge:"-"`
	Reads  []CheckpointRun `json:"reads,omitempty" merge:"-"`

	// FlushP95NS is that of a file's fsync, null with too few files; FlushMaxNS the longest.
	FlushP95NS *int64 `json:"file_flush_p95_ns,omitempty" merge:"-"`
	FlushMaxNS *int64 `json:"file_flush_max_ns,omitempty" merge:"-"`

	// Between writing and reading: how the page cache was emptied and how long that took, and how
	// much else passed from the end of the last write to the begin of the first read, by the wall
	// clock: negative where clocks differ. Recovery is both and the first read. Total is from the
	// begin of the first write to the end of the last read, by the wall clock, too.
	Flush      string `json:"flush,omitempty" merge:"same"` // none, fadvise, drop
	FlushNS    *int64 `json:"flush_ns,omitempty" merge:"max"`
	GapNS      *int64 `json:"gap_ns,omitempty" merge:"max"`
	RecoveryNS *int64 `json:"recovery_ns,omitempty" merge:"-"`
	TotalNS    *int64 `json:"total_ns,omitempty" merge:"max"`

	Stages *Pipeline        `json:"stages,omitempty"` // of writes
	Rules  []CheckpointRule `json:"rules" merge:"-"`
	Notes  []string         `json:"notes,omitempty" merge:"same"`
}

// CheckpointRun is one checkpoint written or read by all accelerators.
type CheckpointRun struct {
	Index int    `json:"index" merge:"same"` // of the checkpoint, from 1
	Start string `json:"start" merge:"-"`    // RFC 3339, UTC
	// DurationNS is that of the slowest accelerator, from the common start to its last file
	// durable, or read; MinNS that of the fastest. Slowest is its number, the first of several.
	DurationNS int64 `json:"duration_ns" merge:"max"`
	MinNS      int64 `json:"min_ns" merge:"min"`
	Slowest    int   `json:"slowest" merge:"-"`
	Bytes      int64 `json:"bytes" merge:"sum"`
	// FlushNS is the longest fsync of one of the files that were written, or completion of an
	// object; null of reads, and of objects that have none.
	FlushNS *int64 `json:"flush_ns" merge:"max"`
	// CachedBytes of its files lay in the page cache before it was read. DeviceBytes is what the
	// device read or wrote meanwhile, for any process. Null: unknown.
	CachedBytes   *int64 `json:"cached_before_bytes" merge:"sum"`
	DeviceBytes   *int64 `json:"device_bytes" merge:"-"`
	Cold          *bool  `json:"cold" merge:"-"`
	VerifiedBytes int64  `json:"verified_bytes" merge:"sum"`
}

// NewCheckpointRun is one of which each accelerator is known how long it took, from the number of
// the first one on.
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

// CheckpointFlushes is the name of the histogram of how long fsync of a file took, ns.
const CheckpointFlushes = "checkpoint_file_flush"

// Flushes notes how long flushes took.
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

// Rate is the checkpoint's bytes ÷ the time of the slowest accelerator, in bytes/s: what the rules
// call its throughput.
func (r CheckpointRun) Rate() float64 {
	return float64(r.Bytes) / time.Duration(r.DurationNS).Seconds()
}

// Cold limits: as much of the files may lie in the page cache, and so little of the bytes come from
// the device, that the read still counts as one of the device.
const (
	coldCached = 0.01
	coldDevice = 0.95
)

// JudgeCold says whether the read came from the device, as far as anybody can know.
func (r *CheckpointRun) JudgeCold() {
	r.Cold = nil
	if r.CachedBytes == nil && r.DeviceBytes == nil {
		return
	}
	cold := r.CachedBytes == nil || float64(*r.CachedBytes) <= coldCached*float64(r.Bytes)
	r.Cold = new(cold && (r.DeviceBytes == nil ||
		float64(*r.DeviceBytes) >= coldDevice*float64(r.Bytes)))
}

// RuleCold is the name of the rule about where reads come from.
const RuleCold = "cold reads"

// ColdReads reports whether all reads came from the device, nil where it is unknown: one that did
// not is enough to say no. Found is the same in words.
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
	// Some of them cold and others not known is not known.
	switch {
	case warm > 0:
		return new(false), fmt.Sprintf("%d of %d came from memory", warm, len(runs))
	case cold > 0 && cold == len(runs):
		return new(true), "all cold"
	}
	return nil, "not provable: neither the page cache nor the device can be asked"
}

// CheckpointRuns are checkpoints in numbers: means and population standard deviations, as the
// reference's summary has them.
type CheckpointRuns struct {
	Count                      int
	Duration, DurationStdev    float64 // ns
	Rate, RateStdev, RateWorst float64 // bytes/s
}

// Reading are the reads whose numbers go together. Those that came from memory are never averaged
// with others: they come separately, unless all did.
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

// Sum is what some checkpoints say together, the zero value of none.
func Sum(runs []CheckpointRun) (s CheckpointRuns) {
	if s.Count = len(runs); s.Count == 0 {
		return s
	}
	n := float64(s.Count)
	s.RateWorst = math.Inf(1)
	for _, r := range runs {
		s.Duration += float64(r.DurationNS) / n
		s.Rate += r.Rate() / n
		s.RateWorst = min(s.RateWorst, r.Rate())
	}
	for _, r := range runs {
		s.DurationStdev += math.Pow(float64(r.DurationNS)-s.Duration, 2) / n
		s.RateStdev += math.Pow(r.Rate()-s.Rate, 2) / n
	}
	s.DurationStdev, s.RateStdev = math.Sqrt(s.DurationStdev), math.Sqrt(s.RateStdev)
	return s
}

// Rates are those of the rules in bytes/s, 0 of a direction without a checkpoint. Bytes ÷ window is
// another rate: the window has the pauses between checkpoints.
func (c *Checkpoint) Rates() (read, write float64) {
	reads, _ := c.Reading()
	return Sum(reads).Rate, Sum(c.Writes).Rate
}

// Pipeline is how the bytes of checkpoints came to the storage: producers fill buffers, writers
// write them. Walls are times in which at least one did, waits those of one thread, on average.
type Pipeline struct {
	ChunkBytes int64 `json:"chunk_bytes" merge:"same"`
	Buffers    int   `json:"buffers" merge:"same"` // of each accelerator
	Producers  int   `json:"producers" merge:"sum"`
	Writers    int   `json:"writers" merge:"sum"` // of all accelerators
	Chunks     int64 `json:"chunks" merge:"sum"`

	GenerationNS     int64 `json:"generation_ns" merge:"sum"` // in producers, summed
	GenerationWallNS int64 `json:"generation_wall_ns" merge:"max"`
	IONS             int64 `json:"io_ns" merge:"max"`          // writes in flight, flushes, and making files
	CloseNS          int64 `json:"close_ns" merge:"max"`       // flushes
	ProducerWaitNS   int64 `json:"producer_wait_ns" merge:"-"` // for a free buffer
	WriterWaitNS     int64 `json:"writer_wait_ns" merge:"-"`   // for a full one
	TotalNS          int64 `json:"total_ns" merge:"-"`         // of the checkpoints

	// GenerationRate is what the producers make when nothing holds them up, in bytes/s; Ratio how
	// many times the storage's that is (2 and more are wanted, or the storage is not what was
	// measured). Overhead is the share of the time in which neither of the two went on (below 0.1).
	GenerationRate *float64 `json:"generation_bytes_per_s" merge:"any"`
	Ratio          *float64 `json:"throughput_ratio" merge:"-"`
	Overhead       *float64 `json:"overhead" merge:"-"`
	Bottleneck     string   `json:"bottleneck" merge:"-"`
}

// What a pipeline can be limited by, in the reference's words.
const (
	BottleneckGeneration = "Generation" // writers waited longer than producers
	BottleneckIO         = "I/O"
)

// Derive makes the ratios.
func (p *Pipeline) Derive() {
	alone := float64(p.GenerationNS) / float64(max(1, p.Producers))
	p.Ratio = units.Ratio(float64(p.IONS), alone)
	p.Overhead = units.Ratio(float64(p.TotalNS-max(p.GenerationWallNS, p.IONS)), p.TotalNS)
	if p.Bottleneck = BottleneckIO; p.WriterWaitNS > p.ProducerWaitNS {
		p.Bottleneck = BottleneckGeneration
	}
}

// CheckpointRule is something that the closed division requires. Ok is null where it is unknown.
type CheckpointRule struct {
	Name     string `json:"name"`
	Required string `json:"required"`
	Found    string `json:"found"`
	OK       *bool  `json:"ok"`
}

// Broken says which rules of the closed division were not kept, "" if all were, as far as anybody
// can know, or c is nil.
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

// DeviceRatio is the device's bytes ÷ those of the reads whose numbers go together, null where one
// of them is not known, and for a part of a checkpoint: the device has read for all clients.
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

// metrics puts a checkpoint's numbers on the line: of one direction.
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

// Streamed reports whether it was one file of no model.
func (c *Checkpoint) Streamed() bool { return c.Model == "stream" }

// StreamSummary is how the bytes of a stream came to the storage, in the keys of the reference's
// streaming checkpoint; nil where none was written.
func (c *Checkpoint) StreamSummary() *python.StreamSummary {
	p := c.Stages
	if !c.Streamed() || p == nil || len(c.Writes) == 0 {
		return nil
	}
	written := float64(c.Bytes) * float64(len(c.Writes))
	alone := float64(p.GenerationNS) / 1e9 / float64(max(1, p.Producers))
	s := &python.StreamSummary{GenTime: alone, IOTime: float64(p.IONS) / 1e9,
		CloseTime: float64(p.CloseNS) / 1e9, TotalTime: float64(p.TotalNS) / 1e9,
		TotalBytes: int64(written), Chunks: p.Chunks, ThroughputRatio: p.Ratio,
		Bottleneck: p.Bottleneck, Notice: python.StreamNotice,
		GenGB: units.Ratio(written/float64(units.GiB), alone),
		IOGB:  units.Ratio(written/float64(units.GiB), float64(p.IONS)/1e9)}
	if p.Overhead != nil {
		s.OverheadPercent = new(100 * *p.Overhead)
	}
	return s
}

// CheckpointSummary is the trial's checkpoints in the keys of the reference's summary.
func (r *Result) CheckpointSummary() python.CheckpointSummary {
	c := r.Checkpoint
	gib := func(n float64) float64 { return n / float64(units.GiB) }
	s := python.CheckpointSummary{NumAccelerators: c.Accelerators, NumHosts: 1, Start: r.StartTime,
		Metric: python.CheckpointMetric{SizeGB: gib(float64(c.Bytes))},
		Notice: python.CheckpointNotice}
	if r.Clients != nil {
		s.NumHosts = max(1, len(r.Clients.Hosts))
	}
	// Where hosts differ the result has no memory of theirs, and neither has this.
	for range s.NumHosts {
		s.HostMemoryGB = append(s.HostMemoryGB, gib(float64(r.Environment.MemoryBytes)))
	}
	if begun, err := time.Parse(time.RFC3339Nano, r.StartTime); err == nil {
		s.End = begun.Add(time.Duration(r.WindowNS)).Format(time.RFC3339Nano)
	}
	if w := Sum(c.Writes); w.Count > 0 {
		s.Metric.Saved = &python.Saved{IOMean: gib(w.Rate), IOStdev: gib(w.RateStdev),
			DurationMean: w.Duration / 1e9, DurationStdev: w.DurationStdev / 1e9}
	}
	reads, _ := c.Reading()
	if l := Sum(reads); l.Count > 0 {
		s.Metric.Loaded = &python.Loaded{IOMean: gib(l.Rate), IOStdev: gib(l.RateStdev),
			DurationMean: l.Duration / 1e9, DurationStdev: l.DurationStdev / 1e9}
	}
	return s
}
