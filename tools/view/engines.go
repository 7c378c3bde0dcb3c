package view

import (
	"cmp"
	"path/filepath"
	"slices"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// ours pairs a unit of kvbench's benchmark lines with the one of load.EngineNumbers that has the same
// meaning. scale converts a value to the unit of that number.
var ours = []struct {
	unit, number string
	scale        float64
}{{"req/s", "requests/s", 1}, {"tok/s", "generated tokens/s", 1}, {"ttft-mean-sec", "TTFT mean", 1e9},
	{"ttft-p50-sec", "TTFT p50", 1e9}}

// Engines is a table of the results of inference engines' own benchmarks, followed by the medians of those
// kvbench benchmarks that complete requests. It is empty if list is empty.
func Engines(list []load.Engine, t *stats.Table) report.Section {
	if len(list) == 0 {
		return report.Section{}
	}
	s := report.Section{Title: "Other Programs", Columns: []report.Column{{Name: "file"},
		{Name: "program"}, {Name: "model"}}, Lines: []report.Line{
		{Topic: "what it is", Text: "numbers in the files of other programs, of which kvbench ran none, " +
			"and ours of the same name"},
		{Topic: "requests/s", Text: "comparable for the same model, prompts and arrivals. Ours without " +
			"-prefill-rate or -gpu compute nothing: they are the requests that the storage alone allows"},
		{Topic: "tokens/s", Text: "not comparable: an engine computes its tokens, ours are the counted " +
			"answers of completed requests. tokens/s includes the prompts, generated tokens/s does not"},
		{Topic: "TTFT", Text: "comparable with ours of the same model and prompts with -prefill-rate or " +
			"-gpu. An engine's includes its scheduler, and the network to its client"},
		{Topic: "not in their files", Text: "bytes and latencies of the storage: kvreport trace measures " +
			"them while an engine runs"},
	}}
	for i, name := range load.EngineNumbers {
		unit := units.Number
		if i >= load.FirstTime {
			unit = units.Nanoseconds
		}
		s.Columns = append(s.Columns, report.Column{Name: name, Unit: unit})
	}
	s.Columns = append(s.Columns, report.Column{Name: "other values"})
	row := func(file, program, model string, numbers []any, others string) {
		names := []any{file, program, cmp.Or(model, "unknown")}
		s.Rows = append(s.Rows, append(append(names, numbers...), others))
	}
	for _, e := range list {
		// Files of several runs often have the same name, but in different directories.
		file := filepath.Join(filepath.Base(filepath.Dir(e.File)), filepath.Base(e.File))
		row(file, e.Program, e.Model, e.Numbers[:], e.Others)
	}
	for _, b := range t.Benchmarks {
		for run, label := range t.Labels {
			if b.Cell("req/s", run).N() == 0 {
				continue
			}
			numbers := make([]any, len(load.EngineNumbers))
			for _, o := range ours {
				if c := b.Cell(o.unit, run); c.N() > 0 {
					numbers[slices.Index(load.EngineNumbers[:], o.number)] = c.Summary.Center * o.scale
				}
			}
			program, model := "kvbench "+b.Name, ""
			switch trial := b.Trials[run][0]; {
			case trial.Python:
				program = "Python benchmark"
			case trial.Result != nil:
				model = trial.Result.Model.Name
			}
			row(label, program, model, numbers,
				"median of "+units.Plural(b.Cell("req/s", run).N(), "trial"))
		}
	}
	return s
}
