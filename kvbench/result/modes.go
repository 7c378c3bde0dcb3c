package result

import (
	"fmt"
	"math"
	"time"

	"kvbench/kvbench/units"
)

// Autoscaler has the rounds and the outcome of an autoscaler. The Python benchmark's autoscaling
// keys are derived from it.
type Autoscaler struct {
	AutoscaleSummary
	History []Round `json:"history"` // the first 4,096 rounds
}

// Actions of a round.
const (
	ScaleHold = "hold"
	ScaleUp   = "scale_up"
	ScaleDown = "scale_down"
	ScaleStop = "stop"
)

// Round is one round of the autoscaler.
type Round struct {
	AtS            float64  `json:"at_s"` // end of the round, from the window's start
	Users          int      `json:"users"`
	Workers        int      `json:"workers"`
	Goroutines     int      `json:"goroutines"` // of the process, without simulated workers
	BytesPerSecond float64  `json:"bytes_per_s"`
	Noise          float64  `json:"noise_bytes_per_s"`       // two standard errors
	ReadP95        *float64 `json:"read_p95_ms_per_100mib"`  // null: nothing was read
	WriteP95       *float64 `json:"write_p95_ms_per_100mib"` //
	Saturation     *float64 `json:"saturation"`              // null: not known yet
	NextUsers      int      `json:"next_users"`              // decided at its end
	Action         string   `json:"action"`                  // hold, scale_up, scale_down, stop
	Decision       string   `json:"decision"`                // in words

	// From the window's start: generated tokens ÷ time, and the p95 latencies of entries of all
	// sizes.
	TokensPerSecond float64  `json:"tokens_per_s"`
	ReadSoFarMS     *float64 `json:"read_p95_so_far_ms"`
	WriteSoFarMS    *float64 `json:"write_p95_so_far_ms"`
}

// AutoscaleSummary is the outcome of an autoscaler.
type AutoscaleSummary struct {
	Mode           string  `json:"mode"`
	InitialUsers   int     `json:"initial_users"`
	FinalUsers     int     `json:"final_users"`
	SustainedUsers int     `json:"sustained_users" line:"sustained-users"` // see sustained
	PeakUsers      int     `json:"peak_users"`                             // maximum
	PeakRate       float64 `json:"peak_bytes_per_s" line:"peak-B/s"`
	SustainedRate  float64 `json:"sustained_tokens_per_s"` // tokens_per_s of the sustained round
	Rounds         int     `json:"rounds"`
	// capacity: throughput stopped growing; qos: the target was reached
	Found bool `json:"found"`
}

// Replay counts the rows of an I/O trace. An executed row counts when it has ended, in the window
// or in the drain after it. Rows that still wait then are not counted.
type Replay struct {
	Rows           int64 `json:"rows" merge:"sum"`            // usable rows read
	Skipped        int64 `json:"skipped" merge:"sum"`         // of other tiers and phases
	Reads          int64 `json:"reads" merge:"sum"`           // executed, as are writes and deletes
	Writes         int64 `json:"writes" merge:"sum"`          //
	Deletes        int64 `json:"deletes" merge:"sum"`         // of delete rows
	EvictedReads   int64 `json:"evicted_reads" merge:"sum"`   // of evicted entries: no I/O
	UnwrittenReads int64 `json:"unwritten_reads" merge:"sum"` // of keys without an earlier write: no I/O
	UnknownDeletes int64 `json:"unknown_deletes" merge:"sum"` // of absent entries
	Overwrites     int64 `json:"overwrites" merge:"sum"`      // writes of existing entries
	TooLarge       int64 `json:"too_large" merge:"sum"`       // writes larger than the tier: no I/O
	Evictions      int64 `json:"evictions" merge:"sum"`       // entries deleted for capacity
	LateNS         int64 `json:"largest_delay_ns" merge:"max"`
}

