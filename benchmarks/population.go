package benchmarks

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kvbench/kvbench/params"
	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/workloads/formats"
	"kvbench/workloads/iotrace"
	"kvbench/workloads/users"
)

// The most rows of a data set that are read before a run, so that it takes seconds at most. Texts take
// longer, because their tokens have to be counted.
const surveyedRows, surveyedTexts = 100_000, 10_000

// population describes the users or the data set from which the trials of a point draw their requests. It
// returns nil for a load without users and without a data set. The error is io.EOF if the whole data set was read,
// nil if only its first rows were read, else the error for which a trial would refuse the recording.
func population(v *params.Values) (p *result.Population, err error) {
	if v.Skip() != "" || v.Bench.Load != params.LoadUsers && v.Bench.Load != params.LoadTrace {
		return nil, nil
	}
	whole := *v
	whole.TraceStart = 0 // the population includes the rows that a trial skips
	src, err := source(&whole, 0)
	if err != nil {
		return nil, err
	}
	if c, ok := src.(io.Closer); ok {
		defer c.Close()
	}
	p = &result.Population{}
	switch src := src.(type) {
	case *users.Users:
		p.Classes = map[string]int64{}
		for _, u := range src.Population() {
			p.Classes[u.Class.String()]++
			p.Add(u.Context, u.Generate)
		}
	case interface {
		Survey(most int64, do func(row *formats.Row, conversation string)) (rows int64, err error)
	}:
		names := map[string]bool{}
		most, alone := int64(surveyedRows), int64(0)
		if v.Bench.Name == "ShareGPT" {
			most = surveyedTexts
		}
		p.Rows, err = src.Survey(most, func(row *formats.Row, conversation string) {
			p.Add(row.Context, row.Generate)
			names[conversation] = true
			if conversation == "" {
				alone++
			}
		})
		if p.Partial = err == nil; p.Partial || v.MaxConversations > 0 {
			p.Rows = 0 // unknown
		}
		if alone < p.Contexts { // else no row names its conversation
			delete(names, "")
			p.Conversations = int64(len(names)) + alone
		}
	}
	return p, err
}

// operations reads an I/O trace, at most surveyedRows rows, and returns the bytes of its writes. It returns 0 if the
// trace has more rows. The errors are those of population.
func operations(v *params.Values) (written int64, err error) {
	rows, err := iotrace.Open(v.IOTraceReplay, v.TraceAllowMalformed, v.TraceSpeedup == 0)
	if err == nil {
		defer rows.Close() // only read from
	}
	for n := 0; n < surveyedRows && err == nil; n++ {
		var row iotrace.Row
		if row, err = rows.Next(); row.Operation == iotrace.Write {
			written += row.Bytes
		}
	}
	if err == nil {
		return 0, nil
	}
	return written, err
}

// populate fills populations for all points, and replayed (bytes written) for I/O traces. Points with the same data set share a population. It returns a
// violation for each recording that a trial would refuse.
func (p *plan) populate() (bad params.Violations) {
	known := map[string]*result.Population{}
	for _, v := range p.points {
		path, untimed := v.Text(v.Bench.Needs), v.TraceSpeedup == 0 || v.RequestRate > 0
		key := fmt.Sprint(path, v.Bench.Name, v.MaxConversations, v.Tokenizer, v.Profile.ShareGPT, untimed)
		var err error
		if _, read := known[key]; path == "" || !read {
			known[key], err = population(v)
		}
		if v.Bench.Load == params.LoadReplay && v.Skip() == "" {
			p.replayed[v], err = operations(v)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			bad = bad.Merge(params.Violations{fmt.Sprintf("-%s: %v", v.Bench.Needs, err)})
		}
		p.populations[v] = known[key]
	}
	return bad
}

// opening returns the facts about the loads that are known before the run, as the trials' summaries word
// them. If benchmarks differ in a topic, each of its lines begins with the names of benchmarks.
func (p *plan) opening() (lines []string) {
	var facts []report.Line
	names := map[report.Line][]string{} // of benchmarks
	for _, l := range p.runs() {
		name := l.v.Bench.Name
		in := runInfo(l.v, 0)
		p.describe(l.v, &in.Workload)
		in.Model.RankBytesPerToken = in.Sizer.One().Bytes(1)
		in.Derive()
		for _, fact := range report.Opening(&in.Result).Lines {
			if names[fact] == nil {
				facts = append(facts, fact)
			}
			if !slices.Contains(names[fact], name) {
				names[fact] = append(names[fact], name)
			}
		}
	}
	const most = 3 // lines of a topic
	for _, topic := range []string{"population", "features", "server"} {
		of := slices.DeleteFunc(slices.Clone(facts), func(l report.Line) bool { return l.Topic != topic })
		for _, fact := range of[:min(most, len(of))] {
			text := fact.Text
			if len(of) > 1 {
				text = strings.Join(names[fact], ", ") + ": " + text
			}
			text = strings.ReplaceAll(text, "; ", "\n            ") // else it is wider than a terminal
			lines = append(lines, fmt.Sprintf("%-11s %s", topic, text))
		}
		if rest := len(of) - most; rest > 0 {
			lines = append(lines, fmt.Sprintf("%-11s %s", "", "and "+units.Plural(rest, "other")))
		}
	}
	return lines
}

// describe adds to a result's workload its population, the GPUs of the simulated server, and the features in
// force. A feature that the load does not have in any case, or that is switched off, is not listed.
func (p *plan) describe(v *params.Values, w *result.Workload) {
	if v.Bench.Load != params.LoadUsers && v.Bench.Load != params.LoadTrace {
		return
	}
	w.Population = p.populations[v]
	w.GPUs, w.GPUBytes = v.GPUs, v.GPUBytes
	turns := v.Bench.Load == params.LoadUsers || w.Population != nil && w.Population.Conversations > 0
	sequences := v.OfSessions() || v.Bench.Blocks() // of blocks with common prefixes
	cost, _ := v.Cost()
	inForce := func(off string, disabled bool) bool { return v.Applies(off) && !disabled }
	put := func(on bool, name string) {
		if on {
			w.Features = append(w.Features, name)
		}
	}
	put(turns && (sequences || inForce("disable-multi-turn", v.DisableMultiTurn || v.DecodeOnly)), "multi-turn")
	put(sequences || inForce("disable-prefix-caching", v.DisablePrefixCaching), "prefix cache")
	put(v.EnableRAG, "RAG")
	put(v.Autoscaling, "autoscaling by "+v.AutoscalerMode)
	put(v.PrefillOnly, "prefill only")
	put(v.DecodeOnly, "decode only")
	put(v.ClosedLoop(), "closed loop")
	put(!cost.Free(), "computing of misses")
	put(v.Precondition, "preconditioning")
	put(v.LatencyTracing, "latency tracing")
}
