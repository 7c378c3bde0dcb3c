package store

import (
	"context"
	"crypto/x509"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"kvbench/tiers/clock"
)

// Config configures a Client.
type Config struct {
	Bucket      string
	URLs        []string // of the endpoints, at least one: see FindEndpoints
	Balance     Balance
	Rank        int                      // of the run; Balance uses it
	Credentials *credentials.Credentials // nil: requests are not signed
	// Region is always set, so that the library does not request the location of the bucket.
	Region     string
	Addressing Addressing
	Payload    Payload
	// Retries is the number of further attempts after a failure that another attempt may avoid.
	Retries int
	// Timeout bounds the wait for the header of an answer, and each wait between two pieces of a
	// body. ConnectTimeout bounds connecting, including TLS.
	Timeout, ConnectTimeout time.Duration
	RootCAs                 *x509.CertPool // nil: the system's
	SkipVerify              bool
	// Connections is how many connections per host are kept open: at least the requests in flight.
	Connections int
	Clock       clock.Clock
	Observer    Observer // nil: none
	// Random returns which share of a pause to wait, in [0, 1); nil: math/rand. Random pauses keep the
	// clients of a run from retrying at the same time.
	Random func() float64
	// Dial, if not nil, makes the connections. Tests use it for connections without a network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Addressing is the place of the bucket's name in a request.
type Addressing string

// The places of the bucket's name. Auto is virtual at amazonaws.com and path elsewhere.
const (
	Auto    Addressing = "auto"
	Path    Addressing = "path"
	Virtual Addressing = "virtual"
)

// virtual reports whether requests to a host name the bucket in the host.
func (c *Config) virtual(host string) bool {
	name, _, _ := strings.Cut(host, ":")
	amazon := name == "amazonaws.com" || strings.HasSuffix(name, ".amazonaws.com")
	return c.Addressing == Virtual || c.Addressing != Path && amazon
}

// Virtual reports whether requests name the bucket in the host.
func (c *Config) Virtual() bool {
	return slices.ContainsFunc(c.URLs, func(url string) bool {
		_, host, _ := strings.Cut(url, "://")
		return c.virtual(host)
	})
}

// Payload is the protection of bodies. A SHA-256 costs a client more processor time than the rest of a
// request (1.3 instead of 0.45 s/GiB). A CRC costs 0.05 to 0.15 s/GiB.
type Payload string

// The protections of bodies. Over https no body is signed, because TLS protects it.
const (
	Unsigned  Payload = "unsigned"
	Signed    Payload = "signed"    // SHA-256 of each 64 KiB, in the body
	CRC32C    Payload = "crc32c"    // in a trailer after the body
	CRC64NVME Payload = "crc64nvme" // in a trailer after the body
)

// Op is a kind of request.
type Op uint8

// The kinds of requests.
const (
	Put Op = iota
	PutPart
	Get
	GetRange // of an object that is read in several ranges
	Head
	Delete
	DeleteBatch
	List // of objects, and of uploads
	Create
	Complete
	Abort
	Bucket // properties of the bucket
	NumOps // number of kinds, for arrays
)

var opNames = [NumOps]string{"put", "put_part", "get", "get_range", "head", "delete",
	"delete_batch", "list", "create", "complete", "abort", "bucket"}

// String returns the key of results: "put", "get_range", …
func (o Op) String() string { return opNames[o] }

// Attempt is one completed attempt of a request at one endpoint. Sums of attempts can be compared with
// the access log of a store.
type Attempt struct {
	Op       Op
	Endpoint int  // its index
	First    bool // the first attempt of its request
	// Sent counts headers on the wire: 0 without a connection, 2 if net/http repeated the request
	// because the store had closed the idle connection.
	Sent   int
	Status int // 0: no answer
	// Cause is the cause of a failure: "reset", "503", or CausedByCaller if the caller's body or
	// sink failed. It is "" after a success.
	Cause              string
	Retried, Cancelled bool  // Retried: another attempt follows
	Bytes              int64 // moved bytes of the object, also of a failed attempt
}

// CausedByCaller is the cause of a failure in the sink of a GET or the body of a PUT.
const CausedByCaller = "caller"

// Request is a completed request with all its attempts. A list with several pages is one request.
type Request struct {
	Op       Op
	Attempts int
	Bytes    int64 // of the object
	// Times are of the run's clock. FirstByte is the time of the answer's first byte in the successful
	// attempt. For a resumed GET it is the time in the attempt that returned the first bytes. Backoff
	// is the sum of the pauses between attempts.
	Begun, FirstByte, Ended time.Duration
	Backoff                 time.Duration
	Cancelled               bool
	AllSent                 bool // an attempt has sent the whole body, with any answer
	Err                     error
}

// Observer receives every attempt, request and connection, on the goroutine of the event. It must be
// fast.
type Observer interface {
	Attempt(Attempt)
	Request(Request)
	Connected(endpoint string, took time.Duration, err error)
}

// noObserver ignores all events.
type noObserver struct{}

func (noObserver) Attempt(Attempt)                        {}
func (noObserver) Request(Request)                        {}
func (noObserver) Connected(string, time.Duration, error) {}