// BlockCache counts how the cache served a block trace, for requests with a lookup inside the
// window.
type BlockCache struct {
	Requests    int64 `json:"requests" merge:"sum"`
	Blocks      int64 `json:"blocks" merge:"sum"`  // requested
	Hits        int64 `json:"hits" merge:"sum"`    // in the cached prefixes
	Pending     int64 `json:"pending" merge:"sum"` // of the hits: still being written
	Unreachable int64 `json:"kept" merge:"sum"`    // cached, but behind a miss: neither read nor written
	Written     int64 `json:"written" merge:"sum"` // to be written
	// HitRatio is hits ÷ blocks. IdealHitRatio is the hit ratio of an unlimited cache for the same
	// requests. It is null if there were too many distinct blocks to compute it.
	HitRatio      *float64 `json:"hit_ratio" merge:"-" ratio:"Hits/Blocks"`
	IdealHits     *int64   `json:"ideal_hits" merge:"sum"`
	IdealHitRatio *float64 `json:"ideal_hit_ratio" merge:"-" ratio:"IdealHits/Blocks"`
	// PrefixHitRatio is the share of requests whose first block was a hit. TokenHitRatio is
	// hit_tokens ÷ tokens.
	PrefixHitRatio *float64 `json:"prefix_hit_ratio" merge:"drop"`
	TokenHitRatio  *float64 `json:"token_hit_ratio" merge:"-" ratio:"HitTokens/Tokens"`
	Tokens         int64    `json:"tokens" merge:"sum"` // of blocks
	HitTokens      int64    `json:"hit_tokens" merge:"sum"`
	BytesSaved     int64    `json:"bytes_saved" merge:"sum"` // of hits, which are not written again
	// Reads and Writes count the operations that moved blocks, on all tiers. One operation may move
	// several adjacent blocks (see -layout). The sections of tiers have the latency, size and
	// number of these operations.
	Reads  BlockMoves `json:"reads"`
	Writes BlockMoves `json:"writes"`
}

// BlockMoves is a number of operations, and of the blocks that they moved.
type BlockMoves struct {
	Operations int64 `json:"operations" merge:"sum"`
	Blocks     int64 `json:"blocks" merge:"sum"`
}

// Recording compares a run with a recorded run.
type Recording struct {
	Trace          string  `json:"trace"`
	Requests       int64   `json:"requests"` // of the trace
	Malformed      int64   `json:"malformed"`
	Tolerance      float64 `json:"tolerance"`
	HitRate        Check   `json:"hit_rate"`
	ReadWriteRatio Check   `json:"read_write_ratio"`
	Passed         bool    `json:"passed"`

	Stats RecordedStats `json:"stats"` // of the trace
}

// RecordedStats describe the recorded run.
type RecordedStats struct {
	Requests       int64   `json:"total_requests"`
	CacheHitRate   float64 `json:"cache_hit_rate"`
	ReadWriteRatio float64 `json:"read_write_ratio"`
	ContextMean    float64 `json:"context_tokens_mean"`
	GenerationMean float64 `json:"generation_tokens_mean"`
}

// Check compares one number of both runs. If one run does not have the number, difference and
// passed are null.
type Check struct {
	Recorded *float64 `json:"recorded"`
	Measured *float64 `json:"measured"`
	// relative to the recorded number; absolute if that is 0
	Difference *float64 `json:"difference"`
	Passed     *bool    `json:"passed"`
}

// validationTolerance is the largest relative difference that passes.
const validationTolerance = 0.05

// Judge compares the recorded numbers with the measured numbers. The run passes if at least one
// number is known for both runs, and all known numbers pass.
func (v *Recording) Judge(hitRate, readWriteRatio *float64) {
	v.Tolerance = validationTolerance
	v.HitRate = NewCheck(v.HitRate.Recorded, hitRate)
	v.ReadWriteRatio = NewCheck(v.ReadWriteRatio.Recorded, readWriteRatio)
	v.Passed = v.HitRate.Passed != nil || v.ReadWriteRatio.Passed != nil
	for _, c := range []Check{v.HitRate, v.ReadWriteRatio} {
		v.Passed = v.Passed && (c.Passed == nil || *c.Passed)
	}
}

// NewCheck compares one number. nil is unknown.
func NewCheck(recorded, measured *float64) Check {
	c := Check{Recorded: recorded, Measured: measured}
	if recorded == nil || measured == nil {
		return c
	}
	d := *measured - *recorded
	if *recorded != 0 {
		d /= *recorded
	}
	c.Difference, c.Passed = &d, new(math.Abs(d) <= validationTolerance)
	return c
}

