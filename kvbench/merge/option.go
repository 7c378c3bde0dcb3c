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
		MissingFiles: []string{}, CPUTierRanks: []string{}, Failed: map[string]string{},
		Trials: []Trial{}, Spread: map[string]Spread{}, Merged: map[string]Percentile{}}
	if first.Checkpoint != nil { // checkpoints have their own models
		o.Model = first.Checkpoint.Model
	}
	if first.Option != nil && group == strconv.Itoa(*first.Option) {
		o.Option = *first.Option
	}
	type place struct{ trial, rank int }
	at := map[place]File{}
	for _, f := range files {
		at[place{f.Trial, f.Rank}] = f
		o.RankCount = max(o.RankCount, f.Rank+1, f.Result.Ranks)
		o.TrialCount = max(o.TrialCount, f.Trial+1, f.Result.Count)
	}
	var complete []File
	// Look up every rank of every trial, up to the largest numbers in any file, to find the missing
	// files.
	for trial := range o.TrialCount {
		before := len(complete)
		var lowest *File // the trial has the ranks of the run of this file
		for rank := range o.RankCount {
			f, ok := at[place{trial, rank}]
			if !ok {
				o.MissingFiles = append(o.MissingFiles, files[0].Sibling(trial, rank))
				continue
			}
			if lowest == nil {
				lowest = &f
			}
			if one := lowest.Result.OneTrial(f.Result); one && f.Complete() {
				complete = append(complete, f)
			} else {
				o.MissingFiles = append(o.MissingFiles, f.Path)
				o.Failed[f.Path] = Fate(f.Result)
				if !one {
					o.Failed[f.Path] = fmt.Sprintf("of another run than rank %d of %d, which has "+
						"the nonce %s; this is rank %d of %d with %s", lowest.Rank,
						lowest.Result.Ranks, lowest.Result.Nonce, rank, f.Result.Ranks,
						f.Result.Nonce)
				}
				s.TrialFailures[group] = append(s.TrialFailures[group],
					TrialFailure{trial, rank, o.Failed[f.Path]})
			}
		}
		if ranks := complete[before:]; len(ranks) > 0 {
			o.Trials = append(o.Trials, o.sum(trial, ranks, s))
		}
	}
	o.PartialFailure = len(o.MissingFiles) > 0
	o.judge(complete, s)
	if o.PartialFailure {
		o.Valid, o.Invalid = false, fmt.Sprintf("%d of %d results missing",
			len(o.MissingFiles), o.RankCount*o.TrialCount)
	}
	o.means()
	o.worst(complete)
	o.distribute(complete, s)
	return o
}

// judge sets whether the option is valid: at least one rank used the storage. It lists the ranks
// that were served from memory, and warns of device reads that a cache served.
func (o *Option) judge(complete []File, s *Summary) {
	o.Invalid = "no rank has a complete result"
	if len(complete) > 0 {
		o.Invalid = "every rank was served wholly from memory (storage_entries 0): nothing " +
			"reached the storage"
	}
	for _, f := range complete {
		// A rank used the storage if it has entries in the storage tier at the end of the window. A
		// tier of few large entries may have none at that moment, because all are being written;
		// then the bytes moved count. Plain I/O has no cache and moves all its bytes on the
		// storage.
		read, written := f.Result.StorageTraffic()
		if r := f.Result; f.Keys.Number("summary.cache_stats.storage_entries") != 0 ||
			r.CompletionUnit == result.UnitOperation || read.Bytes+written.Bytes > 0 {
			o.Valid, o.Invalid = true, ""
		} else {
			o.CPUTierRanks = append(o.CPUTierRanks, f.Path)
			o.memoryRanks = append(o.memoryRanks, f.Rank)
		}
		// A page cache hit does not make the option invalid. It is a warning.
		if w := f.Result.DeviceCounters.ServedFromCache; w != nil && *w {
			s.Warnings = append(s.Warnings, f.Path+
				": the device read less than the application: served from a cache")
		}
	}
	// Sort, so that the same results give the same JSON.
	slices.Sort(o.CPUTierRanks)
	slices.Sort(o.memoryRanks)
	o.memoryRanks = slices.Compact(o.memoryRanks)
}

// summedNames are the keys in Spread of the numbers that are summed over the ranks of a trial and
// then averaged over trials. summedKeys, Trial.summed and Option.averaged have these numbers in the
// same order.
var summedNames = [...]string{"read_bandwidth_gbps", "write_bandwidth_gbps",
	"avg_throughput_tokens_per_sec", "storage_throughput_tokens_per_sec"}

var summedKeys = [len(summedNames)]string{"summary.cache_stats.tier_storage_read_bandwidth_gbps",
	"summary.cache_stats.tier_storage_write_bandwidth_gbps",
	"summary.avg_throughput_tokens_per_sec", "summary.storage_throughput_tokens_per_sec"}

func (t *Trial) summed() [len(summedNames)]*float64 {
	return [...]*float64{&t.ReadBandwidth, &t.WriteBandwidth, &t.AvgThroughput,
		&t.StorageThroughput}
}

