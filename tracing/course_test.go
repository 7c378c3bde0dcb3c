package tracing

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// grown returns a trace up to the time at, with fast reads of 100 µs and slow reads of 10 ms.
func grown(at time.Duration, fast, slow int64) *Trace {
	t := &Trace{Capture: Capture{WindowNS: int64(at)}}
	t.D2CRead = NewHistogram("us", 0, []Bucket{{Range: [2]float64{96, 104}, Count: fast},
		{Range: [2]float64{10_000, 10_240}, Count: slow}})
	return t
}

// A second with slow reads shows in its interval, whatever the sum.
func TestACourseHasTheCountsBetweenTwoSnapshots(t *testing.T) {
	var r Recorder
	r.Record(nil)
	r.Record(grown(0, 0, 0)) // no counts yet
	r.Record(grown(time.Second, 100, 0))
	r.Record(&Trace{Capture: Capture{WindowNS: int64(1500 * time.Millisecond)}}) // missing once
	r.Record(grown(2*time.Second, 100, 200))
	c := r.Course(grown(2500*time.Millisecond, 150, 200))
	require.NotNil(t, c)
	require.True(t, c.Sound())
	assert.Equal(t, []float64{1, 1.5, 2, 2.5}, c.At)
	g := c.Histograms["d2c_read_us"]
	require.Len(t, g.From, 14)
	assert.InDelta(t, 90.5, g.From[0], 0.1)
	assert.InDelta(t, 8192, g.From[13], 0.1)
	text, err := json.Marshal(g.Counts)
	require.NoError(t, err)
	assert.JSONEq(t, `["100","","0 0 0 0 0 0 0 0 0 0 0 0 0 200","50"]`, string(text))
	var back []Counts
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, g.Counts, back)
	for _, wrong := range []string{`["-1"]`, `["1.5"]`, `["x"]`, `[1]`, `["9223372036854775807"]`} {
		assert.Error(t, json.Unmarshal([]byte(wrong), &back), wrong)
	}
	assert.NotContains(t, c.Histograms, "d2c_write_us")
	p, ok := g.Percentile(2, 0.5)
	assert.True(t, ok)
	assert.InDelta(t, 8192, p, 1)
	_, ok = g.Percentile(3, 0.99)
	assert.False(t, ok, "50 reads are too few for a p99")
	end := grown(3*time.Second, 0, 0)
	end.D2CRead = Histogram{}
	assert.Empty(t, r.Course(end).Histograms, "what a trace leaves out has no course")
	assert.Nil(t, new(Recorder).Course(grown(time.Second, 1, 1)), "one interval is the trace itself")
}

// A trace of a day has as many columns as one of minutes, and loses no counts.
func TestALongCourseIsJoined(t *testing.T) {
	var r Recorder
	const snapshots = 5000
	for i := int64(1); i <= snapshots; i++ {
		r.Record(grown(time.Duration(i)*time.Second, i, 0))
	}
	c := r.Course(grown((snapshots+1)*time.Second, snapshots+1, 0))
	require.True(t, c.Sound())
	assert.Less(t, len(c.At), MostIntervals)
	assert.Equal(t, float64(snapshots+1), c.At[len(c.At)-1])
	sum := int64(0)
	for _, rows := range c.Histograms["d2c_read_us"].Counts {
		sum += rows[0]
	}
	assert.EqualValues(t, snapshots+1, sum)
}

func TestACourseOfFewerIntervals(t *testing.T) {
	c := &Course{At: []float64{1, 2, 3, 4, 4.5}, Histograms: map[string]Series{"qd_read": {
		From: []float64{1, math.Sqrt2}, Counts: []Counts{{1}, {2, 3}, nil, nil, {4}}}}}
	joined := c.Joined(3)
	assert.Equal(t, []float64{2, 4, 4.5}, joined.At)
	assert.Equal(t, []Counts{{3, 3}, nil, {4}}, joined.Histograms["qd_read"].Counts)
	assert.Equal(t, []Counts{{1}, {2, 3}, nil, nil, {4}}, c.Histograms["qd_read"].Counts)
	assert.True(t, joined.Sound())
	assert.Same(t, c, c.Joined(5))
}

func TestAnEditedCourseIsNotDrawn(t *testing.T) {
	for _, c := range []Course{{}, {At: []float64{2, 1}},
		{At: []float64{1}, Histograms: map[string]Series{"qd_read": {Counts: []Counts{{}}}}},
		{At: []float64{1}, Histograms: map[string]Series{"qd_read": {From: []float64{0},
			Counts: []Counts{{1}}}}},
		{At: []float64{1}, Histograms: map[string]Series{"qd_read": {From: []float64{1}}}},
		{At: []float64{1}, Histograms: map[string]Series{"qd_read": {From: []float64{1},
			Counts: []Counts{{1, 2}}}}}} {
		assert.False(t, c.Sound())
	}
}

func TestRowsAreHalfOctaves(t *testing.T) {
	for k := range 80 {
		from := math.Exp2(float64(k) / 2)
		assert.Equal(t, k, Row(from), from)
		assert.Equal(t, k, Row(from*1.41), from)
	}
	assert.Zero(t, Row(0))
	assert.Zero(t, Row(-5))
}
