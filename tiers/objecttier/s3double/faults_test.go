package s3double_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/objecttier/s3double"
	"kvbench/tiers/objecttier/s3double/testnet"
)

const body = "0123456789"

// ten is what tests below ask for: ten bytes.
func ten(t *testing.T, d *s3double.Double) {
	require.NoError(t, d.SetObject("bench", "k", body, time.Time{}))
}

// answer is what a client sees of one request.
type answer struct {
	status     int
	header     http.Header
	body       string
	err        error         // of the request, or of reading the body
	first, end time.Duration // from the request to the header, and to the end of the body
}

// ask sends a request without a signature and without a library, which hides nothing. Times are of
// use in a bubble.
func ask(ctx context.Context, rt http.RoundTripper, method, url, body string) (a answer) {
	begun := time.Now()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return answer{err: err}
	}
	a.first = time.Until(begun) * -1
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text), err, a.first, -time.Until(begun)}
}

// inBubble runs a test against endpoints without sockets, in virtual time.
func inBubble(t *testing.T, n int, test func(*testing.T, *s3double.Double, *http.Transport)) {
	synctest.Test(t, func(t *testing.T) {
		network := &testnet.Network{}
		d := s3double.Start(t, s3double.Config{Buckets: []string{"bench"}, Anonymous: true,
			Network: network}, n)
		ten(t, d)
		transport := &http.Transport{DialContext: network.DialContext}
		defer transport.CloseIdleConnections()
		test(t, d, transport)
	})
}

