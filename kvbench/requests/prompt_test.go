package requests

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
	"kvbench/tiers/faults"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
)

// parts are the requested and the found tokens of each part of the prompts.
func parts(p *result.Prompt) map[string][2]int64 {
	all := map[string][2]int64{}
	for kind, n := range p.ByKind {
		all[kind] = [2]int64{n.Tokens, n.Found}
	}
	return all
}

// The parts of a prompt and its found tokens, for each kind of request: the definition of the hit
// ratio, computed by hand.
func TestWhatOfAPromptIsFound(t *testing.T) {
	query := &workloads.Request{Kind: workloads.DecodeOnly, Query: true, SystemPrompt: -1,
		ContextTokens: 5, Retrieved: []workloads.Entry{{Key: workloads.PopulationKey(0), Tokens: 3},
			{Key: workloads.PopulationKey(9), Tokens: 2}}}
	turns := func(kind workloads.Kind) []*workloads.Request {
		return conversation(1, 4, 10, kind)
	}
	prompted := turns(workloads.PrefillDecode)
	for _, r := range prompted {
		r.SystemPrompt, r.SystemPromptTokens = 0, 4
	}
	block := func(n ...int64) *workloads.Request {
		r := &workloads.Request{SystemPrompt: -1, ContextTokens: 10*len(n) + 5}
		for _, id := range n {
			r.Blocks = append(r.Blocks,
				workloads.Entry{Key: workloads.BlockKey("", id), Tokens: 10})
		}
		r.Own.Tokens = 10 * len(n)
		return r
	}
	const inObjects = 1 // of 8 tokens
	for _, c := range []struct {
		name     string
		requests []*workloads.Request
		capacity int64 // tokens
		want     map[string][2]int64
	}{
		// Four turns of ten tokens behind a prompt of four: 14, 24, 34 and 44 of them.
		{"objects of 8 tokens", prompted, 1000 + inObjects,
			map[string][2]int64{"block": {8 + 24 + 32 + 40, 0 + 8 + 24 + 32}, "new": {6 + 0 + 2 + 4, 0}}},
		{"objects of two entries", []*workloads.Request{
			{Kind: workloads.DecodeOnly, SystemPrompt: 0, SystemPromptTokens: 4,
				Own: workloads.Entry{Key: workloads.PopulationKey(1), Tokens: 17}},
			{Kind: workloads.DecodeOnly, SystemPrompt: -1,
				Own: workloads.Entry{Key: workloads.PopulationKey(7), Tokens: 17}}},
			1000 + inObjects, map[string][2]int64{"block": {32, 16}, "new": {2, 0}}},
		{"history, and what is new", turns(workloads.PrefillDecode), 1000,
			map[string][2]int64{"multi_turn": {60, 60}, "new": {40, 0}}},
		{"prefill alone asks for the same", turns(workloads.PrefillOnly), 1000,
			map[string][2]int64{"multi_turn": {60, 60}, "new": {40, 0}}},
		{"two turns fit", turns(workloads.PrefillOnly), 25,
			map[string][2]int64{"multi_turn": {60, 50}, "new": {40, 0}}},
		{"a common prefix that the first writes", prompted, 1000,
			map[string][2]int64{"system": {16, 12}, "multi_turn": {60, 60}, "new": {40, 0}}},
		{"decode alone asks for what was written before", []*workloads.Request{
			{Kind: workloads.DecodeOnly, SystemPrompt: -1,
				Own: workloads.Entry{Key: workloads.PopulationKey(1), Tokens: 3}},
			{Kind: workloads.DecodeOnly, SystemPrompt: -1,
				Own: workloads.Entry{Key: workloads.PopulationKey(7), Tokens: 3}}}, 1000,
			map[string][2]int64{"user": {6, 3}}},
		{"chunks of documents", []*workloads.Request{query}, 1000,
			map[string][2]int64{"rag": {5, 3}}},
		{"blocks, and what no block holds", []*workloads.Request{block(1, 2, 3), block(1, 2, 4),
			block(5, 2)}, 1000, map[string][2]int64{"block": {80, 20}, "new": {15, 0}}},
	} {
		cfg := testConfig(storage(tiertest.NewNull(), c.capacity*unit), newScript(c.requests...),
			1).finite()
		switch c.capacity {
		case 1000:
			cfg.Population = Population{Entries: 5, Tokens: 3}
		case 1000 + inObjects:
			cfg.Planner.ObjectTokens = 8
			cfg.Population = Population{Entries: 5, Tokens: 17}
		}
		r := mustRun(t, cfg)
		assert.Equal(t, c.want, parts(r.Prompt), c.name)
		var asked, found int64
		for _, n := range c.want {
			asked, found = asked+n[0], found+n[1]
		}
		assert.Equal(t, float64(found)/float64(asked), *r.Prompt.HitRatio, c.name)
		unit, ratio := "hit-ratio", r.Prompt.HitRatio
		if r.BlockCache != nil {
			unit, ratio = "token-hit-ratio", r.BlockCache.TokenHitRatio
		}
		assert.Contains(t, r.Metrics(), result.Metric{Unit: unit, Value: *ratio}, c.name)
	}
}

// A request of which an operation failed is not counted: it adds no tokens.
func TestAFailedRequestHasNoPrompt(t *testing.T) {
	tier := faults.Wrap(tiertest.NewNull(), func(_ context.Context, e faults.Event) error {
		if e.Call == faults.Open && e.Object.Key == "u200/c1/t1" {
			return syscall.EINTR
		}
		return nil
	})
	all := append(singles(200, 1), conversation(200, 2, 10, workloads.PrefillOnly)...)
	r := mustRun(t, testConfig(storage(tier, 1<<40), newScript(all...), 1).finite())
	assert.EqualValues(t, 1, r.Requests.Failed)
	assert.EqualValues(t, 201, r.Prompt.Requests)
	assert.Equal(t, map[string][2]int64{"new": {210, 0}}, parts(r.Prompt))
}
