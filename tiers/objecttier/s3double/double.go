package s3double

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvbench/tiers/objecttier/s3double/testnet"
	"kvbench/tiers/objecttier/s3double/wire"
)

// Config is what a double is made with. The zero value but for Buckets serves.
type Config struct {
	// Dir holds the bodies of objects; "" = a directory of its own, in memory where the machine has
	// /dev/shm, removed by Close.
	Dir     string
	Buckets []string
	// AccessKey, SecretKey, Token, Region are what requests have to be signed with: "key",
	// "secret", no token and us-east-1 if empty. Token is that of temporary keys.
	AccessKey, SecretKey, Token, Region string
	// Anonymous: requests without a signature are served, too.
	Anonymous bool
	// Domain: BUCKET.Domain is a name of the bucket (virtual style), besides paths.
	Domain string
	// Versioning is what the buckets say: "", Enabled, Suspended. No versions are kept.
	Versioning string
	// MinPart is the least size of all parts but the last; 5 MiB if 0, as on S3.
	MinPart int64
	// Server is the header of that name; "s3double" if empty.
	Server string
	// Skew is how far the double's clock is ahead of the machine's.
	Skew time.Duration
	// TLS, if there is any, holds the certificate: see testnet.NewCertificate.
	TLS *tls.Config
	// NoLog keeps nothing of requests, which else take 0.5 KiB each until the end; Attempt is then
	// always 1. For measurements.
	NoLog bool
	// Network is where the endpoints listen; nil = 127.0.0.1, over real TCP.
	Network *testnet.Network
	// Rules are faults, drawn from Seed where they concern a share of the requests.
	Rules []Rule
	Seed  uint64
}

// Double is a store with its endpoints. Its parts have locks of their own, and none is held while
// another is taken, nor while anything is sent.
type Double struct {
	config    Config
	keys      wire.Keys
	store     *store
	log       accessLog
	rules     ruleSet
	endpoints []*Endpoint
	conns     atomic.Int64 // numbers given
}

// Open makes a store without an endpoint. Close ends it.
func Open(c Config) (*Double, error) {
	c.AccessKey = cmp.Or(c.AccessKey, "key")
	c.SecretKey = cmp.Or(c.SecretKey, "secret")
	c.Region = cmp.Or(c.Region, "us-east-1")
	c.Server = cmp.Or(c.Server, "s3double")
	c.MinPart = cmp.Or(c.MinPart, 5<<20)
	keys := wire.Keys{AccessKey: c.AccessKey, SecretKey: c.SecretKey, Token: c.Token,
		Region: c.Region, Anonymous: c.Anonymous}
	d := &Double{config: c, keys: keys, rules: ruleSet{seed: c.Seed},
		log: accessLog{off: c.NoLog, opened: time.Now(), attempts: map[string]int{}}}
	if err := d.SetRules(c.Rules...); err != nil {
		return nil, err
	}
	var err error
	d.store, err = openStore(c.Dir, c.Skew, c.Buckets)
	return d, err
}

// Close closes all endpoints, waits for their requests, and removes the bodies, but not a
// directory that it was given.
func (d *Double) Close() error {
	for _, e := range d.endpoints {
		e.Kill()
	}
	return d.store.close()
}

