package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
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
	// maximum over ranks and trials, 0 if nothing was read or written. The first is the P95 that MLCommons
	// publishes: of the read of a whole entry, with the host's part.
	StorageReadP95MS float64  `json:"aggregated_storage_read_p95_ms"`
	ReadP95MS        float64  `json:"aggregated_device_read_p95_ms"`
	WriteP95MS       float64  `json:"aggregated_device_write_p95_ms"`
	RankCount        int      `json:"rank_count"`
	TrialCount       int      `json:"trial_count"`
	PartialFailure   bool     `json:"partial_failure"`
	MissingFiles     []string `json:"missing_files"`
	CPUTierRanks     []string `json:"cpu_tier_ranks"` // files of ranks with storage_entries 0

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

// option aggregates the files of one group. It adds failures and warnings to s.
func option(group string, files []File, s *Summary) *Option {
	first := files[0].Result
	o := &Option{Option: group, Benchmark: first.Benchmark, Model: first.Model.Key,
		Division: first.Division, Simulated: first.Simulation != nil, // the same in all files of a group
		MissingFiles: []string{}, CPUTierRanks: []string{}, Failed: map[string]string{}, Trials: []Trial{}}
	if first.Checkpoint != nil { // checkpoints have their own models
		o.Model = first.Checkpoint.Model
	}
	if first.Option != nil && group == strconv.Itoa(*first.Option) {
		o.Option = *first.Option
	}
	at := map[[2]int]File{} // by trial and rank
	for _, f := range files {
		at[[2]int{f.Trial, f.Rank}] = f
		o.RankCount = max(o.RankCount, f.Rank+1, f.Result.Ranks)
		o.TrialCount = max(o.TrialCount, f.Trial+1, f.Result.Count)
	}
	// Look up every rank of every trial, up to the largest numbers in any file, to find the missing
	// files.
	for trial := range o.TrialCount {
		var lowest *File // the trial has the ranks of the run of this file
		var ranks []File
		for rank := range o.RankCount {
			f, ok := at[[2]int{trial, rank}]
			if !ok {
				o.MissingFiles = append(o.MissingFiles, files[0].Sibling(trial, rank))
				continue
			}
			if lowest == nil {
				lowest = &f
			}
			why := ""
			if r := lowest.Result; !r.OneTrial(f.Result) {
				why = fmt.Sprintf("of another run than rank %d of %d, which has the nonce %s; this is "+
					"rank %d of %d with %s", lowest.Rank, r.Ranks, r.Nonce, rank, f.Result.Ranks,
					f.Result.Nonce)
			} else if !f.Complete() {
				why = Fate(f.Result)
			}
			if why == "" {
				ranks = append(ranks, f)
				o.judge(f, s)
				continue
			}
			o.MissingFiles, o.Failed[f.Path] = append(o.MissingFiles, f.Path), why
			s.TrialFailures[group] = append(s.TrialFailures[group], TrialFailure{trial, rank, why})
		}
		if len(ranks) > 0 {
			o.Trials = append(o.Trials, o.sum(trial, ranks))
		}
	}
	o.PartialFailure = len(o.MissingFiles) > 0
	switch {
	case o.PartialFailure:
		o.Valid, o.Invalid = false, fmt.Sprintf("%d of %d results missing", len(o.MissingFiles),
			o.RankCount*o.TrialCount)
	case !o.Valid:
		o.Invalid = "every rank was served wholly from memory (storage_entries 0): nothing reached the storage"
	}
	o.means()
	return o
}

// judge judges one complete result. An option is valid if at least one rank used the storage. judge lists
// the ranks that end without an entry in the storage tier, and warns of device reads that a cache served.
func (o *Option) judge(f File, s *Summary) {
	// A tier of few large entries may have none at the end of the window, because all are being written. MLPerf
	// Storage counts such a rank as one of the cpu tier; it used the storage all the same. Plain I/O has no
	// cache and moves all its bytes on the storage. A run may have no storage tier at all.
	read, written := f.Result.StorageTraffic()
	o.NoStorage = o.NoStorage || f.Result.IO.Mode == result.IOMemory
	empty := !o.NoStorage && f.Keys.Number("summary.cache_stats.storage_entries") == 0 &&
		f.Result.CompletionUnit != result.UnitOperation
	o.Valid = o.Valid || !empty || read.Bytes+written.Bytes > 0
	if empty {
		o.CPUTierRanks = append(o.CPUTierRanks, f.Path)
		o.memoryRanks = append(o.memoryRanks, f.Rank)
	}
	// A page cache hit does not make the option invalid. It is a warning.
	if units.OrZero(f.Result.DeviceCounters.ServedFromCache) {
		s.Warnings = append(s.Warnings, f.Path+
			": the device read less than the application: served from a cache")
	}
	// MLPerf Storage defines the p95 latencies as the maximum over ranks and trials. The p95 of a device is
	// absent if nothing was read or written.
	o.StorageReadP95MS = max(o.StorageReadP95MS,
		f.Keys.Number("summary.cache_stats.storage_read_p95_ms"))
	o.ReadP95MS = max(o.ReadP95MS, f.Keys.Number("summary.cache_stats.storage_read_device_p95_ms"))
	o.WriteP95MS = max(o.WriteP95MS, f.Keys.Number("summary.cache_stats.storage_write_device_p95_ms"))
	o.P95MS = new(max(units.OrZero(o.P95MS), f.Keys.Number("summary.storage_io_latency_ms.p95")))
}

