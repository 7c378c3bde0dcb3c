// Package s3test is an S3 server for tests: gofakes3 with its objects in memory, behind a handler
// that injects faults and logs requests.
//
//	server.go   Config, Server, Endpoint: the store and its addresses; Start; connections in memory, for
//	            tests in a bubble of testing/synctest
//	faults.go   Rule, Fault: the faults, and the requests with faults
//	log.go      Op, Entry: the access log
//
// Signatures are not verified: only the access key is compared. A test that needs verified
// signatures or checksums runs against versitygw, see benchmarks/e2e.
package s3test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Config describes a server.
type Config struct {
	Buckets []string
	// Requests must contain AccessKey and Token. If empty, they are "key" and no token.
	AccessKey, Token string
	// Domain makes BUCKET.Domain a host name of the bucket (virtual-hosted style).
	Domain     string
	Versioning bool // in all buckets
	TLS        bool // the endpoints speak https: see Roots
	// InMemory makes the connections of DialContext pipes instead of TCP. Time in a bubble of
	// testing/synctest only passes with pipes.
	InMemory bool
	Rules    []Rule
	// Slots is the number of requests that are completed at a time; 0 = any.
	Slots int
}

// Server is a store with one or more endpoints, which show the same objects. Its methods are safe
// for concurrent use.
type Server struct {
	config    Config
	backend   *s3mem.Backend
	store     http.Handler
	endpoints []*Endpoint
	slots     chan struct{} // holds one value per request in service; nil: no limit
	opened    time.Time

	mu      sync.Mutex // also guards the fields of entries, which change until the requests end
	rules   []*Rule
	entries []*Entry
}

// Start makes a server with n endpoints. The end of the test closes them.
func Start(t testing.TB, c Config, n int) *Server {
	t.Helper()
	c.AccessKey = cmp.Or(c.AccessKey, "key")
	s := &Server{config: c, backend: s3mem.New(), opened: time.Now()}
	s.store = gofakes3.New(s.backend).Server()
	if c.Slots > 0 {
		s.slots = make(chan struct{}, c.Slots)
	}
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fail(s.SetRules(c.Rules...))
	for _, name := range c.Buckets {
		fail(s.backend.CreateBucket(name))
		if c.Versioning {
			fail(s.backend.SetVersioningConfiguration(name, gofakes3.VersioningConfiguration{
				Status: gofakes3.VersioningEnabled}))
		}
		// gofakes3 reports NoSuchUpload when it lists the uploads of a bucket that never had one.
		id := submatch(`<UploadId>(.*)</UploadId>`, s.ask(http.MethodPost, "/"+name+"/k?uploads"))
		s.ask(http.MethodDelete, "/"+name+"/k?uploadId="+id[0])
	}
	for i := range n {
		e := &Endpoint{server: s, index: i, address: "127.0.0.1:0"}
		if c.InMemory {
			e.address = fmt.Sprintf("10.0.0.%d:9000", i+1)
		}
		fail(e.Return())
		t.Cleanup(e.Kill)
		s.endpoints = append(s.endpoints, e)
	}
	return s
}

// ask returns the store's answer to a request that is neither logged nor has a fault.
func (s *Server) ask(method, target string) []byte {
	answer := httptest.NewRecorder()
	s.store.ServeHTTP(answer, httptest.NewRequest(method, target, nil))
	return answer.Body.Bytes()
}

// Credentials are the keys of a client: a key id, and a secret that Server does not check.
func Credentials(id string) *credentials.Credentials {
	return credentials.NewStaticV4(id, "secret", "")
}

// Roots returns the certificates that a client of the first endpoint trusts.
func (s *Server) Roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(s.endpoints[0].http.Certificate())
	return roots
}

