package result

import (
	"fmt"
	"math"
	"time"

	"kvbench/kvbench/result/python"
	"kvbench/kvbench/units"
)

// Autoscaler is what an autoscaler did and what came of it. The Python benchmark's keys about it,
// Summary.AutoscalingStats and AutoscalingSummary, are made of this.
type Autoscaler struct {
	AutoscaleSummary
	History []Round `json:"history"` // the first 4,096 rounds
}

// Rounds are those of the autoscaler, none where there was none.
func (r *Result) Rounds() []Round {
	if r.Autoscaler == nil {
		return nil
	}
	return r.Autoscaler.History
}

// Actions of a round.
const (
	ScaleHold = "hold"
	ScaleUp   = "scale_up"
	ScaleDown = "scale_down"
	ScaleStop = "stop"
)

// Round is one round of the autoscaler as the result keeps it.
type Round struct {
	AtS            float64  `json:"at_s"` // end of the round, since the window opened
	Users          int      `json:"users"`
	Workers        int      `json:"workers"`
	Goroutines     int      `json:"goroutines"` // of the process; simulated workers are none
	BytesPerSecond float64  `json:"bytes_per_s"`
	Noise          float64  `json:"noise_bytes_per_s"`       // two standard errors
	ReadP95        *float64 `json:"read_p95_ms_per_100mib"`  // null: nothing was read
	WriteP95       *float64 `json:"write_p95_ms_per_100mib"` //
	Saturation     *float64 `json:"saturation"`              // null: not known yet
	NextUsers      int      `json:"next_users"`              // decided at its end
	Action         string   `json:"action"`                  // hold, scale_up, scale_down, stop
	Decision       string   `json:"decision"`                // in words

	// Since the window opened: generated tokens ÷ time, and the p95 of an entry of whatever size.
	TokensPerSecond float64  `json:"tokens_per_s"`
	ReadSoFarMS     *float64 `json:"read_p95_so_far_ms"`
	WriteSoFarMS    *float64 `json:"write_p95_so_far_ms"`
}

// AutoscaleSummary is what came of it.
type AutoscaleSummary struct {
	Mode           string  `json:"mode"`
	InitialUsers   int     `json:"initial_users"`
	FinalUsers     int     `json:"final_users"`
	SustainedUsers int     `json:"sustained_users" line:"sustained-users"` // see sustained
	PeakUsers      int     `json:"peak_users"`                             // the most that ran
	PeakRate       float64 `json:"peak_bytes_per_s" line:"peak-B/s"`
	SustainedRate  float64 `json:"sustained_tokens_per_s"` // TokensPerSecond of that round
	Rounds         int     `json:"rounds"`
	// capacity: throughput stopped growing; qos: the target was met, or passed from below
	Found bool `json:"found"`
}

// Replay reports what became of the rows read so far. An executed row counts when it has ended, in
// the window or while the last operations end after it; rows that still wait then count nowhere.
type Replay struct {
	Rows           int64 `json:"rows" merge:"sum"`            // usable rows read
	Skipped        int64 `json:"skipped" merge:"sum"`         // of other tiers and phases
	Reads          int64 `json:"reads" merge:"sum"`           // executed, as the two below
	Writes         int64 `json:"writes" merge:"sum"`          //
	Deletes        int64 `json:"deletes" merge:"sum"`         // of rows that say so
	EvictedReads   int64 `json:"evicted_reads" merge:"sum"`   // of evicted entries: no I/O
	UnwrittenReads int64 `json:"unwritten_reads" merge:"sum"` // of keys that no row before wrote: no I/O
	UnknownDeletes int64 `json:"unknown_deletes" merge:"sum"` // of what was not there
	Overwrites     int64 `json:"overwrites" merge:"sum"`      // writes of what was there
	TooLarge       int64 `json:"too_large" merge:"sum"`       // writes larger than the tier: no I/O
	Evictions      int64 `json:"evictions" merge:"sum"`       // entries deleted for capacity
	LateNS         int64 `json:"largest_delay_ns" merge:"max"`
}

// BlockCache is how the cache served a block trace: the requests that were decided inside the
// window.
type BlockCache struct {
	Requests    int64 `json:"requests" merge:"sum"`
	Blocks      int64 `json:"blocks" merge:"sum"`  // requested
	Hits        int64 `json:"hits" merge:"sum"`    // in the cached prefixes
	Pending     int64 `json:"pending" merge:"sum"` // of the hits: were being written
	Unreachable int64 `json:"kept" merge:"sum"`    // there, but behind a missing one: neither read nor written
	Written     int64 `json:"written" merge:"sum"` // to be written
	// HitRatio is hits ÷ blocks. IdealHitRatio is that of a cache without bounds on the same
	// requests, null when too many distinct blocks were requested to know it.
	HitRatio      *float64 `json:"hit_ratio" merge:"-"`
	IdealHits     *int64   `json:"ideal_hits" merge:"sum"`
	IdealHitRatio *float64 `json:"ideal_hit_ratio" merge:"-"`
	// PrefixHitRatio is the share of requests of which at least the first block was found,
	// TokenHitRatio that of the tokens.
	PrefixHitRatio *float64 `json:"prefix_hit_ratio" merge:"drop"`
	TokenHitRatio  *float64 `json:"token_hit_ratio" merge:"-"`
	Tokens         int64    `json:"tokens" merge:"sum"` // of blocks
	HitTokens      int64    `json:"hit_tokens" merge:"sum"`
	BytesSaved     int64    `json:"bytes_saved" merge:"sum"` // of hits: neither computed nor written again
	// Reads and Writes are the operations that moved blocks, on whatever tier: blocks that lie side
	// by side are moved by one (see -layout), whose latency, size and count are those of the tiers'
	// sections.
	Reads  BlockMoves `json:"reads"`
	Writes BlockMoves `json:"writes"`
}

