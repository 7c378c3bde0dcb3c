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

	"kvbench/tiers/objecttier/endpoint"
)

// Error is the error of a request after its last attempt. It does not wrap the transport's error,
// because the cache would retry the request after a timeout.
type Error struct {
	Op       Op
	Endpoint string
	Key      string // of the object; a prefix for lists
	Attempts int
	Status   int    // of the last answer; 0: none
	Code     string // of the store: "AccessDenied"; "" without one
	Cause    string // "reset", "503": see Attempt
	Message  string // of the store or the transport, without secrets
	Cure     string // advice for the user, or ""
	// Down is the time for which no endpoint had answered when the request failed.
	Down time.Duration
}

// The kinds of an Error, for errors.Is.
var (
	// ErrNoKey: the store has no such object or upload.
	ErrNoKey = errors.New("the store has no such key")
	// ErrFull: the store has no space.
	ErrFull = errors.New("the store is full")
	// ErrDown: no endpoint has answered for the time longest.
	ErrDown = errors.New("no endpoint of the store answers any more")
	// ErrNotServed: the store does not support this kind of request.
	ErrNotServed = errors.New("the store does not serve this kind of request")
)

// longest is the time after which the store counts as down, if no endpoint answers.
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

// Is reports whether the error is of a kind. A full store is also ENOSPC, like a full disk.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNoKey:
		return e.Status == http.StatusNotFound && e.Code != minio.NoSuchBucket &&
			e.Code != noSuchUser
	case ErrFull, syscall.ENOSPC:
		return full(e.Status, e.Code)
	case ErrDown:
		return e.Down >= longest
	case ErrNotServed:
		return e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented
	}
	return false
}

// noSuchUser is versitygw's code for an unknown key id, with status 404.
const noSuchUser = "XAdminUserNotFound"

// full reports whether a store has no space. MinIO answers 507 or names the quota. Other stores answer
// 403 or 409 with the code QuotaExceeded.
func full(status int, code string) bool {
	return status == http.StatusInsufficientStorage || code == "XMinioStorageFull" ||
		code == "QuotaExceeded" || code == "XMinioAdminBucketQuotaExceeded"
}

// errTimeout is the cause with which the watchdog cancels an attempt.
var errTimeout = errors.New("nothing came in time (-s3-timeout)")

// unexpected is the error of an answer that does not fit the request, such as another length or range.
type unexpected struct {
	text  string
	short bool // the body ended early; another attempt may return the rest
}

func (e *unexpected) Error() string { return e.text }

// failure is a failed attempt.
type failure struct {
	cause   string
	again   bool // another attempt may succeed
	outcome endpoint.Outcome
	code    string
	message string
	cure    string
}

// transient lists the statuses and codes of answers after which another attempt may succeed.
var transient = strings.Fields("408 429 500 502 503 504 SlowDown SlowDownRead SlowDownWrite " +
	"InternalError RequestTimeout Throttling ServiceUnavailable")

// classify finds the cause of a failed attempt from RoundTrip's observations, because the library hides
// causes: it turns an EOF into a sentence.
func (c *Client) classify(a *attempt, err error) failure {
	answer, isAnswer := errors.AsType[minio.ErrorResponse](err)
	odd, isOdd := errors.AsType[*unexpected](err)
	f := failure{cause: strconv.Itoa(a.status), code: answer.Code,
		message: cmp.Or(answer.Message, err.Error())}
	switch {
	case errors.Is(context.Cause(a.ctx), errTimeout):
		f = failure{cause: "timeout", again: true, outcome: endpoint.Failed,
			message: fmt.Sprintf("%v: %v", errTimeout, c.cfg.Timeout)}
	case isOdd && odd.short:
		f.cause, f.again, f.outcome = "short_body", true, endpoint.Failed
	// The library's own error about a header that it cannot read has no status.
	case isOdd, isAnswer && answer.StatusCode == 0 && a.status == http.StatusOK:
		f.cause, f.code = "answer", ""
	case a.failure != nil:
		f = transportFailure(a.failure)
	case a.status == 0: // the library refused the request before sending it
		f.cause = "client"
	default:
		f.again = !full(a.status, f.code) &&
			(slices.Contains(transient, f.cause) || slices.Contains(transient, f.code))
		if a.status >= 500 && a.status != http.StatusNotImplemented &&
			!full(a.status, f.code) {
			f.outcome = endpoint.Failed
		}
		f.cure = c.cure(a.status, f.code)
	}
	if a.html && a.status > 0 && !f.again { // a load balancer's page with 502 or 503 is transient
		f.cause, f.code = "page", ""
		f.message = "the answer is a web page, not an object store's"
		f.cure = "check host and port of -s3-endpoint: consoles and proxies have their own"
	}
	f.message = c.cfg.redact(f.message)
	return f
}

// transportFailure classifies an error without an answer. Wrong certificates, names and schemes do not
// change between attempts.
func transportFailure(err error) failure {
	f := failure{cause: "transport", again: true, outcome: endpoint.Failed, message: err.Error()}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	limit, timed := errors.AsType[net.Error](err)
	switch {
	case certificate:
		f.cause, f.again = "certificate", false
		f.cure = "give the authority's certificate with -s3-ca-file or AWS_CA_BUNDLE and an " +
			"endpoint by the name in it; -s3-skip-verify trusts anybody"
	case plain, strings.Contains(f.message, "server gave HTTP response to HTTPS client"):
		f.cause, f.again = "tls", false
		f.cure = "the endpoint does not speak TLS: write http:// in -s3-endpoint"
	case isDNS && dns.IsNotFound:
		f.cause, f.again = "no_such_host", false
		f.cure = "check the host in -s3-endpoint; with -s3-addressing virtual the bucket is part " +
			"of its name"
	case errors.Is(err, syscall.ECONNREFUSED):
		f.cause, f.cure = "refused", "is the store running, and is that its port?"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		f.cause = "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		strings.Contains(f.message, "server closed idle connection"):
		f.cause = "eof"
	case timed && limit.Timeout():
		f.cause = "timeout"
	}
	return f
}

// cures are advice for answers that no other attempt changes, by code or status. The first match counts,
// so codes come before statuses.
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
	{minio.NoSuchBucket, "the bucket {bucket} must exist, it is never made: make it, or name " +
		"another in -cache-dir s3://BUCKET/PREFIX"},
	{"EntityTooLarge EntityTooSmall", "give another -s3-part-size or -s3-multipart-above"},
	{"BadDigest XAmzContentChecksumMismatch XAmzContentSHA256Mismatch InvalidDigest",
		"the store found other bytes than were sent: try -s3-payload unsigned"},
	{"403", "{key} may not do that in the bucket {bucket}"},
	{"301 307", "the bucket lives elsewhere: check -s3-region and -s3-endpoint"},
	{"405 501", "the store does not serve this kind of request"},
}

// cure returns advice about an answer.
func (c *Client) cure(status int, code string) string {
	if full(status, code) {
		return "free space in the store or have less there (-storage-capacity-gb; of checkpoints " +
			"-checkpoint-keep)"
	}
	key := "an anonymous client (-s3-anonymous)"
	if id := c.cfg.Key(); id != "" {
		key = "key " + id
	}
	for _, known := range cures {
		answers := strings.Fields(known.answers)
		if slices.Contains(answers, code) || slices.Contains(answers, strconv.Itoa(status)) {
			return strings.NewReplacer("{key}", key, "{bucket}", c.cfg.Bucket, "{region}",
				c.cfg.Region).Replace(known.cure)
		}
	}
	return ""
}
