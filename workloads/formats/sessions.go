package formats

import (
	"encoding/json"
	"fmt"
	"slices"

	"kvbench/workloads"
)

// agentSessions is the format of sessions of agents (https://github.com/callanjfox/kv-cache-tester). A session is
// one JSON document {"id", "block_size", "requests": [{"t", "in", "out", "hash_ids"}]}; a file may
// have several. A session of hours has some MB of requests, so requests are read one by one. Keys
// may come in any order, but block_size must come before requests.
//
// A session starts agents: {"type": "subagent", "t", "requests": […]} among its requests. An agent
// may start further agents. Agents run concurrently with the session, and all rows are returned in
// the order of time. The coming requests of agents wait in memory, so the memory depends on how many
// agents run at a time.
var agentSessions = blockFormat{
	keys: []string{"requests", "hash_id_scope"},
	open: func(path, scope string) (Reader, error) {
		doc, err := openDocument(path)
		return &sessionRows{document: doc, file: scope}, err
	},
}

// sessionRows is its Reader.
type sessionRows struct {
	*document
	file string // the scope of the file

	plays  int    // documents so far
	within bool   // inside a session's document; the next fields describe the session
	scope  string // the scope of its ids
	size   int    // of its blocks, in tokens
	model  string // of its first request; for another model the same ids are other blocks
	agents int    // started so far
	common bool   // ids are common to the data set
	each   bool   // each agent has its own ids

	next    *agentRow  // the session's own next row
	waiting []agentRow // rows of its agents, by time
}

// sessionRow is one request of a session, or an agent that it starts.
type sessionRow struct {
	T      *float64 `json:"t"` // s since the session's start; see startAgent
	Input  *int     `json:"in"`
	Output *int     `json:"out"`
	Blocks blockIDs `json:"hash_ids"`
	Model  string   `json:"model"`
	Took   float64  `json:"api_time"` // s

	Type     string            `json:"type"`
	Requests []json.RawMessage `json:"requests"` // of an agent
	Status   string            `json:"status"`
}

// agentRow is a row with its time in s, or the error of a malformed row.
type agentRow struct {
	at    float64
	row   sessionRow
	agent Agent
	err   error
}

// maxAgents bounds the depth of agents that start agents.
const maxAgents = 64

// Next implements Reader.
func (s *sessionRows) Next() (Row, error) {
	for {
		// At equal times the agent's row comes before the session's.
		if s.ended() && s.next == nil && len(s.waiting) > 0 ||
			s.next != nil && len(s.waiting) > 0 && s.waiting[0].at <= s.next.at {
			r := s.waiting[0]
			s.waiting = s.waiting[1:]
			return s.row(r)
		}
		if s.next != nil {
			r := *s.next
			s.next = nil
			return s.row(r)
		}
		var r sessionRow
		if err := s.document.next(&r, s.toRequests); err != nil {
			return Row{}, err
		}
		switch {
		case r.Type == "subagent" || r.Requests != nil:
			s.startAgent(&r, 0, 0, Agent{})
		case r.T == nil:
			return Row{}, errSessionRow
		default:
			s.next = &agentRow{at: *r.T, row: r}
		}
	}
}

// ended marks the session's own requests as all read, or lost.
func (s *sessionRows) ended() bool {
	if s.over || !s.inside {
		return true
	}
	s.in.left = maxValue
	return !s.dec.More()
}

var errSessionRow = malformed("want t, in, out and hash_ids")

// row makes a row of a request.
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

// startAgent puts the requests of an agent into waiting. The agent's start is a time on the clock of
// its parent; offset is the parent's clock minus the session's. Some recorders count an agent's
// requests from its start, others on the parent's clock. A first request before the agent's start
// must be counted from the start.
func (s *sessionRows) startAgent(agent *sessionRow, offset float64, depth int, starter Agent) {
	if agent.T == nil {
		agent.T = new(0.0)
	}
	s.agents++
	self := Agent{ID: s.agents, Starter: starter.ID, Detached: agent.Status == "async_launched"}
	begun, first := *agent.T+offset, true
	for _, text := range agent.Requests {
		var r sessionRow
		err := json.Unmarshal(text, &r)
		if err == nil && r.T == nil {
			err = errSessionRow
		}
		if err == nil && depth == maxAgents {
			err = fmt.Errorf("more than %d agents that start each other", maxAgents)
		}
		if err != nil {
			s.wait(agentRow{at: begun, err: Malformed{err}})
			continue
		}
		if first && *r.T < *agent.T {
			offset += *agent.T
		}
		first = false
		if r.Type == "subagent" || r.Requests != nil {
			s.startAgent(&r, offset, depth+1, self)
			continue
		}
		s.wait(agentRow{at: *r.T + offset, row: r, agent: self})
	}
}

// wait inserts a row behind all rows of the same time or earlier.
func (s *sessionRows) wait(a agentRow) {
	i := len(s.waiting)
	for i > 0 && s.waiting[i-1].at > a.at {
		i--
	}
	s.waiting = slices.Insert(s.waiting, i, a)
}

// toRequests reads up to the requests of the next document, if it has any.
func (s *sessionRows) toRequests() error {
	if !s.within {
		s.scope, s.size, s.within, s.model = s.file, 0, true, ""
		s.plays, s.agents, s.common, s.each = s.plays+1, 0, false, false
		return s.open('{', "want an object with block_size and requests")
	}
	for s.dec.More() {
		key, err := s.token()
		switch {
		case err != nil:
		case key == "id":
			var id string
			if err = s.value(&id); id != "" && !s.common {
				s.scope = s.file + "." + scopeName(id)
			}
		case key == "hash_id_scope":
			// Global ids mean the same in all files of a data set. Ids of contexts begin anew with
			// each agent (kv-cache-tester).
			var of string
			err = s.value(&of)
			switch of {
			case "global":
				s.common, s.scope = true, of
			case "per_context":
				s.each = true
			case "", "local":
			default:
				err = fmt.Errorf("hash_id_scope %q is unknown, want local, global or per_context",
					of)
			}
		case key == "block_size":
			err = s.value(&s.size)
		case key == "requests" && (s.size < 1 || s.size > workloads.MaxTokens):
			err = fmt.Errorf("block_size %d before requests, want at least 1", s.size)
		case key == "requests":
			return s.list("requests is no list")
		default:
			err = s.skip()
		}
		if err != nil && !IsMalformed(err) {
			return noEOF(err)
		}
	}
	s.within = false
	_, err := s.token() // the }
	return noEOF(err)
}
