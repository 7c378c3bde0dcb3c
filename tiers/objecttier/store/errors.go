package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
)

// Error is the error of a request after its last attempt. It does not wrap the transport's error: the cache
// repeats operations whose error is a timeout, and here the client has already repeated the request.
type Error struct {
	Op       Op
	Endpoint string
	Key      string // the object's key; for lists the prefix
	Attempts int
	Status   int    // the HTTP status of the last answer; 0 without an answer
	Code     string // the store's code: "AccessDenied"; "" without a code
	Cause    string // "reset", "503": see Attempt
	Message  string // the message of the store or of the transport, without secrets
	Cure     string // advice for the user, or ""
	// Down is the time for which no endpoint had answered when the request failed.
	Down time.Duration

	again   bool // another attempt may succeed
	outcome outcome
}

// The kinds of an Error, for errors.Is.
var (
	// ErrNoKey: the store has no such object or upload.
	ErrNoKey = errors.New("the store has no such key")
	// ErrFull: the store has no space.
	ErrFull = errors.New("the store is full")
	// ErrDown: no endpoint has answered for at least downAfter.
	ErrDown = errors.New("no endpoint of the store answers any more")
	// ErrNotServed: the store does not support this kind of request.
	ErrNotServed = errors.New("the store does not serve this kind of request")
)

// downAfter is the time without any answer after which the store counts as down.
const downAfter = 30 * time.Second

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

// Is reports whether the error is of a kind. A full store is also ENOSPC, like a full disk.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNoKey:
		return e.Status == http.StatusNotFound && e.Code != minio.NoSuchBucket &&
			e.Code != noSuchUser
	case ErrFull, syscall.ENOSPC:
		return e.full()
	case ErrDown:
		return e.Down >= downAfter
	case ErrNotServed:
		return e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented
	}
	return false
}

// noSuchUser is versitygw's code for an unknown key id, with status 404.
const noSuchUser = "XAdminUserNotFound"

// full reports whether a store has no space. MinIO answers 507 or names the quota. Other stores answer
// 403 or 409 with the code QuotaExceeded.
func (e *Error) full() bool {
	return e.Status == http.StatusInsufficientStorage || e.Code == "XMinioStorageFull" ||
		e.Code == "QuotaExceeded" || e.Code == "XMinioAdminBucketQuotaExceeded"
}

// errTimeout is the cause with which the watchdog cancels an attempt.
var errTimeout = errors.New("no bytes moved within -s3-timeout")

// unexpected is the error of an answer that does not fit the request, such as another length or range.
type unexpected struct {
	text  string
	short bool // the body ended early; another attempt may return the rest
}

func (e *unexpected) Error() string { return e.text }

// transient lists the statuses and codes of answers after which another attempt may succeed.
var transient = strings.Fields("408 429 500 502 503 504 SlowDown SlowDownRead SlowDownWrite " +
	"InternalError RequestTimeout Throttling ServiceUnavailable")

// classify finds the cause of a failed attempt. It uses what RoundTrip has observed, because the library
// hides causes: for example it turns an EOF into a sentence.
func (c *Client) classify(a *attempt, err error) *Error {
	answer, isAnswer := errors.AsType[minio.ErrorResponse](err)
	odd, isOdd := errors.AsType[*unexpected](err)
	e := &Error{Status: a.status, Code: answer.Code, Cause: strconv.Itoa(a.status),
		Message: cmp.Or(answer.Message, err.Error())}
	switch {
	case errors.Is(context.Cause(a.ctx), errTimeout):
		e.Cause, e.Code, e.again, e.outcome = "timeout", "", true, failed
		e.Message = fmt.Sprintf("%v (%v)", errTimeout, c.cfg.Timeout)
	case isOdd && odd.short:
		e.Cause, e.again, e.outcome = "short_body", true, failed
	// If the library cannot read a header of the answer, its error has no status.
	case isOdd, isAnswer && answer.StatusCode == 0 && a.status == http.StatusOK:
		e.Cause, e.Code = "answer", ""
	case a.failure != nil:
		e.Code, e.again, e.outcome = "", true, failed
		e.transport(a.failure)
	case a.status == 0: // the library refused the request before sending it
		e.Cause = "client"
	default:
		if a.status == http.StatusOK { // an answer of 200 may contain an error
			e.Cause = cmp.Or(e.Code, e.Cause)
		}
		e.again = !e.full() &&
			(slices.Contains(transient, e.Cause) || slices.Contains(transient, e.Code))
		if e.Status >= 500 && e.Status != http.StatusNotImplemented && !e.full() {
			e.outcome = failed
		}
		e.Cure = c.cure(e)
	}
	if a.html && a.status > 0 && !e.again { // a load balancer's page with 502 or 503 is transient
		e.Cause, e.Code = "page", ""
		e.Message = "the answer is a web page, not an answer of an object store"
		e.Cure = "check the host and the port of -s3-endpoint: a console or a proxy has other ones"
	}
	e.Message = c.cfg.redact(e.Message)
	return e
}