// BlockMoves is how many operations moved how many blocks.
type BlockMoves struct {
	Operations int64 `json:"operations" merge:"sum"`
	Blocks     int64 `json:"blocks" merge:"sum"`
}

// Recording compares a run with a recorded one.
type Recording struct {
	Trace          string  `json:"trace"`
	Requests       int64   `json:"requests"` // of the trace
	Malformed      int64   `json:"malformed"`
	Tolerance      float64 `json:"tolerance"`
	HitRate        Check   `json:"hit_rate"`
	ReadWriteRatio Check   `json:"read_write_ratio"`
	Passed         bool    `json:"passed"`

	Stats python.RecordedStats `json:"stats"` // of the trace
}

// Check is one number of both runs. Null: one of them does not have it, and then it is not judged.
type Check struct {
	Recorded *float64 `json:"recorded"`
	Measured *float64 `json:"measured"`
	// relative to the recorded one; absolute where that is 0
	Difference *float64 `json:"difference"`
	Passed     *bool    `json:"passed"`
}

// validationTolerance is how far, relatively, a run may be from the recorded one.
const validationTolerance = 0.05

// Judge compares the recorded numbers with those that were measured. It passes when all that are
// known agree, and some are.
func (v *Recording) Judge(hitRate, readWriteRatio *float64) {
	v.Tolerance = validationTolerance
	v.HitRate = NewCheck(v.HitRate.Recorded, hitRate)
	v.ReadWriteRatio = NewCheck(v.ReadWriteRatio.Recorded, readWriteRatio)
	v.Passed = v.HitRate.Passed != nil || v.ReadWriteRatio.Passed != nil
	for _, c := range v.Checks() {
		v.Passed = v.Passed && (c.Passed == nil || *c.Passed)
	}
}

// NewCheck judges one number.
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

// NamedCheck is one line of a validation report.
type NamedCheck struct {
	Name string
	Check
}

// Checks lists the numbers that a validation compares.
func (v *Recording) Checks() []NamedCheck {
	return []NamedCheck{{"hit rate", v.HitRate}, {"read/write ratio", v.ReadWriteRatio}}
}

// Word is the judgement: pass, fail, or not judged where one of the two runs does not have the
// number.
func (c Check) Word() string {
	switch {
	case c.Passed == nil:
		return "not judged"
	case *c.Passed:
		return "pass"
	}
	return "fail"
}

// Simulation marks a result that no storage has had a part in.
type Simulation struct {
	Notice    string           `json:"notice" merge:"same"`
	Device    *SimulatedDevice `json:"device" merge:"same"` // null: infinitely fast
	TraceRows int64            `json:"io_trace_rows" merge:"sum"`
	WallNS    int64            `json:"wall_ns" merge:"max"`
	// DeviceBusyShare is the share of the window in which bytes passed the device's medium (two
	// media when duplex).
	DeviceBusyShare *float64 `json:"device_busy_share" merge:"max"`
	// SustainedUsers is how many of the users the device sustains, found by simulating the first n
	// of them alone: the largest n that it keeps up with, while n + 1 are too many. Null where it
	// was not searched for: users who wait for results, requests at a rate, a number of requests,
	// an autoscaler, which finds it itself.
	SustainedUsers *int `json:"sustained_users" merge:"drop"`
	// Outstanding is [Result.Outstanding], with all users.
	Outstanding *float64 `json:"outstanding_requests" merge:"sum"`
	// QueueGrowth is how fast the backlog grew over the window.
	QueueGrowth *float64 `json:"queue_growth_requests_per_s" merge:"sum"`
}

// Outstanding is how many requests waited or ran, on average over the second half of the window, by
// the readings of its intervals; nil when there are none.
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

// KeptUp says whether the storage kept up with so many users: on average no more requests waited or
// ran than there were users. By Little's law a user's request then completes, on average, before
// the same user makes the next one. A queue that grows passes that bound in any window that is long
// enough to tell.
func (r *Result) KeptUp(users int) bool {
	n := r.Outstanding()
	return n != nil && *n <= float64(users)
}

// SimulatedNotice stands in every output of a simulation.
const SimulatedNotice = "simulated in virtual time, no storage was touched"

// Modes of the autoscaler.
const (
	AutoscaleQoS      = "qos"      // hold the storage at a share of its saturation
	AutoscaleCapacity = "capacity" // find the users at which throughput stops growing
)

// I/O modes that are none of a filesystem: of a simulation's result, and of an object store's.
const (
	IOSimulated = "simulated"
	IOObjects   = "s3"
)

// SimulatedDevice is the device model of a simulated run: the queueing model of a drive, with the
// names and units of the JSON.
type SimulatedDevice struct {
	Read         float64       `json:"read_bytes_per_s"`
	Write        float64       `json:"write_bytes_per_s"`
	ReadIOPS     float64       `json:"read_iops"`  // requests/s, 0 = no bound
	WriteIOPS    float64       `json:"write_iops"` //
	ReadLatency  time.Duration `json:"read_latency_ns"`
	WriteLatency time.Duration `json:"write_latency_ns"`
	Parallelism  int           `json:"parallelism"`
	Duplex       bool          `json:"duplex"`
	Slice        time.Duration `json:"slice_ns"` // 0: the medium passes requests one by one
	Flush        time.Duration `json:"flush_ns,omitempty"`
}

// String describes the model for people.
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
