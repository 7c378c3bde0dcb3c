package curve

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
)

// Text is the report for a terminal: the facts, then the table.
func (r *Report) Text() string {
	facts := report.Section{Lines: r.facts()}
	return facts.String() + "\n" + r.table().Alone() + "\n" + strings.Join(r.notes(), "\n") + "\n"
}

// facts returns the report's sentences with their topics, for text and page. A line without a topic
// continues the previous one.
func (r *Report) facts() (list []report.Line) {
	say := func(topic, format string, args ...any) {
		list = append(list, report.Line{Topic: topic, Text: fmt.Sprintf(format, args...)})
	}
	trace := r.Files[0]
	if n := len(r.Files) - 1; n > 0 {
		trace += " and " + units.Plural(n, "other file")
	}
	say("trace", "%s: %s in %s", trace, units.Plural(r.Requests, "request"), span(r.DurationS))
	// The number of live sessions decides the hit ratio.
	if r.Sessions > 0 {
		say("", "%s of agents, up to %s live at a time", units.Plural(r.Sessions, "session"),
			units.Count.Text(int64(r.Live)))
	}
	if r.Malformed > 0 {
		say("", "%s malformed and left out; the first is %s",
			units.Plural(r.Malformed, "row"), r.FirstMalformed)
	}
	if r.Unordered > 0 {
		say("", "%s earlier than a row before them, with which they come",
			units.Plural(r.Unordered, "row"))
	}
	for _, note := range r.Notes {
		say("", "%s", note)
	}
	if r.Skipped > 0 {
		say("", "%s before -trace-start left out", units.Plural(r.Skipped, "row"))
	}
	if r.WarmupS > 0 {
		say("", "after %s of warm-up, which fill the caches and do not count", span(r.WarmupS))
	}
	if r.Speedup != 1 {
		say("", "its times divided by %s", units.Number.Text(r.Speedup))
	}
	// Files of several sources may have different block sizes.
	size := units.Count.Text(r.LargestBlock)
	if r.SmallestBlock != r.LargestBlock {
		size = units.Count.Text(r.SmallestBlock) + " to " + size
	}
	// Say whether bytes are of one rank or of all.
	ranks := ""
	switch { // 16 ranks of a model with 8 heads keep twice what the model has
	case r.TPIO == "all" && r.TensorParallel > 1:
		ranks = fmt.Sprintf(", of which %d ranks keep %s: all bytes are those of all ranks",
			r.TensorParallel, units.Count.Text(int64(r.kept)))
	case r.kept < float64(r.BytesPerToken):
		ranks = fmt.Sprintf(", of which one rank of %d keeps %s: all bytes are one rank's",
			r.TensorParallel, units.Count.Text(int64(r.kept)))
	}
	name := r.Model
	if r.StoredAs != "" {
		name += " in " + r.StoredAs
	}
	say("model", "%s: %s B per token%s", name, units.Count.Text(r.BytesPerToken), ranks)
	say("requested", "%s blocks of %s tokens: %s tokens, %s", units.Count.Text(r.Blocks), size,
		units.Count.Text(r.Tokens), units.Bytes.Text(r.Bytes))
	say("distinct", "%s blocks: %s hold everything; the largest request needs %s",
		units.Count.Text(r.Distinct), units.Bytes.Text(r.FootprintBytes),
		units.Bytes.Text(r.LargestRequestBytes))
	say("best", "hit ratio %s, of tokens %s, however large the cache",
		units.HitRatio.Text(r.IdealHitRatio), units.HitRatio.Text(r.IdealTokenHitRatio))
	if r.Knee != nil {
		say("knee", "%s: hit ratio %s, %s of the best; each further GiB adds fewer hits "+
			"than the average GiB below it", units.Bytes.Text(r.Knee.CapacityBytes),
			units.HitRatio.Text(r.Knee.HitRatio), units.Percent(r.Knee.OfIdeal))
	}
	var reached []string
	for i, p := range r.Reaches {
		reached = append(reached, fmt.Sprintf("%s of it from %s", units.Share.Text(shares[i]),
			units.Bytes.Text(p.CapacityBytes)))
	}
	if len(reached) > 0 {
		say("", "%s", strings.Join(reached, ", "))
	}
	drive := slices.IndexFunc(r.Points, func(p Point) bool { return p.CapacityBytes == r.DriveBytes })
	if drive >= 0 {
		// Both rates name their period. An extrapolation from minutes to a day is marked "~": the cold
		// start is written once, not every day.
		about, cold := "", ", its cold start included (-warmup leaves that out)"
		if r.DurationS < (24 * time.Hour).Seconds() {
			about = "~"
		}
		if r.WarmupS > 0 {
			cold = ""
		}
		say("drive", "%s: written %s%s times a day at the mean rate of the trace's %s%s",
			decimal(r.DriveBytes), about, units.Number.Text(r.Points[drive].DriveWrites),
			span(r.DurationS), cold)
	}
	return list
}

