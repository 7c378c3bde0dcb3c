package aggregate

import (
	"fmt"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// option aggregates one group.
func option(group string, files []load.File, s *Summary) *Option {
	o := &Option{Option: group, Valid: true, MissingFiles: []string{}, CPUTierRanks: []int{},
		Failed: map[string]string{}, Trials: []Trial{}}
	first := files[0].Result
	o.Benchmark, o.Model, o.Division = first.Benchmark, first.Model.Key, first.Division
	o.Simulated = first.Simulation != nil // alike let no mixture pass
	for _, f := range files {
		o.RankCount = max(o.RankCount, f.Rank+1, f.Result.Ranks)
		o.TrialCount = max(o.TrialCount, f.Trial+1, f.Result.Count)
	}
	// An option is invalid only when no rank touched the storage: one that did has measured it.
	memoryOnly := true
	// Every trial and rank up to the largest that anybody knows of is looked for: what is missing
	// is found by its absence.
	for trial := range o.TrialCount {
		var ranks []load.File
		for rank := range o.RankCount {
			i := slices.IndexFunc(files, func(f load.File) bool {
				return f.Trial == trial && f.Rank == rank
			})
			switch {
			case i < 0:
				o.MissingFiles = append(o.MissingFiles, files[0].Beside(trial, rank))
				continue
			case !files[i].Complete():
				o.MissingFiles = append(o.MissingFiles, files[i].Path)
				o.Failed[files[i].Path] = failure(files[i].Result)
				continue
			}
			// A result without entries in the storage tier measured memory, whatever its numbers.
			ranks = append(ranks, files[i])
			if !fromMemory(files[i].Result) {
				memoryOnly = false
			} else if !slices.Contains(o.CPUTierRanks, rank) {
				o.CPUTierRanks = append(o.CPUTierRanks, rank)
			}
			// The numbers count all the same; the reader is told.
			if w := files[i].Result.DeviceWitness.ServedFromCache; w != nil && *w {
				s.Warnings = append(s.Warnings, files[i].Path+
					": the device read less than the application: served from a cache")
			}
		}
		if len(ranks) > 0 {
			t := sum(trial, ranks)
			// A window that a rank is missing from is not common.
			if len(ranks) == o.RankCount {
				t.Window = commonWindow(ranks)
			}
			o.Trials = append(o.Trials, t)
		}
	}
	// The same results must give the same bytes, in whatever order the trials name their ranks.
	slices.Sort(o.CPUTierRanks)
	o.PartialFailure = len(o.MissingFiles) > 0
	switch {
	case len(o.Trials) == 0:
		o.Valid, o.Invalid = false, "no rank has a complete result"
	case memoryOnly:
		o.Valid, o.Invalid = false, "every rank was served wholly from memory (storage_entries "+
			"0): nothing reached the storage"
	}
	o.means()
	o.worst(files)
	o.merge(files, s)
	return o
}

// failure says why a result's numbers are not used.
func failure(r *result.Result) string {
	if r.Error != "" {
		return r.Status + ": " + r.Error
	}
	return r.Status
}

// fromMemory tells whether nothing of a rank is in the storage tier. Entries in the storage tier
// at the end of the window are the witness: reads may be absent for other reasons.
func fromMemory(r *result.Result) bool {
	n := r.Summary.CacheStats.StorageEntries
	return n == nil || *n == 0
}

// sum adds the ranks of one trial. What no rank knows stays unknown.
func sum(trial int, ranks []load.File) Trial {
	t := Trial{Trial: trial}
	add := func(to **float64, v *float64) {
		if v == nil {
			return
		}
		if *to == nil {
			*to = new(float64)
		}
		**to += *v
	}
	for _, f := range ranks {
		c := &f.Result.Summary.CacheStats
		t.Ranks = append(t.Ranks, f.Rank)
		add(&t.ReadBandwidth, c.StorageReadBandwidth)
		add(&t.WriteBandwidth, c.StorageWriteBandwidth)
		add(&t.AvgThroughput, f.Result.Summary.AvgThroughput)
		add(&t.StorageThroughput, f.Result.Summary.StorageThroughput)
	}
	return t
}

// means takes the mean over trials, and says how far they lie apart.
func (o *Option) means() {
	o.Spread = make(map[string]Spread)
	over := func(name string, of func(Trial) *float64) *float64 {
		var values []float64
		for _, t := range o.Trials {
			if v := of(t); v != nil {
				values = append(values, *v)
			}
		}
		if len(values) == 0 {
			return nil
		}
		mean := 0.0
		for _, v := range values {
			mean += v
		}
		mean /= float64(len(values))
		o.Spread[name] = spread(values, mean)
		return &mean
	}
	o.ReadBandwidth = over("read_bandwidth_gbps", func(t Trial) *float64 { return t.ReadBandwidth })
	o.WriteBandwidth = over("write_bandwidth_gbps",
		func(t Trial) *float64 { return t.WriteBandwidth })
	o.AvgThroughput = over("avg_throughput_tokens_per_sec",
		func(t Trial) *float64 { return t.AvgThroughput })
	o.StorageThroughput = over("storage_throughput_tokens_per_sec",
		func(t Trial) *float64 { return t.StorageThroughput })
	o.Window = meanWindow(o.Trials)
}

// spread says how far trials lie apart. The mean is given because it is what the summary reports.
func spread(values []float64, mean float64) Spread {
	median, _ := stats.MedianOf(values)
	s := Spread{Median: median, Min: slices.Min(values), Max: slices.Max(values)}
	if len(values) > 1 && mean != 0 {
		s.CV = new(stats.Variation(values))
	}
	return s
}

// worst takes the largest device p95 of all ranks and trials. That is MLPerf Storage's definition;
// merged percentiles say more.
func (o *Option) worst(files []load.File) {
	largest := func(to **float64, key string, r *result.Result) {
		if v, ok := r.Summary.CacheStats.LatencyMS[key]; ok && (*to == nil || v > **to) {
			*to = &v
		}
	}
	for _, f := range files {
		if f.Complete() {
			largest(&o.ReadP95MS, "storage_read_device_p95_ms", f.Result)
			largest(&o.WriteP95MS, "storage_write_device_p95_ms", f.Result)
		}
	}
}

// mergedNames are the histograms worth merging over clients.
var mergedNames = []string{"storage_read_device", "storage_write_device", "request_end_to_end"}

// merge adds up the histograms of all ranks and trials.
func (o *Option) merge(files []load.File, s *Summary) {
	o.Merged = make(map[string]Percentile)
	for _, name := range mergedNames {
		// Percentiles of several clients cannot be averaged; their histograms can be added.
		all := result.NewHistogram(units.Nanoseconds)
		for _, f := range files {
			d, ok := f.Result.Histograms[name]
			if !ok || !f.Complete() {
				continue
			}
			h, err := d.Decode()
			if err != nil {
				s.Warnings = append(s.Warnings,
					fmt.Sprintf("%s: histogram %s was left out: %v", f.Path, name, err))
				continue
			}
			all.Merge(h)
		}
		if all.Count() > 0 {
			o.Merged[name] = percentiles(all)
		}
	}
}

// percentiles leaves out what too few values stand behind: p99.9 of 300 operations is their
// largest.
func percentiles(h *result.Histogram) Percentile {
	at := func(p float64) *float64 {
		v, ok := h.Percentile(p)
		if !ok || p < 1 && !result.Supported(p, h.Count()) {
			return nil
		}
		return new(float64(v) / 1e6)
	}
	out := Percentile{Count: h.Count(), P50: at(0.5), P95: at(0.95), P99: at(0.99), P999: at(0.999),
		P9999: at(0.9999), Max: at(1)}
	if mean, ok := h.Mean(); ok {
		out.Mean = new(mean / 1e6)
	}
	return out
}
