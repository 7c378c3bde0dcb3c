package s3test

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
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
	Reset       Kind = "reset"        // reset the connection (RST) after At bytes; only with TCP
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
	BytesPerSec   int64 // of the body of an answer and of an upload, 0 = any
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

// SetRules replaces the rules. Their counts begin at 0.
func (s *Server) SetRules(rules ...Rule) (err error) {
	next := make([]*Rule, len(rules))
	for i, r := range rules {
		r.matched, r.used = 0, 0
		if r.key, err = regexp.Compile(r.Key); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
		next[i] = &r
	}
	s.change(func() { s.rules = next })
	return nil
}

// meet counts a request and returns its fault.
func (s *Server) meet(e *Entry) Fault {
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
		e.Fault = r.Kind
		return r.Fault
	}
	return Fault{}
}

// breaks reports whether the connection ends within a body.
func (f Fault) breaks() bool { return f.Kind == Cut || f.Kind == Reset || f.Kind == Hang }

// apply changes the next bytes of a body, which begin at the position at. ends reports that the connection
// ends behind them.
func (f Fault) apply(p []byte, at int64) (_ []byte, ends bool) {
	rest := f.At - at
	if ends = f.breaks() && int64(len(p)) >= rest; ends {
		p = p[:rest]
	}
	if f.Kind == Flip && 0 <= rest && rest < int64(len(p)) {
		p = slices.Clone(p) // do not change the store's own bytes
		p[rest] ^= 0xff
	}
	return p, ends
}

// answer is a response with its fault, and the body of the request.
type answer struct {
	http.ResponseWriter
	body    io.ReadCloser
	request *http.Request
	server  *Server
	entry   *Entry
	fault   Fault
	began   bool
	read    int64
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
		if c, ok := conn.(*net.TCPConn); ok {
			_ = c.SetLinger(0)
		}
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

// pass waits as long as n bytes take at the fault's rate.
func (a *answer) pass(n int) {
	if rate := a.fault.BytesPerSec; rate > 0 {
		a.wait(time.Duration(int64(n) * int64(time.Second) / rate))
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
	a.server.change(func() { a.entry.Status = status })
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.fault.BodyDelay > 0 && a.written == 0 {
		_ = http.NewResponseController(a.ResponseWriter).Flush()
		a.wait(a.fault.BodyDelay)
	}
	size, ends := len(b), false
	if !a.uploads() {
		b, ends = a.fault.apply(b, a.written)
	}
	if a.length >= 0 {
		b = b[:min(int64(len(b)), a.length-a.written)]
	}
	n, err := 0, error(nil)
	for err == nil && n < len(b) {
		piece := b[n:]
		if rate := a.fault.BytesPerSec; rate > 0 {
			piece = piece[:min(len(piece), max(1, int(rate/5)))]
			a.pass(len(piece))
		}
		var written int
		written, err = a.ResponseWriter.Write(piece)
		if n += written; len(piece) < len(b) {
			_ = http.NewResponseController(a.ResponseWriter).Flush()
		}
	}
	a.written += int64(n)
	a.server.change(func() { a.entry.BytesOut = a.written })
	if ends {
		a.breakOff()
	}
	if err != nil {
		return n, err
	}
	return size, nil
}

// uploads reports whether the request's body is the body of an object or part.
func (a *answer) uploads() bool { return a.entry.Op == Put || a.entry.Op == PutPart }

// Read reads the request's body.
func (a *answer) Read(p []byte) (n int, err error) {
	n, err = a.body.Read(p)
	ends := false
	if a.uploads() {
		var passed []byte
		passed, ends = a.fault.apply(p[:n], a.read)
		n = copy(p, passed)
	}
	if a.uploads() {
		a.pass(n)
	}
	a.read += int64(n)
	a.server.change(func() { a.entry.BytesIn = a.read })
	if ends {
		a.breakOff()
	}
	return n, err
}

// Close closes the request's body.
func (a *answer) Close() error { return a.body.Close() }
