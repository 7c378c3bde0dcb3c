package s3test_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/objecttier/s3test"
)

// client makes a client of a server's first endpoint.
func client(t *testing.T, s *s3test.Server, config *tls.Config, trailer bool) *minio.Core {
	t.Helper()
	transport := s.Transport()
	transport.TLSClientConfig = config
	scheme, host, _ := strings.Cut(s.URLs()[0], "://")
	c, err := minio.NewCore(host, &minio.Options{
		Creds: credentials.NewStaticV4("key", "secret", ""), Region: "us-east-1",
		Secure: scheme == "https", Transport: transport, MaxRetries: 1, TrailingHeaders: trailer})
	require.NoError(t, err)
	t.Cleanup(transport.CloseIdleConnections)
	return c
}

// Clients depend on these operations, in plain, framed and framed bodies with a checksum behind.
func TestOperations(t *testing.T) {
	certificate, trusts := s3test.Certificate()
	for name, c := range map[string]struct {
		config  s3test.Config
		tls     *tls.Config
		trailer bool
		put     minio.PutObjectOptions
	}{
		"signed chunks":  {s3test.Config{}, nil, false, minio.PutObjectOptions{}},
		"unsigned, TLS":  {s3test.Config{TLS: certificate}, trusts, false, minio.PutObjectOptions{}},
		"checksum, pipe": {s3test.Config{InMemory: true}, nil, true, minio.PutObjectOptions{Checksum: minio.ChecksumCRC32C}},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Buckets = []string{"bucket"}
			s := s3test.Start(t, c.config, 1)
			core, ctx := client(t, s, c.tls, c.trailer), t.Context()
			data := bytes.Repeat([]byte("0123456789"), 20_000)
			reader := func() io.Reader { return bytes.NewReader(data) }
			for _, key := range []string{"a/b c+d", "a/e", "f"} {
				_, err := core.Client.PutObject(ctx, "bucket", key, reader(), int64(len(data)), c.put)
				require.NoError(t, err)
				stored, err := s.Object("bucket", key)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(data, stored), "the body is stored without its framing")
			}
			var ranged minio.GetObjectOptions
			require.NoError(t, ranged.SetRange(13, 14))
			body, info, _, err := core.GetObject(ctx, "bucket", "a/b c+d", ranged)
			require.NoError(t, err)
			got, err := io.ReadAll(body)
			require.NoError(t, err)
			assert.Equal(t, "34", string(got))
			require.NoError(t, ranged.SetMatchETag(info.ETag))
			require.NoError(t, s.SetObject("bucket", "a/b c+d", strings.Repeat("x", 20)))
			_, _, _, err = core.GetObject(ctx, "bucket", "a/b c+d", ranged)
			assert.Equal(t, http.StatusPreconditionFailed, minio.ToErrorResponse(err).StatusCode)

			id, err := core.NewMultipartUpload(ctx, "bucket", "a/up", minio.PutObjectOptions{})
			require.NoError(t, err)
			uploads, err := core.ListMultipartUploads(ctx, "bucket", "a/", "", "", "", 10)
			require.NoError(t, err)
			require.Len(t, uploads.Uploads, 1)
			part, err := core.PutObjectPart(ctx, "bucket", "a/up", id, 1, reader(),
				int64(len(data)), minio.PutObjectPartOptions{})
			require.NoError(t, err)
			_, err = core.CompleteMultipartUpload(ctx, "bucket", "a/up", id,
				[]minio.CompletePart{{PartNumber: 1, ETag: part.ETag}}, minio.PutObjectOptions{})
			require.NoError(t, err)
			id, err = core.NewMultipartUpload(ctx, "bucket", "a/up2", minio.PutObjectOptions{})
			require.NoError(t, err)
			assert.Equal(t, []string{"a/up2"}, s.Uploads("bucket"))
			require.NoError(t, core.AbortMultipartUpload(ctx, "bucket", "a/up2", id))
			assert.Empty(t, s.Uploads("bucket"))

			require.NoError(t, s.SetRules(s3test.Rule{Op: s3test.List,
				Fault: s3test.Fault{Kind: s3test.ShortPage, At: 1}}))
			var listed []string
			objects := make(chan minio.ObjectInfo, 10)
			for o := range core.Client.ListObjects(ctx, "bucket", minio.ListObjectsOptions{Prefix: "a/",
				Recursive: true}) {
				require.NoError(t, o.Err)
				listed = append(listed, o.Key)
				objects <- o
			}
			close(objects)
			assert.Equal(t, []string{"a/b c+d", "a/e", "a/up"}, listed)
			for failed := range core.Client.RemoveObjects(ctx, "bucket", objects, minio.RemoveObjectsOptions{}) {
				require.NoError(t, failed.Err)
			}
			assert.Equal(t, []string{"f"}, s.Keys("bucket", ""))
			log := s.Log()
			assert.Equal(t, s3test.Entry{Seq: 1, Op: s3test.Put, Bucket: "bucket", Key: "a/b c+d",
				BytesIn: 200_000, Status: 200, Begun: log[0].Begun,
				Ended: log[0].Ended}, log[0])
			assert.Equal(t, listed, log[len(log)-1].Keys)
		})
	}
}