func TestAnswersThatGoWrong(t *testing.T) {
	const xmlError = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + "<Error><Code>"
	for _, c := range []struct {
		name   string
		op     s3double.Op
		fault  s3double.Fault
		status int
		body   string // its beginning
		err    error
		check  func(*testing.T, *s3double.Double, answer)
	}{
		{"a status", s3double.Get, s3double.Fault{Kind: s3double.Status, RetryAfter: "2"}, 503,
			xmlError + "SlowDown</Code>", nil,
			func(t *testing.T, _ *s3double.Double, a answer) {
				assert.Equal(t, "2", a.header.Get("Retry-After"))
			}},
		{"a status and a code", s3double.Put, s3double.Fault{Kind: s3double.Status, Status: 507,
			Code: "QuotaExceeded"}, 507, xmlError + "QuotaExceeded</Code>", nil,
			func(t *testing.T, d *s3double.Double, _ answer) {
				stored, err := d.Object("bench", "k")
				require.NoError(t, err)
				assert.Equal(t, body, string(stored), "nothing has been done")
				assert.EqualValues(t, len("other"), d.Log()[0].BytesIn)
			}},
		{"a page", s3double.Get, s3double.Fault{Kind: s3double.HTML}, 200, "<!DOCTYPE html>", nil,
			nil},
		{"an error with status 200", s3double.Put, s3double.Fault{Kind: s3double.Error200}, 200,
			xmlError + "InternalError</Code>", nil, nil},
		{"done and not answered", s3double.Put, s3double.Fault{Kind: s3double.Lost}, 0, "", io.EOF,
			func(t *testing.T, d *s3double.Double, _ answer) {
				stored, err := d.Object("bench", "k")
				require.NoError(t, err)
				assert.Equal(t, "other", string(stored))
				assert.Zero(t, d.Log()[0].Status)
			}},
		{"cut", s3double.Get, s3double.Fault{Kind: s3double.Cut, At: 4}, 200, "0123",
			io.ErrUnexpectedEOF, func(t *testing.T, d *s3double.Double, _ answer) {
				assert.EqualValues(t, 4, d.Log()[0].BytesOut)
			}},
		{"cut behind the header", s3double.Get, s3double.Fault{Kind: s3double.Cut}, 200, "",
			io.ErrUnexpectedEOF, nil},
		{"cut before the header", s3double.Get, s3double.Fault{Kind: s3double.Cut, At: -1}, 0, "",
			io.EOF, nil},
		{"cut in what is sent", s3double.Put, s3double.Fault{Kind: s3double.Cut, At: 2}, 0, "",
			io.EOF, func(t *testing.T, d *s3double.Double, _ answer) {
				stored, err := d.Object("bench", "k")
				require.NoError(t, err)
				assert.Equal(t, body, string(stored))
				assert.EqualValues(t, 2, d.Log()[0].BytesIn)
			}},
		{"reset", s3double.Get, s3double.Fault{Kind: s3double.Reset, At: 4}, 200, "0123",
			syscall.ECONNRESET, nil},
		{"reset before the header", s3double.Delete, s3double.Fault{Kind: s3double.Reset, At: -1},
			0, "", syscall.ECONNRESET, func(t *testing.T, d *s3double.Double, _ answer) {
				assert.Equal(t, []string{"k"}, d.Keys("bench", ""))
			}},
		{"a flipped byte", s3double.Get, s3double.Fault{Kind: s3double.Flip, At: 3}, 200,
			"012" + string([]byte{'3' ^ 0xff}) + "456789", nil, nil},
		{"a flipped byte is stored", s3double.Put, s3double.Fault{Kind: s3double.Flip, At: 1}, 200,
			"", nil, func(t *testing.T, d *s3double.Double, _ answer) {
				stored, err := d.Object("bench", "k")
				require.NoError(t, err)
				assert.Equal(t, []byte{'o', 't' ^ 0xff, 'h', 'e', 'r'}, stored)
			}},
		{"a short length", s3double.Get, s3double.Fault{Kind: s3double.WrongLength, At: 2}, 200,
			"01234567", nil, func(t *testing.T, _ *s3double.Double, a answer) {
				assert.Equal(t, "8", a.header.Get("Content-Length"))
			}},
		{"a delay", s3double.Get, s3double.Fault{Kind: s3double.Delay,
			HeaderDelay: s3double.Duration(50 * time.Millisecond),
			BodyDelay:   s3double.Duration(100 * time.Millisecond)}, 200, body, nil,
			func(t *testing.T, _ *s3double.Double, a answer) {
				assert.Equal(t, 50*time.Millisecond, a.first)
				assert.Equal(t, 150*time.Millisecond, a.end)
			}},
		{"a delay of a PUT", s3double.Put, s3double.Fault{Kind: s3double.Delay,
			HeaderDelay: s3double.Duration(time.Hour)}, 200, "", nil,
			func(t *testing.T, _ *s3double.Double, a answer) {
				assert.Equal(t, time.Hour, a.first)
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, d *s3double.Double, rt *http.Transport) {
				require.NoError(t, d.SetRules(s3double.Rule{Op: c.op, Fault: c.fault}))
				text := ""
				if c.op == s3double.Put {
					text = "other"
				}
				method := strings.ToUpper(string(c.op))
				a := ask(t.Context(), rt, method, d.URLs()[0]+"/bench/k", text)
				synctest.Wait() // until the double has done with it, too
				assert.Equal(t, c.status, a.status)
				assert.True(t, strings.HasPrefix(a.body, c.body), a.body)
				if c.err == nil {
					assert.NoError(t, a.err)
				} else {
					assert.ErrorIs(t, a.err, c.err)
					assert.Equal(t, c.body, a.body)
				}
				log := d.Log()
				require.Len(t, log, 1)
				assert.Equal(t, c.fault.Kind, log[0].Fault)
				assert.Equal(t, 1, log[0].Rule)
				assert.Equal(t, c.status, log[0].Status)
				if c.check != nil {
					c.check(t, d, a)
				}
				require.NoError(t, d.SetRules())
				a = ask(t.Context(), rt, "HEAD", d.URLs()[0]+"/bench/k", "")
				assert.NoError(t, a.err, "afterwards it serves")
			})
		})
	}
}

