package store_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/objecttier/credentials"
	"kvbench/tiers/objecttier/s3double"
	"kvbench/tiers/objecttier/s3double/testnet"
	"kvbench/tiers/objecttier/store"
)

// status is a rule by which a store answers so.
func status(code int, name string) s3double.Rule {
	return s3double.Rule{Fault: s3double.Fault{Kind: s3double.Status, Status: code, Code: name}}
}

// breaks is one by which a connection breaks before anything is answered.
func breaks(kind s3double.Kind) s3double.Rule {
	return s3double.Rule{Fault: s3double.Fault{Kind: kind, At: -1}}
}

// page is one by which a web server answers.
func page(code int) s3double.Rule {
	return s3double.Rule{Fault: s3double.Fault{Kind: s3double.HTML, Status: code}}
}

// The table of what is tried again, and what is not.
func TestErrors(t *testing.T) {
	const tries = 4
	for _, c := range []struct {
		name     string
		rule     s3double.Rule
		attempts int
		cause    string
		is       error
		cure     string
	}{
		{"408", status(408, ""), tries, "408", nil, ""},
		{"429", status(429, ""), tries, "429", nil, ""},
		{"500", status(500, ""), tries, "500", nil, ""},
		{"502", status(502, ""), tries, "502", nil, ""},
		{"503", status(503, "SlowDown"), tries, "503", nil, ""},
		{"504", status(504, ""), tries, "504", nil, ""},
		{"cut", breaks(s3double.Cut), tries, "eof", nil, ""},
		{"reset", breaks(s3double.Reset), tries, "reset", nil, ""},
		{"hang", breaks(s3double.Hang), tries, "timeout", nil, ""},
		{"400", status(400, "InvalidArgument"), 1, "400", nil, ""},
		{"403", status(403, "AccessDenied"), 1, "403", nil, "may not do that in the bucket bucket"},
		{"key", status(403, "InvalidAccessKeyId"), 1, "403", nil, "check AWS_ACCESS_KEY_ID"},
		{"signature", status(403, "SignatureDoesNotMatch"), 1, "403", nil, "AWS_SECRET_ACCESS_KEY does not belong"},
		{"skew", status(403, "RequestTimeTooSkewed"), 1, "403", nil, "set this machine's clock"},
		{"region", status(400, "AuthorizationHeaderMalformed"), 1, "400", nil, "-s3-region"},
		{"bucket", status(404, "NoSuchBucket"), 1, "404", nil, "the bucket bucket must exist"},
		{"404", status(404, "NoSuchKey"), 1, "404", store.ErrNoKey, ""},
		{"405", status(405, ""), 1, "405", store.ErrNotServed, "does not serve"},
		{"412", status(412, ""), 1, "412", store.ErrExists, ""},
		{"416", status(416, ""), 1, "416", nil, ""},
		{"501", status(501, ""), 1, "501", store.ErrNotServed, ""},
		{"507", status(507, ""), 1, "507", syscall.ENOSPC, "-storage-capacity-gb"},
		{"minio", status(503, "XMinioStorageFull"), 1, "503", store.ErrFull, "free space"},
		{"html 503", page(503), tries, "503", nil, ""},
		{"html", page(200), 1, "page", nil, "check host and port of -s3-endpoint"},
		{"html 403", page(403), 1, "page", nil, "check host and port of -s3-endpoint"},
	} {
		for _, op := range []s3double.Op{s3double.Put, s3double.Get, s3double.Delete} {
			if op == s3double.Get && c.name == "507" || op == s3double.Delete && c.name == "404" {
				continue // one that is not there is deleted
			}
			t.Run(c.name+" "+string(op), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := start(t, 1, s3double.Config{Network: &testnet.Network{}}, nil)
					all := data(5000)
					s.put(t, "k", all)
					*s.counts = counts{}
					rule := c.rule
					rule.Op = op
					require.NoError(t, s.double.SetRules(rule))
					try := func() (err error) {
						switch op {
						case s3double.Put:
							_, _, err = s.Put(t.Context(), "k", 5000, body(all), store.Condition{})
						case s3double.Get:
							_, err = s.get(t.Context(), "k", 5000)
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
					// The transport has sent the first again on another connection, once.
					assert.Equal(t, len(s.double.Log())-1, e.Attempts)
					assert.Contains(t, e.Error(), c.cure)
					assert.Contains(t, e.Error(), "k at http://10.0.0.1:9000")
					if c.is != nil {
						assert.ErrorIs(t, err, c.is)
					}
					var limit interface{ Timeout() bool }
					timeout := errors.As(err, &limit)
					assert.False(t, timeout, "nobody tries it once more")
					if c.attempts == 1 {
						return
					}
					// One that goes wrong twice is right the third time.
					*s.counts = counts{}
					rule.Times = 2
					require.NoError(t, s.double.SetRules(rule))
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

// No error of a store shows eight characters of a secret, whatever it says.
func TestNoErrorShowsASecret(t *testing.T) {
	for _, n := range []int{8, 40, 1000} {
		secret := strings.Repeat("Zq7/xW+9", n/8)
		synctest.Test(t, func(t *testing.T) {
			s := start(t, 1, s3double.Config{Network: &testnet.Network{}}, func(c *store.Config) {
				c.Retries = 0
				c.Credentials = credentials.Credentials{ID: "AKIAEXAMPLE", From: "test",
					Secret: credentials.NewSecret(secret),
					Token:  credentials.NewSecret("T" + secret)}
			})
			_, err := s.Head(t.Context(), "k")
			require.Error(t, err, "the double knows another")
			assert.NotContains(t, err.Error(), secret[:8])
			for _, f := range []s3double.Fault{
				{Kind: s3double.Status, Status: 403, Message: "you signed with " + secret},
				{Kind: s3double.Status, Status: 500, Message: "Authorization: AWS4 " + secret[:8]},
				{Kind: s3double.HTML, Status: 403}, {Kind: s3double.Reset, At: -1},
			} {
				require.NoError(t, s.double.SetRules(s3double.Rule{Fault: f}))
				_, err := s.get(t.Context(), "k", 10)
				require.Error(t, err)
				assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), secret[:8])
			}
		})
	}
}
