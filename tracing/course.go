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
	Counts []Counts  `json:"counts"` // of each interval
}

// Counts has one for each row of a Growth, as far as the last that is not 0. As a text, and so in
// JSON, it is the numbers with a space between them: an interval is a line of a file then, and not
// twenty.
type Counts []int64

// MarshalText writes them.
func (c Counts) MarshalText() (text []byte, err error) {
	for i, n := range c {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendInt(text, n, 10)
	}
	return text, nil
}

// UnmarshalText reads them; what is not a number from 0 on is refused.
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

// NewGrowth makes one of the counts of rows that begin at 1, of each interval; false where nothing
// was counted. Rows below the first and above the last that has any are left out.
func NewGrowth(intervals int, rows func(interval int) map[int]int64) (g Growth, ok bool) {
	first, last := math.MaxInt, -1
	for i := range intervals {
		for k := range rows(i) {
			first, last = min(first, k), max(last, k)
		}
	}
	for k := first; k <= last; k++ {
		g.From = append(g.From, math.Exp2(float64(k)/2))
	}
	for i := range intervals {
		list := Counts(nil)
		for _, k := range slices.Sorted(maps.Keys(rows(i))) {
			list = append(list, make([]int64, k-first+1-len(list))...)
			list[k-first] = rows(i)[k]
		}
		g.Counts = append(g.Counts, list)
	}
	return g, last >= 0
}

// MostIntervals are those of a trace's course: more columns than a plot has room for. When there
// are more, neighbours are joined, and from then on only every second look counts.
const MostIntervals = 240

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

// Row is the half octave of a value; what is below 1 is in the first. The lower bound of a row is
// in it, though it is computed.
func Row(v float64) int { return int(math.Floor(2*math.Log2(max(1, v)) + 1e-9)) }

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
			now[key][Row(b.Range[0])] += b.Count
		}
		for k, n := range now[key] {
			if n > r.before[key][k] {
				grown[key][k] = n - r.before[key][k]
			}
		}
	}
	r.before = now
	r.at, r.counts = append(r.at, at), append(r.counts, grown)
	if len(r.at) >= MostIntervals {
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
		if end != nil && followed(&end.Histograms)[key].Count == 0 {
			continue // left out in the end: what was seen of it before is no course of the whole
		}
		if g, ok := NewGrowth(len(r.at),
			func(i int) map[int]int64 { return r.counts[i][key] }); ok {
			c.Histograms[key] = g
		}
	}
	return c
}

// Joined is the course in at most so many intervals, of which each is as many of its own.
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

// Sound says whether rows and intervals are as many as they say, and in order: a file may have been
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
