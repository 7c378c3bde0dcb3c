package formats

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// summaries returns the arrival, input and scope of rows.
func summaries(rows []Row) (list []string) {
	for _, r := range rows {
		list = append(list, fmt.Sprintf("%v %d %s", r.Stamp, r.Context, r.Scope))
	}
	return list
}

// agentSession is the session of kv-cache-tester's documentation with one agent, whose requests are
// counted from its start (relative) or on the session's clock.
func agentSession(inner string) string {
	return `{"id":"ex","models":["big","small"],"block_size":64,"hash_id_scope":"local","requests":[
{"t":0.0,"type":"n","model":"big","in":200,"out":40,"hash_ids":[1,2,3],"api_time":2.0},
{"t":5.0,"type":"subagent","agent_id":"a1","duration_ms":null,"status":"completed","requests":[
` + inner + `]},
{"t":9.5,"type":"s","model":"big","in":330,"out":60,"hash_ids":[1,2,3,4,5],"stop":"end_turn"}]}`
}

func TestAgentsOfASession(t *testing.T) {
	const inner = `{"t":%v,"model":"small","in":130,"out":20,"hash_ids":[1,2]},` +
		`{"t":%v,"model":"big","in":131,"out":20,"hash_ids":[1,2]}`
	want := []string{"0s 200 a.ex", "5s 130 a.ex.small", "9s 131 a.ex", "9.5s 330 a.ex"}
	for _, clock := range [][]any{{0.0, 4.0}, {5.0, 9.0}} {
		rows, errs := rowsOf(t, "a.json", agentSession(fmt.Sprintf(inner, clock...)))
		assert.Empty(t, errs)
		assert.Equal(t, want, summaries(rows), "%v", clock)
	}
	// An agent that still runs at the session's next request.
	rows, _ := rowsOf(t, "a.json", agentSession(fmt.Sprintf(inner, 1, 60)))
	assert.Equal(t, []string{"0s 200 a.ex", "6s 130 a.ex.small", "9.5s 330 a.ex", "1m5s 131 a.ex"},
		summaries(rows))
}

// Agents start agents, on either clock.
func TestAgentsOfAgents(t *testing.T) {
	relative := `{"t":1,"in":64,"out":1,"hash_ids":[7]},{"t":2,"type":"subagent","requests":[
		{"t":0.5,"in":65,"out":1,"hash_ids":[8]}]},{"t":3,"in":66,"out":1,"hash_ids":[9]}`
	absolute := `{"t":6,"in":64,"out":1,"hash_ids":[7]},{"t":7,"type":"subagent","requests":[
		{"t":7.5,"in":65,"out":1,"hash_ids":[8]}]},{"t":8,"in":66,"out":1,"hash_ids":[9]}`
	for _, inner := range []string{relative, absolute} {
		rows, errs := rowsOf(t, "a.json", agentSession(inner))
		assert.Empty(t, errs)
		assert.Equal(t, []string{"0s 200 a.ex", "6s 64 a.ex", "7.5s 65 a.ex", "8s 66 a.ex",
			"9.5s 330 a.ex"}, summaries(rows))
	}
}

// A malformed row of an agent is reported and loses only itself.
func TestMalformedRequestsOfAgents(t *testing.T) {
	rows, errs := rowsOf(t, "a.json", agentSession(`{"t":0,"in":64,"out":1,"hash_ids":[7]},
		{"t":"x"},{"in":3},{"t":1,"in":64,"out":1,"hash_ids":[7,8]},{"t":2,"in":64,"out":1,"hash_ids":[7]}`))
	assert.Len(t, rows, 4)
	require.Len(t, errs, 3)
	assert.Contains(t, strings.Join(errs, "\n"), "more block ids than the input has blocks")
	deep := `{"t":0,"in":64,"out":1,"hash_ids":[7]}`
	for range maxAgents + 2 {
		deep = `{"t":0,"type":"subagent","requests":[` + deep + `]}`
	}
	rows, errs = rowsOf(t, "a.json", agentSession(deep))
	assert.Len(t, rows, 2)
	require.Len(t, errs, 1)
	assert.Contains(t, errs[0], "more than 64 agents that start each other")
}

