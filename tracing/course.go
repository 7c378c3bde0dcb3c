package tracing

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Course has histograms of a block-layer trace over time: one set of counts per interval. The sum over the
// window hides that a drive was slow for a second.
type Course struct {
	// At are the ends of the intervals, in seconds since the window opened. The first interval begins
	// at 0.
	At         []float64         `json:"at_s"`
	Histograms map[string]Series `json:"histograms"` // by their keys in the trace
}

// Series is one histogram over time: the counts of each interval, by row. A row is half an octave: its
// values are at least From, and less than √2 × From.
type Series struct {
	From   []float64 `json:"from"`   // the lower bound of each row, in the histogram's unit, ascending
	Counts []Counts  `json:"counts"` // one for each interval
}

// Counts has the counts of an interval, one for each row of a Series, up to the last row whose count is not
// 0. In text and in JSON the numbers are separated by spaces, so that an interval is one line of a file.
type Counts []int64

// MarshalText writes the counts.
func (c Counts) MarshalText() (text []byte, err error) {
	for i, n := range c {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendInt(text, n, 10)
	}
	return text, nil
}

// UnmarshalText reads the counts. It refuses negative numbers and other text.
func (c *Counts) UnmarshalText(text []byte) error {
	*c = nil
	for field := range strings.FieldsSeq(string(text)) {
		n, err := strconv.ParseUint(field, 10, 62)
		if err != nil {
			return fmt.Errorf("counts of an interval: %w", err)
		}
		*c = append(*c, int64(n))
	}
	return nil
}

// NewSeries makes a Series. intervals has the counts of each interval by row; row 0 begins at the value 1.
// The Series omits empty rows at both ends. ok is false if intervals has no count.
func NewSeries(intervals []map[int]int64) (g Series, ok bool) {
	first, last := math.MaxInt, -1
	for _, rows := range intervals {
		for k := range rows {
			first, last = min(first, k), max(last, k)
		}
	}
	for k := first; k <= last; k++ {
		g.From = append(g.From, math.Exp2(float64(k)/2))
	}
	for _, rows := range intervals {
		list := Counts(nil)
		for _, k := range slices.Sorted(maps.Keys(rows)) {
			list = append(list, make([]int64, k-first+1-len(list))...)
			list[k-first] = rows[k]
		}
		g.Counts = append(g.Counts, list)
	}
	return g, last >= 0
}

// MostIntervals limits the number of intervals of a course. A Recorder that reaches it joins adjacent
// intervals in pairs, and from then on needs twice as many snapshots for an interval.
const MostIntervals = 240

// Recorder makes a Course from snapshots of a trace that is in progress. The zero value is ready, and safe
// for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	ends   []snapshot // the snapshot at the end of each interval
	every  int        // snapshots per interval; 0 means 1
	passed int        // snapshots since the end of the last interval
}

// snapshot has the cumulative counts since the window opened, by key of the histogram and by row.
type snapshot struct {
	at     float64 // seconds since the window opened
	counts map[string]map[int]int64
}

// tracked returns the histograms of a trace that a Course contains, by key.
func tracked(h *Histograms) map[string]Histogram {
	return map[string]Histogram{"d2c_read_us": h.D2CRead, "d2c_write_us": h.D2CWrite,
		"qd_read": h.DepthRead, "qd_write": h.DepthWrite}
}

// Row returns the half octave of a value; values below 1 are in row 0. The lower bound of a row is in it
// despite rounding. Row takes 2 ns, because the recorder calls it for each request.
func Row(v float64) int {
	const upper = 1 / math.Sqrt2 * (1 - 1e-9) // the upper half of an octave begins here
	fraction, exponent := math.Frexp(max(1, v))
	row := 2 * (exponent - 1)
	if fraction >= upper {
		row++
	}
	return row
}

// Record records a snapshot of a trace. It ignores nil, and a snapshot whose window is not longer than that
// of the previous one.
func (r *Recorder) Record(t *Trace) {
	if t == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.passed++; r.passed < max(1, r.every) {
		return
	}
	r.add(t)
}

