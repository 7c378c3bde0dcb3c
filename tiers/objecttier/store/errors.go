package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"

	"kvbench/tiers/objecttier/endpoint"
)

// Error is a request that failed, for good. It wraps nothing of the transport, whose errors say
// that they may be tried again: that has been done. What it means is in Is.
type Error struct {
	Op       Op
	Endpoint string
	Key      string // of the object, a prefix for lists
	Attempts int
	Status   int    // of the last answer; 0: there was none
	Code     string // of the store: "AccessDenied"; "" where it gave none
	Cause    string // "reset", "503": see Attempt
	Message  string // what came back, without secrets
	Cure     string // what the user can do; "" where nobody knows
	// Down is for how long no endpoint had answered by then.
	Down time.Duration
}

// What an Error may be. Match with errors.Is.
var (
	// ErrNoKey: the store has no such object, or no such upload.
	ErrNoKey = errors.New("the store has no such key")
	// ErrExists: it has, and was asked to make it only if not.
	ErrExists = errors.New("the key exists already, or has changed")
	// ErrFull: the store has no room.
	ErrFull = errors.New("the store is full")
	// ErrDown: no endpoint has answered for longest: nothing will succeed any more.
	ErrDown = errors.New("no endpoint of the store answers any more")
	// ErrNotServed: the store does not know this kind of request.
	ErrNotServed = errors.New("the store does not serve this kind of request")
)

// longest is for how long all endpoints may be silent before a run has no store any more.
const longest = 30 * time.Second

func (e *Error) Error() string {
	tries := ""
	if e.Attempts > 1 {
		tries = fmt.Sprintf(", %d attempts", e.Attempts)
	}
	answer := e.Message
	if e.Status > 0 {
		answer = strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, e.Code))
		if e.Message != "" {
			answer += ": " + e.Message
		}
	}
	if e.Cure != "" {
		answer += "; " + e.Cure
	}
	return fmt.Sprintf("%s %s at %s%s: %s", e.Op, e.Key, e.Endpoint, tries, answer)
}

// Is says whether it is one of the above. A full store is ENOSPC, too, as a full disk is.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNoKey:
		return e.Status == http.StatusNotFound && e.Code != minio.NoSuchBucket &&
			e.Code != noSuchUser
	case ErrExists:
		return e.Status == http.StatusPreconditionFailed || e.Status == http.StatusConflict
	case ErrFull, syscall.ENOSPC:
		return full(e.Status, e.Code)
	case ErrDown:
		return e.Down >= longest
	case ErrNotServed:
		return e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented
	}
	return false
}

// noSuchUser is what versitygw calls a key that it does not know, with 404.
const noSuchUser = "XAdminUserNotFound"

// full says whether a store has no room. MinIO answers 507 or names the quota; a quota of others is
// 403 or 409 with that code.
func full(status int, code string) bool {
	return status == http.StatusInsufficientStorage || code == "XMinioStorageFull" ||
		code == "QuotaExceeded" || code == "XMinioAdminBucketQuotaExceeded"
}

// errTimeout is the cause with which an attempt is cancelled that has stood still.
var errTimeout = errors.New("nothing came in time (-s3-timeout)")

// unexpected is an answer that is not what was asked for: of another length, another range.
type unexpected struct{ text string }

func (e *unexpected) Error() string { return e.text }

// shortBody is a body that ended before its length.
type shortBody struct{ got, want int64 }

func (e *shortBody) Error() string {
	return fmt.Sprintf("the body ended after %d of %d bytes", e.got, e.want)
}

// verdict is what becomes of an attempt.
type verdict struct {
	cause   string
	again   bool // it may succeed when it is tried again
	outcome endpoint.Outcome
	status  int
	code    string
	message string
	cure    string
}

// Codes that are tried again whatever their status is.
var transientCodes = map[string]bool{"SlowDown": true, "SlowDownRead": true,
	"SlowDownWrite": true, "InternalError": true, "RequestTimeout": true, "Throttling": true,
	"ServiceUnavailable": true}

// judge classifies the error of an attempt by what the transport saw, not by the texts of the
// library: those hide the cause (an EOF becomes a sentence).
func (c *Client) judge(a *attempt, err error) (v verdict) {
	v = c.classify(a, err)
	if v.message == "" {
		v.message = err.Error()
	}
	// Whatever a store, a proxy or the library puts into a text, nothing of a key is in it.
	v.message = c.filter.Text(v.message)
	return v
}

