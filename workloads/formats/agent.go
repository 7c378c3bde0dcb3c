package formats

import (
	"fmt"
	"io"

	"kvbench/workloads"
)

// sessionRows reads sessions of agents (https://github.com/callanjfox/kv-cache-tester): one JSON
// document each, {"id", "block_size", "requests": [{"t", "in", "out", "hash_ids"}]}, or several in
// one file. A session of hours has some MB of requests, so that they are read one by one: keys may
// come in any order as long as block_size stands before requests.
type sessionRows struct {
	*document
	base string // name of the file

	inRequests bool   // the decoder stands between requests, and not between documents
	id         string // of the document
	size       int    // of its blocks, in tokens
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
	for !s.over {
		if row, found, err := s.step(); found || err != nil {
			return row, s.judge(err)
		}
	}
	return Row{}, io.EOF
}

// step reads the next request, or passes what stands between requests.
func (s *sessionRows) step() (row Row, found bool, err error) {
	if !s.inRequests {
		return Row{}, false, s.enter()
	}
	if !s.dec.More() {
		if _, err := s.token(); err != nil { // the ]
			return Row{}, false, noEOF(err)
		}
		s.inRequests = false
		return Row{}, false, noEOF(s.keys())
	}
	var r sessionRow
	if err := s.value(&r); err != nil {
		return Row{}, false, err
	}
	if r.T == nil || r.Input == nil || r.Output == nil {
		return Row{}, false, malformed("want t, in, out and hash_ids")
	}
	row, err = blockRow(*r.T, *r.Input, *r.Output, r.Blocks, s.size, s.scope())
	return row, true, err
}

// enter reads the next document up to its requests; io.EOF after the last one.
func (s *sessionRows) enter() error {
	if err := s.open('{', "want an object with block_size and requests"); err != nil {
		return err
	}
	s.id, s.size = "", 0
	return noEOF(s.keys())
}

// keys reads keys until requests begin or the document ends.
func (s *sessionRows) keys() error {
	for s.dec.More() {
		key, err := s.token()
		if err != nil {
			return err
		}
		switch key {
		case "id":
			err = s.value(&s.id)
		case "block_size":
			err = s.value(&s.size)
		case "requests":
			if s.size < 1 || s.size > workloads.MaxTokens {
				return fmt.Errorf("block_size %d before requests, want at least 1", s.size)
			}
			err = s.open('[', "requests is no list")
			s.inRequests = err == nil
			return err
		default:
			err = s.skip()
		}
		if err != nil && !IsMalformed(err) {
			return err
		}
	}
	_, err := s.token() // the }
	return err
}

// scope is what the ids of this session are local to.
func (s *sessionRows) scope() string {
	if s.id == "" {
		return scopeName(s.base)
	}
	return scopeName(s.base + "." + s.id)
}
