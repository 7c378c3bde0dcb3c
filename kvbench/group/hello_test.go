package group

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

var coordinator = Hello{Job: "4711", Ranks: 4, Host: "a", Boot: "b1",
	PID: 7, Build: "abc", Parameters: map[string]string{"num-users": "16",
		"io": "direct", "seed": "42", "chunk-size": "1MiB"}}

func TestObjections(t *testing.T) {
	for _, c := range []struct {
		change func(*Hello)
		want   string
	}{
		{func(*Hello) {}, ""},
		{func(h *Hello) { h.Build = "" },
			`its binary is "", the coordinator's "abc": all ranks need one binary`},
		{func(h *Hello) { h.Ranks = 5 }, "it is one of 5 ranks, the coordinator of 4"},
		{func(h *Hello) { h.Rank = 4 }, "there is no rank 4 of 4"},
		{func(h *Hello) { h.Rank = -1 }, "there is no rank -1 of 4"},
		{func(h *Hello) { h.Refused = "-cache-dir: must be …" }, "-cache-dir: must be …"},
		{func(h *Hello) {
			h.Parameters = map[string]string{"num-users": "17", "io": "direct",
				"seed": "42", "chunk-size": "1MiB"}
		},
			`its parameters are others: -num-users: "16" here, "17" there`},
		{func(h *Hello) { h.Refused = "-io: must be …\n\x1b[2J" }, "-io: must be …; ?[2J"},
	} {
		o := coordinator
		o.Rank = 1
		c.change(&o)
		assert.Equal(t, c.want, printable(coordinator.objection(&o)))
	}
}
