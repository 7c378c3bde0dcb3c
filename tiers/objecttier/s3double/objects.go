package s3double

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"kvbench/tiers/objecttier/s3double/wire"
)

// put stores a body as an object. Its conditions are looked at again when the body is there: of two
// that come at the same time with If-None-Match, one is refused.
func (q *request) put() *wire.Error {
	if err := q.conditions(); err != nil { // before the body, which may be large
		return err
	}
	body, err := q.receive()
	if err != nil {
		return err
	}
	o := &object{body: []piece{body}, size: body.size, etag: newETag(),
		header: objectHeader(q.Header)}
	s := q.d.store
	s.mu.Lock()
	err = q.conditionsLocked()
	if err == nil {
		s.set(s.buckets[q.bucket], q.key, o)
	}
	s.mu.Unlock()
	if err != nil {
		s.unlink(body)
		return err
	}
	q.tag(o.etag)
	if body.checksum[0] != "" {
		q.out.Header().Set(body.checksum[0], body.checksum[1])
	}
	q.out.WriteHeader(http.StatusOK)
	return nil
}

// receive stores the body of a request and checks it. Nothing is left of one that is not what its
// header says.
func (q *request) receive() (piece, *wire.Error) {
	body, payload, bad := q.body()
	if bad != nil {
		return piece{}, bad
	}
	p, err := q.d.store.write(body)
	if err != nil {
		if bad, ok := wire.ReadError(err); ok {
			return p, bad
		}
		return p, internal(err)
	}
	if bad = payload.Check(); bad != nil {
		q.d.store.unlink(p)
	}
	p.checksum[0], p.checksum[1] = payload.Checksum()
	return p, bad
}

// objectHeader is what is kept of a request's header with an object.
func objectHeader(h http.Header) http.Header {
	kept := http.Header{}
	for name, values := range h {
		if name == "Content-Type" || strings.HasPrefix(name, "X-Amz-Meta-") {
			kept[name] = values
		}
	}
	return kept
}

// tag sets the ETag of an answer.
func (q *request) tag(etag string) {
	if q.fault.Kind == WrongETag {
		etag = newETag()
	}
	q.out.Header()["ETag"] = []string{etag} // as S3 spells it
}

// conditions checks If-None-Match and If-Match.
func (q *request) conditions() *wire.Error {
	q.d.store.mu.Lock()
	defer q.d.store.mu.Unlock()
	return q.conditionsLocked()
}

// conditionsLocked is conditions with the store locked.
func (q *request) conditionsLocked() *wire.Error {
	if q.fault.Kind == NoConditions {
		return nil
	}
	etag := ""
	if o := q.d.store.buckets[q.bucket].objects[q.key]; o != nil {
		etag = o.etag
	}
	return wire.Conditions(q.Request, etag)
}

// get sends an object or a range of it; of HEAD nothing but the header. Files are opened before the
// store is unlocked, and sent after.
func (q *request) get() *wire.Error {
	s := q.d.store
	s.mu.Lock()
	o := s.buckets[q.bucket].objects[q.key]
	if o == nil {
		s.mu.Unlock()
		return wire.Fail(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	}
	err := q.conditionsLocked()
	h := q.out.Header()
	for name, values := range o.header {
		h[name] = values
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "binary/octet-stream") // net/http would look into the body
	}
	h.Set("Last-Modified", o.modified.Format(http.TimeFormat))
	h.Set("Accept-Ranges", "bytes")
	q.tag(o.etag)
	status, from, n := http.StatusOK, int64(0), o.size
	if header := q.Header.Get("Range"); header != "" && err == nil {
		var ok, satisfied bool
		if from, n, ok, satisfied = wire.ParseRange(header, o.size); ok && !satisfied {
			h.Set("Content-Range", fmt.Sprintf("bytes */%d", o.size))
			err = wire.Fail(http.StatusRequestedRangeNotSatisfiable, "InvalidRange",
				"The requested range is not satisfiable")
		} else if ok {
			status = http.StatusPartialContent
			h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+n-1, o.size))
		}
	}
	if q.fault.Kind == WrongLength {
		n = max(0, n-max(1, q.fault.At))
	}
	var sections []section
	if err == nil && q.Method == http.MethodGet {
		var failed error
		if sections, failed = o.open(from, n); failed != nil {
			err = internal(failed)
		}
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	defer closeAll(sections)
	h.Set("Content-Length", strconv.FormatInt(n, 10))
	q.out.WriteHeader(status)
	for _, part := range sections {
		if q.out.sendSection(part) != nil {
			break // nobody is there any more
		}
	}
	if len(sections) == 0 && q.Method == http.MethodGet {
		_, _ = q.out.Write(nil) // faults of bodies also meet empty ones
	}
	return nil
}

// delete removes an object. That there is none is no error.
func (q *request) delete() *wire.Error {
	s := q.d.store
	s.mu.Lock()
	err := q.conditionsLocked()
	if err == nil {
		s.remove(s.buckets[q.bucket], q.key)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	q.out.WriteHeader(http.StatusNoContent)
	return nil
}

// deleteBatch removes many objects and says of each how it went. Its status is 200 whatever has
// become of the keys: who does not look at each of them leaves objects behind. The digest or a
// checksum of the body is required, as on S3. A rule for Delete that names keys answers for these
// alone, with its status in their stead.
func (q *request) deleteBatch() *wire.Error {
	reader, payload, bad := q.body()
	if bad != nil {
		return bad
	}
	if !payload.Digested() {
		return wire.Fail(http.StatusBadRequest, "InvalidRequest",
			"Missing required header for this request: Content-MD5 OR x-amz-checksum-*")
	}
	text, err := io.ReadAll(io.LimitReader(reader, 2<<20))
	if err != nil {
		return wire.Fail(http.StatusBadRequest, "IncompleteBody", err.Error())
	}
	if bad := payload.Check(); bad != nil {
		return bad
	}
	keys, quiet, bad := wire.ParseDelete(text)
	if bad != nil {
		return bad
	}
	q.d.log.note(func() { q.entry.Keys = keys })
	var result wire.Deleted
	s := q.d.store
	for _, key := range keys {
		one := Entry{Op: Delete, Endpoint: q.entry.Endpoint, Bucket: q.bucket, Key: key,
			Attempt: q.entry.Attempt}
		if fault, _ := q.d.rules.meet(&one); fault != nil && fault.Kind == Status {
			e := struct{ Key, Code, Message string }{key, fault.Code, fault.Message}
			if e.Code == "" {
				e.Code = wire.UsualCode(max(fault.Status, http.StatusInternalServerError))
			}
			result.Error = append(result.Error, e)
			continue
		}
		s.mu.Lock()
		s.remove(s.buckets[q.bucket], key)
		s.mu.Unlock()
		if !quiet {
			result.Deleted = append(result.Deleted, struct{ Key string }{key})
		}
	}
	return q.xml(result)
}
