package s3double

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"kvbench/tiers/objecttier/s3double/testnet"
	"kvbench/tiers/objecttier/s3double/wire"
)

// request is one under way. It belongs to the goroutine that serves it, but for its entry, which
// others read: that changes under the lock of the log.
type request struct {
	*http.Request
	out      *answer
	d        *Double
	entry    *Entry
	bucket   string
	key      string // "" = about the bucket
	signer   *wire.Signer
	fault    Fault // of no kind where no rule fits
	endpoint *Endpoint
	conn     net.Conn        // to be reset
	down     <-chan struct{} // its endpoint's end
}

// serve answers one request. Whatever ends a connection within it is a panic of
// http.ErrAbortHandler, as net/http wants it: nothing more is then sent, not even the end of a
// body.
func (e *Endpoint) serve(o *opening, w http.ResponseWriter, r *http.Request) {
	if !o.enter() {
		panic(http.ErrAbortHandler)
	}
	defer o.served.Done()
	d := e.double
	conn := r.Context().Value(connectionKey{}).(connection)
	bucket, key := d.locate(r)
	query := r.URL.Query()
	op, do := find(r, key)
	entry := &Entry{Conn: conn.number, Endpoint: e.index, Op: op, Bucket: bucket, Key: key,
		UploadID: query.Get("uploadId"), Range: r.Header.Get("Range"),
		Payload: r.Header.Get("X-Amz-Content-Sha256")}
	entry.Part, _ = strconv.Atoi(query.Get("partNumber")) // 0 is refused by putPart
	if key == "" {
		entry.Key = query.Get("prefix")
	}
	// What is not allowed is in the log, too: a client that asks for a foreign key is to be seen.
	d.log.begin(entry)
	defer d.log.end(entry)
	q := &request{Request: r, d: d, entry: entry, bucket: bucket, key: key, endpoint: e,
		conn: conn.conn, down: o.down}
	if fault, rule := d.rules.meet(entry); fault != nil {
		q.fault = *fault
		d.log.note(func() { entry.Fault, entry.Rule = fault.Kind, rule })
	}
	q.out = &answer{ResponseWriter: w, q: q}
	h := w.Header()
	h.Set("Server", d.config.Server)
	h.Set("X-Amz-Request-Id", fmt.Sprintf("%016X", entry.Seq))
	h.Set("Date", d.store.now().Format(http.TimeFormat)) // of the store's clock, by which it judges
	if err := q.run(do); err != nil {
		q.fail(err)
	}
}

