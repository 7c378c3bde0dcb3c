package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	keys "github.com/minio/minio-go/v7/pkg/credentials"

	"kvbench/tiers/objecttier/credentials"
	"kvbench/tiers/objecttier/endpoint"
)

func init() {
	// The library waits behind each attempt, also the last one, and it makes one alone here: up to
	// 0.2 s that would be in a latency and in nobody's account.
	minio.DefaultRetryUnit = 0
}

// Client makes requests to one bucket. Close ends it.
type Client struct {
	cfg     Config
	filter  *credentials.Filter
	virtual bool
	nodes   []*node // one per endpoint
	signer  *headerSigner
	wire    *wire

	mu      sync.Mutex
	servers map[string]bool // what answers call themselves
	ahead   time.Duration   // of this machine is the store's clock, by the last answer
}

// New checks a Config and makes a client. It opens no connection.
func New(cfg Config) (*Client, error) {
	// Defaults for tests and tools; a run gives all of these.
	if cfg.Observer == nil {
		cfg.Observer = Nobody{}
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, filter: cfg.Credentials.Filter(), servers: map[string]bool{},
		signer: &headerSigner{keys: cfg.Credentials, region: cfg.Region}}
	c.wire = newWire(&c.cfg)
	for _, e := range cfg.Endpoints.All() {
		n, err := c.node(e.URL)
		if err != nil {
			return nil, fmt.Errorf("endpoint %s: %w", e.URL, c.filter.Error(err))
		}
		c.nodes = append(c.nodes, n)
	}
	return c, nil
}

// node is one endpoint: the library's client for it, and what requests for objects are made of.
type node struct {
	*minio.Core
	scheme, host string // the bucket is in the host in virtual style
	prefix       string // of paths: "/bucket/" in path style, else "/"
	// gets and puts: these are made here, see direct.go; the library makes the others.
	gets, puts bool
}

// node makes the one of an endpoint. With a region the library asks nobody for the bucket's, with
// this client as its transport all of its requests are seen.
func (c *Client) node(url string) (*node, error) {
	scheme, host, _ := strings.Cut(url, "://")
	n := &node{scheme: scheme, host: host, prefix: "/" + c.cfg.Bucket + "/"}
	// The library knows more about Amazon's hosts, and about the form of signed bodies.
	n.gets = !isAmazon(host)
	n.puts = n.gets && (c.cfg.Payload == Unsigned || c.cfg.Payload == Signed && scheme == "https")
	lookup := minio.BucketLookupPath
	if c.cfg.virtual(host) {
		lookup, c.virtual = minio.BucketLookupDNS, true
		n.host, n.prefix = c.cfg.Bucket+"."+host, "/"
	}
	k := c.cfg.Credentials
	signature := keys.SignatureV4
	if k.ID == "" {
		signature = keys.SignatureAnonymous
	}
	core, err := minio.NewCore(host, &minio.Options{
		Creds:  keys.NewStatic(k.ID, k.Secret.Reveal(), k.Token.Reveal(), signature),
		Secure: scheme == "https", Transport: c, Region: c.cfg.Region, BucketLookup: lookup,
		TrailingHeaders: c.cfg.Payload == CRC32C || c.cfg.Payload == CRC64NVME, MaxRetries: 1,
	})
	n.Core = core
	return n, err
}

// isAmazon says whether names of buckets are hosts there.
func isAmazon(host string) bool {
	name, _, _ := strings.Cut(host, ":")
	return name == "amazonaws.com" || strings.HasSuffix(name, ".amazonaws.com")
}

// attempt is one try of a request. The transport, which the library calls, finds it in the context
// and writes into it what it saw.
type attempt struct {
	c        *Client
	ctx      context.Context
	watchdog *time.Timer
	last     atomic.Int64 // when something moved, by the clock of the run; never while a sink works

	sent    atomic.Int32 // headers that went out
	status  int
	header  http.Header
	html    bool          // the answer is a page
	failure error         // of the transport
	first   time.Duration // when the answer's first byte came
	bytes   atomic.Int64  // of the object that it moved
}

type attemptKey struct{}