func TestScopesOfSessions(t *testing.T) {
	doc := agentSession(`{"t":0,"model":"small","in":64,"out":1,"hash_ids":[7]}`)
	rows, _ := rowsOf(t, "a.json", strings.Replace(doc, `"local"`, `"global"`, 1))
	assert.Equal(t, "global", rows[0].Scope)
	assert.Equal(t, "global.small", rows[1].Scope)
	// A data set has a document per line.
	rows, errs := rowsOf(t, "a.jsonl", strings.ReplaceAll(doc, "\n", "")+"\n"+
		strings.ReplaceAll(strings.Replace(doc, `"ex"`, `"fy"`, 1), "\n", "")+"\n")
	assert.Empty(t, errs)
	require.Len(t, rows, 6)
	assert.Equal(t, "a.fy", rows[3].Scope)
	_, errs = rowsOf(t, "a.json", strings.Replace(doc, `"local"`, `"per_moon"`, 1))
	require.Len(t, errs, 1)
	assert.Contains(t, errs[0], `hash_id_scope "per_moon" is unknown`)
}

func TestBailian(t *testing.T) {
	rows, errs := rowsOf(t, "b.jsonl", `{"chat_id":1,"parent_chat_id":-1,"timestamp":0.25,"input_length":40,"output_length":9,"type":"text","turn":1,"hash_ids":[1,2,3]}
{"chat_id":2,"parent_chat_id":-1,"timestamp":0.90,"input_length":35,"output_length":5,"type":"search","turn":1,"hash_ids":[1,4,5]}
{"chat_id":3,"parent_chat_id":1,"timestamp":31.5,"input_length":70,"output_length":12,"type":"text","turn":2,"hash_ids":[1,2,6,7,8]}
{"chat_id":5,"parent_chat_id":-1,"timestamp":80.0,"input_length":40,"output_length":3,"type":"image","turn":1,"hash_ids":[2,3,2]}
{"chat_id":6,"timestamp":81.0,"input_length":40}
`)
	require.Len(t, rows, 4)
	assert.Len(t, errs, 1)
	assert.Equal(t, 16, rows[0].BlockTokens)
	assert.Equal(t, 250*time.Millisecond, rows[0].Stamp)
	assert.Equal(t, rows[0].Blocks[:2], rows[2].Blocks[:2], "equal beginnings are equal blocks")
	assert.Equal(t, rows[0].Blocks[0], rows[1].Blocks[0])
	// The same content after another prefix is another block, also within one prompt.
	seen := map[int64]bool{}
	for _, id := range append(rows[0].Blocks, rows[3].Blocks...) {
		assert.False(t, seen[id])
		seen[id] = true
	}
}

// FuzzBlockFormats: any text gives rows or errors. The rows come in the order of the agents' times, and
// there are never more rows than the text has room for.
func FuzzBlockFormats(f *testing.F) {
	f.Add([]byte(agentSession(`{"t":0,"in":64,"out":1,"hash_ids":[7]}`)))
	f.Add([]byte(dynamoLines))
	f.Add([]byte(`{"chat_id":1,"timestamp":0.25,"input_length":40,"output_length":9,"hash_ids":[1,2,3]}`))
	f.Add([]byte(`{"timestamp":1,"input_length":40,"output_length":9,"hash_ids":[1]}` + "\n{"))
	f.Add([]byte(`{"session_id":1,"timestamp":1,"input_length":40,"output_length":9,"hash_ids":[1]}
{"session_id":1,"delay":5,"input_length":40,"output_length":9,"hash_ids":[1]}
{"timestamp":2,"input_length":40,"output_length":9,"hash_ids":[1]}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(dir, "fuzz.json")
		require.NoError(t, os.WriteFile(path, text, 0o644))
		r, err := Blocks.Open(path)
		if err != nil {
			return
		}
		defer r.Close()
		for n := 0; ; n++ {
			row, err := r.Next()
			if err != nil && !IsMalformed(err) {
				break
			}
			require.LessOrEqual(t, n, len(text))
			if err == nil {
				require.True(t, distinct(row.Blocks))
				require.LessOrEqual(t, len(row.Blocks), (row.Context-1)/row.BlockTokens+1)
			}
		}
	})
}

// Ids of contexts begin anew with each agent. A prompt that fills no block is a request, too.
func TestIDsOfContextsAndShortPrompts(t *testing.T) {
	text := strings.Replace(agentSession(`{"t":0,"model":"big","in":130,"out":2,"hash_ids":[1,2]},
{"t":1,"model":"big","in":63,"out":2,"hash_ids":[]}`), `"local"`, `"per_context"`, 1)
	rows, errs := rowsOf(t, "c.json", text)
	assert.Empty(t, errs)
	assert.Equal(t, []string{"0s 200 c.ex", "5s 130 c.ex.agent1", "6s 63 c.ex.agent1",
		"9.5s 330 c.ex"}, summaries(rows))
	assert.Empty(t, rows[2].Blocks)
	_, errs = rowsOf(t, "d.json", agentSession(`{"t":0,"in":64,"out":2,"hash_ids":[]}`))
	require.Len(t, errs, 1)
	assert.Contains(t, errs[0], "no block ids")
}