func TestHangingTakesNoTime(t *testing.T) {
	for _, at := range []int64{-1, 0, 4} {
		inBubble(t, 1, func(t *testing.T, d *s3double.Double, rt *http.Transport) {
			rt.ResponseHeaderTimeout = 30 * time.Second
			begun := time.Now()
			require.NoError(t, d.SetRules(s3double.Rule{Fault: s3double.Fault{
				Kind: s3double.Hang, At: at}}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			a := ask(ctx, rt, "GET", d.URLs()[0]+"/bench/k", "")
			waited := 30 * time.Second
			if at < 0 {
				assert.ErrorContains(t, a.err, "timeout awaiting response headers")
			} else {
				assert.ErrorIs(t, a.err, context.DeadlineExceeded)
				assert.Equal(t, body[:at], a.body)
				waited = time.Minute
			}
			assert.Equal(t, waited, -time.Until(begun))
			synctest.Wait()
			assert.Equal(t, waited, d.Log()[0].Ended, "when the client had gone")
		})
	}
}

func TestWhichRequestsARuleMeets(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, d *s3double.Double, rt *http.Transport) {
		require.NoError(t, d.SetObject("bench", "other", body, time.Time{}))
		statuses := func(n int, paths ...string) (all []int) {
			for i := range n {
				for _, p := range paths {
					a := ask(t.Context(), rt, "GET", d.URLs()[i%2]+"/bench/"+p, "")
					require.NoError(t, a.err)
					all = append(all, a.status)
				}
			}
			return all
		}
		fails := func(r s3double.Rule) {
			d.ClearLog()
			r.Kind = s3double.Status
			require.NoError(t, d.SetRules(r))
		}
		fails(s3double.Rule{Nth: 3})
		assert.Equal(t, []int{200, 200, 503, 200}, statuses(4, "k"))
		fails(s3double.Rule{Op: s3double.Put})
		assert.Equal(t, []int{200, 200}, statuses(2, "k"))
		fails(s3double.Rule{Key: "^o", Attempt: 2})
		assert.Equal(t, []int{200, 200, 200, 503, 200, 200}, statuses(3, "k", "other"))
		fails(s3double.Rule{Endpoint: 2, Times: 2})
		assert.Equal(t, []int{200, 503, 200, 503, 200, 200}, statuses(6, "k"))

		count := func(all []int) (failed int) {
			for _, s := range all {
				failed += s / 503
			}
			return failed
		}
		fails(s3double.Rule{Share: 0.25})
		first := statuses(400, "k", "other")
		assert.InDelta(t, 200, count(first), 50)
		fails(s3double.Rule{Share: 0.25})
		assert.Equal(t, first, statuses(400, "k", "other"), "drawn from what is asked for")
	})
	d, err := s3double.Open(s3double.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	err = d.SetRules(s3double.Rule{Key: "("}, s3double.Rule{Fault: s3double.Fault{Kind: "no"}},
		s3double.Rule{Share: 2, Fault: s3double.Fault{Kind: s3double.Lost}})
	assert.ErrorContains(t, err, "rule 1: error parsing regexp")
	assert.ErrorContains(t, err, `rule 2: kind "no" is none of`)
	assert.ErrorContains(t, err, "rule 3: share 2 is not between 0 and 1")
}

func TestRulesAreReadFromJSON(t *testing.T) {
	rules, err := s3double.ReadRules(strings.NewReader(`[{"op": "get", "key": "^a", "nth": 3,
		"kind": "delay", "header_delay": "50ms", "body_delay": "1s"},
		{"share": 0.05, "kind": "status", "status": 500, "retry_after": "1"}]`))
	require.NoError(t, err)
	assert.Equal(t, []s3double.Rule{
		{Op: s3double.Get, Key: "^a", Nth: 3, Fault: s3double.Fault{Kind: s3double.Delay,
			HeaderDelay: s3double.Duration(50 * time.Millisecond),
			BodyDelay:   s3double.Duration(time.Second)}},
		{Share: 0.05, Fault: s3double.Fault{Kind: s3double.Status, Status: 500, RetryAfter: "1"}},
	}, rules)
	_, err = s3double.ReadRules(strings.NewReader(`[{"kind": "cut", "after": 3}]`))
	assert.ErrorContains(t, err, `unknown field "after"`)
}

func TestAnEndpointDiesAndReturns(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, d *s3double.Double, rt *http.Transport) {
		one := d.Endpoints()[0]
		require.NoError(t, d.SetRules(s3double.Rule{Endpoint: 1, Nth: 2, Fault: s3double.Fault{
			Kind: s3double.Hang, At: 5}}))
		status := func(i int) (int, error) {
			a := ask(t.Context(), rt, "GET", d.URLs()[i]+"/bench/k", "")
			return a.status, a.err
		}
		s, err := status(0)
		require.NoError(t, err)
		assert.Equal(t, 200, s)
		done := make(chan answer)
		go func() { done <- ask(t.Context(), rt, "GET", one.URL()+"/bench/k", "") }()
		synctest.Wait()
		one.Kill()
		one.Kill()
		a := <-done
		assert.ErrorIs(t, a.err, syscall.ECONNRESET)
		assert.Equal(t, body[:5], a.body)
		_, err = status(0)
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		s, err = status(1)
		require.NoError(t, err)
		assert.Equal(t, 200, s, "the other one serves")
		require.NoError(t, one.Return())
		s, err = status(0)
		require.NoError(t, err)
		assert.Equal(t, 200, s)
	})
}

