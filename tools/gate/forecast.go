package gate

import (
	"fmt"
	"math"
	"time"

	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// forecast is what a gate of more trials will probably say, by the noise of the trials so far.
type forecast struct {
	Decides  float64 // probability that the gate passes or fails
	Noisiest *Row    // the row whose smallest detectable loss exceeds its limit most
	Sees     float64 // that loss
}

// hopeless is the probability of a decision below which more runs are a waste of time.
const hopeless = 0.05

// forecast returns the forecast of a gate with count trials of each side. Without a row that can be
// tested it has no Noisiest.
func (r *Report) forecast(count int) forecast {
	f, lost, most := forecast{Decides: 1}, 0.0, math.Inf(-1)
	for _, row := range r.Family {
		if row.Better == 0 {
			continue
		}
		o := row.new().Change.Outlook(row.Better, count, row.Limit, r.level())
		if row.Stuck {
			o = stats.Outlook{Sees: math.Inf(1)}
		}
		// A row whose noise hides its limit decides only if its difference is large. The noise of one
		// benchmark says nothing about that of another.
		f.Decides *= o.Clear + (1-o.Clear)*min(1, o.Worse+o.Better)
		lost = max(lost, o.Worse)
		if over := o.Sees / row.Limit; over > most {
			f.Noisiest, f.Sees, most = row, o.Sees, over
		}
	}
	// One row that is worse decides the gate.
	f.Decides = max(f.Decides, lost)
	return f
}

// level is the level at which each row is tested.
func (r *Report) level() float64 { return r.Options.Alpha / float64(max(1, len(r.Family))) }

// remedy returns what makes a row see its limit. each is the time of a run of both sides, 0 if unknown.
func (r *Report) remedy(row *Row, each time.Duration) string {
	have := min(row.old().N(), row.new().N())
	n := row.new().Change.Enough(row.Better, have, row.Limit, r.level())
	took := ""
	switch {
	case row.Stuck:
		return "most trials gave the same number: the window or a limit decided it, and no storage; " +
			"measure with a longer -benchtime"
	case n == 0:
		return "only longer windows, a quieter machine or a larger -max-regress will do"
	case each > 0:
		took = fmt.Sprintf(" (%s more)", minutes(time.Duration(n-have)*each))
	}
	return fmt.Sprintf("-count %d or so%s would do, or longer windows, or a quieter machine, or a "+
		"larger -max-regress", n, took)
}

// minutes formats an estimated time.
func minutes(d time.Duration) string {
	if d < 100*time.Second {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return units.Plural(int(math.Round(d.Minutes())), "minute")
}
