package coordinate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/group/wire"
)

func TestOffsets(t *testing.T) {
	answers := []pong{{sent: 100, came: 200, at: 1150, wallSent: 5, wallCame: 105, wall: 60},
		{sent: 300, came: 310, at: 1306, wallSent: 205, wallCame: 215, wall: 211}}
	assert.Equal(t, Offset{Clock: 1001, Wall: 1, Error: 5, RoundTrip: 10},
		offsetOf(answers, false))
	assert.Equal(t, Offset{RoundTrip: 10}, offsetOf(answers, true))
	assert.Zero(t, offsetOf(nil, false))
	assert.Equal(t, 50*time.Millisecond, beginAfter([]Offset{{RoundTrip: 1e6}}))
	assert.Equal(t, 80*time.Millisecond, beginAfter([]Offset{{RoundTrip: 20e6}, {}}))
}

// TestSkew: the true openings lie anywhere within the errors.
func TestSkew(t *testing.T) {
	for _, c := range []struct {
		list              []opening
		skew, uncertainty int64
	}{
		{nil, 0, 0},
		{[]opening{{100, 0, 0}}, 0, 0},
		{[]opening{{100, 0, 0}, {103, 0, 0}, {101, 0, 0}}, 3, 0},
		{[]opening{{100, 0, 0}, {103, 2, 1}}, 3, 2},
		{[]opening{{100, 1, 0}, {103, 2, 1}}, 3, 3},
		{[]opening{{100, 0, 0}, {103, 0, 0}, {101, 10, 1}}, 3, 9}, // 91 to 103
		{[]opening{{100, 5, 0}, {100, 5, 1}}, 0, 10},
		// Ranks of one clock are as far apart as it says, wherever that clock is.
		{[]opening{{100, 5, 1}, {100, 5, 1}}, 0, 0},
		{[]opening{{100, 0, 0}, {103, 5, 1}, {104, 5, 1}}, 4, 5}, // 1 to 9
	} {
		skew, uncertainty := skewOf(c.list)
		assert.Equal(t, []int64{c.skew, c.uncertainty}, []int64{skew, uncertainty}, "%v", c.list)
	}
	assert.False(t, TooFarApart(20e6, 0, 2e9))
	assert.True(t, TooFarApart(20e6+1, 0, 2e9))
	assert.False(t, TooFarApart(90e6, 50e6, 2e9))
}

// TestRanksOfOneClock: the fastest answer of any of them counts for all.
func TestRanksOfOneClock(t *testing.T) {
	rank := func(boot, ns string) *client {
		return &client{hello: wire.Hello{Boot: boot, TimeNS: ns}}
	}
	offsets := []Offset{{}, {Clock: 7, Error: 9, RoundTrip: 18}, {Clock: 5, Error: 4, RoundTrip: 8},
		{Clock: 1, Error: 1, RoundTrip: 2}, {}, {Clock: 3, Error: 2, RoundTrip: 4}}
	shareClocks([]*client{rank("a", "t"), rank("b", "t"), rank("b", "t"), rank("b", "u"),
		rank("b", "t"), rank("", "")}, offsets)
	assert.Equal(t, []Offset{{}, {Clock: 5, Error: 4, RoundTrip: 18},
		{Clock: 5, Error: 4, RoundTrip: 8}, {Clock: 1, Error: 1, RoundTrip: 2},
		{Clock: 5, Error: 4}, {Clock: 3, Error: 2, RoundTrip: 4}}, offsets)
}