// Each fault happens where and when its rule says, in virtual time.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault s3test.Fault
		put   bool
		bytes int // of the GET's body
		took  time.Duration
		want  string // "" = no error
	}{
		"status":        {s3test.Fault{Kind: s3test.Status, Status: 503, Code: "SlowDown"}, false, 0, 0, "SlowDown"},
		"delays":        {s3test.Fault{Kind: s3test.Delay, HeaderDelay: time.Second, BodyDelay: 2 * time.Second}, false, 1000, 3 * time.Second, ""},
		"bandwidth":     {s3test.Fault{Kind: s3test.Delay, Bandwidth: 100}, false, 1000, 10 * time.Second, ""},
		"slow put":      {s3test.Fault{Kind: s3test.Delay, Bandwidth: 100}, true, 0, 10 * time.Second, ""},
		"cut":           {s3test.Fault{Kind: s3test.Cut, At: 100}, false, 100, 0, io.ErrUnexpectedEOF.Error()},
		"reset":         {s3test.Fault{Kind: s3test.Reset, At: 100}, false, 100, 0, syscall.ECONNRESET.Error()},
		"reset put":     {s3test.Fault{Kind: s3test.Reset, At: 100}, true, 0, 0, syscall.ECONNRESET.Error()},
		"reset at once": {s3test.Fault{Kind: s3test.Reset, At: -1}, false, 0, 0, syscall.ECONNRESET.Error()},
		"lost":          {s3test.Fault{Kind: s3test.Lost}, true, 0, 0, "EOF"},
		"hang":          {s3test.Fault{Kind: s3test.Hang, At: 100}, false, 100, time.Minute, "deadline exceeded"},
		"flip":          {s3test.Fault{Kind: s3test.Flip, At: 100}, false, 1000, 0, "other data"},
		"length":        {s3test.Fault{Kind: s3test.WrongLength, At: 100}, false, 900, 0, "other data"},
		"page":          {s3test.Fault{Kind: s3test.Page, Text: "hello"}, false, 5, 0, "other data"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := s3test.Start(t, s3test.Config{Buckets: []string{"bucket"}, InMemory: true}, 1)
				data := strings.Repeat("x", 1000)
				require.NoError(t, s.SetObject("bucket", "k", data))
				require.NoError(t, s.SetRules(s3test.Rule{Key: "^k$", Nth: 2, Fault: c.fault}))
				transport := s.Transport()
				transport.DisableKeepAlives = true // else it repeats requests of broken connections
				client := http.Client{Transport: transport, Timeout: time.Minute}
				request := func() (n int, err error) {
					method := map[bool]string{true: "PUT", false: "GET"}[c.put]
					r, err := newRequest(method, s.URLs()[0]+"/bucket/k", data)
					require.NoError(t, err)
					answer, err := client.Do(r)
					if err != nil {
						return 0, err
					}
					defer answer.Body.Close()
					body, err := io.ReadAll(answer.Body)
					switch {
					case err != nil:
					case answer.StatusCode != 200:
						return 0, errors.New(string(body))
					case !c.put && string(body) != data:
						err = errors.New("other data")
					}
					return len(body), err
				}
				_, err := request()
				require.NoError(t, err)
				begun := time.Now()
				n, err := request()
				assert.Equal(t, c.bytes, n)
				assert.Equal(t, c.took, time.Since(begun))
				if c.want == "" {
					assert.NoError(t, err)
				} else {
					assert.ErrorContains(t, err, c.want)
				}
				assert.Equal(t, c.fault.Kind, s.Log()[1].Fault)
				_, err = request()
				assert.NoError(t, err, "the rule concerns the second request only")
				s.Endpoints()[0].Kill()
				_, err = request()
				assert.ErrorIs(t, err, syscall.ECONNREFUSED)
				require.NoError(t, s.Endpoints()[0].Return())
				_, err = request()
				assert.NoError(t, err)
			})
		})
	}
}

func newRequest(method, url, data string) (*http.Request, error) {
	if method == http.MethodGet {
		data = ""
	}
	r, err := http.NewRequest(method, url, strings.NewReader(data))
	if err == nil {
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=key/")
	}
	return r, err
}
