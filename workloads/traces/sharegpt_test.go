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

func openShareGPT(t *testing.T, more ShareGPTConfig, paths ...string) *Trace {
	t.Helper()
	if more.Counter == nil {
		counter, err := formats.NewTokenizer(formats.TokenizerChars, 1) // a token per character
		require.NoError(t, err)
		more.Counter = counter
	}
	return openTrace(t, func(c Config) (*Trace, error) { return NewShareGPT(c, more) }, traceConfig(paths...))
}

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

// A conversation of four turns reads its history.
func TestConversationsReadTheirHistory(t *testing.T) {
	s := openShareGPT(t, ShareGPTConfig{}, testdata("sharegpt-small.json"))
	s.cfg.PrefixCaching = false
	rs := all(t, s)
	require.NoError(t, s.Err())
	require.GreaterOrEqual(t, len(rs), 4)
	assert.Equal(t, []string{
		"sg/1.0/t1 27+66:",
		"sg/1.0/t2 32+48: sg/1.0/t1",
		"sg/1.0/t3 18+54: sg/1.0/t1 sg/1.0/t2",
		"sg/1.0/t4 11+9: sg/1.0/t1 sg/1.0/t2 sg/1.0/t3",
	}, turns(rs)[:4])
	assert.Equal(t, "characters/1", s.Report().Tokenizer)

	bpe := all(t, openTrace(t, func(c Config) (*Trace, error) { return NewShareGPT(c, ShareGPTConfig{}) }, traceConfig(testdata("sharegpt-small.json"))))
	require.Len(t, bpe, len(rs))
	assert.Less(t, bpe[0].ContextTokens, 10, "seven words by cl100k_base")
}