// Start is Open and Listen for n endpoints, for a test, whose end closes it.
func Start(t testing.TB, c Config, n int) *Double {
	t.Helper()
	d, err := Open(c)
	if err == nil {
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		for i := 0; i < n && err == nil; i++ {
			address := "127.0.0.1:0"
			if c.Network != nil {
				address = fmt.Sprintf("10.0.0.%d:9000", i+1)
			}
			_, err = d.Listen(address)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// SetRules replaces the rules, which count from here. Its error names all that is wrong, and then
// the old ones stay.
func (d *Double) SetRules(rules ...Rule) error { return d.rules.set(rules) }

// Log returns the access log in the order of Seq, requests under way included.
func (d *Double) Log() []Entry { return d.log.copy() }

// ClearLog forgets what has been logged and the attempts. Requests under way are lost to it.
func (d *Double) ClearLog() { d.log.clear() }

// WriteLog writes the log, a JSON object a line.
func (d *Double) WriteLog(w io.Writer) error {
	enc := json.NewEncoder(w)
	for _, e := range d.Log() {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

// Keys lists the objects of a bucket that begin with prefix, in order.
func (d *Double) Keys(bucket, prefix string) []string { return d.store.keysOf(bucket, prefix) }

// Uploads lists the keys of the uploads under way in a bucket, in order; twice where there are two.
func (d *Double) Uploads(bucket string) []string { return d.store.uploadsOf(bucket) }

// Object returns the body of an object; os.ErrNotExist where there is none.
func (d *Double) Object(bucket, key string) ([]byte, error) { return d.store.bodyOf(bucket, key) }

// SetObject puts an object of somebody else's there, last changed at a time; zero = now. The bucket
// must exist.
func (d *Double) SetObject(bucket, key, body string, modified time.Time) error {
	return d.store.put(bucket, key, body, modified)
}

// Endpoint is one address of the store; all of them show the same objects.
type Endpoint struct {
	double  *Double
	index   int    // from 0
	address string // the port is the kernel's choice at first, and then stays
	*opening
}

// opening is an endpoint from Return to Kill. Connections go on to tell of their end for a moment
// after that, so the next one has its own.
type opening struct {
	server http.Server
	served sync.WaitGroup // its listener and its requests
	down   chan struct{}  // closed when it goes down
	mu     sync.Mutex
	conns  map[net.Conn]bool
}

// Listen opens another endpoint.
func (d *Double) Listen(address string) (*Endpoint, error) {
	e := &Endpoint{double: d, index: len(d.endpoints), address: address}
	if err := e.Return(); err != nil {
		return nil, err
	}
	d.endpoints = append(d.endpoints, e)
	return e, nil
}

// Endpoints are those that Listen has opened, in order.
func (d *Double) Endpoints() []*Endpoint { return d.endpoints }

// URLs are the endpoints' addresses, as a user types them.
func (d *Double) URLs() (urls []string) {
	for _, e := range d.endpoints {
		urls = append(urls, e.URL())
	}
	return urls
}

// URL is http://127.0.0.1:40001.
func (e *Endpoint) URL() string {
	if e.double.config.TLS != nil {
		return "https://" + e.address
	}
	return "http://" + e.address
}

// Return opens an endpoint again that was killed, at its old address.
func (e *Endpoint) Return() error {
	listen := func() (net.Listener, error) { return net.Listen("tcp", e.address) }
	if network := e.double.config.Network; network != nil {
		listen = func() (net.Listener, error) { return network.Listen(e.address) }
	}
	l, err := listen()
	if err != nil {
		return err
	}
	e.address = l.Addr().String()
	o := &opening{down: make(chan struct{}), conns: map[net.Conn]bool{}}
	handler := func(w http.ResponseWriter, r *http.Request) { e.serve(o, w, r) }
	o.server = http.Server{Handler: http.HandlerFunc(handler), ConnState: o.watch,
		ConnContext: e.number, Protocols: new(http.Protocols),
		// What net/http says of connections is about those that tests break on purpose.
		ErrorLog: log.New(io.Discard, "", 0)}
	// HTTP/2 is no part of S3, and connections of it cannot be told apart.
	o.server.Protocols.SetHTTP1(true)
	e.opening = o
	if config := e.double.config.TLS; config != nil {
		l = tls.NewListener(l, config)
	}
	o.served.Go(func() {
		if err := o.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // nothing but Kill ends it
		}
	})
	return nil
}

// Kill does what becomes of a process that is killed: nobody listens any more, all connections are
// reset, and requests under way are cut off. It returns when they have ended. Killing twice is
// harmless.
func (e *Endpoint) Kill() {
	e.mu.Lock()
	select {
	case <-e.down:
	default:
		close(e.down)
	}
	for c := range e.conns {
		testnet.Reset(c)
	}
	e.mu.Unlock()
	_ = e.server.Close()
	e.served.Wait()
}

// enter counts a request in, until served.Done; false when the endpoint is down, which then does
// not wait for it.
func (o *opening) enter() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.down:
		return false
	default:
		o.served.Add(1)
		return true
	}
}

// watch keeps track of the connections.
func (o *opening) watch(c net.Conn, state http.ConnState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch state {
	case http.StateNew:
		o.conns[c] = true
	case http.StateClosed:
		delete(o.conns, c)
	}
}

// connection is what a request knows of the one it came by.
type connection struct {
	number int
	conn   net.Conn
}

type connectionKey struct{}

func (e *Endpoint) number(ctx context.Context, c net.Conn) context.Context {
	number := int(e.double.conns.Add(1))
	return context.WithValue(ctx, connectionKey{}, connection{number, c})
}

// locate finds bucket and key in the host or the path of a request. Both styles are served side by
// side, as S3 does.
func (d *Double) locate(r *http.Request) (bucket, key string) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	if d.config.Domain != "" {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if name, ok := strings.CutSuffix(host, "."+d.config.Domain); ok {
			return name, path
		}
	}
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key
}
