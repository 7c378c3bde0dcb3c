package s3double

import (
	"slices"
	"strconv"
	"sync"
	"time"
)

// Op is what a request asks for. The names are those of the operations in results.
type Op string

// The operations that the double knows. Whatever else is asked for is Other, and answered by 501.
const (
	Put         Op = "put"
	Get         Op = "get" // whole or a range: Entry.Range tells
	Head        Op = "head"
	Delete      Op = "delete"
	DeleteBatch Op = "delete_batch"
	List        Op = "list"
	Create      Op = "create" // of an upload
	PutPart     Op = "put_part"
	Complete    Op = "complete"
	Abort       Op = "abort"
	ListUploads Op = "list_uploads"
	ListParts   Op = "list_parts"
	HeadBucket  Op = "head_bucket"
	Location    Op = "location"
	Versioning  Op = "versioning"
	Other       Op = "other"
)

// Entry is one request in the access log.
type Entry struct {
	Seq      int    `json:"seq"`      // 1 for the first request, by when its header had been read
	Conn     int    `json:"conn"`     // 1 for the first connection
	Endpoint int    `json:"endpoint"` // from 0
	Op       Op     `json:"op"`
	Bucket   string `json:"bucket,omitempty"`
	// Key is that of the object, of lists the prefix, which may be empty.
	Key string `json:"key,omitempty"`
	// Keys are those of a batch delete.
	Keys     []string `json:"keys,omitempty"`
	UploadID string   `json:"upload_id,omitempty"`
	Part     int      `json:"part,omitempty"`
	// Range is the header as it was sent: bytes=0-99.
	Range string `json:"range,omitempty"`
	// Payload is x-amz-content-sha256 as it was sent: UNSIGNED-PAYLOAD, a digest.
	Payload string `json:"payload,omitempty"`
	// Attempt is 1 for the first request of this kind for this key, part and range, then 2.
	Attempt int `json:"attempt"`
	// BytesIn is what was read of the request's body, without the framing of aws-chunked; BytesOut
	// what was written of the answer's body, which a reset may keep from arriving.
	BytesIn  int64 `json:"bytes_in"`
	BytesOut int64 `json:"bytes_out"`
	// Status is 0 when no answer was begun.
	Status int `json:"status"`
	// Code is that of the error in the answer, also in one of status 200: NoSuchKey.
	Code string `json:"code,omitempty"`
	// Fault is what a rule did to the request, and Rule which one, 1 for the first.
	Fault Kind `json:"fault,omitempty"`
	Rule  int  `json:"rule,omitempty"`
	// Begun and Ended count from the opening of the double; Ended is 0 as long as it is under way.
	Begun time.Duration `json:"begun_ns"`
	Ended time.Duration `json:"ended_ns"`
}

// same is what attempts at one thing have in common.
func (e *Entry) same() string {
	return string(e.Op) + "\x00" + e.Bucket + "\x00" + e.Key + "\x00" + e.UploadID + "\x00" +
		strconv.Itoa(e.Part) + "\x00" + e.Range
}

// accessLog is where requests are written down. Entries change until their request has ended, under
// its lock.
type accessLog struct {
	off    bool // nothing is kept
	opened time.Time

	mu       sync.Mutex
	requests int // numbers given
	entries  []*Entry
	attempts map[string]int
}

// copy returns the entries in the order of Seq.
func (l *accessLog) copy() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Entry, len(l.entries))
	for i, e := range l.entries {
		all[i] = *e
		all[i].Keys = slices.Clone(e.Keys)
	}
	return all
}

// clear forgets entries and attempts. Requests under way go on in entries that nobody sees.
func (l *accessLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
	clear(l.attempts)
}

// begin puts a request into the log.
func (l *accessLog) begin(e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	e.Seq, e.Begun, e.Attempt = l.requests, time.Since(l.opened), 1
	if l.off {
		return
	}
	l.attempts[e.same()]++
	e.Attempt = l.attempts[e.same()]
	l.entries = append(l.entries, e)
}

// end says that a request is over.
func (l *accessLog) end(e *Entry) { l.note(func() { e.Ended = time.Since(l.opened) }) }

// note changes an entry, which copy may be reading.
func (l *accessLog) note(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}