// DialContext connects to an endpoint.
func (s *Server) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	for _, e := range s.endpoints {
		if l := e.memory.Load(); l != nil && e.address == address {
			return l.dial(ctx)
		}
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// Keys lists the objects of a bucket that begin with prefix, in order.
func (s *Server) Keys(bucket, prefix string) (keys []string) {
	p := gofakes3.NewPrefix(&prefix, nil)
	list, err := s.backend.ListBucket(bucket, &p, gofakes3.ListBucketPage{})
	if err != nil {
		panic(err)
	}
	for _, o := range list.Contents {
		keys = append(keys, o.Key)
	}
	return keys
}

// Uploads lists the keys of a bucket's multipart uploads in flight, in order.
func (s *Server) Uploads(bucket string) []string {
	return submatch(`<Key>(.*)</Key>`, s.ask(http.MethodGet, "/"+bucket+"?uploads"))
}

// Object returns the body of an object.
func (s *Server) Object(bucket, key string) ([]byte, error) {
	o, err := s.backend.GetObject(bucket, key, nil)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(o.Contents)
}

// SetObject stores an object without a request.
func (s *Server) SetObject(bucket, key, body string) error {
	_, err := s.backend.PutObject(bucket, key, map[string]string{}, strings.NewReader(body),
		int64(len(body)), nil)
	return err
}

// Endpoints returns the endpoints in the order of their numbers.
func (s *Server) Endpoints() []*Endpoint { return s.endpoints }

// URLs returns the addresses of the endpoints.
func (s *Server) URLs() (urls []string) {
	for _, e := range s.endpoints {
		urls = append(urls, e.http.URL)
	}
	return urls
}

// Endpoint is one address of a server.
type Endpoint struct {
	server  *Server
	index   int
	address string // the first Return replaces port 0
	http    *httptest.Server
	memory  atomic.Pointer[memoryListener] // for an endpoint in memory
	stop    context.CancelFunc             // ends the requests in flight
}

// Return opens the endpoint at its address, for the first time or after Kill.
func (e *Endpoint) Return() (err error) {
	var l net.Listener
	if e.server.config.InMemory {
		memory := listenInMemory(e.address)
		e.memory.Store(memory)
		l = memory
	} else if l, err = net.Listen("tcp", e.address); err != nil {
		return err
	}
	e.address = l.Addr().String()
	var down context.Context
	down, e.stop = context.WithCancel(context.Background())
	e.http = &httptest.Server{Listener: l, Config: &http.Server{
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return down },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e.server.serve(e.index, w, r)
		})}}
	if e.server.config.TLS {
		e.http.StartTLS()
	} else {
		e.http.Start()
	}
	return nil
}

// Kill closes the listener and all connections, and waits for the requests in flight. It may be repeated.
func (e *Endpoint) Kill() {
	e.stop()
	_ = e.http.Listener.Close() // first, so that no connection follows the last one
	e.http.CloseClientConnections()
	e.http.Close()
}

type connectionKey struct{}

// serve completes one request, or lets it fail.
func (s *Server) serve(endpoint int, w http.ResponseWriter, r *http.Request) {
	if s.slots != nil {
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
	}
	if name, ok := strings.CutSuffix(r.Host, "."+s.config.Domain); ok && s.config.Domain != "" {
		r.URL.Path = "/" + name + r.URL.Path
	}
	if strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		unchunk(r)
	}
	entry := s.begin(endpoint, r)
	defer func() { s.change(func() { entry.Ended = time.Since(s.opened) }) }()
	a := &answer{ResponseWriter: w, body: r.Body, request: r, server: s, entry: entry}
	a.fault = s.meet(entry)
	r.Body = a
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+s.config.AccessKey+"/"):
		a.fail(http.StatusForbidden, "InvalidAccessKeyId", "The access key does not exist")
	case r.Header.Get("X-Amz-Security-Token") != s.config.Token:
		a.fail(http.StatusForbidden, "InvalidToken", "The token is not valid")
	case a.instead():
	case s.changed(r, entry):
		a.fail(http.StatusPreconditionFailed, "PreconditionFailed", "If-Match")
	default:
		s.store.ServeHTTP(a, r)
		a.WriteHeader(http.StatusOK)
	}
}

// changed compares a GET's If-Match, which gofakes3 ignores.
func (s *Server) changed(r *http.Request, e *Entry) bool {
	tag := r.Header.Get("If-Match")
	if tag == "" || e.Op != Get {
		return false
	}
	o, err := s.backend.HeadObject(e.Bucket, e.Key)
	return err == nil && strings.Trim(tag, `"`) != fmt.Sprintf("%x", o.Hash)
}

// unchunk removes the framing of aws-chunked bodies, which gofakes3 supports for signed PUTs only. It
// drops signatures and checksums of the chunks.
func unchunk(r *http.Request) {
	size := r.Header.Get("X-Amz-Decoded-Content-Length")
	_, _ = fmt.Sscan(size, &r.ContentLength)
	r.Header.Set("Content-Length", size)
	r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	framed := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(httputil.NewChunkedReader(framed), drained{framed}), framed}
}

// drained reads the trailer, so that the connection can be used again.
type drained struct{ io.Reader }

func (d drained) Read([]byte) (int, error) {
	_, err := io.Copy(io.Discard, d.Reader)
	return 0, cmp.Or(err, io.EOF)
}

// submatch returns the first group of all matches.
func submatch(pattern string, text []byte) (found []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		found = append(found, string(bytes.TrimSpace(m[1])))
	}
	return found
}

// memoryListener makes connections from in-memory pipes (net.Pipe). Their goroutines block on channels only, so
// testing/synctest can detect when all goroutines of a test are blocked. A closed listener refuses connections
// with the kernel's error ECONNREFUSED. A pipe cannot be reset: its other end reads an EOF.
type memoryListener struct {
	address memoryAddress
	conns   chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func listenInMemory(address string) *memoryListener {
	return &memoryListener{address: memoryAddress(address), conns: make(chan net.Conn),
		closed: make(chan struct{})}
}

func (l *memoryListener) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: l.address,
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type memoryAddress string

func (memoryAddress) Network() string  { return "tcp" }
func (a memoryAddress) String() string { return string(a) }

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return l.address }
