package traces

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

func turns(rs []*workloads.Request) []string {
	var out []string
	for _, r := range rs {
		line := fmt.Sprintf("%s %d+%d:", r.Own.Key, r.ContextTokens, r.GenerateTokens)
		for _, e := range r.History {
			line += " " + e.Key
		}
		out = append(out, line)
	}
	return out
}

// Seven words are fewer tokens than characters.
func TestConversationsAreCountedByATokenizer(t *testing.T) {
	cfg := traceConfig(testdata("sharegpt-small.json"))
	chars := openTrace(t, perCharacter(t), cfg)
	rs := all(t, chars)
	require.NoError(t, chars.Err())
	assert.Subset(t, turns(rs), []string{"sg/1.0/t1 27+66:", "sg/1.0/t2 32+48: sg/1.0/t1",
		"sg/1.0/t3 18+54: sg/1.0/t1 sg/1.0/t2",
		"sg/1.0/t4 11+9: sg/1.0/t1 sg/1.0/t2 sg/1.0/t3"})
	assert.Equal(t, "characters/1", chars.Report().Tokenizer)

	counter := formats.NewTokenizer(formats.TokenizerCL100K, 0)
	bpe := openTrace(t, formats.ShareGPT(16384, 2048, counter), cfg)
	got := all(t, bpe)
	require.Len(t, got, len(rs))
	assert.Less(t, got[0].ContextTokens, 10, "seven words by cl100k_base")
	assert.Equal(t, "cl100k_base", bpe.Report().Tokenizer)
}

// In an engine's objects a conversation is one sequence: each turn finds the objects of the turns before.
func TestConversationsInObjects(t *testing.T) {
	cfg := traceConfig(testdata("sharegpt-small.json"))
	cfg.ObjectTokens, cfg.PrefixCaching = 8, true
	cfg.Profile.SystemPromptShare = 0.5
	plans := workloads.Planner{ObjectTokens: cfg.ObjectTokens}
	seen := map[string]bool{}
	prompts := map[int]int{}
	for _, r := range all(t, openTrace(t, perCharacter(t), cfg)) {
		if r.Turn == 1 {
			prompts[r.Conversation] = r.SystemPrompt
		}
		assert.Equal(t, prompts[r.Conversation], r.SystemPrompt)
		before := r.PromptTokens() - r.Own.Tokens
		for i, op := range plans.Plan(nil, r) {
			assert.Equal(t, (i+1)*8 <= before && r.Turn > 1, seen[op.Key], "turn %d", r.Turn)
			seen[op.Key] = true
		}
	}
	assert.NotEmpty(t, seen)
}

