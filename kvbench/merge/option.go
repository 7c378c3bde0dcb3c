package merge

import (
	"fmt"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

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
// the ranks that were served from memory, and warns of device reads that a cache served.
func (o *Option) judge(f File, s *Summary) {
	// A rank used the storage if it has entries in the storage tier at the end of the window. A tier of few
	// large entries may have none at that moment, because all are being written; then the bytes moved count.
	// Plain I/O has no cache and moves all its bytes on the storage. A run may have no storage tier at all.
	read, written := f.Result.StorageTraffic()
	o.NoStorage = o.NoStorage || f.Result.IO.Mode == result.IOMemory
	if o.NoStorage || f.Keys.Number("summary.cache_stats.storage_entries") != 0 || f.Result.CompletionUnit == result.UnitOperation ||
		read.Bytes+written.Bytes > 0 {
		o.Valid = true
	} else {
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
