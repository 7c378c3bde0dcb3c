package s3test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Op is the operation of a request. The names are the keys of results.
type Op string

// The operations.
const (
	Put         Op = "put"
	Get         Op = "get" // of an object or a range
	Head        Op = "head"
	Delete      Op = "delete"
	DeleteBatch Op = "delete_batch"
	List        Op = "list"
	Create      Op = "create" // of a multipart upload
	PutPart     Op = "put_part"
	Complete    Op = "complete"
	Abort       Op = "abort"
	ListUploads Op = "list_uploads"
	Bucket      Op = "bucket" // HEAD, location or versioning of the bucket
)

// operation returns the operation of a request.
func operation(r *http.Request, key string) Op {
	query := r.URL.Query()
	method := Op(strings.ToLower(r.Method))
	switch {
	case query.Has("uploadId"):
		return map[Op]Op{"put": PutPart, "post": Complete, "delete": Abort}[method]
	case query.Has("uploads"):
		return map[Op]Op{"post": Create, "get": ListUploads}[method]
	case query.Has("delete"):
		return DeleteBatch
	case query.Has("list-type"):
		return List
	case key == "":
		return Bucket
	}
	return method
}

// Entry is one request in the access log.
type Entry struct {
	Endpoint int // from 0
	Op       Op
	Bucket   string
	// Key is the key of an object, or the prefix of a list. Keys are the keys of a batch delete.
	Key   string
	Keys  []string
	Part  int
	Range string // the header: bytes=0-99
	// BytesIn is the read bytes of the request's body, BytesOut the written bytes of the response's.
	BytesIn, BytesOut int64
	Status            int  // 0 without a response
	Fault             Kind // "" without one
	// Begun and Ended count from Start; Ended is 0 while the request is in flight.
	Begun, Ended time.Duration
}

// Log returns the access log in the order in which requests began, including requests in flight.
func (s *Server) Log() (entries []Entry) {
	s.change(func() {
		for _, e := range s.entries {
			entries = append(entries, *e)
		}
	})
	return entries
}

// ClearLog removes all entries.
func (s *Server) ClearLog() { s.change(func() { s.entries = nil }) }

func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// begin adds a request to the log.
func (s *Server) begin(endpoint int, r *http.Request) *Entry {
	e := &Entry{Endpoint: endpoint, Range: r.Header.Get("Range"), Begun: time.Since(s.opened)}
	e.Bucket, e.Key, _ = strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	e.Op = operation(r, e.Key)
	e.Part, _ = strconv.Atoi(r.URL.Query().Get("partNumber"))
	switch e.Op {
	case List, ListUploads:
		e.Key = r.URL.Query().Get("prefix")
	case DeleteBatch:
		body, _ := io.ReadAll(r.Body)
		e.Keys = slices.Clip(submatch(`<Key>([^<]*)</Key>`, body))
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	s.change(func() { s.entries = append(s.entries, e) })
	return e
}