// notes returns the limits of the numbers.
func (r *Report) notes() (list []string) {
	live := ""
	if r.Sessions > 0 {
		live = ", this -num-users and -seed,"
	}
	list = append(list, "LRU on one level of storage, exact: what -bench BlockTrace with "+
		"-cpu-mem-gb 0"+live+" and each -storage-capacity-gb would hit.",
		fmt.Sprintf("Rates at the recorded times: the mean over all, the peak of %s.",
			span(r.IntervalS)))
	if !r.wears() {
		list = append(list, fmt.Sprintf("Writes per day are left out: %s say nothing of a day.",
			span(r.DurationS)))
	}
	if r.FixedBytes > 0 {
		list = append(list, fmt.Sprintf("Not counted: the model keeps %s of every sequence "+
			"besides, as states or as its last tokens.", units.Bytes.Text(r.FixedBytes)))
	}
	if len(r.Files) > 1 && r.Sessions == 0 {
		list = append(list, "Files whose times are dates are merged by them, as in a replay. "+
			"Others follow each other: what of them ran at the same time competes for room, and "+
			"needs more of it than this shows.")
	}
	if slices.ContainsFunc(r.rows(), func(p Point) bool { return !p.Fits }) {
		list = append(list, "* too small for the largest request, whose blocks do not fit "+
			"together: about what a cache finds that keeps the first of them.")
	}
	// The curve uses a block's first size, a replay the size of the last write, which depends on the
	// capacity.
	if r.Resized > 0 {
		list = append(list, fmt.Sprintf("Not exact: %s came with another size than at first, "+
			"which is counted.", units.Plural(r.Resized, "block")))
	}
	return list
}

// fewRows is the smallest number of rows of the table, if there are enough points.
const fewRows = 8

// rows returns the points of the table: the capacities that the user gave, or each doubling and the
// footprint. With few doublings it adds points between them.
func (r *Report) rows() (rows []Point) {
	asked := slices.ContainsFunc(r.Points, func(p Point) bool {
		return p.Asked && p.CapacityBytes != r.DriveBytes
	})
	for step := 1.0; step > 1.0/16 && len(rows) < fewRows; step /= 2 {
		rows = rows[:0]
		for _, p := range r.Points {
			// Points are eighths of octaves, rounded to bytes.
			octaves := math.Log2(float64(p.CapacityBytes)) / step
			if p.Asked || !asked && (p.CapacityBytes == r.FootprintBytes ||
				math.Abs(octaves-math.Round(octaves)) < 1e-6) {
				rows = append(rows, p)
			}
		}
	}
	return rows
}

// table returns the table of text and page.
func (r *Report) table() report.Section {
	// The head says whether the last rate is of the tier or of the drive: endurance ratings are of
	// drives.
	drive := "capacity writes/day"
	if r.DriveBytes > 0 {
		drive = "drive writes/day"
	}
	t := report.Section{Title: "Capacities",
		Columns: []report.Column{{Name: "capacity"}, {Name: "tokens", Unit: units.Count},
			{Name: "hit ratio", Unit: units.HitRatio}, {Name: "of best", Unit: units.Share},
			{Name: "of tokens", Unit: units.HitRatio}, {Name: "read", Unit: units.BytesPerSec},
			{Name: "peak", Unit: units.BytesPerSec}, {Name: "write", Unit: units.BytesPerSec},
			{Name: "peak", Unit: units.BytesPerSec}, {Name: drive, Unit: units.Number}}}
	for _, p := range r.rows() {
		name := units.Bytes.Text(p.CapacityBytes)
		if !p.Fits {
			name += " *"
		}
		if !r.wears() {
			p.DriveWrites = nil
		}
		t.Rows = append(t.Rows, []any{name, int64(p.Tokens), p.HitRatio, p.OfIdeal,
			p.TokenHitRatio, p.Read, p.PeakRead, p.Write, p.PeakWrite, p.DriveWrites})
	}
	return t
}

// wears reports whether the recording is long enough, ten minutes, to say what a day writes.
func (r *Report) wears() bool { return r.DurationS >= 600 }

// Cells returns all points as a table. Its heads are the JSON keys. An unknown value is nil.
func (r *Report) Cells() (heads []string, rows [][]any) {
	for f := range reflect.TypeFor[Point]().Fields() {
		heads = append(heads, f.Tag.Get("json"))
	}
	for _, p := range r.Points {
		var row []any
		for _, v := range reflect.ValueOf(p).Fields() {
			var cell any
			if v = reflect.Indirect(v); v.IsValid() {
				cell = v.Interface()
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return heads, rows
}

var span = units.Seconds.Text

// decimal returns a drive's size in decimal units, with four digits.
func decimal(n int64) string {
	if n >= 1e12 {
		return strconv.FormatFloat(float64(n)/1e12, 'g', 4, 64) + " TB"
	}
	return strconv.FormatFloat(float64(n)/1e9, 'g', 4, 64) + " GB"
}
