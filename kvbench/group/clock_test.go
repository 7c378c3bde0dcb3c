package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestOffsets: ranks of one clock have that of the fastest answer of any of them.
func TestOffsets(t *testing.T) {
	rank := func(boot, ns string) *client { return &client{hello: Hello{Boot: boot, TimeNS: ns}} }
	answer := func(roundTrip, ahead int64) *pong {
		return &pong{sent: 100, came: 100 + roundTrip, at: 100 + roundTrip/2 + ahead, wallSent: 5,
			wallCame: 5 + roundTrip, wall: 5 + roundTrip/2 + 10*ahead}
	}
	ranks := []*client{rank("a", "t"), rank("b", "t"), rank("b", "t"), rank("b", "u"),
		rank("b", "t"), rank("", ""), rank("c", "t")}
	answers := []*pong{answer(2, 8), answer(18, 7), answer(8, 5), answer(2, 1), nil, answer(4, 3),
		nil}
	assert.Equal(t, []offset{{}, {5, 50, 4}, {5, 50, 4}, {1, 10, 1}, {5, 50, 4}, {3, 30, 2}, {}},
		offsets(&ranks[0].hello, ranks, answers), "the first has the leader's clock")
	assert.Equal(t, 50*time.Millisecond, beginAfter([]*pong{answer(1e6, 0), nil}))
	assert.Equal(t, 80*time.Millisecond, beginAfter([]*pong{answer(20e6, 0), answer(1, 0)}))
}

// TestSkew: the true openings lie anywhere within the uncertainties.
func TestSkew(t *testing.T) {
	a, b := &Hello{Boot: "a"}, &Hello{Boot: "b"}
	for _, c := range []struct {
		list []opening
		want skew
	}{
		{nil, skew{}},
		{[]opening{{a, 100, 0}}, skew{}},
		{[]opening{{a, 100, 0}, {a, 103, 0}, {a, 101, 0}}, skew{3, 0}},
		{[]opening{{a, 100, 0}, {b, 103, 2}}, skew{3, 2}},
		{[]opening{{a, 103, 1}, {b, 100, 2}}, skew{3, 3}},
		{[]opening{{a, 100, 0}, {a, 103, 0}, {b, 101, 10}}, skew{3, 9}}, // 91 to 103
		{[]opening{{a, 100, 5}, {b, 100, 5}}, skew{0, 10}},
		// Ranks of one clock are as far apart as it says, wherever that clock is.
		{[]opening{{b, 100, 5}, {b, 100, 5}}, skew{}},
		{[]opening{{a, 100, 0}, {b, 103, 5}, {b, 104, 5}}, skew{4, 5}}, // 1 to 9
	} {
		assert.Equal(t, c.want, skewOf(c.list), "%v", c.list)
	}
	assert.False(t, TooFarApart(20e6, 0, 2e9))
	assert.True(t, TooFarApart(20e6+1, 0, 2e9))
	assert.False(t, TooFarApart(90e6, 50e6, 2e9))
}
