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

// Course is some histograms of a trace over time: the counts between two snapshots. A mean over the
// window hides that a drive was slow for a second.
type Course struct {
	// At are the ends of the intervals, in seconds since the window opened; the first begins at 0.
	At         []float64         `json:"at_s"`
	Histograms map[string]Growth `json:"histograms"` // by their keys in the trace
}

// Growth is one histogram over time. Rows are half octaves: the values of a row are at least From, and
// less than √2 × From.
type Growth struct {
	From   []float64 `json:"from"`   // of each row, in the histogram's unit, ascending
	Counts []Counts  `json:"counts"` // of each interval
}

// Counts has one count for each row of a Growth, up to the last one that is not 0. As text, and in JSON,
// it is the numbers separated by spaces, so that an interval is one line of a file.
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

// NewGrowth returns a Growth of the counts of each interval by row (row 0 begins at 1), or false if all are
// 0. It omits empty rows at both ends.
func NewGrowth(intervals []map[int]int64) (g Growth, ok bool) {
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

// MostIntervals limits the intervals of a course, which are more than the columns of a plot. With more
// snapshots, adjacent intervals are joined, and from then on only every second snapshot counts.
const MostIntervals = 240

// Recorder makes a Course from snapshots of a growing trace. The zero value is ready, and safe for
// concurrent use.
type Recorder struct {
	mu     sync.Mutex
	ends   []snapshot // of the intervals
	every  int        // snapshots per interval
	passed int        // snapshots since the last end
}

// snapshot has the counts since the window opened, by key and row.
type snapshot struct {
	at     float64 // seconds since the window opened
	counts map[string]map[int]int64
}

// followed returns the histograms of a course.
func followed(h *Histograms) map[string]Histogram {
	return map[string]Histogram{"d2c_read_us": h.D2CRead, "d2c_write_us": h.D2CWrite,
		"qd_read": h.DepthRead, "qd_write": h.DepthWrite}
}

// Row returns the half octave of a value; values below 1 are in row 0. The 1e-9 keeps the lower bound of
// a row in it despite rounding.
func Row(v float64) int { return int(math.Floor(2*math.Log2(max(1, v)) + 1e-9)) }

// Look records a snapshot of a trace. It ignores nil, and a trace whose window has not grown.
func (r *Recorder) Look(t *Trace) {
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

// add ends an interval. A histogram that is missing in this snapshot keeps its counts: the next snapshot
// adds to them.
func (r *Recorder) add(t *Trace) {
	before, now := snapshot{}, snapshot{t.Capture.Window().Seconds(), map[string]map[int]int64{}}
	if n := len(r.ends); n > 0 {
		before = r.ends[n-1]
	}
	if now.at <= before.at {
		return
	}
	r.passed = 0
	for key, h := range followed(&t.Histograms) {
		if now.counts[key] = before.counts[key]; h.Count == 0 {
			continue
		}
		now.counts[key] = map[int]int64{}
		for _, b := range h.Buckets {
			now.counts[key][Row(b.Range[0])] += b.Count
		}
	}
	r.ends = append(r.ends, now)
	if n := len(r.ends); n >= MostIntervals { // every second end stays
		for i := range n / 2 {
			r.ends[i] = r.ends[2*i+1]
		}
		r.ends, r.every = r.ends[:n/2], 2*max(1, r.every)
	}
}

// Course returns the course up to the complete trace end; nil if it has no more than one interval.
func (r *Recorder) Course(end *Trace) *Course {
	r.mu.Lock()
	defer r.mu.Unlock()
	if end != nil {
		r.add(end)
	}
	if len(r.ends) < 2 {
		return nil
	}
	c := &Course{Histograms: map[string]Growth{}}
	for _, s := range r.ends {
		c.At = append(c.At, s.at)
	}
	for key := range r.ends[0].counts {
		if end != nil && followed(&end.Histograms)[key].Count == 0 {
			continue // not in the complete trace: its snapshots do not add up to it
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
		if g, ok := NewGrowth(intervals); ok {
			c.Histograms[key] = g
		}
	}
	return c
}

// Joined returns the course with at most so many intervals, each of the same number of original ones.
func (c *Course) Joined(most int) *Course {
	each := (len(c.At) + most - 1) / most
	if each < 2 {
		return c
	}
	out := &Course{Histograms: map[string]Growth{}}
	for i := each; i < len(c.At)+each; i += each {
		out.At = append(out.At, c.At[min(i, len(c.At))-1])
	}
	for key, g := range c.Histograms {
		joined := Growth{From: g.From, Counts: make([]Counts, len(out.At))}
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

// Sound reports whether the numbers of rows and intervals match and are in order: a file may have been
// edited.
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

// ascends reports whether there are values, all positive and ascending.
func ascends(values []float64) bool {
	return len(values) > 0 && values[0] > 0 && slices.IsSorted(values)
}

// Percentile returns the lower bound of the half octave that contains the share p of an interval's
// counts; false with too few counts: it needs ten beyond p.
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
