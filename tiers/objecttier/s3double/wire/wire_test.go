package wire

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/minio/minio-go/v7/pkg/signer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// example are the keys of AWS's examples.
var example = Keys{AccessKey: "AKIAIOSFODNN7EXAMPLE",
	SecretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", Region: "us-east-1"}

// TestTheExampleOfAWS is docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html, GET
// Object.
func TestTheExampleOfAWS(t *testing.T) {
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	r := httptest.NewRequest("GET", "http://examplebucket.s3.amazonaws.com/test.txt", nil)
	r.Header.Set("Range", "bytes=0-9")
	r.Header.Set("X-Amz-Content-Sha256", emptyDigest)
	r.Header.Set("X-Amz-Date", "20130524T000000Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 "+
		"Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"+
		"SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"+
		"Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
	signer, err := example.Check(r, at)
	require.Nil(t, err)
	require.NotNil(t, signer)

	r.Header.Set("Range", "bytes=0-10")
	_, err = example.Check(r, at)
	require.NotNil(t, err)
	assert.Equal(t, "SignatureDoesNotMatch", err.Code, "the header has been changed")
	r.Header.Set("X-Amz-Meta-More", "x")
	_, err = example.Check(r, at)
	require.NotNil(t, err)
	assert.Equal(t, "AccessDenied", err.Code, "and another one was added")
}

// TestSignedChunksOfAWS is sigv4-streaming.html of the same book: the signatures of its chunks.
func TestSignedChunksOfAWS(t *testing.T) {
	body := "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n" +
		strings.Repeat("a", 65536) + "\r\n" +
		"400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n" +
		strings.Repeat("a", 1024) + "\r\n" +
		"0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n"
	r := httptest.NewRequest("PUT", "https://s3.amazonaws.com/examplebucket/chunkObject.txt",
		strings.NewReader(body))
	for name, value := range map[string]string{
		"Content-Encoding":             "aws-chunked",
		"X-Amz-Content-Sha256":         signedChunks,
		"X-Amz-Date":                   "20130524T000000Z",
		"X-Amz-Decoded-Content-Length": "66560",
		"X-Amz-Storage-Class":          "REDUCED_REDUNDANCY",
		"Authorization": "AWS4-HMAC-SHA256 " +
			"Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request," +
			"SignedHeaders=content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;" +
			"x-amz-decoded-content-length;x-amz-storage-class," +
			"Signature=4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
	} {
		r.Header.Set(name, value)
	}
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	read := func() (string, *Error, error) {
		signer, bad := example.Check(r, at)
		require.Nil(t, bad)
		p, bad := NewPayload(r, signer)
		require.Nil(t, bad)
		text, err := io.ReadAll(p)
		return string(text), p.Check(), err
	}
	text, bad, err := read()
	require.NoError(t, err)
	require.Nil(t, bad)
	assert.Equal(t, strings.Repeat("a", 66560), text)

	r.Body = io.NopCloser(strings.NewReader(strings.Replace(body, "aaaa\r\n4", "aaab\r\n4", 1)))
	_, _, err = read()
	assert.ErrorIs(t, err, errChunkSignature)
	answer, ok := ReadError(err)
	require.True(t, ok)
	assert.Equal(t, "SignatureDoesNotMatch", answer.Code)
}

func TestPayloadsAreCompared(t *testing.T) {
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte("body")))
	trailer := func(line string) string { return "4\r\nbody\r\n0\r\n" + line }
	for _, c := range []struct {
		name, header, body, read, code string
	}{
		{"a digest", "X-Amz-Content-Sha256: " + digest, "body", "", ""},
		{"another digest", "X-Amz-Content-Sha256: " + digest, "bodY", "",
			"XAmzContentSHA256Mismatch"},
		{"md5", "Content-Md5: hBotaJrYa9FhFEdFPCLG/A==", "body", "", ""},
		{"another md5", "Content-Md5: hBotaJrYa9FhFEdFPCLG/A==", "bodY", "", "BadDigest"},
		{"crc32c", "X-Amz-Checksum-Crc32c: Jj/JUA==", "body", "", ""},
		{"another crc32c", "X-Amz-Checksum-Crc32c: Jj/JUA==", "bodY", "", "BadDigest"},
		{"crc64nvme", "X-Amz-Checksum-Crc64nvme: mI+Ji1NHP80=", "body", "", ""},
		{"an unknown checksum", "X-Amz-Checksum-Sha3: Jj/JUA==", "body", "", "InvalidRequest"},
		{"an unknown payload", "X-Amz-Content-Sha256: NONE", "body", "", "NotImplemented"},
		{"a trailer", "trailer", trailer("x-amz-checksum-crc32c:Jj/JUA==\r\n\r\n"), "", ""},
		{"as minio-go ends it", "trailer", trailer("x-amz-checksum-crc32c:Jj/JUA==\n\r\n\r\n"), "",
			""},
		{"another trailer", "trailer", trailer("x-amz-checksum-crc32:Jj/JUA==\r\n\r\n"),
			"instead of x-amz-checksum-crc32c", ""},
		{"no trailer", "trailer", trailer("\r\n"), "instead of", ""},
		{"a trailer that is wrong", "trailer", trailer("x-amz-checksum-crc32c:b67HbA==\r\n\r\n"), "",
			"BadDigest"},
		{"more behind it", "trailer", trailer("x-amz-checksum-crc32c:Jj/JUA==\r\n\r\nmore\r\n"),
			"more behind", ""},
		{"a short chunk", "trailer", "5\r\nbody", "unexpected EOF", ""},
		{"a chunk of no size", "trailer", "x\r\nbody\r\n", "chunk header", ""},
		{"a chunk of negative size", "trailer", "-4\r\nbody\r\n", "chunk header", ""},
		{"a chunk with a signature", "trailer", "4;chunk-signature=0\r\nbody\r\n", "chunk header", ""},
		{"a chunk without an end", "trailer", "3\r\nbody\r\n0\r\n", "no line end", ""},
		{"fewer bytes than said", "trailer", "3\r\nbod\r\n0\r\nx-amz-checksum-crc32c:0\r\n\r\n", "",
			"IncompleteBody"},
	} {
		r := httptest.NewRequest("PUT", "/bench/k", strings.NewReader(c.body))
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(name, value)
		} else {
			r.Header.Set("X-Amz-Content-Sha256", unsignedTrailer)
			r.Header.Set("X-Amz-Decoded-Content-Length", "4")
			r.Header.Set("X-Amz-Trailer", "x-amz-checksum-crc32c")
		}
		p, bad := NewPayload(r, nil)
		var err error
		if bad == nil {
			if _, err = io.Copy(io.Discard, p); err == nil {
				bad = p.Check()
			}
		}
		if c.read != "" {
			assert.ErrorContains(t, err, c.read, c.name)
			answer, ok := ReadError(err)
			require.True(t, ok, c.name)
			assert.Equal(t, "IncompleteBody", answer.Code, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		code := ""
		if bad != nil {
			code = bad.Code
		}
		assert.Equal(t, c.code, code, c.name)
	}
}

// FuzzAuthorization: what is signed by another's code is accepted whatever the names in it, and the
// parser takes any header.
func FuzzAuthorization(f *testing.F) {
	f.Add("bench/a b", "x/y", "AWS4-HMAC-SHA256 Credential=a/20261122/r/s3/"+
		"aws4_request, SignedHeaders=host, Signature=00")
	f.Add("bench/%2F+", "b c&ü~", "AWS4-HMAC-SHA256 =,=,")
	at := time.Now()
	f.Fuzz(func(t *testing.T, path, value, header string) {
		_, _ = parseAuthorization(header)
		if !utf8.ValidString(path) {
			return // escaped in another way by minio-go
		}
		r, err := http.NewRequest("GET", "http://host:9000", nil)
		require.NoError(t, err)
		r.Header.Set("X-Amz-Content-Sha256", unsignedPayload)
		r.URL.Path = "/" + strings.TrimLeft(path, "/")
		r.URL.RawQuery = url.Values{"prefix": {value}, "uploads": {""}}.Encode()
		signed := signer.SignV4(*r, example.AccessKey, example.SecretKey, "", example.Region)
		var b bytes.Buffer // over the wire, as a server gets it
		require.NoError(t, signed.Write(&b))
		got, err := http.ReadRequest(bufio.NewReader(&b))
		require.NoError(t, err)
		if _, bad := example.Check(got, at); bad != nil {
			t.Errorf("%s: %s", bad.Code, bad.Message)
		}
	})
}

// FuzzChunks: whatever comes is read without a panic, and what is accepted has its length.
func FuzzChunks(f *testing.F) {
	f.Add("4\r\nbody\r\n0\r\nx-amz-checksum-crc32c:Jj/JUA==\r\n\r\n", true, 4)
	f.Add("4\r\nbody\r\n0\r\n\r\n", false, 4)
	f.Fuzz(func(t *testing.T, body string, trailer bool, n int) {
		r := httptest.NewRequest("PUT", "/bench/k", strings.NewReader(body))
		r.Header.Set("X-Amz-Content-Sha256", unsignedTrailer)
		r.Header.Set("X-Amz-Decoded-Content-Length", fmt.Sprint(n))
		if trailer {
			r.Header.Set("X-Amz-Trailer", "x-amz-checksum-crc32c")
		}
		p, bad := NewPayload(r, nil)
		if bad != nil {
			return
		}
		read, err := io.Copy(io.Discard, p)
		if err == nil && p.Check() == nil {
			assert.EqualValues(t, n, read)
		}
		assert.LessOrEqual(t, read, int64(len(body)))
	})
}

func TestRanges(t *testing.T) {
	type answer struct {
		from, n       int64
		ok, satisfied bool
	}
	for header, want := range map[string]answer{
		"bytes=0-0":    {0, 1, true, true},
		"bytes=3-5":    {3, 3, true, true},
		"bytes=3-":     {3, 7, true, true},
		"bytes=9-99":   {9, 1, true, true},
		"bytes=-4":     {6, 4, true, true},
		"bytes=-99":    {0, 10, true, true},
		"bytes=10-11":  {10, 0, true, false},
		"bytes=-0":     {10, 0, true, false},
		"bytes=5-3":    {0, 10, false, false},
		"bytes=+1-3":   {0, 10, false, false},
		"bytes=0-1,3-": {0, 10, false, false},
		"lines=0-1":    {0, 10, false, false},
	} {
		from, n, ok, satisfied := ParseRange(header, 10)
		if want.ok && !want.satisfied {
			n = 0
		}
		assert.Equal(t, want, answer{from, n, ok, satisfied}, header)
	}
}

// FuzzRange: what is satisfied lies within the object.
func FuzzRange(f *testing.F) {
	f.Add("bytes=3-5", int64(10))
	f.Add("bytes=-9223372036854775807", int64(1))
	f.Fuzz(func(t *testing.T, header string, size int64) {
		if size < 0 {
			return
		}
		from, n, ok, satisfied := ParseRange(header, size)
		if !ok || satisfied {
			assert.True(t, from >= 0 && n >= 0 && from <= size-n, "%d %d of %d", from, n, size)
		}
	})
}

// FuzzDocuments: whatever comes is read without a panic, and what is accepted names something.
func FuzzDocuments(f *testing.F) {
	f.Add("<Delete><Quiet>true</Quiet><Object><Key>a &amp; b</Key></Object></Delete>")
	f.Add("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>e</ETag></Part>" +
		"</CompleteMultipartUpload>")
	f.Fuzz(func(t *testing.T, text string) {
		if keys, _, bad := ParseDelete([]byte(text)); bad == nil {
			assert.NotEmpty(t, keys)
			assert.NotContains(t, keys, "")
		}
		if parts, bad := ParseComplete([]byte(text)); bad == nil {
			assert.NotEmpty(t, parts)
		}
	})
}
