package merge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kvbench/kvbench/result"
)

// SummaryFile is the name under which MLPerf Storage's tools look for the summary of a run. Its rules
// (6.3.4) still have an older one, kvcache_run_summary, which no tool of theirs reads.
const SummaryFile = "summary.json"

// summarySchema is its version, as MLPerf Storage's tools name it.
const summarySchema = "1.0"

// Summary is summary.json. The first keys are those of MLPerf Storage's
// launcher, in its types: its options are numbers, its times texts like 20260102_150405, and what
// there is nothing of is 0. Names in _gbps hold GiB/s. Readers that know only MLPerf Storage's keys
// find them as they expect them.
type Summary struct {
	SchemaVersion string `json:"schema_version"`
	// start of the first window, in the local time of its client, as file names have it; "unknown"
	// when no result has one
	RunDatetime     string             `json:"run_datetime"`
	NPerNode        *int               `json:"npernode"`
	HostCount       *int               `json:"host_count"`
	TotalRanks      int                `json:"total_ranks"`
	TrialsPerOption int                `json:"trials_per_option"`
	Options         map[string]*Option `json:"options"`
	PartialFailure  bool               `json:"partial_failure"`
	// by option; none is an empty map
	TrialFailures map[string][]TrialFailure `json:"trial_failures"`

	Notice   string   `json:"notice,omitempty"`
	Warnings []string `json:"warnings"`

	start   time.Time // of the first window, zero when no result has one
	invalid bool      // one of the options is
}

// Option is the aggregation of one option or benchmark.
type Option struct {
	Option any `json:"option"` // its number, or the name of a benchmark that is none
	// storage: Σ ranks, mean over trials
	ReadBandwidth     float64 `json:"aggregated_read_bandwidth_gbps"`
	WriteBandwidth    float64 `json:"aggregated_write_bandwidth_gbps"` //
	AvgThroughput     float64 `json:"aggregated_avg_throughput_tokens_per_sec"`
	StorageThroughput float64 `json:"aggregated_storage_throughput_tokens_per_sec"`
	// maximum over ranks and trials of a request's time at the storage; null without any result
	P95MS *float64 `json:"aggregated_p95_latency_ms"`
	// maximum over ranks and trials, 0 where nothing was read or written
	ReadP95MS      float64  `json:"aggregated_device_read_p95_ms"`
	WriteP95MS     float64  `json:"aggregated_device_write_p95_ms"`
	RankCount      int      `json:"rank_count"`
	TrialCount     int      `json:"trial_count"`
	PartialFailure bool     `json:"partial_failure"`
	MissingFiles   []string `json:"missing_files"`
	CPUTierRanks   []string `json:"cpu_tier_ranks"` // files of ranks served from memory

	Benchmark string `json:"benchmark"`
	Model     string `json:"model"`
	Division  string `json:"division"`
	Simulated bool   `json:"simulated"` // predictions: no storage had a part in them
	Valid     bool   `json:"valid"`
	Invalid   string `json:"invalid_reason,omitempty"`
	// path -> why its numbers were not used; among missing_files
	Failed map[string]string `json:"failed_files"`
	Trials []Trial           `json:"trials"`
	Spread map[string]Spread `json:"spread_over_trials"`
	Window *Window           `json:"common_window"` // mean over trials
	// of the histograms of all ranks and trials
	Merged map[string]Percentile `json:"merged_percentiles"`

	memoryRanks []int // those of CPUTierRanks
}

// TrialFailure is a result of a trial that failed or did not come to its end.
type TrialFailure struct {
	Trial int    `json:"trial"`
	Rank  int    `json:"rank"`
	Error string `json:"error"`
}

// Trial is one trial: sums over its ranks, of which the option has the means.
type Trial struct {
	Trial             int     `json:"trial"`
	Ranks             []int   `json:"ranks"` // whose numbers are in it
	ReadBandwidth     float64 `json:"read_bandwidth_gbps"`
	WriteBandwidth    float64 `json:"write_bandwidth_gbps"`
	AvgThroughput     float64 `json:"avg_throughput_tokens_per_sec"`
	StorageThroughput float64 `json:"storage_throughput_tokens_per_sec"`
	// null when a rank is missing or the ranks share no time
	Window *Window `json:"common_window"`
}