// Simulation is the section of a simulated result. No storage was used.
type Simulation struct {
	Notice    string           `json:"notice" merge:"same"`
	Device    *SimulatedDevice `json:"device" merge:"same"` // null: infinitely fast
	TraceRows int64            `json:"io_trace_rows" merge:"sum"`
	WallNS    int64            `json:"wall_ns" merge:"max"`
	// DeviceBusyShare is the share of the window in which the simulated device's medium moved
	// bytes. A full-duplex device has two media, of which this is the busier one.
	DeviceBusyShare *float64 `json:"device_busy_share" merge:"max"`
	// SustainedUsers is how many users the device sustains: the largest n such that the first n
	// users alone do not overload the device, but n + 1 users do. Null if it was not searched: with
	// users that wait for results, requests at a rate, a number of requests, or an autoscaler.
	SustainedUsers *int `json:"sustained_users" merge:"drop"`
	// Outstanding is the mean number of requests that waited or ran in the second half of the
	// window, with all users.
	Outstanding *float64 `json:"outstanding_requests" merge:"sum"`
	// QueueGrowth is the growth of the backlog per second, over the window.
	QueueGrowth *float64 `json:"queue_growth_requests_per_s" merge:"sum"`
}

// Outstanding returns the mean number of requests that waited or ran in the second half of the
// window, from the readings of the timeline. It returns nil without readings.
func (r *Result) Outstanding() *float64 {
	t := r.Timeline
	if t == nil || len(t.Queued) != len(t.InFlight) {
		return nil
	}
	var sum, n int64
	for i := len(t.Queued) / 2; i < len(t.Queued); i++ {
		if t.Queued[i] != nil && t.InFlight[i] != nil {
			sum += *t.Queued[i] + *t.InFlight[i]
			n++
		}
	}
	return units.Ratio(sum, n)
}

// KeptUp reports whether the storage kept up with this number of users: Outstanding is at most
// users. By Little's law a user's request then completes, on average, before the user sends the
// next request. A growing queue exceeds this bound if the window is long enough.
func (r *Result) KeptUp(users int) bool {
	n := r.Outstanding()
	return n != nil && *n <= float64(users)
}

// SimulatedNotice is the notice in every output of a simulation.
const SimulatedNotice = "simulated in virtual time, no storage was touched"

// Modes of the autoscaler.
const (
	AutoscaleQoS      = "qos"      // keep the storage at a target saturation
	AutoscaleCapacity = "capacity" // find the number of users at which throughput stops growing
)

// I/O modes of results without a filesystem: of a simulation, of an object store, and without a storage
// tier.
const (
	IOSimulated = "simulated"
	IOObjects   = "s3"
	IOMemory    = "memory"
)

// SimulatedDevice is the queueing model of the drive in a simulation.
type SimulatedDevice struct {
	Read         float64       `json:"read_bytes_per_s"`
	Write        float64       `json:"write_bytes_per_s"`
	ReadIOPS     float64       `json:"read_iops"`  // requests/s, 0 = unlimited
	WriteIOPS    float64       `json:"write_iops"` //
	ReadLatency  time.Duration `json:"read_latency_ns"`
	WriteLatency time.Duration `json:"write_latency_ns"`
	Parallelism  int           `json:"parallelism"`
	Duplex       bool          `json:"duplex"`
	Slice        time.Duration `json:"slice_ns"` // 0: the medium serves requests one by one
	Flush        time.Duration `json:"flush_ns,omitempty"`
}

// String returns a description of the model.
func (m SimulatedDevice) String() string {
	medium := "one medium for both"
	if m.Duplex {
		medium = "full duplex"
	}
	if m.Slice > 0 {
		medium += fmt.Sprintf(", in slices of %v", m.Slice)
	}
	if m.Flush > 0 {
		medium += fmt.Sprintf(", entries flushed in %v", m.Flush)
	}
	iops := func(n float64) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf(" and %.0f requests/s", n)
	}
	return fmt.Sprintf("simulated device (reads %s%s after %v, writes %s%s after %v, %d at a "+
		"time, %s)", units.BytesPerSec.Text(m.Read), iops(m.ReadIOPS), m.ReadLatency,
		units.BytesPerSec.Text(m.Write), iops(m.WriteIOPS), m.WriteLatency, m.Parallelism, medium)
}