// sum adds the numbers of the given ranks of one trial, as MLPerf Storage's tools do.
func (o *Option) sum(trial int, ranks []File) Trial {
	t := Trial{Trial: trial}
	var results []*result.Result
	for _, f := range ranks {
		t.Ranks = append(t.Ranks, f.Rank)
		results = append(results, f.Result)
		t.ReadBandwidth += f.Keys.Number("summary.cache_stats.tier_storage_read_bandwidth_gbps")
		t.WriteBandwidth += f.Keys.Number("summary.cache_stats.tier_storage_write_bandwidth_gbps")
		t.AvgThroughput += f.Keys.Number("summary.avg_throughput_tokens_per_sec")
		t.StorageThroughput += f.Keys.Number("summary.storage_throughput_tokens_per_sec")
	}
	// The slowest accelerator of all ranks decides the rate of a checkpoint. Its window has pauses,
	// so window rates do not count.
	if results[0].Checkpoint != nil {
		if c := Ranks(results, nil).Checkpoint; c != nil {
			read, write := c.Rates()
			t.ReadBandwidth, t.WriteBandwidth = read/gib, write/gib
			return t
		}
	}
	if len(ranks) == o.RankCount { // a common window needs all ranks
		t.Window = CommonWindow(results)
	}
	return t
}

// means sets the means over the trials.
func (o *Option) means() {
	slices.Sort(o.memoryRanks)
	o.memoryRanks = slices.Compact(o.memoryRanks)
	windowed := slices.DeleteFunc(slices.Clone(o.Trials), func(t Trial) bool { return t.Window == nil })
	if len(windowed) > 0 {
		o.Window = &Window{
			StartSkewS:     mean(windowed, func(t Trial) float64 { return t.Window.StartSkewS }),
			DurationS:      mean(windowed, func(t Trial) float64 { return t.Window.DurationS }),
			ReadBandwidth:  mean(windowed, func(t Trial) float64 { return t.Window.ReadBandwidth }),
			WriteBandwidth: mean(windowed, func(t Trial) float64 { return t.Window.WriteBandwidth })}
	}
	if len(o.Trials) == 0 {
		return // the mean of nothing is no number
	}
	o.ReadBandwidth = mean(o.Trials, func(t Trial) float64 { return t.ReadBandwidth })
	o.WriteBandwidth = mean(o.Trials, func(t Trial) float64 { return t.WriteBandwidth })
	o.AvgThroughput = mean(o.Trials, func(t Trial) float64 { return t.AvgThroughput })
	o.StorageThroughput = mean(o.Trials, func(t Trial) float64 { return t.StorageThroughput })
}

func mean(trials []Trial, number func(Trial) float64) float64 {
	var values []float64
	for _, t := range trials {
		values = append(values, number(t))
	}
	return stat.Mean(values, nil)
}

// Good reports whether no result is missing and every option is valid.
func (s *Summary) Good() bool { return !s.PartialFailure && !s.invalid }

// WriteJSON writes the summary as indented JSON. The same results give the same bytes.
func (s *Summary) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(s)
}

// WriteText writes a table with one row per option, the missing files with their reasons, the
// notice, and path.
func (s *Summary) WriteText(w io.Writer, path string) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "option\tranks\ttrials\tread GiB/s\twrite GiB/s\ttok/s\tread p95 ms\t"+
		"device read p95 ms\tdevice write p95 ms\tremarks")
	var below strings.Builder
	for _, group := range slices.Sorted(maps.Keys(s.Options)) {
		o := s.Options[group]
		read, write := Number(o.ReadBandwidth), Number(o.WriteBandwidth)
		if o.NoStorage {
			read, write = units.Unknown, units.Unknown
		}
		fmt.Fprintf(tab, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", group, o.RankCount, o.TrialCount,
			read, write, Number(o.AvgThroughput),
			latency(o.StorageReadP95MS), latency(o.ReadP95MS), latency(o.WriteP95MS), strings.Join(o.remarks(), "; "))
		for _, missing := range o.MissingFiles {
			why := cmp.Or(o.Failed[missing], "no such file")
			fmt.Fprintf(&below, "missing: %s (%s)\n", missing, why)
		}
	}
	if s.Notice != "" {
		fmt.Fprintln(&below, s.Notice)
	}
	fmt.Fprintf(&below, "summary: %s\n", path)
	if err := tab.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, below.String())
	return err
}

// remarks returns the last column of the table: a simulation, an invalid or partial option, ranks
// that were served from memory, the common window.
func (o *Option) remarks() []string {
	var list []string
	if o.Simulated {
		list = append(list, "SIMULATED")
	}
	switch {
	case o.PartialFailure:
		list = append(list, "PARTIAL: "+o.Invalid)
	case !o.Valid:
		list = append(list, "INVALID: "+o.Invalid)
	}
	if len(o.memoryRanks) > 0 && (o.Valid || o.PartialFailure) {
		list = append(list, fmt.Sprintf("no entry in the storage tier at the end: rank %s",
			units.List(o.memoryRanks)))
	}
	if o.NoStorage {
		list = append(list, "no storage tier")
	}
	if o.Window != nil && o.RankCount > 1 {
		text := fmt.Sprintf("common window %.3g s", o.Window.DurationS)
		if !o.NoStorage {
			text += fmt.Sprintf(": read %.4g, write %.4g GiB/s", o.Window.ReadBandwidth, o.Window.WriteBandwidth)
		}
		list = append(list, text+fmt.Sprintf("; windows opened within %s (mean of the trials)",
			units.Nanoseconds.Text(o.Window.StartSkewS*1e9)))
	}
	return list
}

// Number formats v with four significant digits.
func Number(v float64) string { return fmt.Sprintf("%.4g", v) }

// latency formats a latency. It returns a dash for 0, which means that there was no operation.
func latency(ms float64) string {
	if ms == 0 {
		return "–"
	}
	return Number(ms)
}
