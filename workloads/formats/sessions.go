package formats

import (
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
	doc: "sessions of agents ([kv-cache-tester](https://github.com/callanjfox/kv-cache-tester)), one or " +
		"several documents in a file | `block_size` | one session, or all files with `\"hash_id_scope\": \"global\"`; " +
		"ids of another model are other blocks | s; requests of sub-agents count from the agent's start, " +
		"or are on the session's clock",
	keys: []string{"requests", "hash_id_scope"},
	open: func(path, scope string) (Reader, error) {
		doc, err := openDocument(path, "")
		return &sessionRows{document: doc, file: scope}, err
	},
}

// sessionRows is the Reader of agentSessions.
type sessionRows struct {
	*document
	file  string // scope of the file
	plays int    // number of documents so far
	rows  []agentRow

	// Of the current document:
	scope   string     // scope of its ids
	size    int        // tokens of a block
	model   string     // model of its first request; for another model the same ids are other blocks
	agents  int        // number of agents so far
	common  bool       // ids have the same meaning in all files
	each    bool       // each agent has its own ids
	waiting []agentRow // rows of its agents, ordered by time
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
	T      *float64 `json:"t"` // s since the session's start; see startAgent
	Input  *int     `json:"in"`
	Output *int     `json:"out"`
	Blocks blockIDs `json:"hash_ids"`
	Model  string   `json:"model"`
	Took   float64  `json:"api_time"` // s

	Type     string            `json:"type"`
	Requests []json.RawMessage `json:"requests"` // requests of an agent
	Status   string            `json:"status"`
}

// agentRow is a row with its time at in s, or the error of a malformed row.
type agentRow struct {
	at    float64
	row   sessionRow
	agent Agent
	err   error
}

// maxAgents is the largest depth of agents that start agents.
const maxAgents = 64

// Next implements Reader.
func (s *sessionRows) Next() (Row, error) {
	for len(s.rows) == 0 {
		var doc sessionDocument
		if err := s.document.next(&doc); err != nil {
			return Row{}, err
		}
		if err := s.begin(&doc); err != nil {
			return Row{}, err
		}
	}
	r := s.rows[0]
	s.rows = s.rows[1:]
	return s.row(r)
}

// begin appends the requests of a document to rows.
func (s *sessionRows) begin(doc *sessionDocument) error {
	s.plays++
	s.scope, s.size, s.model, s.agents = s.file, doc.Size, "", 0
	s.common, s.each = doc.Scope == "global", doc.Scope == "per_context"
	id, _ := doc.ID.(string)
	// Global ids have the same meaning in all files of a data set. With per_context each agent has its
	// own ids.
	switch {
	case s.common:
		s.scope = doc.Scope
	case !s.each && doc.Scope != "" && doc.Scope != "local":
		return malformed("hash_id_scope %q is unknown, want local, global or per_context", doc.Scope)
	case id != "":
		s.scope += "." + scopeName(id)
	}
	if doc.Requests == nil || s.size < 1 || s.size > workloads.MaxTokens {
		return malformed("want an object with requests and a block_size of at least 1")
	}
	for _, text := range doc.Requests {
		r, err := sessionRowOf(text)
		switch {
		case err != nil:
			s.rows = append(s.rows, agentRow{err: err})
		case r.isAgent():
			s.startAgent(&r, 0, 0, Agent{})
		case r.T == nil:
			s.rows = append(s.rows, agentRow{err: errSessionRow})
		default:
			n := 0 // at equal times an agent's row comes before the session's row
			for n < len(s.waiting) && s.waiting[n].at <= *r.T {
				n++
			}
			s.rows = append(append(s.rows, s.waiting[:n]...), agentRow{at: *r.T, row: r})
			s.waiting = s.waiting[n:]
		}
	}
	s.rows, s.waiting = append(s.rows, s.waiting...), nil
	return nil
}

func sessionRowOf(text []byte) (r sessionRow, err error) {
	if err := json.Unmarshal(text, &r); err != nil {
		return r, Malformed{err}
	}
	return r, nil
}

// isAgent reports whether a request starts an agent.
func (r *sessionRow) isAgent() bool { return r.Type == "subagent" || r.Requests != nil }

var errSessionRow = malformed("want t, in, out and hash_ids")

// row returns the Row of a request.
func (s *sessionRows) row(a agentRow) (Row, error) {
	r := a.row
	switch {
	case a.err != nil:
		return Row{}, a.err
	case r.Input == nil || r.Output == nil:
		return Row{}, errSessionRow
	}
	if s.model == "" {
		s.model = r.Model
	}
	scope := s.scope
	if s.each && a.agent.ID > 0 {
		scope += fmt.Sprintf(".agent%d", a.agent.ID)
	}
	if r.Model != "" && r.Model != s.model {
		scope += "." + scopeName(r.Model)
	}
	a.agent.Play = s.plays
	if r.Took > 0 {
		a.agent.Took = workloads.Seconds(r.Took)
	}
	return blockRow(a.at, Row{Context: *r.Input, Generate: *r.Output, Blocks: r.Blocks,
		BlockTokens: s.size, Scope: scope, Common: s.common, Agent: a.agent})
}

// startAgent adds the requests of an agent to waiting. agent.T is the agent's start on the clock of its
// parent. offset is the parent's clock minus the session's clock. Some recorders count an agent's
// requests from its start, others use the parent's clock. If the first request has a time before the
// agent's start, the requests count from the start.
func (s *sessionRows) startAgent(agent *sessionRow, offset float64, depth int, starter Agent) {
	if agent.T == nil {
		agent.T = new(0.0)
	}
	s.agents++
	self := Agent{ID: s.agents, Starter: starter.ID, Detached: agent.Status == "async_launched"}
	begun, first := *agent.T+offset, true
	for _, text := range agent.Requests {
		r, err := sessionRowOf(text)
		if err == nil && r.T == nil {
			err = errSessionRow
		}
		if err == nil && depth == maxAgents {
			err = malformed("more than %d agents that start each other", maxAgents)
		}
		if err != nil {
			s.wait(agentRow{at: begun, err: err})
			continue
		}
		if first && *r.T < *agent.T {
			offset += *agent.T
		}
		first = false
		if r.isAgent() {
			s.startAgent(&r, offset, depth+1, self)
			continue
		}
		s.wait(agentRow{at: *r.T + offset, row: r, agent: self})
	}
}

// wait inserts a row after all rows with the same or an earlier time.
func (s *sessionRows) wait(a agentRow) {
	i := len(s.waiting)
	for i > 0 && s.waiting[i-1].at > a.at {
		i--
	}
	s.waiting = slices.Insert(s.waiting, i, a)
}