// TestKernelsDoTheSame is the same on sockets, where it is the kernel who resets.
func TestKernelsDoTheSame(t *testing.T) {
	d := start(t, s3double.Config{Anonymous: true})
	large := strings.Repeat("0123456789abcdef", 64<<10)
	require.NoError(t, d.SetObject("bench", "k", large, time.Time{}))
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	get := func(f s3double.Fault) answer {
		t.Helper()
		require.NoError(t, d.SetRules(s3double.Rule{Fault: f, Nth: 1}))
		return ask(t.Context(), transport, "GET", d.URLs()[0]+"/bench/k", "")
	}
	a := get(s3double.Fault{Kind: s3double.Delay})
	require.NoError(t, a.err)
	assert.Equal(t, large, a.body)
	a = get(s3double.Fault{Kind: s3double.Cut, At: 100_000})
	assert.ErrorIs(t, a.err, io.ErrUnexpectedEOF)
	assert.Equal(t, large[:100_000], a.body)
	a = get(s3double.Fault{Kind: s3double.Reset, At: 100_000})
	assert.ErrorIs(t, a.err, syscall.ECONNRESET)
	assert.True(t, strings.HasPrefix(large, a.body))
	a = get(s3double.Fault{Kind: s3double.Reset, At: -1})
	assert.ErrorIs(t, a.err, syscall.ECONNRESET)
	d.Endpoints()[0].Kill()
	a = get(s3double.Fault{Kind: s3double.Delay})
	assert.ErrorIs(t, a.err, syscall.ECONNREFUSED)
	require.NoError(t, d.Endpoints()[0].Return())
	a = get(s3double.Fault{Kind: s3double.Delay})
	require.NoError(t, a.err)
	log := d.Log()
	assert.Equal(t, log[0].Conn, log[1].Conn, "kept alive")
	assert.NotEqual(t, log[1].Conn, log[2].Conn, "cut")
}

func TestBodiesLeaveNothingBehind(t *testing.T) {
	dir := t.TempDir()
	d, err := s3double.Open(s3double.Config{Dir: dir, Buckets: []string{"bench"}})
	require.NoError(t, err)
	_, err = d.Listen("127.0.0.1:0")
	require.NoError(t, err)
	files := func() int {
		list, err := os.ReadDir(dir)
		require.NoError(t, err)
		return len(list)
	}
	c := client(t, d)
	put(t, c, "k", "1")
	put(t, c, "k", "2")
	assert.Equal(t, 1, files(), "the old body is gone")
	id, err := c.NewMultipartUpload(t.Context(), "bench", "u", minio.PutObjectOptions{})
	require.NoError(t, err)
	p := uploadPart(t, c, "u", id, 1, "x")
	uploadPart(t, c, "u", id, 2, "not named")
	assert.Equal(t, 3, files())
	_, err = c.CompleteMultipartUpload(t.Context(), "bench", "u", id,
		[]minio.CompletePart{{PartNumber: 1, ETag: p.ETag}}, minio.PutObjectOptions{})
	require.NoError(t, err)
	assert.Equal(t, 2, files())
	require.NoError(t, d.SetRules(s3double.Rule{Fault: s3double.Fault{Kind: s3double.Cut, At: 1}}))
	_, err = c.PutObject(t.Context(), "bench", "k", strings.NewReader("other"), 5, "", "",
		minio.PutObjectOptions{DisableContentSha256: true})
	assert.Error(t, err)
	require.NoError(t, d.SetRules())
	_, err = c.PutObject(t.Context(), "bench", "wrong", strings.NewReader("other"), 5, "",
		strings.Repeat("0", 64), minio.PutObjectOptions{DisableContentSha256: true})
	assert.Equal(t, "XAmzContentSHA256Mismatch", code(err))
	require.NoError(t, c.RemoveObject(t.Context(), "bench", "u", minio.RemoveObjectOptions{}))
	for _, e := range d.Endpoints() {
		e.Kill() // and its handlers have ended
	}
	assert.Equal(t, 1, files())
	require.NoError(t, d.Close())
	assert.Zero(t, files())
	_, err = os.Stat(dir)
	assert.NoError(t, err, "which is not the double's")

	d, err = s3double.Open(s3double.Config{Buckets: []string{"bench"}})
	require.NoError(t, err)
	require.NoError(t, d.SetObject("bench", "k", "x", time.Time{}))
	require.NoError(t, d.Close())
	_, err = d.Object("bench", "k")
	assert.True(t, errors.Is(err, os.ErrNotExist))
}