// transport classifies the error of an attempt without an answer. Another attempt does not help if a
// certificate, a host name or the scheme (http, https) is wrong.
func (e *Error) transport(err error) {
	e.Message = err.Error()
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	limit, timed := errors.AsType[net.Error](err)
	switch {
	case certificate:
		e.Cause, e.again = "certificate", false
		e.Cure = "give the CA certificate with -s3-ca-file or AWS_CA_BUNDLE, and use the host name of " +
			"the server's certificate in -s3-endpoint; -s3-skip-verify accepts any certificate"
	case plain, strings.Contains(e.Message, "server gave HTTP response to HTTPS client"):
		e.Cause, e.again = "tls", false
		e.Cure = "the endpoint does not speak TLS: write http:// in -s3-endpoint"
	case isDNS && dns.IsNotFound:
		e.Cause, e.again = "no_such_host", false
		e.Cure = "check the host in -s3-endpoint; with -s3-addressing virtual the bucket is part " +
			"of the host name"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Cause, e.Cure = "refused", "check that the store runs and listens on this port"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		e.Cause = "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		strings.Contains(e.Message, "server closed idle connection"):
		e.Cause = "eof"
	case timed && limit.Timeout():
		e.Cause = "timeout"
	default:
		e.Cause = "transport"
	}
}

// cures has the advice for errors that another attempt does not solve, by code or status. The first match
// counts, so codes come before statuses.
var cures = []struct{ answers, cure string }{
	{"InvalidAccessKeyId " + noSuchUser,
		"the store does not know {key}: check AWS_ACCESS_KEY_ID or AWS_PROFILE"},
	{"SignatureDoesNotMatch",
		"AWS_SECRET_ACCESS_KEY does not belong to {key}, or a proxy changes what is sent"},
	{"ExpiredToken InvalidToken",
		"get new temporary keys: AWS_SESSION_TOKEN is not valid (any more)"},
	{"AuthorizationHeaderMalformed InvalidRegion PermanentRedirect " +
		"IllegalLocationConstraintException",
		"the bucket's region is not {region}: give it with -s3-region or AWS_REGION"},
	{"RequestTimeTooSkewed", "set this machine's clock"},
	{minio.NoSuchBucket, "the bucket {bucket} does not exist, and kvbench creates no bucket: create it, " +
		"or name another bucket in -cache-dir s3://BUCKET/PREFIX"},
	{"EntityTooLarge EntityTooSmall", "give another -s3-part-size or -s3-multipart-above"},
	{"BadDigest XAmzContentChecksumMismatch XAmzContentSHA256Mismatch InvalidDigest",
		"the store received other bytes than kvbench sent: try -s3-payload unsigned"},
	{"403", "{key} may not make this request in the bucket {bucket}"},
	{"301 307", "the bucket is in another region or at another endpoint: check -s3-region and " +
		"-s3-endpoint"},
	{"405 501", "the store does not serve this kind of request"},
}

// cure returns the advice about an answer, or "".
func (c *Client) cure(e *Error) string {
	if e.full() {
		return "delete objects in the store, or write less: set a smaller -storage-capacity-gb, for " +
			"checkpoints a smaller -checkpoint-keep"
	}
	key := "an anonymous client (-s3-anonymous)"
	if id := c.cfg.Key(); id != "" {
		key = "key " + id
	}
	for _, known := range cures {
		answers := strings.Fields(known.answers)
		if slices.Contains(answers, e.Code) || slices.Contains(answers, strconv.Itoa(e.Status)) {
			return strings.NewReplacer("{key}", key, "{bucket}", c.cfg.Bucket, "{region}",
				c.cfg.Region).Replace(known.cure)
		}
	}
	return ""
}
