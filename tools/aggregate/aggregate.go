package aggregate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"kvbench/tools/command"
	"kvbench/tools/input"
)

const name = "aggregate"

// Command is kvreport aggregate.
var Command = command.Command{
	Name:  name,
	Args:  "DIR [-o FILE]",
	Short: "one summary over the ranks and trials of a results directory",
	Long: `
Reads every <option_O or benchmark>/trial_<T>/rank_<N>/kvcache_results_*.json below DIR, of ours or of the Python benchmark,
and writes kvcache_run_summary_<start>.json into DIR, or to FILE (- is standard output).

Within a trial bandwidths and token rates of the storage tier are summed over the ranks; then the mean over the trials is
taken. Device p95 is the maximum over all ranks and trials. These are the aggregated_ keys of MLPerf Storage. Beside them
stand what they hide: each trial, median and spread, the bandwidth while all ranks were measuring (common_window, from
their timelines) with the skew of their starts, and percentiles of the merged histograms.

A rank without a complete result makes a partial failure: its path stands in missing_files, and the sums lack it. Ranks
served wholly from memory (storage_entries 0) are listed in cpu_tier_ranks; an option where all are is invalid. Results
that differ in I/O mode, decode reads, write-device definition or any parameter are refused, and so are simulated results
among measured ones.

Exit codes: 0 done, 1 written but partial or invalid, 2 nothing was written.`,
	Example: `
mpirun -np 8 ./kvbench.test -test.bench MaxStorageStress -test.count 3 -cache-dir /mnt/kv -results-dir results
go tool kvreport aggregate results
go tool kvreport aggregate results -o - | jq '.options["1"].aggregated_read_bandwidth_gbps'`,
	Run: run,
}

func run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := command.Flags(name)
	out := fs.String("o", "", "")
	dirs, err := command.Parse(fs, args)
	if err == nil && len(dirs) != 1 {
		err = errors.New("one results directory is needed, for example: kvreport aggregate kvbench-results/20260908-120000-4711")
	}
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	t, err := input.ReadTree(dirs[0])
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	s, err := Aggregate(t)
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	for _, w := range s.Warnings {
		fmt.Fprintf(stderr, "kvreport aggregate: %s\n", w)
	}
	path := *out
	if path == "" {
		path = filepath.Join(dirs[0], s.FileName())
	}
	if path == "-" {
		err = s.WriteJSON(stdout)
	} else if err = command.WriteFile(path, s.WriteJSON); err == nil {
		err = s.WriteText(stdout, path)
	}
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	if !s.Good() {
		return command.No
	}
	return command.Done
}

// FileName is the name under which MLPerf Storage's tools look for the summary.
func (s *Summary) FileName() string { return "kvcache_run_summary_" + s.Stamp() + ".json" }

// Good tells whether nothing is missing and every option is valid.
func (s *Summary) Good() bool {
	for _, o := range s.Options {
		if !o.Valid {
			return false
		}
	}
	return !s.PartialFailure
}

// WriteJSON writes the summary. The same results give the same bytes.
func (s *Summary) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(s)
}

// WriteText writes what a person wants to see at once.
func (s *Summary) WriteText(w io.Writer, path string) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "option\tranks\ttrials\tread GiB/s\twrite GiB/s\ttok/s\tread p95 ms\twrite p95 ms\tremarks")
	for _, group := range slices.Sorted(maps.Keys(s.Options)) {
		o := s.Options[group]
		fmt.Fprintf(tab, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", group, o.RankCount, o.TrialCount, number(o.ReadBandwidth), number(o.WriteBandwidth),
			number(o.AvgThroughput), number(o.ReadP95MS), number(o.WriteP95MS), strings.Join(o.remarks(), "; "))
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, group := range slices.Sorted(maps.Keys(s.Options)) {
		for _, missing := range s.Options[group].MissingFiles {
			why := s.Options[group].Failed[missing]
			if why == "" {
				why = "no such file"
			}
			fmt.Fprintf(w, "missing: %s (%s)\n", missing, why)
		}
	}
	if s.Notice != "" {
		fmt.Fprintln(w, s.Notice)
	}
	_, err := fmt.Fprintf(w, "summary: %s\n", path)
	return err
}

func (o *Option) remarks() []string {
	var list []string
	if o.Simulated {
		list = append(list, "SIMULATED")
	}
	if !o.Valid {
		list = append(list, "INVALID: "+o.Invalid)
	}
	if o.PartialFailure {
		list = append(list, fmt.Sprintf("PARTIAL: %d of %d results missing", len(o.MissingFiles), o.RankCount*o.TrialCount))
	}
	if n := len(o.CPUTierRanks); n > 0 && o.Valid {
		list = append(list, fmt.Sprintf("served from memory: rank %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(o.CPUTierRanks), " ", ", "), "[]")))
	}
	if o.Window != nil && o.RankCount > 1 {
		list = append(list, fmt.Sprintf("common window %.3g s: read %.4g, write %.4g GiB/s; start skew %.3g s", o.Window.DurationS,
			o.Window.ReadBandwidth, o.Window.WriteBandwidth, o.Window.StartSkewS))
	}
	return list
}

func number(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.4g", *v)
}
