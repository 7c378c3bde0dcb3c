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
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

func init() {
	// minio-go pauses up to 0.2 s after each attempt, also after the last one. Here each attempt is the
	// last, and the pause would be an uncounted latency.
	minio.DefaultRetryUnit = 0
}

// Client makes requests to one bucket.
type Client struct {
	cfg       Config
	cores     []*minio.Core // one per endpoint
	endpoints *endpoints
	only      *Endpoint // of all requests, see At; nil: endpoints chooses
	wire      *wire
}

// New makes a client. It opens no connection.
func New(cfg Config) (*Client, error) {
	if cfg.Observer == nil {
		cfg.Observer = noObserver{}
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	if cfg.Credentials == nil {
		cfg.Credentials = credentials.NewStatic("", "", "", credentials.SignatureAnonymous)
	}
	c := &Client{cfg: cfg, endpoints: newEndpoints(&cfg)}
	c.wire = newWire(&c.cfg)
	for _, url := range cfg.URLs {
		scheme, host, _ := strings.Cut(url, "://")
		lookup := minio.BucketLookupPath
		if cfg.virtual(host) {
			lookup = minio.BucketLookupDNS
		}
		core, err := minio.NewCore(host, &minio.Options{Creds: cfg.Credentials,
			Secure: scheme == "https", Transport: c.wire, Region: cfg.Region, BucketLookup: lookup,
			MaxRetries: 1, TrailingHeaders: cfg.Payload == CRC32C || cfg.Payload == CRC64NVME})
		if err != nil {
			return nil, fmt.Errorf("endpoint %s: %s", url, cfg.redact(err.Error()))
		}
		c.cores = append(c.cores, core)
	}
	return c, nil
}

// At returns a client for a single endpoint. Its requests are not observed. It shares the connections
// of c, and is closed with c.
func (c *Client) At(i int) *Client {
	one := *c
	one.only, one.cfg.Observer = c.endpoints.all[i], noObserver{}
	return &one
}

// attempt is one attempt of a request. RoundTrip finds it in the context of the library's HTTP request
// and stores its observations in it.
type attempt struct {
	cfg      *Config
	ctx      context.Context
	watchdog *time.Timer
	last     atomic.Int64 // last time that bytes moved, by the run's clock; MaxInt64 during a pause

	sent    atomic.Int32 // headers on the wire
	status  int
	header  http.Header
	html    bool          // the answer is a page
	failure error         // of the transport
	first   time.Duration // when the header of the answer was complete
	bytes   atomic.Int64  // moved bytes of the object
}

type attemptKey struct{}

// moved counts bytes of the object and restarts the time limit. It only stores the time, which watch
// reads, because resetting a timer per piece would cost more.
func (a *attempt) moved(n int) {
	a.bytes.Add(int64(n))
	a.last.Store(int64(a.cfg.Clock.Now()))
}

// pause stops the time limit until bytes move again.
func (a *attempt) pause() { a.last.Store(math.MaxInt64) }

// watch ends the attempt if no bytes have moved for the time limit. Otherwise it waits for the rest of
// the limit.
func (a *attempt) watch(cancel context.CancelCauseFunc) {
	left := a.cfg.Timeout
	if last := a.last.Load(); last != math.MaxInt64 {
		left -= a.cfg.Clock.Now() - time.Duration(last)
	}
	if left <= 0 {
		cancel(errTimeout)
		return
	}
	a.watchdog.Reset(left)
}

// simple makes a request that moves no bytes of an object. A web page is an error, also with status 200.
func (c *Client) simple(ctx context.Context, op Op, key string,
	try func(a *attempt, core *minio.Core) error) error {
	return c.do(ctx, &request{Request: Request{Op: op}, key: key,
		try: func(a *attempt, core *minio.Core) error {
			err := try(a, core)
			if err == nil && a.html {
				err = &unexpected{text: "the answer is a page"}
			}
			return err
		}})
}

// request is a request with all its attempts.
type request struct {
	Request
	key string
	// try makes one attempt at an endpoint. It may change the request, and resume after the last byte
	// of the attempt before. It must end before it returns.
	try func(a *attempt, core *minio.Core) error
}

// A pause before an attempt is a random share of a time that doubles from firstPause. No pause is longer
// than longestPause, even if the store asks for a longer one.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

// do makes attempts until one succeeds. If the endpoint caused a failure, the next attempt goes to
// another endpoint.
func (c *Client) do(ctx context.Context, r *request) error {
	if ctx.Err() != nil { // never in flight, so not counted
		return ended(ctx, r)
	}
	r.Begun = c.cfg.Clock.Now()
	begun := false // an attempt of a GET has returned bytes
	e, stay := c.only, c.only != nil
	for n := 0; ; n++ {
		e = c.endpoints.begin(r.Op, r.key, e, stay)
		a, failure, err := c.attempt(ctx, r, e)
		if err == nil && !begun || (r.Op == Get || r.Op == GetRange) && !begun &&
			a.bytes.Load() > 0 {
			begun, r.FirstByte = true, a.first
		}
		r.Attempts += max(1, int(a.sent.Load()))
		seen := Attempt{Op: r.Op, Endpoint: e.Index, First: n == 0, Sent: int(a.sent.Load()),
			Status: a.status, Bytes: a.bytes.Load()}
		switch {
		case err == nil:
		case ctx.Err() != nil: // the failure is not the store's
			seen.Cancelled, r.Cancelled, err = true, true, ended(ctx, r)
		case failure == nil:
			seen.Cause = CausedByCaller
		default:
			seen.Cause, seen.Retried = failure.Cause, failure.again && n < c.cfg.Retries
			failure.Attempts, failure.Down = r.Attempts, c.endpoints.down()
			err = failure
		}
		c.cfg.Observer.Attempt(seen)
		if !seen.Retried {
			r.Err, r.Ended = err, c.cfg.Clock.Now()
			c.cfg.Observer.Request(r.Request)
			return err
		}
		from := c.cfg.Clock.Now()
		_ = c.cfg.Clock.Sleep(ctx, c.pause(n, a)) // the next attempt sees the end of ctx
		r.Backoff += c.cfg.Clock.Now() - from
		stay = c.only != nil || failure.outcome != failed
	}
}

// ended returns the error of a request whose context has ended, with the reason.
func ended(ctx context.Context, r *request) error {
	err := fmt.Errorf("%s %s: %w", r.Op, r.key, context.Cause(ctx))
	if !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%s %s: %w: %w", r.Op, r.key, ctx.Err(), context.Cause(ctx))
	}
	return err
}

