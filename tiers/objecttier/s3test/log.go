package s3test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	Seq      int // 1 for the first request
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

// accessLog keeps the requests. Its lock guards the entries, which change until the requests end.
type accessLog struct {
	opened time.Time

	mu       sync.Mutex
	requests int
	entries  []*Entry
}

func (l *accessLog) copy() (entries []Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		entries = append(entries, *e)
	}
	return entries
}

func (l *accessLog) clear() { l.change(func() { l.entries = nil }) }

func (l *accessLog) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// begin adds a request.
func (l *accessLog) begin(endpoint int, r *http.Request) *Entry {
	e := &Entry{Endpoint: endpoint, Range: r.Header.Get("Range"), Begun: time.Since(l.opened)}
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
	l.change(func() {
		l.requests++
		e.Seq = l.requests
		l.entries = append(l.entries, e)
	})
	return e
}
