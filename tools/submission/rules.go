package submission

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
)

// rulesRead names the rules and tools that this file follows, and when they were read.
const rulesRead = "Rules.md of mlcommons/storage after 19 September 2026 (edition 3.0), its tools at 0366ccf and " +
	"mlpstorage 3.0.27 of 1 July 2026; read on 29 November 2026"

// placeholders are parameters that MLPerf Storage's launcher records with its own defaults, because its flags
// for them never reach the benchmark. Its run checker refuses the values of Table KVCache-1 in their place;
// they are in options. Reports group by the profile.
var placeholders = values{"gpu_mem_gb": 16, "cpu_mem_gb": 32, "generation_mode": "realistic",
	"performance_profile": "throughput"}

// layout is where a version of MLPerf Storage's checker looks for a code image. In paths D is the division, O the
// organisation, S the system and H the first digits of the image's hash.
type layout struct {
	checker, image string
	open           string // where it looks in the open division, "" in image
	marker         string // file that declares a pool of images, "" without a pool
	keys           bool   // the system description has usable_capacity_tib and availability, and sas and sata in small letters
}

var layouts = []layout{
	{"3.0.46", "O/code-H", "", "O/.mlps-image-pool", true}, // of the release of v3.0, which newer ones accept
	{"main", "code-images/code-H", "", "code-images/.mlps-image-pool", true},
	{"3.0.27", "D/O/code", "D/O/results/S/kv_cache/code", "", false},
}

// rule is a check of the closed division.
type rule struct {
	Number, Demands string // the number is "" for a check of kvbench
	// recorded parameters that must have their value in the closed division; nil: those of no other rule
	parameters []string
	each       func(must must, f merge.File, required *params.Values)
	tree       func(c *Check, t *merge.Tree, s *merge.Summary)
}

// must adds a deviation if holds is false.
type must func(holds bool, format string, args ...any)

// closedTrials is the number of trials of an option.
const closedTrials = 3

// rules has all checks. The rules of another year are an edit of this file, and of the columns for the
// closed division in kvbench/params.
var rules []rule

func init() { // the functions below refer to rules
	rules = []rule{
		{Number: "6.3.1.1", Demands: "all options of Table KVCache-1 run, with its parameters", parameters: fixedParameters[:7],
			each: checkWindow, tree: (*Check).options},
		{Number: "6.3.2.1", Demands: fmt.Sprintf("seed 42 + rank, %d trials, %v between two options, no configuration file",
			closedTrials, params.OptionPause), parameters: []string{"seed", "count", "config"}, each: checkSeed,
			tree: (*Check).sequence},
		{Number: "6.3.2.2", Demands: "no autoscaling", parameters: []string{"enable-autoscaling"}},
		{Number: "6.3.3.1", Demands: "as many ranks on each host as on the others", tree: (*Check).spread},
		{Number: "6.3.3.3", Demands: "a directory of its own for each rank", tree: (*Check).directories},
		{Number: "6.3.4", Demands: "a complete result of every rank in every trial", tree: (*Check).complete},
		{Number: "6.3.4.4", Demands: "a rank of the option with entries in the storage tier at the end", tree: (*Check).stored},
		{Number: "6.4.2", Demands: "buffered I/O, and the flush as a write's device time", parameters: []string{"io"},
			each: func(must must, f merge.File, _ *params.Values) {
				must(f.Result.IO.Mode == "buffered", "I/O: must have been buffered, was %s", f.Result.IO.Mode)
				must(f.Result.IO.WriteDevice == result.WriteDeviceFlush, "write-device: must be %s, was %s",
					result.WriteDeviceFlush, f.Result.IO.WriteDevice)
			}},
		{Number: "6.6.1", Demands: "everything else as in the closed division", each: checkOthers},
		{Demands: "each trial writes content of its own; no rehearsal among the results", tree: (*Check).own},
	}
}

// ruleOf returns the number of the rule for a recorded parameter.
func ruleOf(name string) string {
	for _, r := range rules {
		if slices.Contains(r.parameters, name) {
			return r.Number
		}
	}
	return "6.6.1"
}

// checkClosed checks all results against the rules of the closed division.
func checkClosed(t *merge.Tree, s *merge.Summary) *Check {
	c := &Check{Rehearsal: slices.ContainsFunc(t.Files, rehearsed)}
	required := closedValues()
	for _, r := range rules {
		c.rule = r.Number
		for _, f := range t.Files {
			must := func(holds bool, format string, args ...any) {
				if !holds {
					c.add(f.Group, f.Path, format, args...)
				}
			}
			values := required[f.Result.Benchmark]
			if values == nil {
				must(r.Number != "6.6.1", "benchmark: must be one of the MLPerf options, given %s", f.Result.Benchmark)
				continue
			}
			for _, what := range values.Recorded(f.Result.Parameters) {
				name, _, _ := strings.Cut(strings.TrimPrefix(what, "-"), ":")
				must(ruleOf(name) != r.Number, "%s", what)
			}
			if r.each != nil {
				r.each(must, f, values)
			}
		}
		if r.tree != nil {
			r.tree(c, t, s)
		}
	}
	c.remarks(t)
	return c
}

// checkWindow checks the window that a result had. The parameter is what the user asked for.
func checkWindow(must must, f merge.File, required *params.Values) {
	if !f.Complete() {
		return
	}
	r := f.Result
	// The last operation may end after the deadline: allow one second.
	took, want := time.Duration(r.WindowNS), required.Window.Length
	must(rehearsed(f) || took >= want && took <= want+time.Second,
		"window: must be %v, was %v", want, took.Round(time.Millisecond))
	must(r.EndedBy == result.EndedByDeadline,
		"window: must end by its deadline, ended by %s", r.EndedBy)
}

// checkSeed checks the seed that a rank had.
func checkSeed(must must, f merge.File, required *params.Values) {
	must(f.Result.Seed == uint64(required.Seed)+uint64(f.Rank), "seed: must be %d + rank, was %d for rank %d",
		required.Seed, f.Result.Seed, f.Rank)
}

// checkOthers checks what no other rule names.
func checkOthers(must must, f merge.File, _ *params.Values) {
	r := f.Result
	must(r.Division == result.DivisionClosed, "division: must be closed, given %s", r.Division)
	must(len(r.Parameters) > 0, "parameters: the result has none on record")
	for _, d := range r.DiffersFromClosed {
		// Differences that no parameter shows: the population, the storage, keys of a configuration
		// file.
		must(d.Name != "population" && d.Name != "storage" && !strings.Contains(d.Name, "."),
			"%s: must be %v, given %v", d.Name, d.Closed, d.Value)
	}
	must(r.Workload.DecodeReads == "batched",
		"decode-reads: must be batched, was %s", r.Workload.DecodeReads)
}
