package formats

import (
	"fmt"

	"kvbench/workloads"
)

// sessionRows reads sessions of agents (https://github.com/callanjfox/kv-cache-tester): one JSON
// document each, {"id", "block_size", "requests": [{"t", "in", "out", "hash_ids"}]}, or several in
// one file. A session of hours has some MB of requests, so that they are read one by one: keys may
// come in any order as long as block_size stands before requests.
type sessionRows struct {
	*document
	base string // name of the file

	within bool   // a session's document, of which:
	scope  string // what the ids are local to
	size   int    // of its blocks, in tokens
}

// sessionRow is one request of a session.
type sessionRow struct {
	T      *float64 `json:"t"` // s since the session's start
	Input  *int     `json:"in"`
	Output *int     `json:"out"`
	Blocks []int64  `json:"hash_ids"`
}

// Next implements Reader.
func (s *sessionRows) Next() (Row, error) {
	var r sessionRow
	if err := s.next(&r, s.toRequests); err != nil {
		return Row{}, err
	}
	if r.T == nil || r.Input == nil || r.Output == nil {
		return Row{}, malformed("want t, in, out and hash_ids")
	}
	return blockRow(*r.T, *r.Input, *r.Output, r.Blocks, s.size, s.scope)
}

// toRequests reads up to the requests of the next document, if it has any.
func (s *sessionRows) toRequests() error {
	if !s.within {
		s.scope, s.size, s.within = scopeName(s.base), 0, true
		return s.open('{', "want an object with block_size and requests")
	}
	for s.dec.More() {
		key, err := s.token()
		switch {
		case err != nil:
		case key == "id":
			var id string
			if err = s.value(&id); id != "" {
				s.scope = scopeName(s.base + "." + id)
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
