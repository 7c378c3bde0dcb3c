package formats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"kvbench/workloads"
)

// agentSessions is the format of sessions of agents (https://github.com/callanjfox/kv-cache-tester). A
// session is one JSON document {"id", "block_size", "requests": [{"t", "in", "out", "hash_ids"}]}. A
// file may have several documents.
//
// A session starts an agent with {"type": "subagent", "t", "requests": […]} among its requests. An
// agent may start further agents. Agents run concurrently with the session. The reader returns all rows
// in the order of time.
var agentSessions = blockFormat{
	name: "sessions of agents", sign: `JSON documents with "requests"`, extension: ".json",
	keys: []string{"requests", "hash_id_scope"},
	open: func(path, scope string) (Reader, error) {
		documents := 0
		return openDocuments(path, "", func(out *rowReader, doc *sessionDocument) error {
			documents++
			return doc.rows(out, scope, documents)
		})
	},
}

// sessionDocument is one document.
type sessionDocument struct {
	ID       any               `json:"id"` // ignored unless it is a text
	Scope    string            `json:"hash_id_scope"`
	Size     int               `json:"block_size"`
	Requests []json.RawMessage `json:"requests"`
}

// sessionRow is one request of a session, or the start of an agent.
type sessionRow struct {
	T      *float64 `json:"t"` // s since the session's start; see sessionRows.agent
	Input  *whole   `json:"in"`
	Output *whole   `json:"out"`
	Blocks blockIDs `json:"hash_ids"`
	Model  string   `json:"model"`
	Took   float64  `json:"api_time"` // s

	Type     string            `json:"type"`
	Requests []json.RawMessage `json:"requests"` // requests of an agent
	Status   string            `json:"status"`
}

// maxAgents is the largest depth of agents that start agents.
const maxAgents = 64

var errSessionRow = malformed("want t, in, out and hash_ids")

// rows adds the rows of a document, the play-th of its file, in the order of time.
func (d *sessionDocument) rows(out *rowReader, file string, play int) error {
	s := sessionRows{out: out, sessionDocument: d, scope: file, play: play}
	id, _ := d.ID.(string)
	// Global ids have the same meaning in all files of a data set. With per_context each agent has its
	// own ids.
	switch d.Scope {
	case "global":
		s.scope = d.Scope
	case "", "local", "per_context":
		if id != "" {
			s.scope += "." + scopeName(id)
		}
	default:
		return malformed("hash_id_scope %q is unknown, want local, global or per_context", d.Scope)
	}
	if d.Requests == nil || d.Size < 1 || d.Size > workloads.MaxTokens {
		return malformed("want an object with requests and a block_size of at least 1")
	}
	s.agent(d.Requests, Agent{}, 0, 0, 0)
	slices.SortStableFunc(out.rows, func(a, b elementRow) int { return cmp.Compare(a.Stamp, b.Stamp) })
	return nil
}

// sessionRows makes the rows of one document.
type sessionRows struct {
	*sessionDocument
	out    *rowReader
	scope  string // scope of the ids
	play   int    // number of the document
	model  string // model of its first request; for another model the same ids are other blocks
	agents int    // number of agents so far
}

// agent adds the rows of an agent, and of the agents that it starts. The zero Agent is the session
// itself. start is the agent's start on the clock of its parent, in s. offset is the parent's clock minus
// the session's clock. Some recorders count an agent's requests from its start, others use the parent's
// clock. If the first request has a time before the agent's start, the requests count from the start. Rounding
// may make a time earlier: by up to a second, and by less than half of the time before the start. The rows of
// the agent have a note about it.
func (s *sessionRows) agent(requests []json.RawMessage, self Agent, start, offset float64, depth int) {
	at, first := start+offset, true // at is the time of the previous request
	note := ""
	for _, text := range requests {
		var r sessionRow
		err := unmarshal(text, &r)
		starts := r.Type == "subagent" || r.Requests != nil
		if starts && r.T == nil {
			r.T = new(0.0)
		}
		switch {
		case err != nil:
		case r.T == nil:
			err = errSessionRow
		case depth > maxAgents:
			err = malformed("more than %d agents that start each other", maxAgents)
		}
		if err != nil {
			s.out.add(Row{Stamp: workloads.Seconds(at)}, err)
			continue
		}
		if first && start > 0 {
			note = "times of sub-agents are read as times of the session's clock"
			if *r.T < start-min(1, start/2) {
				offset += start
				note = "times of sub-agents are read as times since the sub-agent's start"
			}
		}
		at, first = *r.T+offset, false
		if starts {
			s.agents++
			s.agent(r.Requests, Agent{ID: s.agents, Starter: self.ID,
				Detached: r.Status == "async_launched"}, *r.T, offset, depth+1)
			continue
		}
		row, err := s.row(&r, at, self)
		row.Note = note
		if err != nil {
			row.Stamp = workloads.Seconds(at)
		}
		s.out.add(row, err)
	}
}

// row returns the Row of a request of an agent at a time in s.
func (s *sessionRows) row(r *sessionRow, at float64, agent Agent) (Row, error) {
	if r.Input == nil || r.Output == nil {
		return Row{}, errSessionRow
	}
	s.model = cmp.Or(s.model, r.Model)
	scope := s.scope
	if s.Scope == "per_context" && agent.ID > 0 {
		scope += fmt.Sprintf(".agent%d", agent.ID)
	}
	if r.Model != "" && r.Model != s.model {
		scope += "." + scopeName(r.Model)
	}
	agent.Play = s.play
	if r.Took > 0 {
		agent.Took = workloads.Seconds(r.Took)
	}
	return blockRow(at, Row{Context: int(*r.Input), Generate: int(*r.Output), Blocks: r.Blocks,
		BlockTokens: s.Size, Scope: scope, Common: s.Scope == "global", Agent: agent})
}
