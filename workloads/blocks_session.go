package workloads

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// sessionRows reads sessions of agents: one JSON document each, or several in one file. Keys may come in any order as long
// as block_size stands before requests, because requests are read one by one.
type sessionRows struct {
	doc  *document
	base string // name of the file

	inRequests bool
	id         string
	size       int
	over       bool
}

// sessionRow is one request of a session.
type sessionRow struct {
	T      *float64 `json:"t"` // s since the session's start
	Input  *int     `json:"in"`
	Output *int     `json:"out"`
	Blocks []int64  `json:"hash_ids"`
}

func (s *sessionRows) next() (rec record, reason, err error) {
	for !s.over {
		if !s.inRequests {
			switch err := s.enter(); {
			case errors.Is(err, io.EOF):
				return record{}, nil, io.EOF
			case err != nil:
				return s.broken(err)
			}
			continue
		}
		if !s.doc.dec.More() {
			if _, err := s.doc.token(); err != nil { // the ]
				return s.broken(err)
			}
			s.inRequests = false
			if err := s.leave(); err != nil {
				return s.broken(err)
			}
			continue
		}
		var row sessionRow
		if err := s.doc.value(&row); err != nil {
			if wrongType(err) {
				return record{}, err, nil
			}
			return s.broken(err)
		}
		if row.T == nil || row.Input == nil || row.Output == nil {
			return record{}, errors.New("want t, in, out and hash_ids"), nil
		}
		rec = record{context: *row.Input, generate: *row.Output, blocks: row.Blocks, blockTokens: s.size, scope: s.scope()}
		reason = rec.finish(*row.T)
		return rec, reason, nil
	}
	return record{}, nil, io.EOF
}

// broken makes one malformed row of a document that cannot be read on.
func (s *sessionRows) broken(err error) (rec record, reason, fatal error) {
	s.over = true
	if readFailed(err) {
		return record{}, nil, fmt.Errorf("read trace %s in line %d: %w", s.doc.path, s.doc.line(), err)
	}
	return record{}, fmt.Errorf("the rest of the file is lost: %w", err), nil
}

// enter reads the next document up to its requests.
func (s *sessionRows) enter() error {
	t, err := s.doc.token()
	if err != nil {
		return err // io.EOF after the last document
	}
	if t != json.Delim('{') {
		return errors.New("want an object with block_size and requests")
	}
	s.id, s.size = "", 0
	return noEOF(s.keys())
}

// keys reads keys until requests begin or the document ends.
func (s *sessionRows) keys() error {
	for s.doc.dec.More() {
		key, err := s.doc.token()
		if err != nil {
			return err
		}
		switch key {
		case "id":
			err = s.doc.value(&s.id)
		case "block_size":
			err = s.doc.value(&s.size)
		case "requests":
			if s.size < 1 || s.size > MaxTokens {
				return fmt.Errorf("block_size %d before requests, want at least 1", s.size)
			}
			t, err := s.doc.token()
			if err == nil && t != json.Delim('[') {
				err = errors.New("requests is no list")
			}
			s.inRequests = err == nil
			return err
		default:
			err = s.doc.skip()
		}
		if err != nil && !wrongType(err) {
			return err
		}
	}
	_, err := s.doc.token() // the }
	return err
}

// leave reads what follows the requests in their document.
func (s *sessionRows) leave() error { return noEOF(s.keys()) }

// scope is what the ids of this session are local to.
func (s *sessionRows) scope() string {
	if s.id == "" {
		return scopeName(s.base)
	}
	return scopeName(s.base + "." + s.id)
}

func (s *sessionRows) line() int    { return s.doc.line() }
func (s *sessionRows) close() error { return s.doc.close() }
