package workloads

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads/model"
)

// TestPlans runs the scripts of testdata/plan: a request and its operations on the cache. -rewrite updates
// them.
func TestPlans(t *testing.T) {
	datadriven.RunTest(t, "testdata/plan", func(t *testing.T, d *datadriven.TestData) string {
		r := Request{SystemPrompt: -1}
		p := Planner{Sizer: model.Sizer{BytesPerToken: 10}}
		entries := func(values []string) (list []Entry) {
			for _, v := range values {
				key, tokens, _ := strings.Cut(v, ":")
				n, err := strconv.Atoi(tokens)
				require.NoError(t, err, v)
				list = append(list, Entry{key, n})
			}
			return list
		}
		for _, arg := range d.CmdArgs {
			switch arg.Key {
			case "batched":
				p.Batched = true
			case "query":
				r.Query = true
			case "objects":
				arg.Scan(t, 0, &p.ObjectTokens)
			case "prompt":
				e := entries(arg.Vals)[0]
				r.SystemPromptTokens = e.Tokens
				arg.Vals = []string{e.Key}
				arg.Scan(t, 0, &r.SystemPrompt)
			case "own":
				r.Own = entries(arg.Vals)[0]
			case "history":
				r.History = entries(arg.Vals)
			case "retrieved":
				r.Retrieved = entries(arg.Vals)
			case "blocks":
				r.Blocks = entries(arg.Vals)
			case "generate":
				arg.Scan(t, 0, &r.GenerateTokens)
			default:
				d.Fatalf(t, "unknown argument %s", arg)
			}
		}
		kinds := map[string]Kind{"prefill-decode": PrefillDecode, "prefill-only": PrefillOnly,
			"decode-only": DecodeOnly}
		kind, known := kinds[d.Cmd]
		require.True(t, known, d.Cmd)
		r.Kind = kind
		var b strings.Builder
		for _, op := range p.Plan(nil, &r) {
			fmt.Fprintf(&b, "%-20s %-9s %-9s %5d tokens %6d bytes", op.Kind, op.Purpose, op.Key,
				op.Tokens, op.Bytes)
			if op.Times > 1 {
				fmt.Fprintf(&b, " %d times", op.Times)
			}
			b.WriteByte('\n')
		}
		return b.String()
	})
}

func TestPlanRereads(t *testing.T) {
	for _, test := range []struct{ generate, batch, want int }{
		{0, 32, 0}, {1, 32, 1}, {31, 32, 1}, {32, 32, 1}, {33, 32, 2}, {64, 32, 2},
		{65, 32, 3}, {800, 32, 25}, {800, 0, 25}, {10, 1, 10},
	} {
		ops := Planner{Batched: true, DecodeBatch: test.batch}.Plan(nil,
			&Request{SystemPrompt: -1, GenerateTokens: test.generate})
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
	r := &Request{SystemPrompt: 2, SystemPromptTokens: 6, History: make([]Entry, 20),
		Own: Entry{"u1/c1/t3", 300}, GenerateTokens: 100}
	space := make([]Op, 0, 64)
	p := Planner{Sizer: model.Sizer{BytesPerToken: 10}, Batched: true}
	assert.Zero(t, testing.AllocsPerRun(100, func() { space = p.Plan(space[:0], r) }))
}
