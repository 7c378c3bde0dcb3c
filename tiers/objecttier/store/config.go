package store

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"kvbench/tiers/clock"
	"kvbench/tiers/objecttier/credentials"
	"kvbench/tiers/objecttier/endpoint"
)

// Config is all that a Client has to know.
type Config struct {
	Bucket      string
	Endpoints   *endpoint.Set
	Credentials credentials.Credentials // the zero value: requests are not signed
	// Region is always set, so that nobody asks the store for the bucket's.
	Region     string
	Addressing Addressing
	Payload    Payload
	// Retries is how often a request is tried again that may succeed then.
	Retries int
	// Timeout bounds the wait for the answer's header, and that between two pieces of a body;
	// ConnectTimeout that for a connection, TLS included.
	Timeout, ConnectTimeout time.Duration
	RootCAs                 *x509.CertPool // nil: the system's
	SkipVerify              bool
	// Connections are kept open per host, at least as many as requests are under way at once.
	Connections int
	Clock       clock.Clock
	Observer    Observer
	// Random is in [0, 1): the share of a pause that is waited for.
	Random func() float64
	// Dial makes connections where it is not nil; for tests without a network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Addressing says where a request names its bucket.
type Addressing string

// The ways to name a bucket. Auto is virtual at amazonaws.com, and path elsewhere.
const (
	Auto    Addressing = "auto"
	Path    Addressing = "path"
	Virtual Addressing = "virtual"
)

// virtual says whether requests to a host name the bucket there.
func (c *Config) virtual(host string) bool {
	return c.Addressing == Virtual || c.Addressing != Path && isAmazon(host)
}

// Virtual says whether requests name the bucket in the host, in a Config that has endpoints.
func (c *Config) Virtual() bool {
	return slices.ContainsFunc(c.Endpoints.All(), func(e *endpoint.Endpoint) bool {
		_, host, _ := strings.Cut(e.URL, "://")
		return c.virtual(host)
	})
}

// Payload says how bodies are protected beside the signature of the header. A SHA-256 costs a
// client more processor time than all the rest (1.3 instead of 0.45 s/GiB), a CRC next to nothing.
type Payload string

// The protections of bodies. Over https none is ever signed: TLS protects it.
const (
	Unsigned  Payload = "unsigned"
	Signed    Payload = "signed"    // SHA-256 of each 64 KiB, in the body
	CRC32C    Payload = "crc32c"    // behind the body
	CRC64NVME Payload = "crc64nvme" // likewise
)

// Op is a kind of request.
type Op uint8

// The kinds of requests.
const (
	Put Op = iota
	PutPart
	Get
	GetRange // of an object that is read in several
	Head
	Delete
	DeleteBatch
	List // of objects, and of uploads
	Create
	Complete
	Abort
	Bucket // what the bucket is asked about itself
	NumOps // the length of an array indexed by Op
)

var opNames = [NumOps]string{"put", "put_part", "get", "get_range", "head", "delete",
	"delete_batch", "list", "create", "complete", "abort", "bucket"}

// String returns the key of results: "put", "get_range", …
func (o Op) String() string {
	if o < NumOps {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// Attempt is one try of a request at one endpoint, when it is over. Sums of these are what an
// access log of the store shows.
type Attempt struct {
	Op       Op
	Endpoint int // its index
	// First: none of its request came before it.
	First bool
	// Sent says how often a header went out: 0 where no connection came about, 2 where the
	// transport sent a request again itself, because the connection had been closed meanwhile.
	Sent   int
	Status int // 0: none came
	// Cause is why it is tried again or failed: "reset", "503"; "" after a success, CausedByCaller
	// where who asked for it wanted no more.
	Cause string
	// Retried: another attempt follows.
	Retried, Cancelled bool
	// Bytes of the object that it moved, also for nothing.
	Bytes int64
}

// CausedByCaller is the cause of what the sink of a GET or the body of a PUT has ended.
const CausedByCaller = "caller"

// Request is a request when it is over, with all its attempts: what whoever made it has felt. Lists
// are one, however many pages they have.
type Request struct {
	Op       Op
	Attempts int
	Bytes    int64 // of the object that came or went for good
	// By the clock of the run. FirstByte is when the first byte of the answer came: of the attempt
	// that succeeded, and of a GET that had to go on, of that which brought its first bytes.
	// Backoff is for how long it waited between attempts.
	Begun, FirstByte, Ended time.Duration
	Backoff                 time.Duration
	Cancelled               bool
	// AllSent: an attempt has sent all bytes of the body, whatever was answered.
	AllSent bool
	Err     error
}

// Observer is told of everything, on the goroutine that it happens on. It must be quick.
type Observer interface {
	Attempt(Attempt)
	Request(Request)
	Connected(endpoint string, took time.Duration, err error)
}

// Nobody observes nothing: for proofs and for what is done beside a run, which is no part of it.
type Nobody struct{}

// Attempt implements Observer.
func (Nobody) Attempt(Attempt) {}

// Request implements Observer.
func (Nobody) Request(Request) {}

// Connected implements Observer.
func (Nobody) Connected(string, time.Duration, error) {}

// validate names what cannot be worked with. Flags have checked most of it in their own words.
func (c *Config) validate() error {
	var errs []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("a client of a store: "+format, args...))
		}
	}
	want(c.Bucket != "", "a bucket must be given")
	want(c.Endpoints != nil, "there must be an endpoint")
	want(c.Region != "", "a region must be given")
	want(c.Retries >= 0, "retries (%d) must not be negative", c.Retries)
	want(c.Timeout > 0 && c.ConnectTimeout > 0, "time limits (%v, %v) must be positive",
		c.Timeout, c.ConnectTimeout)
	want(c.Connections > 0, "connections (%d) must be positive", c.Connections)
	want(c.Clock != nil, "a clock must be given")
	return errors.Join(errs...)
}