// moved says that bytes of the object have moved: the time limit begins anew. Setting a timer for
// each piece would cost more than noting the time; watch looks at that.
func (a *attempt) moved(n int) {
	a.bytes.Add(int64(n))
	a.last.Store(int64(a.c.cfg.Clock.Now()))
}

// still says that the store is not waited for: the time limit stands still until something moves.
func (a *attempt) still() { a.last.Store(math.MaxInt64) }

// watch ends the attempt when nothing has moved for the time limit, else it looks again when that
// could be so.
func (a *attempt) watch(cancel context.CancelCauseFunc) {
	limit, now := a.c.cfg.Timeout, a.c.cfg.Clock.Now()
	left := limit
	if last := a.last.Load(); last != math.MaxInt64 {
		left -= now - time.Duration(last)
	}
	if left <= 0 {
		cancel(errTimeout)
		return
	}
	a.watchdog.Reset(left)
}

// RoundTrip is the library's way to the network.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	a, ok := r.Context().Value(attemptKey{}).(*attempt)
	if !ok {
		return nil, errors.New("a request that nobody counts")
	}
	answer, err := c.wire.transport.RoundTrip(r)
	if err != nil {
		a.failure = err
		return nil, err
	}
	// The header's first byte: a store that finds its object late sends nothing until then.
	a.first = c.cfg.Clock.Now()
	a.status, a.header, a.failure = answer.StatusCode, answer.Header, nil
	a.html = strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html")
	a.moved(0)
	c.note(answer.Header)
	return answer, nil
}

// note keeps what an answer says of its store: its name, and its time, by which ages are counted.
func (c *Client) note(h http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Balancers in front of many may name each of them; a few tell what it is.
	if name := h.Get("Server"); name != "" && len(c.servers) < 8 {
		c.servers[name] = true
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		c.ahead = time.Until(date)
	}
}

// At is the client for one endpoint alone: of what it does nobody is told, and no other endpoint is
// asked. It shares the connections, and is closed with the client.
func (c *Client) At(i int) *Client {
	one := &Client{cfg: c.cfg, filter: c.filter, virtual: c.virtual, nodes: c.nodes[i : i+1],
		signer: c.signer, wire: c.wire, servers: map[string]bool{}}
	one.cfg.Observer = Nobody{}
	all := c.cfg.Endpoints.All()
	// One endpoint and a balance that is known: there is nothing to refuse.
	one.cfg.Endpoints, _ = endpoint.NewSet([]string{all[i].URL}, endpoint.PinRank, 0,
		c.cfg.Clock.Now)
	return one
}

// Servers are the names that answers gave in the header Server.
func (c *Client) Servers() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.servers {
		names = append(names, name)
	}
	return names
}

// StoreNow is the time by the store's own clock, as its last answer told it to the second: what
// ages of its objects are counted by.
func (c *Client) StoreNow() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// request is one request of the tier, with all its attempts.
type request struct {
	Request
	key string
	// try is one attempt. It may change the request, and go on where the last one broke off.
	try func(a *attempt, n *node) error
}

// Pauses before attempts: a random share of a time that doubles, and no longer than longestPause,
// also when a store asks for more.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

