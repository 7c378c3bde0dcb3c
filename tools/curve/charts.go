package curve

import (
	"kvbench/kvbench/units"
	"kvbench/tools/view"
)

// Page returns the report as a page: the hit ratio by capacity, the load on a device by capacity, and the
// table. The figures have all points of the curve, eight for each doubling of the capacity. The table has
// the rows of the text report.
func (r *Report) Page() view.Page {
	p := view.Page{Title: "Hit ratio against capacity", Facts: r.facts(), Notes: r.notes(),
		Figures: []view.Chart{r.hitChart(), r.rateChart()}, Parts: []view.Part{{Section: r.table()}}}
	if r.wears() {
		p.Figures = append(p.Figures, r.wearChart())
	}
	return p
}

// capacityAxis is logarithmic. It has a tick at each doubling of the capacity. The drawing code leaves out
// ticks whose labels would overlap.
func (r *Report) capacityAxis() view.Axis {
	axis := view.Axis{Label: "capacity (log scale)", Log: true}
	for n := int64(1); n <= r.Points[len(r.Points)-1].CapacityBytes; n *= 2 {
		axis.Ticks = append(axis.Ticks, view.Tick{At: float64(n), Label: units.Bytes.Text(n)})
	}
	return axis
}

// line returns a curve of value over the capacities that hold the largest request (Point.Fits). Values at
// smaller capacities are not exact. The table has a footnote for them, but a curve cannot have one.
func (r *Report) line(name string, colour, dash int, value func(Point) *float64) view.Line {
	l := view.Line{Name: name, Colour: colour, Dash: dash}
	for _, p := range r.Points {
		if v := value(p); v != nil && p.Fits {
			l.X, l.Y = append(l.X, float64(p.CapacityBytes)), append(l.Y, *v)
		}
	}
	return l
}

// hitChart draws the hit ratio by capacity. Its axis always ends at 1, so that the charts of two traces can be
// compared.
func (r *Report) hitChart() view.Chart {
	c := view.Chart{Title: "Hit ratio", X: r.capacityAxis(),
		Y: view.Axis{Label: "share found", Range: view.Values{0, 1}},
		Lines: []view.Line{
			r.line("of blocks", 0, 0, func(p Point) *float64 { return p.HitRatio }),
			r.line("of tokens", 1, 1, func(p Point) *float64 { return p.TokenHitRatio }),
			r.line("of requests: first block", 2, 2,
				func(p Point) *float64 { return p.PrefixHitRatio }),
		}}
	if r.Knee != nil {
		c.Marks = append(c.Marks, view.Mark{X: float64(r.Knee.CapacityBytes), Text: "knee"})
	}
	return c
}

// rateChart draws the reads and writes of the device by capacity, in MiB/s. With the capacity reads rise and
// writes fall. A drive is fast enough if its read rate and its write rate are above the curves.
func (r *Report) rateChart() view.Chart {
	// Rates are drawn in MiB/s: in bytes/s the labels of the axis would have ten digits.
	mega := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		return new(*v / float64(units.MiB))
	}
	return view.Chart{Title: "What the device must do", X: r.capacityAxis(),
		Y: view.Axis{Label: "MiB/s", Zero: true},
		Lines: []view.Line{
			r.line("read", 0, 0, func(p Point) *float64 { return mega(p.Read) }),
			r.line("read, busiest interval", 0, 1,
				func(p Point) *float64 { return mega(p.PeakRead) }),
			r.line("write", 1, 0, func(p Point) *float64 { return mega(p.Write) }),
			r.line("write, busiest interval", 1, 1,
				func(p Point) *float64 { return mega(p.PeakWrite) }),
		}}
}

// wearChart draws the drive writes per day by capacity. Its axis is logarithmic: drives are rated for 0.3, 1,
// 3 or 10 drive writes per day, and a small cache causes hundreds.
func (r *Report) wearChart() view.Chart {
	// Without -drive each value is for a drive of exactly that capacity.
	title := "Writes per day as a multiple of the capacity"
	if r.DriveBytes > 0 {
		title = "Drive writes per day of " + decimal(r.DriveBytes)
	}
	return view.Chart{Title: title, X: r.capacityAxis(),
		Y: view.Axis{Label: "drive writes per day (log scale)", Log: true},
		Lines: []view.Line{r.line("drive writes per day", 1, 0,
			func(p Point) *float64 { return p.DriveWrites })}}
}
