package store_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/objecttier/s3test"
	"kvbench/tiers/objecttier/store"
)

func status(code int, name string) s3test.Fault {
	return s3test.Fault{Kind: s3test.Status, Status: code, Code: name}
}

func page(code int) s3test.Fault { return s3test.Fault{Kind: s3test.Page, Status: code} }

// broken is a connection that breaks before any answer.
func broken(kind s3test.Kind) s3test.Fault { return s3test.Fault{Kind: kind, At: -1} }

// The next attempt after a reset of a connection succeeds. net/http itself repeats the first one.
func TestAReset(t *testing.T) {
	s := start(t, 1, s3test.Config{}, nil)
	s.put(t, "k", data(5000))
	require.NoError(t, s.server.SetRules(s3test.Rule{Times: 2, Fault: broken(s3test.Reset)}))
	_, err := s.get(t.Context(), "k", 5000)
	require.NoError(t, err)
	assert.Equal(t, "reset", s.counts.attempts[1].Cause)
}

// Some failures get another attempt, and the others give advice to the user.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		fault    s3test.Fault
		attempts int
		cause    string
		is       error
		cure     string
	}{
		{status(408, ""), 4, "408", nil, ""},
		{status(429, ""), 4, "429", nil, ""},
		{status(500, ""), 4, "500", nil, ""},
		{status(502, ""), 4, "502", nil, ""},
		{status(503, "SlowDown"), 4, "503", nil, ""},
		{status(504, ""), 4, "504", nil, ""},
		{page(503), 4, "503", nil, ""},
		{broken(s3test.Cut), 4, "eof", nil, ""},
		{broken(s3test.Hang), 4, "timeout", nil, ""},
		{status(400, "InvalidArgument"), 1, "400", nil, ""},
		{status(403, "AccessDenied"), 1, "403", nil, "key **** may not make this request in the bucket bucket"},
		{status(403, "InvalidAccessKeyId"), 1, "403", nil, "check AWS_ACCESS_KEY_ID"},
		{status(403, "SignatureDoesNotMatch"), 1, "403", nil, "AWS_SECRET_ACCESS_KEY does not belong"},
		{status(403, "RequestTimeTooSkewed"), 1, "403", nil, "set this machine's clock"},
		{status(400, "AuthorizationHeaderMalformed"), 1, "400", nil, "-s3-region"},
		{status(404, "NoSuchBucket"), 1, "404", nil, "the bucket bucket does not exist"},
		{status(404, "NoSuchKey"), 1, "404", store.ErrNoKey, ""},
		{status(405, ""), 1, "405", store.ErrNotServed, "does not serve"},
		{status(412, ""), 1, "412", nil, ""},
		{status(501, ""), 1, "501", store.ErrNotServed, ""},
		{status(507, ""), 1, "507", syscall.ENOSPC, "-storage-capacity-gb"},
		{status(503, "XMinioStorageFull"), 1, "503", store.ErrFull, "delete objects in the store"},
		{page(200), 1, "page", nil, "check the host and the port of -s3-endpoint"},
		{page(403), 1, "page", nil, "check the host and the port of -s3-endpoint"},
	} {
		for _, op := range []s3test.Op{s3test.Put, s3test.Get, s3test.Head, s3test.Delete} {
			if op == s3test.Head && c.fault.Code != "" || // the answer has no body, and so no code
				op == s3test.Delete && c.is == store.ErrNoKey { // a missing object is no error
				continue
			}
			t.Run(fmt.Sprint(c.fault.Kind, c.fault.Status, c.fault.Code, op), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := start(t, 1, inMemory, nil)
					all := data(5000)
					s.put(t, "k", all)
					*s.counts = counts{}
					rule := s3test.Rule{Op: op, Fault: c.fault}
					require.NoError(t, s.server.SetRules(rule))
					try := func() (err error) {
						switch op {
						case s3test.Put:
							_, err = s.Put(t.Context(), "k", 5000, body(all))
						case s3test.Get:
							_, err = s.get(t.Context(), "k", 5000)
						case s3test.Head:
							_, err = s.Head(t.Context(), "k")
						default:
							err = s.Delete(t.Context(), "k")
						}
						return err
					}
					err := try()
					e, ok := errors.AsType[*store.Error](err)
					require.True(t, ok, err)
					assert.Equal(t, c.cause, e.Cause, e)
					assert.Len(t, s.counts.attempts, c.attempts)
					// net/http repeats the first attempt once on another connection.
					assert.Equal(t, len(s.server.Log())-1, e.Attempts)
					assert.Contains(t, e.Error(), c.cure)
					assert.Contains(t, e.Error(), "k at http://10.0.0.1:9000")
					if c.is != nil {
						assert.ErrorIs(t, err, c.is)
					}
					var limit interface{ Timeout() bool }
					assert.False(t, errors.As(err, &limit), "the caller does not try again")
					if c.attempts == 1 {
						return
					}
					*s.counts = counts{}
					rule.Times = 2
					require.NoError(t, s.server.SetRules(rule))
					require.NoError(t, try())
					require.Len(t, s.counts.requests, 1)
					r := s.counts.requests[0]
					assert.Equal(t, 3, r.Attempts)
					assert.Equal(t, 600*time.Millisecond, r.Backoff, "0.2 s and 0.4 s")
				})
			})
		}
	}
}