func (o *Option) averaged() [len(summedNames)]*float64 {
	return [...]*float64{&o.ReadBandwidth, &o.WriteBandwidth, &o.AvgThroughput,
		&o.StorageThroughput}
}

// sum adds the numbers of the given ranks of one trial, as MLPerf Storage's tools do.
func (o *Option) sum(trial int, ranks []File, s *Summary) Trial {
	t := Trial{Trial: trial}
	var results []*result.Result
	for _, f := range ranks {
		t.Ranks = append(t.Ranks, f.Rank)
		results = append(results, f.Result)
		for i, key := range summedKeys {
			*t.summed()[i] += f.Keys.Number(key)
		}
	}
	// The slowest accelerator of all ranks decides the rate of a checkpoint. Its window has pauses,
	// so window rates do not count.
	if results[0].Checkpoint != nil {
		all, err := Ranks(results, nil)
		if err != nil { // impossible in a Tree
			s.Warnings = append(s.Warnings,
				fmt.Sprintf("trial %d of %s: %v", trial, o.Benchmark, err))
			return t
		}
		if c := all.Checkpoint; c != nil {
			read, write := c.Rates()
			t.ReadBandwidth, t.WriteBandwidth = read/float64(units.GiB), write/float64(units.GiB)
			return t
		}
	}
	if len(ranks) == o.RankCount { // a common window needs all ranks
		t.Window = CommonWindow(results)
	}
	return t
}

// means sets the means and the spread over trials.
func (o *Option) means() {
	for i, name := range summedNames {
		var values []float64
		for _, t := range o.Trials {
			values = append(values, *t.summed()[i])
		}
		if len(values) > 0 {
			mean := stat.Mean(values, nil)
			*o.averaged()[i] = mean
			median, _ := units.Median(values)
			s := Spread{Median: median, Min: slices.Min(values), Max: slices.Max(values)}
			if len(values) > 1 && mean != 0 {
				s.CV = new(units.Variation(values))
			}
			o.Spread[name] = s
		}
	}
	o.Window = meanWindow(o.Trials)
}

// worst sets the p95 latencies to the maximum over ranks and trials, as MLPerf Storage defines
// them. The device p95 is 0 if nothing was read or written.
func (o *Option) worst(complete []File) {
	for key, to := range map[string]*float64{"storage_read_device_p95_ms": &o.ReadP95MS,
		"storage_write_device_p95_ms": &o.WriteP95MS} {
		for _, f := range complete {
			*to = max(*to, f.Keys.Number("summary.cache_stats."+key))
		}
	}
	for _, f := range complete {
		p95 := max(units.OrZero(o.P95MS), f.Keys.Number("summary.storage_io_latency_ms.p95"))
		o.P95MS = &p95
	}
}

// distribute sets percentiles of three histograms, each summed over all ranks and trials.
func (o *Option) distribute(complete []File, s *Summary) {
	for _, name := range []string{"storage_read_device", "storage_write_device",
		"request_end_to_end"} {
		// Percentiles of several clients cannot be averaged; their histograms can be added.
		all := result.NewHistogram(units.Nanoseconds)
		for _, f := range complete {
			d, ok := f.Result.Histograms[name]
			h, err := d.Decode()
			if err == nil {
				all.Merge(h)
			} else if ok {
				s.Warnings = append(s.Warnings,
					fmt.Sprintf("%s: histogram %s was left out: %v", f.Path, name, err))
			}
		}
		if all.Count() > 0 {
			o.Merged[name] = percentiles(all)
		}
	}
}

// percentiles returns the distribution of h in ms. A percentile with too few samples is nil.
func percentiles(h *result.Histogram) Percentile {
	d := result.NewDistribution(units.Nanoseconds, h)
	return Percentile{d.Count, inMS(d.Mean), inMS(d.P50), inMS(d.P95), inMS(d.P99), inMS(d.P999),
		inMS(d.P9999), inMS(d.Max)}
}

// inMS converts nanoseconds to milliseconds. It returns nil for nil.
func inMS[N int64 | float64](ns *N) *float64 {
	if ns == nil {
		return nil
	}
	return new(float64(*ns) / 1e6)
}

// meanWindow returns the mean common window of the trials that have one, nil if no trial has one.
func meanWindow(trials []Trial) *Window {
	var windows []*Window
	for _, t := range trials {
		if t.Window != nil {
			windows = append(windows, t.Window)
		}
	}
	if windows == nil {
		return nil
	}
	mean := func(number func(w *Window) float64) float64 {
		var values []float64
		for _, w := range windows {
			values = append(values, number(w))
		}
		return stat.Mean(values, nil)
	}
	return &Window{StartSkewS: mean(func(w *Window) float64 { return w.StartSkewS }),
		DurationS:      mean(func(w *Window) float64 { return w.DurationS }),
		ReadBandwidth:  mean(func(w *Window) float64 { return w.ReadBandwidth }),
		WriteBandwidth: mean(func(w *Window) float64 { return w.WriteBandwidth })}
}