// classify is judge, with a message that may still hold a secret.
func (c *Client) classify(a *attempt, err error) (v verdict) {
	answer, told := errors.AsType[minio.ErrorResponse](err)
	v.code, v.message, v.status = answer.Code, answer.Message, a.status
	short, isShort := errors.AsType[*shortBody](err)
	odd, isOdd := errors.AsType[*unexpected](err)
	switch {
	case errors.Is(context.Cause(a.ctx), errTimeout):
		return verdict{cause: "timeout", again: true, outcome: endpoint.Failed,
			message: fmt.Sprintf("%v: %v", errTimeout, c.cfg.Timeout), status: v.status}
	case isShort:
		return verdict{cause: "short_body", again: true, outcome: endpoint.Failed,
			message: short.Error(), status: v.status}
	case isOdd:
		v = verdict{cause: "answer", message: odd.Error(), status: v.status}
		return c.page(a, v)
	case told && answer.StatusCode == 0 && a.status == http.StatusOK:
		// The library's own words for a header that it cannot read.
		return c.page(a, verdict{cause: "answer", message: answer.Message, status: v.status})
	case a.failure != nil:
		return c.ofTransport(a.failure)
	case v.status == 0:
		v.cause = "client" // the library refused it before it was sent
		return v
	}
	v.cause = strconv.Itoa(v.status)
	switch {
	case full(v.status, v.code): // also where the status would be tried again
		v.cure = "free space in the store or have less there (-storage-capacity-gb; of " +
			"checkpoints -checkpoint-keep)"
		return v
	case transientCodes[v.code]:
		v.again = true
	}
	switch v.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		v.again = true
	}
	if v.status >= 500 && v.status != http.StatusNotImplemented {
		v.outcome = endpoint.Failed
	}
	// What will not change by itself has a cure or is this program's fault; what may, may not.
	if v.cure = c.cure(v); !v.again { // balancers send pages with 502 and 503, which pass
		v = c.page(a, v)
	}
	return v
}

// page is an answer in which the web looks out of the store: a console, a proxy, a login.
func (c *Client) page(a *attempt, v verdict) verdict {
	if a.html {
		v.cause, v.code = "page", ""
		v.message = "the answer is a web page, not an object store's"
		v.cure = "check host and port of -s3-endpoint: consoles and proxies have their own"
	}
	return v
}

// ofTransport is an error without an answer.
func (c *Client) ofTransport(err error) verdict {
	v := verdict{cause: "transport", again: true, outcome: endpoint.Failed, message: err.Error()}
	// Certificates, names and schemes do not mend themselves; a port where nobody listens may, when
	// the store comes back.
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, name := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	limit, timed := errors.AsType[net.Error](err)
	switch {
	case unknown || name || invalid || verification:
		v.cause, v.again = "certificate", false
		v.cure = "give the authority's certificate with -s3-ca-file or AWS_CA_BUNDLE and an " +
			"endpoint by the name in it; -s3-skip-verify trusts anybody"
	case plain || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		v.cause, v.again = "tls", false
		v.cure = "the endpoint does not speak TLS: write http:// in -s3-endpoint"
	case isDNS && dns.IsNotFound:
		v.cause, v.again = "no_such_host", false
		v.cure = "check the host in -s3-endpoint"
		if c.virtual {
			v.cure += "; with -s3-addressing virtual the bucket is part of its name"
		}
	case errors.Is(err, syscall.ECONNREFUSED):
		v.cause = "refused"
		v.cure = "is the store running, and is that its port?"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		v.cause = "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		strings.Contains(err.Error(), "server closed idle connection"):
		v.cause = "eof"
	case timed && limit.Timeout():
		v.cause = "timeout"
	}
	return v
}

// cure is what the user can do about an answer that no attempt will change.
func (c *Client) cure(v verdict) string {
	// By what the store calls it, then by its status: some say no more.
	key := credentialsOf(c.cfg)
	switch v.code {
	case "InvalidAccessKeyId", noSuchUser:
		return "the store does not know " + key + ": check AWS_ACCESS_KEY_ID or AWS_PROFILE"
	case "SignatureDoesNotMatch":
		return "AWS_SECRET_ACCESS_KEY does not belong to " + key +
			", or a proxy changes what is sent"
	case "ExpiredToken", "InvalidToken":
		return "get new temporary keys: AWS_SESSION_TOKEN is not valid (any more)"
	case "AuthorizationHeaderMalformed", "InvalidRegion", "PermanentRedirect",
		"IllegalLocationConstraintException":
		return fmt.Sprintf("the bucket's region is not %s: give it with -s3-region or AWS_REGION",
			c.cfg.Region)
	case "RequestTimeTooSkewed":
		return "set this machine's clock"
	case minio.NoSuchBucket:
		return fmt.Sprintf("the bucket %s must exist, it is never made: make it, or name another "+
			"in -cache-dir s3://BUCKET/PREFIX", c.cfg.Bucket)
	case "EntityTooLarge", "EntityTooSmall":
		return "give another -s3-part-size or -s3-multipart-above"
	case "BadDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch",
		"InvalidDigest":
		return "the store found other bytes than were sent: try -s3-payload unsigned"
	}
	switch v.status {
	case http.StatusForbidden:
		return fmt.Sprintf("%s may not do that in the bucket %s", key, c.cfg.Bucket)
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect:
		return "the bucket lives elsewhere: check -s3-region and -s3-endpoint"
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return "the store does not serve this kind of request"
	}
	return ""
}

// credentialsOf names the key in a sentence, masked.
func credentialsOf(c Config) string {
	if c.Credentials.ID == "" {
		return "nobody (-s3-anonymous)"
	}
	return c.Credentials.String()
}
