package result

import (
	"fmt"
	"time"

	"kvbench/kvbench/units"
)

// Clients describes the clients of a trial with several ranks. Only the merged result has this
// section. The coordinator writes the merged result: see MergedRanks.
type Clients struct {
	Launcher  string `json:"launcher"`  // that started the ranks: kvbench, Slurm, …
	Transport string `json:"transport"` // tcp
	Hosts     []Host `json:"hosts"`

	// Filesystems of the cache directories, sorted by lowest rank. Empty for object stores and
	// simulations.
	Filesystems []SharedFilesystem `json:"filesystems"`

	// Time between the first and the last window start, on the coordinator's clock, and its maximum
	// error. Null if a client opened no window, or in a simulation.
	StartSkewNS            *int64 `json:"start_skew_ns" line:"start-skew-ns"`
	StartSkewUncertaintyNS *int64 `json:"start_skew_uncertainty_ns"`
	// Time in which all clients measured; null if the windows do not overlap.
	CommonWindowNS *int64 `json:"common_window_ns"`
	MeanWindowNS   int64  `json:"mean_window_ns"`
	PeakRSSBytes   *int64 `json:"peak_rss_sum_bytes"` // sum of the clients' peaks

	Lost    []LostClient `json:"lost"`
	PerRank []ClientRank `json:"per_rank"` // clients with a result
}

// Host is a machine that ran clients of this trial.
type Host struct {
	Name  string `json:"name"`
	Ranks []int  `json:"ranks"`
}

// SharedFilesystem is a filesystem with cache directories, and the ranks that use it.
type SharedFilesystem struct {
	Type  string `json:"type"`
	Ranks []int  `json:"ranks"`
	// Directories are the cache directories on this filesystem, if a storage tier has several.
	Directories   []string `json:"directories,omitempty"`
	CapacityBytes int64    `json:"capacity_bytes"` // sum over the ranks
}

// LostClient is a client that died or stopped sending messages.
type LostClient struct {
	Rank    int    `json:"rank"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Why     string `json:"why"`
	Stage   string `json:"stage"`
	AfterNS int64  `json:"after_ns"` // since the preparation of the trial began; 0: before
}

func (l LostClient) String() string {
	return fmt.Sprintf("rank %d on %s (pid %d) %s, %s", l.Rank, l.Host, l.PID, l.Why, l.Stage)
}

// Pause is a time in which a rank's process did not run, such as between SIGSTOP and SIGCONT, or in which the
// coordinator received nothing from it. Requests in flight while a process does not run are in no latency and in no
// Stalls.
type Pause struct {
	Rank     int    `json:"rank"`
	Time     string `json:"time"`     // of its begin; in a merged result by the coordinator's clock
	BegunNS  int64  `json:"begun_ns"` // since the trial began
	LengthNS int64  `json:"length_ns"`
	InWindow bool   `json:"in_window"`        // it touches the window; in a merged result that of any rank
	Silent   bool   `json:"silent,omitempty"` // the coordinator received nothing, and the rank reports no pause
}

// PauseTime is the layout of Pause.Time.
const PauseTime = "2006-01-02T15:04:05.000Z"

// String returns the begin and the length of a pause, with its rank.
func (p Pause) String() string {
	text := fmt.Sprintf("rank %d, from %s on for %s", p.Rank, p.Time, units.Nanoseconds.Text(p.LengthNS))
	if p.InWindow {
		text += " in the window"
	}
	return text
}

// Why returns why a trial with a pause in its window is not quoted.
func (p Pause) Why() string {
	if p.Silent {
		return p.String() + " the coordinator received nothing from this rank: its process, its machine or the network " +
			"stood still"
	}
	return p.String() + " the process of this rank did not run: leave it and its machine running"
}

// Touches reports whether two times have a moment in common.
func (p Pause) Touches(o Pause) bool {
	at, _ := time.Parse(time.RFC3339, p.Time)
	other, _ := time.Parse(time.RFC3339, o.Time)
	return !at.After(other.Add(time.Duration(o.LengthNS))) && !other.After(at.Add(time.Duration(p.LengthNS)))
}

// ClientRank is what one client measured.
type ClientRank struct {
	Rank                int      `json:"rank"`
	Host                string   `json:"host"`
	Path                string   `json:"path"` // of its result, relative to the results directory
	ReadBytesPerSecond  *float64 `json:"read_bytes_per_s"`
	WriteBytesPerSecond *float64 `json:"write_bytes_per_s"`
	ReadP95NS           *int64   `json:"read_p95_ns"`
	WriteP95NS          *int64   `json:"write_p95_ns"`
	Verdict             string   `json:"verdict"`
}

// metrics adds the values of the benchmark line that only a result of several clients has.
func (c *Clients) metrics(add func(unit string, v *float64)) {
	if c == nil {
		return
	}
	// A rank with too few samples for a percentile is often the slowest rank. So the metric is
	// unknown if one rank has no percentile.
	slowest := func(unit string, p95 func(ClientRank) *int64) {
		worst := int64(0)
		for _, r := range c.PerRank {
			if p95(r) == nil {
				return
			}
			worst = max(worst, *p95(r))
		}
		if len(c.PerRank) > 0 {
			add(unit, number(&worst))
		}
	}
	slowest("slowest-rank-read-p95-ns", func(r ClientRank) *int64 { return r.ReadP95NS })
	slowest("slowest-rank-write-p95-ns", func(r ClientRank) *int64 { return r.WriteP95NS })
}

// Opened returns the start skew and its maximum error as text. StartSkewNS must not be nil.
func (c *Clients) Opened() string {
	text := "opened within " + units.Nanoseconds.Text(float64(*c.StartSkewNS))
	if n := units.OrZero(c.StartSkewUncertaintyNS); n > 0 {
		text += fmt.Sprintf(" (± %s)", units.Nanoseconds.Text(float64(n)))
	}
	return text
}
