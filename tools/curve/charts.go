package curve

import (
	"kvbench/kvbench/units"
	"kvbench/tools/view"
)

// Page is the report as a page: the curve, each capacity's load on a device, and the table. The
// figures have all points of the curve, eight to a doubling, the table has the text's.
func (r *Report) Page() view.Page {
	p := view.Page{Title: "Hit ratio against capacity", Notes: r.notes(),
		Figures: []view.Chart{r.hitChart(), r.rateChart(), r.wearChart()}}
	for _, f := range r.facts() {
		p.Facts = append(p.Facts, view.Fact{Key: f[0], Values: []string{f[1]}})
	}
	p.Parts = []view.Part{{Section: r.table()}}
	return p
}

// capacityAxis is logarithmic, with a tick at every doubling: the drawing leaves out ticks that
// would overlap.
func (r *Report) capacityAxis() view.Axis {
	axis := view.Axis{Label: "capacity (log scale)", Log: true}
	for n := int64(1); n <= r.Points[len(r.Points)-1].CapacityBytes; n *= 2 {
		axis.Ticks = append(axis.Ticks, view.Tick{At: float64(n), Label: units.Bytes.Text(n)})
	}
	return axis
}

// line is a series over the capacities that hold the largest request: the others are not exact, and
// a line has no footnote.
func (r *Report) line(name string, colour, dash int, value func(Point) *float64) view.Line {
	l := view.Line{Name: name, Colour: colour, Dash: dash}
	for _, p := range r.Points {
		if v := value(p); v != nil && p.Fits {
			l.X, l.Y = append(l.X, float64(p.CapacityBytes)), append(l.Y, *v)
		}
	}
	return l
}

// hitChart is the hit ratio. Its axis ends at 1, so that curves of two traces can be compared.
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
		c.Marks = append(c.Marks, view.Mark{X: float64(r.Knee.CapacityBytes), Text: "bend"})
	}
	return c
}

// rateChart is the reads, which rise, and the writes, which fall with the capacity: a drive whose
// rates are above both is fast enough.
func (r *Report) rateChart() view.Chart {
	// One unit for both axes: bytes would have labels of ten digits.
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

// wearChart is logarithmic: ratings are 0.3, 1, 3 and 10 drive writes per day, and small caches
// need hundreds.
func (r *Report) wearChart() view.Chart {
	// Without a drive the values of different capacities are those of different drives.
	title := "Writes per day as a multiple of the capacity"
	if r.DriveBytes > 0 {
		title = "Drive writes per day of " + decimal(r.DriveBytes)
	}
	return view.Chart{Title: title, X: r.capacityAxis(),
		Y: view.Axis{Label: "drive writes per day (log scale)", Log: true},
		Lines: []view.Line{r.line("drive writes per day", 1, 0,
			func(p Point) *float64 { return p.DriveWrites })}}
}