// do carries a request out: attempts until one succeeds, at another endpoint where the last one
// failed by its own. Try must not outlive its call.
func (c *Client) do(ctx context.Context, r *request) error {
	if ctx.Err() != nil { // it has never been under way: a window's end does not cut it off
		return gaveUp(ctx, r)
	}
	r.Begun = c.cfg.Clock.Now()
	e := c.cfg.Endpoints.First(uint8(r.Op), r.key)
	begun := false // a GET, of which an attempt has brought something
	for n := 0; ; n++ {
		v, a, err := c.attempt(ctx, r, e)
		if (r.Op == Get || r.Op == GetRange) && !begun && a.bytes.Load() > 0 {
			begun, r.FirstByte = true, a.first
		}
		r.Attempts += max(1, int(a.sent.Load()))
		// A failure that the caller's end has brought about is none of the store.
		cancelled := err != nil && ctx.Err() != nil
		again := err != nil && v.again && n < c.cfg.Retries && !cancelled
		c.cfg.Observer.Attempt(Attempt{Op: r.Op, Endpoint: e.Index, First: n == 0,
			Sent: int(a.sent.Load()), Status: a.status, Cause: v.cause, Retried: again,
			Cancelled: cancelled, Bytes: a.bytes.Load()})
		if again {
			pause := c.pause(n, a)
			from := c.cfg.Clock.Now()
			_ = c.cfg.Clock.Sleep(ctx, pause) // the end of ctx is seen by the next attempt
			r.Backoff += c.cfg.Clock.Now() - from
			e = c.cfg.Endpoints.Next(e, v.outcome != endpoint.Failed)
			continue
		}
		switch {
		case err == nil:
			if !begun {
				r.FirstByte = a.first
			}
		case cancelled:
			r.Cancelled, r.Err = true, gaveUp(ctx, r)
		default:
			r.Err = &Error{Op: r.Op, Endpoint: e.URL, Key: r.key, Attempts: r.Attempts,
				Status: v.status, Code: v.code, Cause: v.cause, Message: v.message, Cure: v.cure,
				Down: c.cfg.Endpoints.Failing()}
			if passed, ok := errors.AsType[*callers](err); ok {
				r.Err = passed.err
			}
		}
		r.Ended = c.cfg.Clock.Now()
		c.cfg.Observer.Request(r.Request)
		return r.Err
	}
}

// gaveUp is the error of a request whose caller has gone, with the reason.
func gaveUp(ctx context.Context, r *request) error {
	err := fmt.Errorf("%s %s: %w", r.Op, r.key, context.Cause(ctx))
	if !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%s %s: %w: %w", r.Op, r.key, ctx.Err(), context.Cause(ctx))
	}
	return err
}

// callers is an error of the caller's own: of a body that cannot be read, a sink that wants no
// more. No other attempt would change it, and it is returned as it is.
type callers struct{ err error }

func (e *callers) Error() string { return e.err.Error() }
func (e *callers) Unwrap() error { return e.err }

// attempt is one try at one endpoint. Its context ends with it, so that a request that was given up
// by its time limit does not go on, and its connection is closed.
func (c *Client) attempt(ctx context.Context, r *request, e *endpoint.Endpoint) (v verdict,
	a *attempt, err error) {
	actx, cancel := context.WithCancelCause(ctx)
	a = &attempt{c: c}
	// A connection that the store has closed meanwhile is no fault of it: the transport sends the
	// request again on another one, which the store may see, and so counts.
	actx = httptrace.WithClientTrace(actx, &httptrace.ClientTrace{
		WroteHeaders: func() { a.sent.Add(1) }})
	a.ctx = context.WithValue(actx, attemptKey{}, a)
	a.moved(0)
	armed := make(chan struct{})
	a.watchdog = time.AfterFunc(c.cfg.Timeout, func() { <-armed; a.watch(cancel) })
	close(armed)
	outcome := endpoint.Cancelled // also when try panics
	defer func() {
		a.watchdog.Stop()
		cancel(nil)
		e.End(outcome)
	}()
	// Nothing is sent for one who has gone, and the library would hide why.
	if ctx.Err() != nil {
		return v, a, ctx.Err()
	}
	err = r.try(a, c.nodes[e.Index])
	switch _, own := errors.AsType[*callers](err); {
	case err == nil:
		outcome = endpoint.Answered
	case ctx.Err() != nil:
	case own:
		outcome, v.cause = endpoint.Cancelled, CausedByCaller
	default:
		v = c.judge(a, err)
		outcome = v.outcome
	}
	return v, a, err
}

// pause is how long to wait before attempt n + 2: at random between nothing and a bound, so that a
// thousand requests that failed at one moment do not come back at one.
func (c *Client) pause(n int, a *attempt) time.Duration {
	most := min(longestPause, firstPause<<n)
	pause := time.Duration(c.cfg.Random() * float64(most))
	// A store that says when to come back knows more than a dice, but is not waited for longer.
	if a.header != nil {
		text := a.header.Get("Retry-After")
		if s, err := strconv.Atoi(text); err == nil && s > 0 {
			pause = max(pause, time.Duration(min(s, 5))*time.Second)
		} else if date, err := http.ParseTime(text); err == nil {
			pause = max(pause, min(date.Sub(c.StoreNow()), longestPause))
		}
	}
	return pause
}
