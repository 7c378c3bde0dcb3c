package merge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kvbench/kvbench/result"
)

// SummaryFile is the name of the summary file that MLPerf Storage's tools read. MLPerf Storage's
// rules (6.3.4) still have an older name, kvcache_run_summary, which none of these tools reads.
const SummaryFile = "summary.json"

// summarySchema is the schema version that MLPerf Storage's tools expect.
const summarySchema = "1.0"

// Summary is summary.json. The first keys have the names and types that MLPerf Storage's launcher
// uses. Options are numbers. Times are strings such as 20260102_150405. A value without data is 0.
// Keys that end in _gbps are in GiB/s.
type Summary struct {
	SchemaVersion string `json:"schema_version"`
	// start of the first window, in the local time of its client and in the format of file names;
	// "unknown" if no result has a start time
	RunDatetime     string             `json:"run_datetime"`
	NPerNode        *int               `json:"npernode"`
	HostCount       *int               `json:"host_count"`
	TotalRanks      int                `json:"total_ranks"`
	TrialsPerOption int                `json:"trials_per_option"`
	Options         map[string]*Option `json:"options"`
	PartialFailure  bool               `json:"partial_failure"`
	// by option; never null
	TrialFailures map[string][]TrialFailure `json:"trial_failures"`

	Notice   string   `json:"notice,omitempty"`
	Warnings []string `json:"warnings"`

	start   time.Time // of the first window, zero if no result has a start time
	invalid bool      // an option is invalid
}

// Option is the summary of one option or benchmark.
type Option struct {
	Option any `json:"option"` // the option's number, or the benchmark's name
	// storage: sum over ranks, mean over trials
	ReadBandwidth     float64 `json:"aggregated_read_bandwidth_gbps"`
	WriteBandwidth    float64 `json:"aggregated_write_bandwidth_gbps"` //
	AvgThroughput     float64 `json:"aggregated_avg_throughput_tokens_per_sec"`
	StorageThroughput float64 `json:"aggregated_storage_throughput_tokens_per_sec"`
	// maximum over ranks and trials of the p95 of a request's storage time; null without any result
	P95MS *float64 `json:"aggregated_p95_latency_ms"`
	// maximum over ranks and trials, 0 if nothing was read or written
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
	Simulated bool   `json:"simulated"`                 // predicted without storage
	NoStorage bool   `json:"no_storage_tier,omitempty"` // so that its bandwidths are 0
	Valid     bool   `json:"valid"`
	Invalid   string `json:"invalid_reason,omitempty"`
	// why a file was not used, by path; the paths are also in missing_files
	Failed map[string]string `json:"failed_files"`
	Trials []Trial           `json:"trials"`
	Window *Window           `json:"common_window"` // mean over trials

	memoryRanks []int // rank numbers of CPUTierRanks
}

// TrialFailure is a rank's result that is not complete or belongs to another run.
type TrialFailure struct {
	Trial int    `json:"trial"`
	Rank  int    `json:"rank"`
	Error string `json:"error"`
}

// Trial has the sums over the ranks of one trial. Option has the means of these sums.
type Trial struct {
	Trial             int     `json:"trial"`
	Ranks             []int   `json:"ranks"` // whose numbers are in the sums
	ReadBandwidth     float64 `json:"read_bandwidth_gbps"`
	WriteBandwidth    float64 `json:"write_bandwidth_gbps"`
	AvgThroughput     float64 `json:"avg_throughput_tokens_per_sec"`
	StorageThroughput float64 `json:"storage_throughput_tokens_per_sec"`
	// null if a rank is missing or the windows do not overlap
	Window *Window `json:"common_window"`
}

// Aggregate computes the summary of a result tree. For each group it sums over the ranks of a trial
// and takes the mean over the trials, as MLPerf Storage does. It adds metrics of the common window.
//
// MLPerf Storage's launcher defines the keys aggregated_…: bandwidths and token rates of the
// storage are summed over the ranks of a trial, and the mean is taken over the trials; the device
// p95 is the maximum over ranks and trials. The sum is too high if ranks start at different times.
// So the summary also has the bandwidth of the common window (the bytes moved between the last start
// and the first end, from the timelines).
//
// A missing or failed rank is not in the sums, and the summary is partial. A rank that was served
// from memory alone is listed. If all ranks were, the option is invalid. Results that differ in a
// setting or in the model are separate options, such as "1 [num-users=100]".
//
// The same results give the same JSON, so a summary can be checked against its results.
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
		// The notice of a simulation replaces the notice of the closed division.
		if o.Simulated {
			s.Notice = result.SimulatedNotice
		} else if o.Division == result.DivisionClosed && s.Notice == "" {
			s.Notice = cmp.Or(t.Of(group)[0].Result.Notice, result.ClosedNotice)
		}
	}
	s.place(t.Files)
	return s
}

// place sets the start time, the number of hosts and the clients per host.
func (s *Summary) place(files []File) {
	type client struct {
		host string
		rank int
	}
	clients, perHost := map[client]bool{}, map[string]int{}
	for _, f := range files {
		if start, err := f.Result.Coordinated(f.Result.StartTime); err == nil &&
			(s.start.IsZero() || start.Before(s.start)) {
			// File names of a submission have the local time of the client. A result without a UTC
			// offset gets UTC.
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
		// With different numbers of clients per host, NPerNode is the largest.
		s.HostCount = new(len(perHost))
		s.NPerNode = new(slices.Max(slices.Collect(maps.Values(perHost))))
	}
}

// Stamp returns the start of the first window in the format of file names, in the local time of its
// client, "unknown" if no result has a start time.
func (s *Summary) Stamp() string {
	if s.start.IsZero() {
		return "unknown"
	}
	return s.start.Format("20060102_150405")
}