// add ends an interval with the snapshot t. If t lacks a histogram, add repeats the counts of the previous
// snapshot. The counts of the interval are then 0, and the next interval contains the increase of both.
func (r *Recorder) add(t *Trace) {
	before, now := snapshot{}, snapshot{t.Capture.Window().Seconds(), map[string]map[int]int64{}}
	if n := len(r.ends); n > 0 {
		before = r.ends[n-1]
	}
	if now.at <= before.at {
		return
	}
	r.passed = 0
	for key, h := range tracked(&t.Histograms) {
		if now.counts[key] = before.counts[key]; h.Count == 0 {
			continue
		}
		now.counts[key] = map[int]int64{}
		for _, b := range h.Buckets {
			now.counts[key][Row(b.Range[0])] += b.Count
		}
	}
	r.ends = append(r.ends, now)
	if n := len(r.ends); n >= MostIntervals { // keep every second end
		for i := range n / 2 {
			r.ends[i] = r.ends[2*i+1]
		}
		r.ends, r.every = r.ends[:n/2], 2*max(1, r.every)
	}
}

// Course adds the complete trace as the last snapshot, if it is not nil, and returns the course. It returns
// nil if there are fewer than two intervals.
func (r *Recorder) Course(complete *Trace) *Course {
	r.mu.Lock()
	defer r.mu.Unlock()
	if complete != nil {
		r.add(complete)
	}
	if len(r.ends) < 2 {
		return nil
	}
	c := &Course{Histograms: map[string]Series{}}
	for _, s := range r.ends {
		c.At = append(c.At, s.at)
	}
	for key := range r.ends[0].counts {
		if complete != nil && tracked(&complete.Histograms)[key].Count == 0 {
			continue // the complete trace has no such histogram: the sum of the intervals would differ
		}
		var intervals []map[int]int64
		var before map[int]int64
		for _, s := range r.ends {
			grown := map[int]int64{}
			for k, n := range s.counts[key] {
				if n > before[k] {
					grown[k] = n - before[k]
				}
			}
			intervals, before = append(intervals, grown), s.counts[key]
		}
		if g, ok := NewSeries(intervals); ok {
			c.Histograms[key] = g
		}
	}
	return c
}

// Joined returns a course with at most limit intervals. Each interval joins the same number of intervals of
// c, except the last, which may join fewer.
func (c *Course) Joined(limit int) *Course {
	each := (len(c.At) + limit - 1) / limit
	if each < 2 {
		return c
	}
	out := &Course{Histograms: map[string]Series{}}
	for i := each; i < len(c.At)+each; i += each {
		out.At = append(out.At, c.At[min(i, len(c.At))-1])
	}
	for key, g := range c.Histograms {
		joined := Series{From: g.From, Counts: make([]Counts, len(out.At))}
		for i, list := range g.Counts {
			to := &joined.Counts[i/each]
			if more := len(list) - len(*to); more > 0 {
				*to = append(*to, make(Counts, more)...)
			}
			for k, n := range list {
				(*to)[k] += n
			}
		}
		out.Histograms[key] = joined
	}
	return out
}

// Sound reports whether the numbers of rows and intervals match, and whether bounds and times ascend. A
// result file may have been edited.
func (c *Course) Sound() bool {
	for _, g := range c.Histograms {
		if len(g.Counts) != len(c.At) || !ascends(g.From) {
			return false
		}
		for _, rows := range g.Counts {
			if len(rows) > len(g.From) {
				return false
			}
		}
	}
	return ascends(c.At)
}

// ascends reports whether values is not empty, and its values are positive and in ascending order.
func ascends(values []float64) bool {
	return len(values) > 0 && values[0] > 0 && slices.IsSorted(values)
}

// Percentile returns the percentile p (0 to 1) of an interval, as the lower bound of its row. It returns
// false if fewer than ten counts are expected below or above the percentile.
func (g Series) Percentile(interval int, p float64) (float64, bool) {
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
