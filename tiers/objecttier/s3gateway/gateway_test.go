package s3gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/objecttier/s3double/testnet"
)

// client is one of a library that others use, which asks for each thing once.
func client(t *testing.T, s *Store, i int, transport *http.Transport,
	change ...func(*minio.Options)) *minio.Core {
	t.Helper()
	u, err := url.Parse(s.URLs()[i])
	require.NoError(t, err)
	t.Cleanup(transport.CloseIdleConnections)
	o := &minio.Options{Creds: credentials.NewStaticV4(s.AccessKey, s.SecretKey, ""),
		Region: s.Region, Secure: u.Scheme == "https", BucketLookup: minio.BucketLookupPath,
		MaxRetries: 1, Transport: transport}
	for _, f := range change {
		f(o)
	}
	core, err := minio.NewCore(u.Host, o)
	require.NoError(t, err)
	return core
}

func put(c *minio.Core, key, body string) error {
	_, err := c.PutObject(context.Background(), "bench", key, strings.NewReader(body),
		int64(len(body)), "", "", minio.PutObjectOptions{DisableContentSha256: true})
	return err
}

func get(c *minio.Core, key string) (string, error) {
	body, _, _, err := c.GetObject(context.Background(), "bench", key, minio.GetObjectOptions{})
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	return string(text), err
}

func TestEndpointsAreEqual(t *testing.T) {
	s := Start(t, Config{Log: true}, 2)
	a, b := client(t, s, 0, &http.Transport{}), client(t, s, 1, &http.Transport{})
	require.NoError(t, put(a, "k", "written through one"))
	text, err := get(b, "k")
	require.NoError(t, err)
	assert.Equal(t, "written through one", text)

	id, err := a.NewMultipartUpload(t.Context(), "bench", "parts", minio.PutObjectOptions{})
	require.NoError(t, err)
	parts := make([]minio.CompletePart, 2)
	large := strings.Repeat("0123456789abcdef", 5<<20/16)
	for i, body := range []string{large, "tail"} {
		p, err := []*minio.Core{b, a}[i].PutObjectPart(t.Context(), "bench", "parts", id, i+1,
			strings.NewReader(body), int64(len(body)),
			minio.PutObjectPartOptions{DisableContentSha256: true})
		require.NoError(t, err)
		parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: p.ETag}
	}
	_, err = b.CompleteMultipartUpload(t.Context(), "bench", "parts", id, parts,
		minio.PutObjectOptions{})
	require.NoError(t, err)
	text, err = get(a, "parts")
	require.NoError(t, err)
	assert.Equal(t, large+"tail", text)

	var lines int
	for _, path := range s.Logs() {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		lines += strings.Count(string(text), " arn:aws:s3:::")
	}
	assert.Equal(t, 7, lines, "2 of the object, 5 of the upload")
}

func TestAnEndpointDiesAndReturns(t *testing.T) {
	s := Start(t, Config{}, 2)
	a, b := client(t, s, 0, &http.Transport{}), client(t, s, 1, &http.Transport{})
	require.NoError(t, put(a, "k", "x"))
	process := s.Endpoints[0].Process()
	s.Endpoints[0].Kill()
	s.Endpoints[0].Kill()
	assert.ErrorIs(t, process.Signal(syscall.Signal(0)), os.ErrProcessDone)
	_, err := get(a, "k")
	assert.Error(t, err)
	text, err := get(b, "k")
	require.NoError(t, err)
	assert.Equal(t, "x", text)
	require.NoError(t, s.Endpoints[0].Return())
	text, err = get(a, "k")
	require.NoError(t, err)
	assert.Equal(t, "x", text, "at its old address")
}

func TestWhatItRefuses(t *testing.T) {
	s := Start(t, Config{}, 1)
	for _, c := range []struct {
		code   string
		change func(*minio.Options)
	}{
		// What versitygw says as long as it has one account, with status 404; S3 says
		// InvalidAccessKeyId, with 403.
		{"XAdminUserNotFound", func(o *minio.Options) {
			o.Creds = credentials.NewStaticV4("other", "secret", "")
		}},
		{"SignatureDoesNotMatch", func(o *minio.Options) {
			o.Creds = credentials.NewStaticV4("key", "other", "")
		}},
		{"AuthorizationHeaderMalformed", func(o *minio.Options) { o.Region = "eu-west-1" }},
	} {
		err := put(client(t, s, 0, &http.Transport{}, c.change), "k", "x")
		assert.Equal(t, c.code, minio.ToErrorResponse(err).Code)
	}
}

func TestTLSAndVirtualStyle(t *testing.T) {
	certificate, err := testnet.NewCertificate("127.0.0.1", "bench.s3.test")
	require.NoError(t, err)
	s := Start(t, Config{Certificate: &certificate, Domain: "s3.test"}, 1)
	trusting := &http.Transport{TLSClientConfig: certificate.Client()}
	require.NoError(t, put(client(t, s, 0, trusting), "k", "x"))
	assert.ErrorContains(t, put(client(t, s, 0, &http.Transport{}), "k", "x"), "unknown authority")
	ca, err := os.ReadFile(s.CAFile())
	require.NoError(t, err)
	assert.Equal(t, certificate.CA, ca)

	u, err := url.Parse(s.URLs()[0])
	require.NoError(t, err)
	virtual := &http.Transport{TLSClientConfig: certificate.Client(),
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			assert.Equal(t, "bench.s3.test:443", address)
			return new(net.Dialer).DialContext(ctx, network, u.Host)
		}}
	t.Cleanup(virtual.CloseIdleConnections)
	c, err := minio.NewCore("s3.test", &minio.Options{Transport: virtual, Secure: true,
		Creds: credentials.NewStaticV4("key", "secret", ""), Region: "us-east-1",
		BucketLookup: minio.BucketLookupDNS, MaxRetries: 1})
	require.NoError(t, err)
	text, err := get(c, "k")
	require.NoError(t, err)
	assert.Equal(t, "x", text)
}

func TestNothingIsLeft(t *testing.T) {
	var s *Store
	var processes []*os.Process
	t.Run("while it runs", func(t *testing.T) {
		s = Start(t, Config{}, 2)
		for _, e := range s.Endpoints {
			processes = append(processes, e.Process())
		}
		require.NoError(t, put(client(t, s, 1, &http.Transport{}), "k", "x"))
		// What happens when this process dies: the other end of the pipe is closed.
		first := s.Endpoints[0]
		require.NoError(t, first.lifeline.Close())
		require.NoError(t, first.cmd.Wait())
		first.cmd = nil
	})
	if s == nil {
		t.Skip("no store was started")
	}
	for i, e := range s.Endpoints {
		assert.ErrorIs(t, processes[i].Signal(syscall.Signal(0)), os.ErrProcessDone)
		_, err := net.Dial("tcp", e.address)
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
	_, err := os.Stat(s.Dir)
	assert.ErrorIs(t, err, os.ErrNotExist)
}
