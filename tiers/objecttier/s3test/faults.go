package s3test

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// Kind is the kind of a fault.
type Kind string

// The kinds. At is Fault.At. Cut, Reset, Hang and Flip apply to the request's body for Put and PutPart,
// else to the response's body.
const (
	Delay       Kind = "delay"        // only the delays
	Status      Kind = "status"       // respond Status and an S3 error; the request is not executed
	Page        Kind = "page"         // respond Status (200 if 0) and Text, not executed
	Lost        Kind = "lost"         // execute the request, then close the connection
	Cut         Kind = "cut"          // close the connection after At bytes
	Reset       Kind = "reset"        // reset the connection (RST) after At bytes
	Hang        Kind = "hang"         // stop after At bytes until the client or the endpoint closes
	Flip        Kind = "flip"         // invert byte At
	WrongLength Kind = "wrong-length" // a body and a Content-Length that are At bytes too short
	ShortPage   Kind = "short-page"   // at most At entries in a list
)

// Fault is a fault of a request. In a bubble of testing/synctest its delays take virtual time.
type Fault struct {
	Kind Kind
	// At is a position in the body in bytes. With a negative At, the faults Cut, Reset and Hang come
	// before the request is executed.
	At            int64
	Status        int    // 503 if 0
	Code, Message string // of the S3 error
	Text          string // of a Page; if empty, the text of a web server
	RetryAfter    string // the header Retry-After: seconds, or a date
	HeaderDelay   time.Duration
	BodyDelay     time.Duration
}

// Rule is a fault for the requests that match all set fields. The first rule that applies counts.
type Rule struct {
	Op    Op
	Key   string // a regular expression
	Nth   int    // only the n-th matching request
	Every int    // each k-th matching request
	Times int    // at most this often
	Fault

	key           *regexp.Regexp
	matched, used int
}

type ruleSet struct {
	mu    sync.Mutex
	rules []*Rule
}

func (s *ruleSet) set(rules []Rule) (err error) {
	next := make([]*Rule, len(rules))
	for i, r := range rules {
		r.matched, r.used = 0, 0
		if r.key, err = regexp.Compile(r.Key); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
		next[i] = &r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = next
	return nil
}

// meet counts a request and returns its fault.
func (s *ruleSet) meet(e *Entry) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if r.Op != "" && r.Op != e.Op || !r.key.MatchString(e.Key) {
			continue
		}
		r.matched++
		if r.Nth != 0 && r.Nth != r.matched || r.Times != 0 && r.used >= r.Times ||
			r.Every != 0 && r.matched%r.Every != 0 {
			continue
		}
		r.used++
		return r.Fault
	}
	return Fault{}
}

// breaks reports whether the connection ends within a body.
func (f Fault) breaks() bool { return f.Kind == Cut || f.Kind == Reset || f.Kind == Hang }

// answer is a response with its fault.
type answer struct {
	http.ResponseWriter
	request *http.Request
	server  *Server
	entry   *Entry
	fault   Fault
	began   bool
	written int64
	length  int64 // for WrongLength
}

// instead responds if the fault prevents the execution of the request.
func (a *answer) instead() bool {
	f := &a.fault
	switch {
	case f.breaks() && f.At < 0:
		a.breakOff()
	case f.Kind == ShortPage:
		query := a.request.URL.Query()
		query.Set("max-keys", strconv.FormatInt(f.At, 10))
		query.Set("max-uploads", strconv.FormatInt(f.At, 10))
		a.request.URL.RawQuery = query.Encode()
	case f.Kind == Status, f.Kind == Page:
		_, _ = io.Copy(io.Discard, a.request.Body) // else the client may see a closed connection
		if f.RetryAfter != "" {
			a.Header().Set("Retry-After", f.RetryAfter)
		}
		if f.Kind == Status {
			a.fail(cmp.Or(f.Status, http.StatusServiceUnavailable), cmp.Or(f.Code, "Injected"),
				cmp.Or(f.Message, "a fault of the test"))
			return true
		}
		a.WriteHeader(cmp.Or(f.Status, http.StatusOK))
		_, _ = io.WriteString(a, cmp.Or(f.Text, "<!DOCTYPE html><html>It works</html>"))
		return true
	}
	return false
}

// fail responds with an S3 error.
func (a *answer) fail(status int, code, message string) {
	a.Header().Set("Content-Type", "application/xml")
	a.WriteHeader(status)
	if a.request.Method != http.MethodHead {
		fmt.Fprintf(a, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
	}
}

// breakOff ends the connection after the bytes that were written.
func (a *answer) breakOff() {
	if a.began {
		_ = http.NewResponseController(a.ResponseWriter).Flush()
	}
	switch a.fault.Kind {
	case Reset:
		conn := a.request.Context().Value(connectionKey{}).(net.Conn)
		if c, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
			conn = c.NetConn()
		}
		_ = conn.(interface{ SetLinger(int) error }).SetLinger(0)
		_ = conn.Close()
	case Hang:
		<-a.request.Context().Done()
	}
	panic(http.ErrAbortHandler)
}

func (a *answer) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.request.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

func (a *answer) WriteHeader(status int) {
	if a.began {
		return
	}
	if a.fault.Kind == Lost {
		panic(http.ErrAbortHandler)
	}
	a.wait(a.fault.HeaderDelay)
	a.began, a.length = true, -1
	h := a.Header()
	h.Set("Server", "s3test")
	if length, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil &&
		a.fault.Kind == WrongLength {
		a.length = max(0, length-max(1, a.fault.At))
		h.Set("Content-Length", strconv.FormatInt(a.length, 10))
	}
	a.server.log.change(func() { a.entry.Status = status })
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.fault.BodyDelay > 0 && a.written == 0 {
		_ = http.NewResponseController(a.ResponseWriter).Flush()
		a.wait(a.fault.BodyDelay)
	}
	size, ends := len(b), false
	if onResponse := a.entry.Op != Put && a.entry.Op != PutPart; onResponse {
		at := a.fault.At - a.written
		if ends = a.fault.breaks() && int64(size) >= at; ends {
			b = b[:at]
		}
		if a.fault.Kind == Flip && 0 <= at && at < int64(size) {
			b = append([]byte(nil), b...) // do not change the store's own bytes
			b[at] ^= 0xff
		}
	}
	if a.length >= 0 {
		b = b[:min(int64(len(b)), a.length-a.written)]
	}
	n, err := a.ResponseWriter.Write(b)
	a.written += int64(n)
	a.server.log.change(func() { a.entry.BytesOut = a.written })
	if ends {
		a.breakOff()
	}
	if err != nil {
		return n, err
	}
	return size, nil
}

// requestBody counts the bytes of a request's body, and can let it fail.
type requestBody struct {
	io.ReadCloser
	*answer
	read int64
}

func (b *requestBody) Read(p []byte) (int, error) {
	f := b.fault
	carries := b.entry.Op == Put || b.entry.Op == PutPart
	if breaks := carries && f.breaks(); breaks {
		if b.read == f.At {
			b.breakOff()
		}
		p = p[:min(int64(len(p)), f.At-b.read)]
	}
	n, err := b.ReadCloser.Read(p)
	if at := f.At - b.read; carries && f.Kind == Flip && 0 <= at && at < int64(n) {
		p[at] ^= 0xff
	}
	b.read += int64(n)
	b.server.log.change(func() { b.entry.BytesIn = b.read })
	return n, err
}
