package tracing

import (
	"math"
	"slices"
	"sync"
)

// Course is how some histograms of a trace grew while it was taken: what was counted between two
// looks at it. A mean over a window hides that a drive was slow for a second of it.
type Course struct {
	// At are the ends of the intervals, in seconds from the window's opening; the first begins
	// with it.
	At         []float64         `json:"at_s"`
	Histograms map[string]Growth `json:"histograms"` // by their keys in the trace
}

// Growth is one histogram over time. Rows are half octaves: the value is at least From, and less
// than the square root of two times that.
type Growth struct {
	From   []float64 `json:"from"`   // of each row, in the histogram's unit, growing
	Counts [][]int64 `json:"counts"` // of each interval, a count for each row
}

// mostIntervals are those of a course: more columns than a plot has room for. When there are more,
// neighbours are joined, and from then on only every second look counts.
const mostIntervals = 240

// Recorder makes a course of looks at a growing trace. The zero value is ready to use, by several
// goroutines.
type Recorder struct {
	mu     sync.Mutex
	at     []float64
	counts []map[string]map[int]int64 // of each interval, by key and row
	before map[string]map[int]int64   // at the last look that counted
	every  int                        // looks to an interval
	looks  int                        // since the last one that counted
}

// followed are the histograms of a course.
func followed(h *Histograms) map[string]Histogram {
	return map[string]Histogram{"d2c_read_us": h.D2CRead, "d2c_write_us": h.D2CWrite,
		"qd_read": h.DepthRead, "qd_write": h.DepthWrite}
}

// row is the half octave of a bucket, by its lower bound; what is below 1 is in the first.
func row(b Bucket) int { return int(math.Floor(2*math.Log2(max(1, b.Range[0])) + 1e-9)) }

// Look takes in a trace as it is now. Nil, and one that has not grown in time, is nothing.
func (r *Recorder) Look(t *Trace) {
	if t == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looks++; r.looks < max(1, r.every) {
		return
	}
	r.add(t)
}

// add ends an interval.
func (r *Recorder) add(t *Trace) {
	at := t.Capture.Window().Seconds()
	if n := len(r.at); n > 0 && at <= r.at[n-1] || at <= 0 {
		return
	}
	r.looks = 0
	now, grown := map[string]map[int]int64{}, map[string]map[int]int64{}
	for key, h := range followed(&t.Histograms) {
		now[key], grown[key] = map[int]int64{}, map[int]int64{}
		if h.Count == 0 { // what is left out of one look comes with the next
			now[key] = r.before[key]
			continue
		}
		for _, b := range h.Buckets {
			now[key][row(b)] += b.Count
		}
		for k, n := range now[key] {
			if n > r.before[key][k] {
				grown[key][k] = n - r.before[key][k]
			}
		}
	}
	r.before = now
	r.at, r.counts = append(r.at, at), append(r.counts, grown)
	if len(r.at) >= mostIntervals {
		r.halve()
	}
}

// halve joins each interval with the next.
func (r *Recorder) halve() {
	half := len(r.at) / 2
	for i := range half {
		for key, rows := range r.counts[2*i+1] {
			for k, n := range r.counts[2*i][key] {
				rows[k] += n
			}
		}
		r.at[i], r.counts[i] = r.at[2*i+1], r.counts[2*i+1]
	}
	r.at, r.counts = r.at[:half], r.counts[:half]
	r.every = 2 * max(1, r.every)
}

// Course is what was seen until the trace ended as it is now; nil when that was no more than one
// interval, which the trace itself says.
func (r *Recorder) Course(end *Trace) *Course {
	r.mu.Lock()
	defer r.mu.Unlock()
	if end != nil {
		r.add(end)
	}
	if len(r.at) < 2 {
		return nil
	}
	c := &Course{At: r.at, Histograms: map[string]Growth{}}
	for key := range r.before {
		first, last := math.MaxInt, -1
		for _, grown := range r.counts {
			for k := range grown[key] {
				first, last = min(first, k), max(last, k)
			}
		}
		if last < 0 {
			continue // of that nothing was counted
		}
		g := Growth{}
		for k := first; k <= last; k++ {
			g.From = append(g.From, math.Exp2(float64(k)/2))
		}
		for _, grown := range r.counts {
			list := make([]int64, last-first+1)
			for k, n := range grown[key] {
				list[k-first] = n
			}
			g.Counts = append(g.Counts, list)
		}
		c.Histograms[key] = g
	}
	return c
}

// Sound says whether rows and intervals are as many as they say, and in order: a file may have been
// edited.
func (c *Course) Sound() bool {
	for _, g := range c.Histograms {
		if len(g.Counts) != len(c.At) || !ascends(g.From) {
			return false
		}
		for _, rows := range g.Counts {
			if len(rows) != len(g.From) || slices.Min(rows) < 0 {
				return false
			}
		}
	}
	return ascends(c.At)
}

// ascends says that there are values, and that they begin above 0 and grow.
func ascends(values []float64) bool {
	return len(values) > 0 && values[0] > 0 && slices.IsSorted(values)
}

// Percentile is the beginning of the half octave in which the share p of an interval's counts ends;
// false with too few counts to say: ten beyond it are wanted.
func (g Growth) Percentile(interval int, p float64) (float64, bool) {
	total := int64(0)
	for _, n := range g.Counts[interval] {
		total += n
	}
	if float64(total)*min(p, 1-p) < 10 {
		return 0, false
	}
	below := int64(0)
	for k, n := range g.Counts[interval] {
		if below += n; float64(below) >= p*float64(total) {
			return g.From[k], true
		}
	}
	return 0, false
}