// callers is an error of the caller: a body that cannot be read, or a sink that failed. It is returned
// unchanged, without another attempt.
type callers struct{ error }

// attempt makes one attempt at one endpoint. It ends the attempt's context at its end, which closes the
// connection if the time limit ended the attempt. If the store failed, failure describes err.
func (c *Client) attempt(ctx context.Context, r *request, e *Endpoint) (a *attempt, failure *Error,
	err error) {
	actx, cancel := context.WithCancelCause(ctx)
	a = &attempt{cfg: &c.cfg}
	// If the store had closed an idle connection, net/http repeats a request on another one. The
	// store may have seen both requests, so both count.
	actx = httptrace.WithClientTrace(actx, &httptrace.ClientTrace{
		WroteHeaders: func() { a.sent.Add(1) }})
	a.ctx = context.WithValue(actx, attemptKey{}, a)
	a.moved(0)
	a.watchdog = time.AfterFunc(math.MaxInt64, func() { a.watch(cancel) })
	a.watchdog.Reset(c.cfg.Timeout) // now, because watch reads the field
	result := cancelled             // also when try panics
	defer func() {
		a.watchdog.Stop()
		cancel(nil)
		e.end(result)
	}()
	if ctx.Err() != nil { // the library would hide the reason
		return a, nil, ctx.Err()
	}
	err = r.try(a, c.cores[e.Index])
	own, isOwn := errors.AsType[callers](err)
	switch {
	case err == nil:
		result = answered
	case ctx.Err() != nil:
	case isOwn:
		err = own.error
	default:
		failure = c.classify(a, err)
		failure.Op, failure.Endpoint, failure.Key = r.Op, e.URL, r.key
		result = failure.outcome
	}
	return a, failure, err
}

// pause returns the pause after attempt n, counted from 0.
func (c *Client) pause(n int, a *attempt) time.Duration {
	pause := time.Duration(c.cfg.Random() * float64(min(longestPause, firstPause<<n)))
	if s, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && s > 0 {
		pause = max(pause, min(time.Duration(min(s, 60))*time.Second, longestPause))
	}
	return pause
}
