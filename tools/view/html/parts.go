package html

import (
	"fmt"
	"math"
	"strconv"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// part is what only some benchmarks have: a heading, a table, and whether the table is long enough to be folded away.
type part struct {
	Title  string
	Words  []string // one line each
	Table  *grid
	Folded bool
}

// parts are those of the median trial of each run.
func parts(typical []*load.Record, t *stats.Table) (out []part) {
	for run, rec := range typical {
		if rec == nil || rec.Result == nil {
			continue
		}
		for _, p := range []*part{simulationPart(rec.Result), autoscalingPart(rec.Result), blockPart(rec.Result), replayPart(rec.Result), validationPart(rec.Result)} {
			if p != nil {
				if len(t.Runs) > 1 {
					p.Title += ", " + t.Labels[run]
				}
				out = append(out, *p)
			}
		}
	}
	return out
}

func simulationPart(r *result.Result) *part {
	s := r.Simulation
	if s == nil {
		return nil
	}
	p := &part{Title: "Simulated, not measured"}
	if s.Device == nil {
		p.Words = append(p.Words, "Storage was infinitely fast: latencies are 0 and rates are those of the load.")
		return p
	}
	d := s.Device
	medium := "one medium for reads and writes"
	if d.Duplex {
		medium = "a medium for each direction"
	}
	p.Words = append(p.Words, fmt.Sprintf("The times are those of a model of a device: reads %s/s after %s, writes %s/s after %s, %d requests at a time, %s.",
		stats.Binary(d.Read), d.ReadLatency, stats.Binary(d.Write), d.WriteLatency, d.Parallelism, medium))
	line := "Its medium was busy " + shareText(s.DeviceBusyShare) + " of the time"
	if s.QueueGrowth != nil {
		line += ", the queue grew by " + stats.Number(*s.QueueGrowth) + " requests/s"
	}
	if s.SustainedUsers != nil {
		line += fmt.Sprintf(", and it would sustain %s of %d users", stats.Number(*s.SustainedUsers), r.Workload.Users)
	}
	p.Words = append(p.Words, line+".")
	return p
}

func autoscalingPart(r *result.Result) *part {
	s := r.Summary.AutoscalingSummary
	if s == nil {
		return nil
	}
	found := "found"
	if !s.Found {
		found = "the window ended before it was found"
	}
	p := &part{Title: "Autoscaler", Folded: true, Words: []string{fmt.Sprintf("%s: %d users sustained (%s), at most %d ran, at most %s/s; %d rounds, from %d to %d users.",
		s.Mode, s.SustainedUsers, found, s.PeakUsers, stats.Binary(s.PeakRate), s.Rounds, s.InitialUsers, s.FinalUsers)}}
	g := &grid{Head: []string{"round", "ended at", "users", "workers", "goroutines", "storage rate", "noise", "read p95", "write p95", "saturation", "then users", "decision"},
		Note: "Latencies are per 100 MiB; noise is two standard errors of the rate."}
	for i, x := range r.Summary.AutoscalingStats {
		g.Rows = append(g.Rows, []gridCell{num(strconv.Itoa(i + 1)), num(stats.Number(x.AtS) + " s"), num(strconv.Itoa(x.Users)), num(strconv.Itoa(x.Workers)),
			num(strconv.Itoa(x.Goroutines)), num(stats.Binary(x.BytesPerSecond) + "/s"), num(stats.Binary(x.Noise) + "/s"), num(millis(x.ReadP95)), num(millis(x.WriteP95)),
			num(shareText(x.Saturation)), num(strconv.Itoa(x.NextUsers)), {Text: x.Decision}})
	}
	if len(g.Rows) > 0 {
		p.Table = g
	}
	return p
}

func blockPart(r *result.Result) *part {
	b := r.BlockCache
	if b == nil {
		return nil
	}
	return &part{Title: "Block cache", Table: &grid{
		Head: []string{"block hit ratio", "ideal", "prefix-hit ratio", "tokens hit", "bytes saved", "blocks asked for", "hit", "written", "behind a missing one"},
		Rows: [][]gridCell{{num(ratioText(b.HitRatio)), num(ratioText(b.IdealHitRatio)), num(shareText(b.PrefixHitRatio)), num(shareText(b.TokenHitRatio)),
			num(stats.Binary(float64(b.BytesSaved))), num(stats.Thousands(b.Blocks)), num(stats.Thousands(b.Hits)), num(stats.Thousands(b.Written)), num(stats.Thousands(b.Kept))}},
		Note: "Ideal is a cache without bounds on the same requests. The prefix-hit ratio is the share of the requests of which at least the first block was found.",
	}}
}

func replayPart(r *result.Result) *part {
	p := r.Replay
	if p == nil {
		return nil
	}
	var row []gridCell
	for _, n := range []int64{p.Rows, p.Skipped, p.Reads, p.Writes, p.Deletes, p.EvictedReads, p.UnwrittenReads, p.Overwrites, p.TooLarge, p.Evictions} {
		row = append(row, num(stats.Thousands(n)))
	}
	return &part{Title: "Replay of an I/O trace", Table: &grid{
		Head: []string{"rows", "not selected", "reads", "writes", "deletes", "reads of evicted", "reads of never written", "overwrites", "too large", "deleted for room", "largest delay"},
		Rows: [][]gridCell{append(row, num(stats.Seconds(float64(p.LateNS)/1e9)))},
		Note: "Reads of evicted and of never written entries, and writes larger than the tier, cost no I/O.",
	}}
}

func validationPart(r *result.Result) *part {
	v := r.Validation
	if v == nil {
		return nil
	}
	word := "Failed: not within"
	if v.Passed {
		word = "Passed: within"
	}
	p := &part{Title: "Validation against a recorded run", Words: []string{fmt.Sprintf("%s %s of %s (%s requests, %s malformed).", word, shareText(&v.Tolerance), v.Trace,
		stats.Thousands(v.Requests), stats.Thousands(v.Malformed))}}
	g := &grid{Head: []string{"", "run", "recorded", "difference", "judged"}}
	for _, c := range v.Checks() {
		judged := gridCell{Text: c.Word()}
		if c.Passed != nil {
			judged.Class = map[bool]string{true: "better", false: "worse"}[*c.Passed]
		}
		g.Rows = append(g.Rows, []gridCell{{Text: c.Name}, num(numberText(c.Measured)), num(numberText(c.Recorded)), num(shareText(c.Difference)), judged})
	}
	p.Table = g
	return p
}

func numberText(v *float64) string {
	if v == nil {
		return "–"
	}
	return stats.Number(*v)
}

// ratioText has the five digits by which a hit ratio is compared with the ideal one.
func ratioText(v *float64) string {
	if v == nil {
		return "–"
	}
	return strconv.FormatFloat(*v, 'f', 5, 64)
}

func shareText(v *float64) string {
	if v == nil {
		return "–"
	}
	return stats.Number(*v*100) + " %"
}

func millis(v *float64) string {
	if v == nil {
		return "–"
	}
	return stats.Seconds(*v / 1e3)
}

// mostPoints of a line over time: more than a plot has room for.
const mostPoints = 400

// blockPlots is the block hit ratio beside the ideal one, in each interval and from the beginning.
func blockPlots(typical []*load.Record, t *stats.Table) (out []figure) {
	var interval, soFar []Line
	for run, rec := range typical {
		if rec == nil || rec.Result == nil {
			continue
		}
		r := stats.BlockRatios(rec.Result.Timeline, mostPoints)
		if r == nil {
			continue
		}
		line := func(what string, i int, y []float64) Line {
			return Line{Name: runName(t, run, what), Colour: colour(t, run, i), Dash: dash(t, i), X: r.At, Y: y}
		}
		interval = append(interval, line("hit ratio", 0, r.Hit), line("ideal", 1, r.Ideal))
		soFar = append(soFar, line("hit ratio", 0, r.HitSoFar), line("ideal", 1, r.IdealSoFar))
	}
	chart := func(lines []Line) Chart {
		return Chart{X: Axis{Label: "time in the window (s)", Zero: true}, Y: Axis{Label: "blocks hit (share of those asked for)", Min: 0, Max: 1}, Lines: lines}
	}
	out = append(out, figureOf("Block hit ratio in each interval, median trial", chart(interval))...)
	return append(out, figureOf("Block hit ratio so far, median trial", chart(soFar))...)
}

// autoscalingPlots are the rounds of an autoscaler: who ran, how saturated the storage was, and what it moved.
func autoscalingPlots(typical []*load.Record, t *stats.Table) (out []figure) {
	var crew, saturation, rate []Line
	for run, rec := range typical {
		if rec == nil || rec.Result == nil || len(rec.Result.Summary.AutoscalingStats) == 0 {
			continue
		}
		rounds := rec.Result.Summary.AutoscalingStats
		add := func(to *[]Line, what string, i int, of func(result.Round) float64) {
			l := Line{Name: runName(t, run, what), Colour: colour(t, run, i), Dash: dash(t, i), Step: true}
			from := 0.0
			for _, r := range rounds { // each value held during its round
				l.X, l.Y = append(l.X, from), append(l.Y, of(r))
				from = r.AtS
			}
			l.X, l.Y = append(l.X, from), append(l.Y, of(rounds[len(rounds)-1]))
			*to = append(*to, l)
		}
		add(&crew, "users", 0, func(r result.Round) float64 { return float64(r.Users) })
		add(&crew, "workers", 1, func(r result.Round) float64 { return float64(r.Workers) })
		add(&crew, "goroutines", 2, func(r result.Round) float64 { return float64(r.Goroutines) })
		add(&saturation, "saturation", 0, func(r result.Round) float64 {
			if r.Saturation == nil {
				return math.NaN()
			}
			return 100 * *r.Saturation
		})
		if s := rec.Result.Summary.AutoscalingSummary; s != nil && s.Mode == result.AutoscaleQoS {
			if target, err := strconv.ParseFloat(fmt.Sprint(rec.Parameter("target-saturation")), 64); err == nil {
				add(&saturation, "target", 1, func(result.Round) float64 { return 100 * target })
			}
		}
		add(&rate, "read and written", 0, func(r result.Round) float64 { return r.BytesPerSecond })
	}
	most := 0.0
	for _, l := range rate {
		for _, v := range l.Y {
			most = max(most, v)
		}
	}
	by, unit := byteUnit(most)
	for _, l := range rate {
		for i := range l.Y {
			l.Y[i] /= by
		}
	}
	x := Axis{Label: "time in the window (s)", Zero: true}
	out = append(out, figureOf("Users, workers and goroutines in each round, median trial", Chart{X: x, Y: Axis{Label: "how many (of each)", Zero: true}, Lines: crew})...)
	out = append(out, figureOf("Saturation at the end of each round, median trial", Chart{X: x, Y: Axis{Label: "saturation (%)", Min: 0, Max: 105}, Lines: saturation})...)
	return append(out, figureOf("Storage rate of each round, median trial", Chart{X: x, Y: Axis{Label: "bandwidth (" + unit + "/s)", Zero: true}, Lines: rate})...)
}
