package group

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var coordinator = Hello{Job: "4711", Ranks: 4, Host: "a", Boot: "b1",
	TimeNS: "time:[1]", PID: 7, Build: "abc", Parameters: map[string]string{"num-users": "16",
		"io": "direct", "seed": "42", "chunk-size": "1MiB"}}

func TestObjections(t *testing.T) {
	for _, c := range []struct {
		change func(*Hello)
		want   string
	}{
		{func(*Hello) {}, ""},
		{func(h *Hello) { h.Build = "" },
			"its binary is none, the coordinator's abc: all ranks need one binary"},
		{func(h *Hello) { h.Ranks = 5 }, "it is one of 5 ranks, the coordinator of 4"},
		{func(h *Hello) { h.Rank = 4 }, "there is no rank 4 of 4"},
		{func(h *Hello) { h.Rank = -1 }, "there is no rank -1 of 4"},
		{func(h *Hello) { h.Refused = "-cache-dir: must be …" }, "-cache-dir: must be …"},
		{func(h *Hello) {
			h.Parameters = map[string]string{"num-users": "17", "io": "direct",
				"seed": "42", "chunk-size": "1MiB"}
		},
			"its parameters are others: -num-users: 16 here, 17 there"},
		{func(h *Hello) { h.Parameters = map[string]string{"x\x1b[2J": strings.Repeat("y", 99)} },
			"its parameters are others: -chunk-size: 1MiB here, none there; -io: direct here, " +
				"none there; -num-users: 16 here, none there and 2 more"},
	} {
		o := coordinator
		o.Rank = 1
		c.change(&o)
		assert.Equal(t, c.want, coordinator.objection(&o))
	}
}

func TestWhoseClock(t *testing.T) {
	o := coordinator
	assert.True(t, o.OneHost(&coordinator) && o.oneClock(&coordinator))
	o.TimeNS = "time:[2]"
	assert.True(t, o.OneHost(&coordinator))
	assert.False(t, o.oneClock(&coordinator), "its monotonic clock has an offset")
	o = coordinator
	o.Host = "pod"
	assert.False(t, o.OneHost(&coordinator))
	assert.True(t, o.oneClock(&coordinator))
	assert.False(t, (&Hello{}).oneClock(&Hello{}), "unknown")
}
