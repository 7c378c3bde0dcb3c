package workloads

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// render prints a plan as one operation per line: kind purpose key tokens bytes times.
func render(ops []Op) string {
	var b strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&b, "%s %s %s %d %d %d\n", op.Kind, op.Purpose, op.Key, op.Tokens, op.Bytes, op.Times)
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	sizer := Sizer{BytesPerToken: 10}
	history := []Entry{{"u1/c1/t1", 100}, {"u1/c1/t2", 200}}
	own := Entry{"u1/c1/t3", 300}
	tests := []struct {
		name    string
		planner Planner
		request Request
		want    string
	}{
		{"the first turn reads nothing before it writes", Planner{Sizer: sizer},
			Request{SystemPrompt: -1, Own: own, GenerateTokens: 100},
			`write-if-absent prefill u1/c1/t3 300 3000 1
read-or-write probe u1/c1/t3 300 3000 1
`},
		{"prefix, history, entry, probe and batched re-reads", Planner{Sizer: sizer, Batched: true},
			Request{SystemPrompt: 1, SystemPromptTokens: 9, History: history, Own: own, GenerateTokens: 100},
			`read-or-write prefix system/1 9 90 1
read-if-present history u1/c1/t1 100 1000 1
read-if-present history u1/c1/t2 200 2000 1
write-if-absent prefill u1/c1/t3 300 3000 1
read-or-write probe u1/c1/t3 300 3000 1
reread reread u1/c1/t3 300 3000 4
`},
		{"prefill only ends with the entry", Planner{Sizer: sizer, Batched: true},
			Request{Kind: PrefillOnly, SystemPrompt: -1, History: history, Own: own, GenerateTokens: 100},
			`read-if-present history u1/c1/t1 100 1000 1
read-if-present history u1/c1/t2 200 2000 1
write-if-absent prefill u1/c1/t3 300 3000 1
`},
		{"decode only writes nothing of its own", Planner{Sizer: sizer, Batched: true},
			Request{Kind: DecodeOnly, SystemPrompt: 0, SystemPromptTokens: 5, History: history, Own: Entry{"pop/7", 2048}, GenerateTokens: 65},
			`read-or-write prefix system/0 5 50 1
read-if-present probe pop/7 2048 20480 1
reread reread pop/7 2048 20480 3
`},
		{"read once", Planner{Sizer: sizer},
			Request{Kind: DecodeOnly, SystemPrompt: -1, Own: Entry{"pop/7", 2048}, GenerateTokens: 65},
			"read-if-present probe pop/7 2048 20480 1\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, render(test.planner.Plan(nil, &test.request)))
		})
	}
}

func TestPlanRereads(t *testing.T) {
	for _, test := range []struct{ generate, batch, want int }{
		{0, 32, 0}, {1, 32, 1}, {31, 32, 1}, {32, 32, 1}, {33, 32, 2}, {64, 32, 2}, {65, 32, 3}, {800, 32, 25}, {800, 0, 25}, {10, 1, 10},
	} {
		ops := Planner{Batched: true, DecodeBatch: test.batch}.Plan(nil, &Request{SystemPrompt: -1, GenerateTokens: test.generate})
		got := 0
		for _, op := range ops {
			if op.Kind == Reread {
				got += op.Times
			}
		}
		assert.Equal(t, test.want, got, "%d tokens in batches of %d", test.generate, test.batch)
	}
}

func TestPlanDoesNotAllocate(t *testing.T) {
	r := &Request{SystemPrompt: 2, SystemPromptTokens: 6, History: make([]Entry, 20), Own: Entry{"u1/c1/t3", 300}, GenerateTokens: 100}
	space := make([]Op, 0, 64)
	p := Planner{Sizer: Sizer{BytesPerToken: 10}, Batched: true}
	assert.Zero(t, testing.AllocsPerRun(100, func() { space = p.Plan(space[:0], r) }))
}