// Spread is the spread of the trials of one option.
type Spread struct {
	Median float64  `json:"median"`
	Min    float64  `json:"min"`
	Max    float64  `json:"max"`
	CV     *float64 `json:"cv"` // sample standard deviation ÷ mean; null with one trial
}

// Percentile is a distribution in milliseconds. A percentile with too few samples behind it is
// null: p needs 10/(1−p).
type Percentile struct {
	Count int64    `json:"count"`
	Mean  *float64 `json:"mean_ms"`
	P50   *float64 `json:"p50_ms"`
	P95   *float64 `json:"p95_ms"`
	P99   *float64 `json:"p99_ms"`
	P999  *float64 `json:"p999_ms"`
	P9999 *float64 `json:"p9999_ms"`
	Max   *float64 `json:"max_ms"`
}

// Aggregate sums the results of a tree, those of each group for themselves: over ranks within a trial,
// then the mean over trials, as MLPerf Storage does, and next to that what the ranks did together.
//
// The keys named aggregated_… are those of MLPerf Storage's launcher and are defined as there:
// bandwidths and token rates of the storage are summed over the ranks of a trial, and the mean is
// taken over the trials; the p95 of the device is the largest of all ranks and trials. That sum
// overstates what the storage did when ranks start at different times, and a maximum says nothing
// of the distribution. So the common window (the bytes that moved between the last start and the
// first end, from the timelines) and percentiles of the merged histograms stand next to them.
//
// Ranks that are missing or failed leave their share out of the sums and make the summary partial;
// a rank that was served wholly from memory is listed, and an option where all were is invalid.
// Results that differ in a setting or in the model are options of their own: "1 [num-users=100]".
//
// The same results give the same bytes, so that a summary can be checked by making it again. The
// text on the terminal has one line for each option; what is missing or invalid stands in it,
// because the sums look the same without a rank.
func Aggregate(t *Tree) *Summary {
	s := &Summary{SchemaVersion: summarySchema, Options: make(map[string]*Option),
		TrialFailures: make(map[string][]TrialFailure), Warnings: append([]string{}, t.Warnings...)}
	for _, group := range t.Groups() {
		o := option(group, t.Of(group), s)
		s.Options[group] = o
		s.TotalRanks = max(s.TotalRanks, o.RankCount)
		s.TrialsPerOption = max(s.TrialsPerOption, o.TrialCount)
		s.PartialFailure = s.PartialFailure || o.PartialFailure
		s.invalid = s.invalid || !o.Valid
		// A simulation outweighs the notice of the closed division: it is no measurement at all.
		if o.Simulated {
			s.Notice = result.SimulatedNotice
		} else if o.Division == result.DivisionClosed && s.Notice == "" {
			s.Notice = cmp.Or(t.Of(group)[0].Result.Notice, result.ClosedNotice)
		}
	}
	s.place(t.Files)
	return s
}

// place fills when and where the run was.
func (s *Summary) place(files []File) {
	type client struct {
		host string
		rank int
	}
	clients, perHost := map[client]bool{}, map[string]int{}
	for _, f := range files {
		if start, err := f.Result.Coordinated(f.Result.StartTime); err == nil &&
			(s.start.IsZero() || start.Before(s.start)) {
			// The names of a submission have the local time of where the test was run. Results that
			// do not have it have UTC.
			east := 0
			if s := f.Result.Environment.UTCOffsetS; s != nil {
				east = int(*s)
			}
			s.start = start.In(time.FixedZone("", east))
		}
		c := client{f.Result.Environment.Hostname, f.Rank}
		if c.host != "" && !clients[c] {
			clients[c] = true
			perHost[c.host]++
		}
	}
	s.RunDatetime = s.Stamp()
	if len(perHost) > 0 {
		// Clients per host is the most that any has: of uneven hosts the largest number.
		s.HostCount = new(len(perHost))
		s.NPerNode = new(slices.Max(slices.Collect(maps.Values(perHost))))
	}
}

// Stamp is the run's start as file names have it, local where it was run.
func (s *Summary) Stamp() string {
	if s.start.IsZero() {
		return "unknown"
	}
	return s.start.Format("20060102_150405")
}