// run does what is asked for, or what a rule wants instead. Faults come behind the check of the
// signature: a client whose keys are wrong must not hear anything else.
func (q *request) run(do func(*request) *wire.Error) *wire.Error {
	signer, err := q.d.keys.Check(q.Request, q.d.store.now())
	if err != nil {
		return err
	}
	q.signer = signer
	if q.fault.breaks() && q.fault.At < 0 {
		q.breakOff()
	} else if err, instead := q.instead(); instead {
		return err
	}
	q.d.store.mu.Lock()
	found := q.d.store.buckets[q.bucket] != nil
	q.d.store.mu.Unlock()
	if !found && q.entry.Op != Other {
		return wire.Fail(http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
	}
	return do(q)
}

// instead answers where a rule wants that nothing is done.
func (q *request) instead() (err *wire.Error, answered bool) {
	f := q.fault
	if f.Kind != Status && f.Kind != HTML && f.Kind != Error200 {
		return nil, false
	}
	if !f.Early {
		// The body is read, so that its client sees the answer and not a connection that closes.
		n, _ := io.Copy(io.Discard, q.Body)
		q.d.log.note(func() { q.entry.BytesIn = n })
	}
	if f.RetryAfter != "" {
		q.out.Header().Set("Retry-After", f.RetryAfter)
	}
	message := cmp.Or(f.Message, "a rule of the double")
	switch f.Kind {
	case HTML:
		q.send(cmp.Or(f.Status, http.StatusOK), "text/html; charset=utf-8", page)
		return nil, true
	case Error200:
		return wire.Fail(http.StatusOK, cmp.Or(f.Code, "InternalError"), message), true
	}
	status := cmp.Or(f.Status, http.StatusServiceUnavailable)
	return wire.Fail(status, cmp.Or(f.Code, wire.UsualCode(status)), message), true
}

// page is what a web server says that has nothing to do with S3.
const page = "<!DOCTYPE html>\n<html><body><h1>It works</h1></body></html>\n"

// body returns the payload of a request with what its rule does to it, to be read once.
func (q *request) body() (io.Reader, *wire.Payload, *wire.Error) {
	p, err := wire.NewPayload(q.Request, q.signer)
	if err != nil {
		return nil, nil, err
	}
	return &faultyBody{q: q, payload: p}, p, nil
}

// faultyBody counts and spoils the body of a request.
type faultyBody struct {
	q       *request
	payload *wire.Payload
	n       int64
}

func (b *faultyBody) Read(p []byte) (int, error) {
	f := b.q.fault
	breaks := f.breaks()
	if breaks && b.n == f.At {
		b.q.breakOff()
	}
	if breaks {
		p = p[:min(int64(len(p)), f.At-b.n)]
	}
	n, err := b.payload.Read(p)
	if at := f.At - b.n; f.Kind == Flip && 0 <= at && at < int64(n) {
		p[at] ^= 0xff
	}
	b.n += int64(n)
	b.q.d.log.note(func() { b.q.entry.BytesIn = b.n })
	return n, err
}

// breaks: the fault ends the connection within a body.
func (f Fault) breaks() bool { return f.Kind == Cut || f.Kind == Reset || f.Kind == Hang }

// breakOff ends the connection as the rule wants it, and the handler with it. What has been written
// goes out before, since a client is to see exactly so many bytes.
func (q *request) breakOff() {
	if q.out.started {
		_ = http.NewResponseController(q.out.ResponseWriter).Flush()
	}
	switch q.fault.Kind {
	case Reset:
		testnet.Reset(q.conn)
	case Hang:
		// A client's leaving is seen only when all that it sent has been read; else the end of the
		// endpoint comes first.
		select {
		case <-q.Context().Done():
		case <-q.down:
		}
	}
	panic(http.ErrAbortHandler)
}

// wait lets the time of a delay pass, unless nobody waits any more.
func (q *request) wait(d Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(time.Duration(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-q.Context().Done():
		panic(http.ErrAbortHandler)
	case <-q.down:
		panic(http.ErrAbortHandler)
	}
}

// fail answers with an error. A HEAD has no body.
func (q *request) fail(e *wire.Error) {
	e.Resource, e.RequestID = q.URL.Path, q.out.Header().Get("X-Amz-Request-Id")
	q.d.log.note(func() { q.entry.Code = e.Code })
	// What the object would have sent. A range that cannot be satisfied keeps none of it, either.
	for _, name := range []string{"ETag", "Content-Range", "Last-Modified"} {
		q.out.Header().Del(name)
	}
	text, err := xml.Marshal(e)
	if err != nil {
		panic(err)
	}
	q.send(e.Status, "application/xml", xml.Header+string(text))
}

// xml answers 200 with a document.
func (q *request) xml(document any) *wire.Error {
	text, err := xml.Marshal(document)
	if err != nil {
		return internal(err)
	}
	q.send(http.StatusOK, "application/xml", xml.Header+string(text))
	return nil
}

func (q *request) send(status int, kind, body string) {
	q.out.Header().Set("Content-Type", kind)
	if q.Method == http.MethodHead || status == http.StatusNotModified {
		q.out.WriteHeader(status)
		return
	}
	q.out.Header().Set("Content-Length", strconv.Itoa(len(body)))
	q.out.WriteHeader(status)
	_, _ = io.WriteString(q.out, body)
}

// internal is what goes wrong in the double itself: a full disk under its bodies.
func internal(err error) *wire.Error {
	return wire.Fail(http.StatusInternalServerError, "InternalError", err.Error())
}

// answer is a response with what a rule does to it, counted. It stands before net/http's writer
// instead of a connection of its own, which would lose sendfile.
type answer struct {
	http.ResponseWriter
	q       *request
	started bool
	body    bool // has begun
	n       int64
}

func (a *answer) WriteHeader(status int) {
	if a.started {
		return
	}
	if a.q.fault.Kind == Lost {
		panic(http.ErrAbortHandler)
	}
	a.q.wait(a.q.fault.HeaderDelay)
	a.started = true
	a.q.d.log.note(func() { a.q.entry.Status = status })
	a.ResponseWriter.WriteHeader(status)
}

// beforeBody lets the header go and the delay pass, once.
func (a *answer) beforeBody() {
	a.WriteHeader(http.StatusOK)
	if a.body {
		return
	}
	a.body = true
	if a.q.fault.BodyDelay > 0 {
		_ = http.NewResponseController(a.ResponseWriter).Flush()
		a.q.wait(a.q.fault.BodyDelay)
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.beforeBody()
	f := a.q.fault
	ends := f.breaks() && !a.q.carries() && int64(len(b)) >= f.At-a.n
	if ends {
		b = b[:f.At-a.n]
	}
	n, err := a.ResponseWriter.Write(b)
	a.sent(int64(n))
	if ends {
		a.q.breakOff()
	}
	return n, err
}

func (a *answer) sent(n int64) {
	a.n += n
	a.q.d.log.note(func() { a.q.entry.BytesOut = a.n })
}

// carries: the request has an object in its body, which faults of bodies then concern.
func (q *request) carries() bool { return q.entry.Op == Put || q.entry.Op == PutPart }

// sendSection sends part of a file: by sendfile where nothing is done to it, and the connection is
// plain TCP. Only a *os.File behind an io.LimitedReader goes that way.
func (a *answer) sendSection(s section) error {
	a.beforeBody()
	f := a.q.fault
	if !f.breaks() && f.Kind != Flip {
		n, err := io.Copy(a.ResponseWriter, io.LimitReader(s.file, s.length))
		a.sent(n)
		return err
	}
	b := buffers.Get().(*[256 << 10]byte)
	defer buffers.Put(b)
	for left := s.length; left > 0; {
		n, err := s.file.Read(b[:min(int64(len(b)), left)])
		if err != nil {
			return errors.Join(io.ErrUnexpectedEOF, err)
		}
		if at := f.At - a.n; f.Kind == Flip && 0 <= at && at < int64(n) {
			b[at] ^= 0xff
		}
		left -= int64(n)
		if _, err := a.Write(b[:n]); err != nil {
			return err
		}
	}
	return nil
}
