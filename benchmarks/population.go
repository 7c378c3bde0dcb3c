package benchmarks

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"kvbench/kvbench/params"
	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// The most rows of a data set that are read before a run, which takes about a second. The tokens of texts
// have to be counted.
const surveyedRows, surveyedTexts = 50_000, 10_000

// population describes what the trials of a point draw their requests from. It asks the source that a trial
// has. It returns nil without requests, and for a data set that cannot be read: the trial reports the error.
func population(v *params.Values) *result.Population {
	if v.Skip() != "" || v.Bench.Load != params.LoadUsers && v.Bench.Load != params.LoadTrace {
		return nil
	}
	whole := *v
	whole.TraceStart = 0 // no rows are passed over
	src, err := source(&whole)
	if err != nil {
		return nil
	}
	if c, ok := src.(io.Closer); ok {
		defer c.Close()
	}
	p := &result.Population{}
	switch src := src.(type) {
	case *users.Users:
		p.Classes = map[string]int64{}
		for _, u := range src.Population() {
			p.Classes[u.Class.String()]++
			p.Add(u.Context, u.Generate)
		}
	case interface {
		Survey(most int64, do func(row *formats.Row, conversation string)) (rows int64, all bool)
	}:
		most, names, alone := int64(surveyedRows), map[string]bool{}, int64(0)
		if v.Bench.Name == "ShareGPT" {
			most = surveyedTexts
		}
		_, all := src.Survey(most, func(row *formats.Row, conversation string) {
			p.Add(row.Context, row.Generate)
			if names[conversation] = true; conversation == "" {
				alone++
			}
		})
		if p.Partial = !all; alone < p.Contexts { // else nothing shows which requests belong together
			delete(names, "")
			p.Conversations = int64(len(names)) + alone
		}
	}
	return p
}

// populate finds the populations of all points. Points with the same data set have the same one.
func (p *plan) populate() {
	known := map[string]*result.Population{}
	for _, v := range p.points {
		path := v.Text(v.Bench.Needs)
		key := fmt.Sprint(path, v.Bench.Name, v.MaxConversations, v.Tokenizer, v.Profile.ShareGPT)
		if path == "" || known[key] == nil {
			known[key] = population(v)
		}
		p.populations[v] = known[key]
	}
}

// opening returns what is known of the loads before the run, as the summaries of the trials have it. Where
// benchmarks differ, a line begins with their names.
func (p *plan) opening() (lines []string) {
	type fact struct {
		report.Line
		names []string // of benchmarks
	}
	var facts []*fact
	for _, l := range p.runs() {
		in, name := runInfo(l.v, 0), l.v.Bench.Name
		p.describe(l.v, &in.Workload)
		in.Model.RankBytesPerToken = in.Sizer.One().Bytes(1)
		in.Derive()
		for _, line := range report.Opening(&in.Result).Lines {
			at := slices.IndexFunc(facts, func(f *fact) bool { return f.Line == line })
			if at < 0 {
				at, facts = len(facts), append(facts, &fact{Line: line})
			}
			if !slices.Contains(facts[at].names, name) {
				facts[at].names = append(facts[at].names, name)
			}
		}
	}
	const most = 3 // lines of a topic, and names in a line
	for _, topic := range []string{"population", "features", "server"} {
		of := slices.DeleteFunc(slices.Clone(facts), func(f *fact) bool { return f.Topic != topic })
		for i, f := range of[:min(most, len(of))] {
			text := f.Text
			if len(of) > 1 {
				text = strings.Join(f.names[:min(most, len(f.names))], ", ") + ": " + text
			}
			if rest := len(of) - most; i == most-1 && rest > 0 {
				text += "; and " + units.Plural(rest, "other")
			}
			lines = append(lines, fmt.Sprintf("%-11s %s", topic, text))
		}
	}
	return lines
}

// describe adds to a result's workload what its requests are drawn from, the features in force that a user
// may expect to be on or off, and the simulated server.
func (p *plan) describe(v *params.Values, w *result.Workload) {
	if v.Bench.Load != params.LoadUsers && v.Bench.Load != params.LoadTrace {
		return
	}
	w.Population, w.GPUs, w.GPUBytes = p.populations[v], v.GPUs, v.GPUBytes
	turns := v.Bench.Load == params.LoadUsers || w.Population != nil && w.Population.Conversations > 0
	sequences := v.OfSessions() || v.Bench.Blocks() // of blocks, which begin as others do
	cost, _ := v.Cost()
	inForce := func(off string, disabled bool) bool { return v.Applies(off) && !disabled }
	for _, f := range []struct {
		name string
		on   bool
	}{
		{"multi-turn", turns && (sequences || inForce("disable-multi-turn", v.DisableMultiTurn || v.DecodeOnly))},
		{"prefix cache", sequences || inForce("disable-prefix-caching", v.DisablePrefixCaching)},
		{"RAG", v.EnableRAG},
		{"autoscaling by " + v.AutoscalerMode, v.Autoscaling},
		{"prefill only", v.PrefillOnly},
		{"decode only", v.DecodeOnly},
		{"closed loop", v.ClosedLoop()},
		{"computing of misses", !cost.Free()},
		{"preconditioning", v.Precondition},
		{"latency tracing", v.LatencyTracing},
	} {
		if f.on {
			w.Features = append(w.Features, f.name)
		}
	}
}