// A turn waits for the entry of the one before, and another conversation goes on meanwhile.
func TestConversationsOverlap(t *testing.T) {
	s := openShareGPT(t, ShareGPTConfig{}, write(t, "x.json", talks(talk("a", "human", "q", "gpt", "a", "human", "q", "gpt", "a"), talk("b", "human", "q", "gpt", "a"))))
	first, _, _ := s.Take(0)
	other, _, _ := s.Take(0)
	assert.Equal(t, []string{"sg/1.0/t1", "sg/2.0/t1"}, []string{first.Own.Key, other.Own.Key})
	_, st, _ := s.Take(0)
	assert.Equal(t, workloads.Wait, st)
	s.Written(first)
	second, st, _ := s.Take(0)
	require.Equal(t, workloads.Ready, st)
	assert.Equal(t, "sg/1.0/t2", second.Own.Key)
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

// TestEveryKindOfDefect: what is wrong with real datasets, and what becomes of it.
func TestEveryKindOfDefect(t *testing.T) {
	for name, c := range map[string]struct {
		talks             []string
		want              []string
		failed, malformed int64
	}{
		"missing roles":  {[]string{talk("a", "", "lost", "human", "q1", "gpt", "a1"), `{"conversations":[{"value":"x"},{"from":"gpt"}]}`}, []string{"sg/1.0/t1 2+2:"}, 1, 0},
		"other roles":    {[]string{talk("a", "system", "be nice", "user", "q1", "assistant", "a1", "bing", "x")}, []string{"sg/1.0/t1 2+2:"}, 0, 0},
		"empty question": {[]string{talk("a", "human", " ", "gpt", "a1", "human", "q22", "gpt", "a2")}, []string{"sg/1.0/t1 3+2:"}, 0, 0},
		"empty answer":   {[]string{talk("a", "human", "q1", "gpt", "", "human", "q22", "gpt", "a2")}, []string{"sg/1.0/t2 3+2:"}, 1, 0},
		"no value":       {[]string{`{"id":1,"conversations":[{"from":"human"},{"from":"gpt","value":7},{"from":"human","value":"q"},{"from":"gpt","value":null}]}`, talk("b", "human", "q", "gpt", "a")}, []string{"sg/1.0/t1 1+1:"}, 1, 0},
		"answer first":   {[]string{talk("a", "gpt", "a0", "human", "q1", "gpt", "a1", "gpt", "a2")}, []string{"sg/1.0/t1 2+2:"}, 0, 0},
		"question twice": {[]string{talk("a", "human", "q0", "human", "q11", "gpt", "a1")}, []string{"sg/1.0/t1 3+2:"}, 0, 0},
		"no answer":      {[]string{talk("a", "human", "q0"), talk("b", "human", "q", "gpt", "a"), talk("c")}, []string{"sg/1.0/t1 1+1:"}, 2, 0},
		"duplicate ids":  {[]string{talk("a", "human", "q", "gpt", "a"), talk("a", "human", "q", "gpt", "a")}, []string{"sg/1.0/t1 1+1:", "sg/2.0/t1 1+1:"}, 0, 0},
		"huge values":    {[]string{talk("a", "human", strings.Repeat("q", 1<<20), "gpt", strings.Repeat("a", 1<<20))}, []string{"sg/1.0/t1 16384+2048:"}, 0, 0},
		"invalid UTF-8":  {[]string{`{"conversations":[{"from":"human","value":"a` + "\xff\xfe" + `b"},{"from":"gpt","value":"\ud800"}]}`}, []string{"sg/1.0/t1 4+1:"}, 0, 0},
		"no list":        {[]string{`{"id":"a"}`, `{"conversations":7}`, `5`, `"text"`, talk("b", "human", "q", "gpt", "a")}, []string{"sg/1.0/t1 1+1:"}, 1, 3},
	} {
		cfg := traceConfig(write(t, "x.json", talks(c.talks...)))
		cfg.AllowMalformed, cfg.PrefixCaching = true, false
		counter, err := formats.NewTokenizer(formats.TokenizerChars, 1)
		require.NoError(t, err)
		s := openTrace(t, func(c Config) (*Trace, error) { return NewShareGPT(c, ShareGPTConfig{Counter: counter}) }, cfg)
		assert.Equal(t, c.want, turns(all(t, s)), name)
		require.NoError(t, s.Err())
		assert.Equal(t, c.failed, s.Report().Failed, name)
		assert.Equal(t, c.malformed, s.Report().Malformed, name)
	}
}

func TestBrokenDatasets(t *testing.T) {
	good := talk("a", "human", "q", "gpt", "a")
	for text, want := range map[string]string{
		`{"a": 1}`:                  "want a list of conversations",
		"[\n" + good + ",\n" + good: "the rest of the file is lost",
		"[\n" + good + "\n" + good:  "the rest of the file is lost",
		"":                          "the rest of the file is lost",
		"[]":                        "no usable row",
	} {
		s, err := NewShareGPT(traceConfig(write(t, "x.json", text)), ShareGPTConfig{})
		if err == nil {
			all(t, s)
			err = s.Err()
			require.NoError(t, s.Close())
		}
		assert.ErrorContains(t, err, want, text)
	}
}

func TestMaxConversations(t *testing.T) {
	a := write(t, "a.json", talks(talk("a", "human", "q", "gpt", "a"), talk("n"), talk("b", "human", "q", "gpt", "a", "human", "q", "gpt", "a")))
	b := write(t, "b.json", talks(talk("c", "human", "q", "gpt", "a")))
	for most, want := range map[int64]int{0: 4, 1: 1, 2: 3, 3: 4, 9: 4} {
		s := openShareGPT(t, ShareGPTConfig{MaxConversations: most}, a, b)
		rs := all(t, s)
		require.NoError(t, s.Err())
		assert.Len(t, rs, want, "%d conversations", most)
		assert.Equal(t, 1, s.Report().Cycles)
	}
	cfg := traceConfig(a, b)
	cfg.Cycles = 2
	s := openTrace(t, func(c Config) (*Trace, error) { return NewShareGPT(c, ShareGPTConfig{MaxConversations: 2}) }, cfg)
	rs := all(t, s)
	require.Len(t, rs, 6)
	assert.Equal(t, "sg/1.1/t1", rs[3].Own.Key)
}

func TestDatasetsFromCompressedFiles(t *testing.T) {
	text := read(t, testdata("sharegpt-small.json"))
	want := turns(all(t, openShareGPT(t, ShareGPTConfig{}, testdata("sharegpt-small.json"))))
	for ext, packed := range map[string]string{".gz": gzipped(t, text), ".zst": zstded(t, text)} {
		assert.Equal(t, want, turns(all(t, openShareGPT(t, ShareGPTConfig{}, write(t, "x.json"+ext, packed)))))
	}
}

func FuzzShareGPT(f *testing.F) {
	counter, err := formats.NewTokenizer(formats.TokenizerChars, 4)
	require.NoError(f, err)
	format := formats.ShareGPT(16384, 2048, counter)
	fuzzRows(f, format, talks(talk("a", "human", "q", "gpt", "a")), "[{},5,", "[[]]", "\xef\xbb\xbf[]")
}
