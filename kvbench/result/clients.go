package result

import (
	"fmt"

	"kvbench/kvbench/units"
)

// Clients is what a trial's clients did together. It stands in their merged result only, which the
// client makes that coordinates them: see MergedRanks.
type Clients struct {
	Launcher  string `json:"launcher"`  // that started them: kvbench, Slurm, …
	Transport string `json:"transport"` // tcp
	Hosts     []Host `json:"hosts"`

	// Of the cache directories, by their lowest ranks; none on objects and in virtual time.
	Filesystems []SharedFilesystem `json:"filesystems"`

	// Between the first and the last opening of a window, by one clock, and how far that may be
	// off. Null: not all of them opened one, or time is simulated.
	StartSkewNS            *int64 `json:"start_skew_ns" line:"start-skew-ns"`
	StartSkewUncertaintyNS *int64 `json:"start_skew_uncertainty_ns"`
	// In which all of them measured; null where they share no time.
	CommonWindowNS *int64 `json:"common_window_ns"`
	MeanWindowNS   int64  `json:"mean_window_ns"`
	PeakRSSBytes   *int64 `json:"peak_rss_sum_bytes"` // of all of them, each at its own peak

	Lost    []LostClient `json:"lost"`
	PerRank []ClientRank `json:"per_rank"` // of which there is a result
}

// Host is one of their hosts.
type Host struct {
	Name  string `json:"name"`
	Ranks []int  `json:"ranks"`
}

// SharedFilesystem is one, with all ranks that work on it.
type SharedFilesystem struct {
	Type  string `json:"type"`
	Ranks []int  `json:"ranks"`
	// Directories are those that lie on it, where a storage tier has several.
	Directories   []string `json:"directories,omitempty"`
	CapacityBytes int64    `json:"capacity_bytes"` // of their storage tiers there together
}

// LostClient is one that died, or sent no more messages.
type LostClient struct {
	Rank    int    `json:"rank"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Why     string `json:"why"`
	Stage   string `json:"stage"`
	AfterNS int64  `json:"after_ns"` // since the trial began to be prepared; 0: before
}

func (l LostClient) String() string {
	return fmt.Sprintf("rank %d on %s (pid %d) %s, %s", l.Rank, l.Host, l.PID, l.Why, l.Stage)
}

// ClientRank is what one of them measured.
type ClientRank struct {
	Rank                int      `json:"rank"`
	Host                string   `json:"host"`
	Path                string   `json:"path"` // of its result, from the results directory
	ReadBytesPerSecond  *float64 `json:"read_bytes_per_s"`
	WriteBytesPerSecond *float64 `json:"write_bytes_per_s"`
	ReadP95NS           *int64   `json:"read_p95_ns"`
	WriteP95NS          *int64   `json:"write_p95_ns"`
	Verdict             string   `json:"verdict"`
}

// metrics are those of the benchmark line that only several clients have.
func (c *Clients) metrics(add func(unit string, v *float64)) {
	if c == nil {
		return
	}
	// A rank with too few samples for a percentile is often the slowest one: the largest of the
	// others would be taken for that of all.
	slowest := func(of func(ClientRank) *int64) (worst *float64) {
		for _, r := range c.PerRank {
			v := number(of(r))
			if v == nil {
				return nil
			}
			if worst == nil || *v > *worst {
				worst = v
			}
		}
		return worst
	}
	add("slowest-rank-read-p95-ns", slowest(func(r ClientRank) *int64 { return r.ReadP95NS }))
	add("slowest-rank-write-p95-ns", slowest(func(r ClientRank) *int64 { return r.WriteP95NS }))
}

// Opened reports the time between the first and the last opening of a window, which is known.
func (c *Clients) Opened() string {
	text := "opened within " + units.Nanoseconds.Text(float64(*c.StartSkewNS))
	if n := units.OrZero(c.StartSkewUncertaintyNS); n > 0 {
		text += fmt.Sprintf(" (± %s)", units.Nanoseconds.Text(float64(n)))
	}
	return text
}