// A limited number of conversations is live, each in its order, and every turn is requested once. The seed
// decides the order, and a cycle ends before the next one begins.
func TestConversationsRunConcurrently(t *testing.T) {
	const n, live = 60, 8
	var texts []string
	want := map[string]int{}
	for i := range n {
		var said []string
		for turn := range 1 + i%5 {
			said = append(said, "human", "q", "gpt", "a")
			want[fmt.Sprintf("%d/%d", i+1, turn+1)] = 2 // cycles
		}
		texts = append(texts, talk(fmt.Sprint(i), said...))
	}
	cfg := traceConfig(write(t, "a.json", talks(texts[:20]...)), write(t, "b.json",
		talks(texts[20:]...)))
	cfg.Cycles = 2
	inFiles := turns(all(t, openTrace(t, perCharacter(t), cfg)))
	cfg.Live = live
	s := openTrace(t, perCharacter(t), cfg)
	rs := all(t, s)
	require.NoError(t, s.Err())
	assert.Equal(t, workloads.TraceReport{Rows: int64(len(want)), Cycles: 2,
		Tokenizer: "characters/1"}, s.Report())
	begun, last := map[string]int{}, 0
	most := 0
	for i, r := range rs {
		assert.EqualValues(t, i, r.Seq)
		var talk, cycle, turn int
		_, err := fmt.Sscanf(r.Own.Key, "sg/%d.%d/t%d", &talk, &cycle, &turn)
		require.NoError(t, err)
		require.GreaterOrEqual(t, cycle, last, "not before the last cycle has ended")
		last = cycle
		key := fmt.Sprintf("%d.%d", talk, cycle)
		require.Equal(t, begun[key]+1, turn, "in its order")
		require.Len(t, r.History, turn-1)
		if begun[key] = turn; turn == 1+(talk-1)%5 {
			delete(begun, key)
		}
		most = max(most, len(begun))
		want[fmt.Sprintf("%d/%d", talk, turn)]--
	}
	for key, left := range want {
		assert.Zero(t, left, key)
	}
	assert.LessOrEqual(t, most, live)
	assert.Greater(t, most, live/2)
	assert.NotEqual(t, inFiles, turns(rs))
	assert.ElementsMatch(t, inFiles, turns(rs))
	assert.Equal(t, turns(rs), turns(all(t, openTrace(t, perCharacter(t), cfg))))
	for _, change := range []func(*Config){func(c *Config) { c.Seed++ }, func(c *Config) { c.Trial++ }} {
		other := cfg
		change(&other)
		assert.NotEqual(t, turns(rs), turns(all(t, openTrace(t, perCharacter(t), other))))
	}

	// Rows that were read but not requested do not count.
	cfg.MaxRequests = 10
	s = openTrace(t, perCharacter(t), cfg)
	assert.Equal(t, turns(rs[:10]), turns(all(t, s)))
	assert.EqualValues(t, 10, s.Report().Rows)
	assert.Zero(t, s.Report().Cycles)
}

// TestAShortWindowDoesNotMeasureTheStartOfTheFile: of a file of conversations that grow, the first requests
// are of all its parts, in an order of its own for each seed and each trial.
func TestAShortWindowDoesNotMeasureTheStartOfTheFile(t *testing.T) {
	const n = 2 * drawnAmong
	var texts []string
	for i := range n {
		texts = append(texts, talk(fmt.Sprint(i), "human", strings.Repeat("q", 1+i), "gpt", "a"))
	}
	cfg := traceConfig(write(t, "a.json", talks(texts...)))
	orders := map[string]bool{}
	for range 3 {
		cfg.Trial++
		s, sum := openTrace(t, perCharacter(t), cfg), 0
		rs := all(t, s)
		require.Len(t, rs, n)
		var order []string
		for _, r := range rs[:40] {
			sum += r.ContextTokens
			order = append(order, r.Own.Key)
		}
		orders[strings.Join(order, " ")] = true
		assert.InDelta(t, drawnAmong/2, sum/40, drawnAmong/4, "the mean of the first 1,024, not of the first 40")
	}
	assert.Len(t, orders, 3)
}

func talk(id string, fromValue ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":%q,"conversations":[`, id)
	for i := 0; i < len(fromValue); i += 2 {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"from":%q,"value":%q}`, fromValue[i], fromValue[i+1])
	}
	return b.String() + "]}"
}

func talks(all ...string) string { return "[\n" + strings.Join(all, ",\n") + "\n]\n" }

// Cases that a script cannot contain: huge texts, or no text.
func TestTextsAreCappedAndRepaired(t *testing.T) {
	huge := talk("a", "human", strings.Repeat("q", 1<<20), "gpt", strings.Repeat("a", 1<<20))
	invalid := `{"conversations":[{"from":"human","value":"a` + "\xff\xfe" + `b"},{"from":"gpt",` +
		`"value":"\ud800"}]}`
	for text, want := range map[string]string{
		huge: "sg/1.0/t1 16384+2048:", invalid: "sg/1.0/t1 4+1:",
	} {
		s := openTrace(t, perCharacter(t), traceConfig(write(t, "x.json", talks(text))))
		assert.Equal(t, []string{want}, turns(all(t, s)))
		require.NoError(t, s.Err())
	}
}

func FuzzShareGPT(f *testing.F) {
	fuzzRows(f, perCharacter(f), talks(talk("a", "human", "q", "gpt", "a")), "[{},5,", "[[]]",
		"\xef\xbb\xbf[]")
}
