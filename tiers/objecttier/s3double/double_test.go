package s3double_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/objecttier/s3double"
	"kvbench/tiers/objecttier/s3double/testnet"
)

// client is one of a library that others use, which asks for each thing once.
func client(t *testing.T, d *s3double.Double, change ...func(*minio.Options)) *minio.Core {
	t.Helper()
	u, err := url.Parse(d.URLs()[0])
	require.NoError(t, err)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	o := &minio.Options{Creds: credentials.NewStaticV4("key", "secret", ""), Region: "us-east-1",
		Secure: u.Scheme == "https", BucketLookup: minio.BucketLookupPath, MaxRetries: 1,
		Transport: transport}
	for _, f := range change {
		f(o)
	}
	core, err := minio.NewCore(u.Host, o)
	require.NoError(t, err)
	return core
}

func start(t *testing.T, c s3double.Config) *s3double.Double {
	c.Buckets = append(c.Buckets, "bench")
	return s3double.Start(t, c, 1)
}

// put writes an object in a plain way.
func put(t *testing.T, c *minio.Core, key, body string) minio.UploadInfo {
	t.Helper()
	info, err := c.PutObject(t.Context(), "bench", key, strings.NewReader(body), int64(len(body)), "",
		"", minio.PutObjectOptions{DisableContentSha256: true})
	require.NoError(t, err, key)
	return info
}

func get(c *minio.Core, key string, opts minio.GetObjectOptions) (string, minio.ObjectInfo, error) {
	body, info, _, err := c.GetObject(context.Background(), "bench", key, opts)
	if err != nil {
		return "", info, err
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	return string(text), info, err
}

func code(err error) string { return minio.ToErrorResponse(err).Code }

func TestObjects(t *testing.T) {
	d := start(t, s3double.Config{})
	c := client(t, d)
	// Keys that have to be escaped in paths, in signatures and in lists.
	const key = "a b/+&=%2F/ü~*'().bin"
	info := put(t, c, key, "0123456789")
	body, got, err := get(c, key, minio.GetObjectOptions{})
	require.NoError(t, err)
	assert.Equal(t, "0123456789", body)
	assert.Equal(t, info.ETag, got.ETag)
	assert.EqualValues(t, 10, got.Size)

	head, err := c.StatObject(t.Context(), "bench", key, minio.StatObjectOptions{})
	require.NoError(t, err)
	assert.Equal(t, info.ETag, head.ETag)
	assert.EqualValues(t, 10, head.Size)
	assert.WithinDuration(t, time.Now(), head.LastModified, time.Minute)

	var middle, behind minio.GetObjectOptions
	require.NoError(t, middle.SetRange(3, 5))
	body, got, err = get(c, key, middle)
	require.NoError(t, err)
	assert.Equal(t, "345", body)
	assert.EqualValues(t, 3, got.Size)
	require.NoError(t, behind.SetRange(10, 11))
	_, _, err = get(c, key, behind)
	assert.Equal(t, "InvalidRange", code(err))
	assert.Equal(t, http.StatusRequestedRangeNotSatisfiable, minio.ToErrorResponse(err).StatusCode)

	put(t, c, key, "other")
	body, got, err = get(c, key, minio.GetObjectOptions{})
	require.NoError(t, err)
	assert.Equal(t, "other", body)
	assert.NotEqual(t, info.ETag, got.ETag, "of other bytes")

	require.NoError(t, c.RemoveObject(t.Context(), "bench", key, minio.RemoveObjectOptions{}))
	require.NoError(t, c.RemoveObject(t.Context(), "bench", key, minio.RemoveObjectOptions{}), "twice")
	_, _, err = get(c, key, minio.GetObjectOptions{})
	assert.Equal(t, "NoSuchKey", code(err))
	_, err = c.StatObject(t.Context(), "bench", key, minio.StatObjectOptions{})
	assert.Equal(t, "NoSuchKey", code(err))
	_, err = c.StatObject(t.Context(), "other", key, minio.StatObjectOptions{})
	assert.Equal(t, http.StatusNotFound, minio.ToErrorResponse(err).StatusCode)

	var seen []string
	for i, e := range d.Log() {
		assert.Equal(t, i+1, e.Seq)
		assert.NotZero(t, e.Ended)
		seen = append(seen, fmt.Sprintf("%s %s#%d in %d out %d %d %s", e.Op, e.Range, e.Attempt,
			e.BytesIn, e.BytesOut*min(1, int64(300/e.Status)), e.Status, e.Code))
		assert.Equal(t, key, e.Key)
	}
	assert.Equal(t, []string{
		"put #1 in 10 out 0 200 ",
		"get #1 in 0 out 10 200 ",
		"head #1 in 0 out 0 200 ",
		"get bytes=3-5#1 in 0 out 3 206 ",
		"get bytes=10-11#1 in 0 out 0 416 InvalidRange",
		"put #2 in 5 out 0 200 ",
		"get #2 in 0 out 5 200 ",
		"delete #1 in 0 out 0 204 ",
		"delete #2 in 0 out 0 204 ",
		"get #3 in 0 out 0 404 NoSuchKey",
		"head #2 in 0 out 0 404 NoSuchKey",
		"head #1 in 0 out 0 404 NoSuchBucket",
	}, seen)
	assert.Empty(t, d.Keys("bench", ""))
}

func TestPayloads(t *testing.T) {
	// Several chunks, the last one short.
	body := strings.Repeat("0123456789abcdef", 10_001)
	digest := sha256.Sum256([]byte(body))
	for _, c := range []struct {
		name, sum, logged string
		opts              minio.PutObjectOptions
	}{
		{"unsigned", "", "UNSIGNED-PAYLOAD", minio.PutObjectOptions{DisableContentSha256: true}},
		{"a digest", hex.EncodeToString(digest[:]), hex.EncodeToString(digest[:]),
			minio.PutObjectOptions{DisableContentSha256: true}},
		{"signed chunks", "", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", minio.PutObjectOptions{}},
		{"crc32c behind it", "", "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
			minio.PutObjectOptions{DisableContentSha256: true, Checksum: minio.ChecksumCRC32C}},
		{"crc64nvme behind it", "", "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
			minio.PutObjectOptions{DisableContentSha256: true, Checksum: minio.ChecksumCRC64NVME}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := start(t, s3double.Config{})
			core := client(t, d, func(o *minio.Options) {
				o.TrailingHeaders = c.opts.Checksum.IsSet()
			})
			_, err := core.PutObject(t.Context(), "bench", "k", strings.NewReader(body),
				int64(len(body)), "", c.sum, c.opts)
			require.NoError(t, err)
			stored, err := d.Object("bench", "k")
			require.NoError(t, err)
			assert.Equal(t, body, string(stored), "without framing")
			log := d.Log()
			require.Len(t, log, 1)
			assert.Equal(t, c.logged, log[0].Payload)
			assert.EqualValues(t, len(body), log[0].BytesIn)
		})
	}
}

func TestConditions(t *testing.T) {
	d := start(t, s3double.Config{})
	c := client(t, d)
	create := func(set func(*minio.PutObjectOptions)) (minio.UploadInfo, error) {
		o := minio.PutObjectOptions{DisableContentSha256: true}
		set(&o)
		return c.PutObject(t.Context(), "bench", "marker", strings.NewReader("x"), 1, "", "", o)
	}
	absent := func(o *minio.PutObjectOptions) { o.SetMatchETagExcept("*") }
	matches := func(etag string) func(*minio.PutObjectOptions) {
		return func(o *minio.PutObjectOptions) { o.SetMatchETag(etag) }
	}
	_, err := create(matches("missing"))
	assert.Equal(t, "NoSuchKey", code(err))
	first, err := create(absent)
	require.NoError(t, err)
	_, err = create(absent)
	assert.Equal(t, "PreconditionFailed", code(err))
	second, err := create(matches(first.ETag))
	require.NoError(t, err)
	_, err = create(matches(first.ETag))
	assert.Equal(t, "PreconditionFailed", code(err))

	var stale, fresh minio.GetObjectOptions
	require.NoError(t, stale.SetMatchETag(first.ETag))
	require.NoError(t, fresh.SetMatchETag(second.ETag))
	_, _, err = get(c, "marker", stale)
	assert.Equal(t, "PreconditionFailed", code(err))
	_, _, err = get(c, "marker", fresh)
	assert.NoError(t, err)

	require.NoError(t, d.SetRules(s3double.Rule{Fault: s3double.Fault{
		Kind: s3double.NoConditions}}))
	_, err = create(absent)
	assert.NoError(t, err, "a store that ignores conditions")
}

// uploadPart sends a part.
func uploadPart(t *testing.T, c *minio.Core, key, id string, n int, body string) minio.ObjectPart {
	t.Helper()
	p, err := c.PutObjectPart(t.Context(), "bench", key, id, n, strings.NewReader(body),
		int64(len(body)), minio.PutObjectPartOptions{DisableContentSha256: true})
	require.NoError(t, err)
	return p
}

func TestUploads(t *testing.T) {
	d := start(t, s3double.Config{MinPart: 4})
	c := client(t, d)
	id, err := c.NewMultipartUpload(t.Context(), "bench", "k", minio.PutObjectOptions{})
	require.NoError(t, err)
	third := uploadPart(t, c, "k", id, 3, "89")
	uploadPart(t, c, "k", id, 1, "wrong")
	first := uploadPart(t, c, "k", id, 1, "0123") // in its place
	second := uploadPart(t, c, "k", id, 2, "4567")
	_, _, err = get(c, "k", minio.GetObjectOptions{})
	assert.Equal(t, "NoSuchKey", code(err), "visible only when complete")

	listed, err := c.ListObjectParts(t.Context(), "bench", "k", id, 1, 1)
	require.NoError(t, err)
	require.Len(t, listed.ObjectParts, 1)
	assert.Equal(t, second.ETag, strings.Trim(listed.ObjectParts[0].ETag, `"`))
	assert.True(t, listed.IsTruncated)
	assert.Equal(t, 2, listed.NextPartNumberMarker)

	complete := func(parts ...minio.ObjectPart) (minio.UploadInfo, error) {
		var all []minio.CompletePart
		for _, p := range parts {
			all = append(all, minio.CompletePart{PartNumber: p.PartNumber, ETag: p.ETag})
		}
		return c.CompleteMultipartUpload(t.Context(), "bench", "k", id, all, minio.PutObjectOptions{})
	}
	_, err = complete(second, first)
	assert.Equal(t, "InvalidPartOrder", code(err))
	_, err = complete(first, minio.ObjectPart{PartNumber: 2, ETag: third.ETag})
	assert.Equal(t, "InvalidPart", code(err))
	_, err = complete(first, third, minio.ObjectPart{PartNumber: 4})
	assert.Equal(t, "EntityTooSmall", code(err))
	info, err := complete(first, second, third)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(info.ETag, "-3"), info.ETag)
	var across minio.GetObjectOptions
	require.NoError(t, across.SetRange(2, 8))
	body, _, err := get(c, "k", across)
	require.NoError(t, err)
	assert.Equal(t, "2345678", body)
	_, err = complete(first)
	assert.Equal(t, "NoSuchUpload", code(err))

	for _, key := range []string{"p/1", "p/2", "q"} {
		_, err := c.NewMultipartUpload(t.Context(), "bench", key, minio.PutObjectOptions{})
		require.NoError(t, err)
	}
	page, err := c.ListMultipartUploads(t.Context(), "bench", "p/", "", "", "", 1)
	require.NoError(t, err)
	require.Len(t, page.Uploads, 1)
	assert.Equal(t, "p/1", page.Uploads[0].Key)
	assert.True(t, page.IsTruncated)
	page, err = c.ListMultipartUploads(t.Context(), "bench", "p/", page.NextKeyMarker,
		page.NextUploadIDMarker, "", 1)
	require.NoError(t, err)
	require.Len(t, page.Uploads, 1)
	assert.Equal(t, "p/2", page.Uploads[0].Key)
	assert.False(t, page.IsTruncated)
	require.NoError(t, c.AbortMultipartUpload(t.Context(), "bench", "p/2", page.Uploads[0].UploadID))
	err = c.AbortMultipartUpload(t.Context(), "bench", "p/2", page.Uploads[0].UploadID)
	assert.Equal(t, "NoSuchUpload", code(err))
	assert.Equal(t, []string{"p/1", "q"}, d.Uploads("bench"))
}

func TestLists(t *testing.T) {
	d := start(t, s3double.Config{})
	c := client(t, d)
	var want []string
	for i := range 25 {
		key := fmt.Sprintf("b/rank_0/%02x/%d", i%4, i)
		require.NoError(t, d.SetObject("bench", key, "x", time.Time{}))
		want = append(want, key)
	}
	slices.Sort(want)
	for _, key := range []string{"b/rank_01/x", "a", "z & <ü>\n"} {
		require.NoError(t, d.SetObject("bench", key, "abc", time.Unix(1000, 0)))
	}
	list := func(o minio.ListObjectsOptions) (keys []string) {
		for info := range c.Client.ListObjects(t.Context(), "bench", o) {
			require.NoError(t, info.Err)
			keys = append(keys, info.Key)
		}
		return keys
	}
	recursive := minio.ListObjectsOptions{Prefix: "b/rank_0/", Recursive: true}
	assert.Equal(t, want, list(recursive))
	recursive.MaxKeys = 7
	assert.Equal(t, want, list(recursive))
	assert.Equal(t, want, d.Keys("bench", "b/rank_0/"))
	assert.Equal(t, []string{"a", "b/", "z & <ü>\n"}, list(minio.ListObjectsOptions{MaxKeys: 1}))
	assert.Equal(t, []string{"b/rank_0/", "b/rank_01/"}, list(minio.ListObjectsOptions{
		Prefix: "b/", MaxKeys: 1}))
	assert.Empty(t, list(minio.ListObjectsOptions{Prefix: "c", Recursive: true}))

	d.ClearLog()
	short := s3double.Rule{Op: s3double.List, Fault: s3double.Fault{
		Kind: s3double.ShortPage, At: 10}}
	require.NoError(t, d.SetRules(short))
	recursive.MaxKeys = 0
	assert.Equal(t, want, list(recursive))
	assert.Len(t, d.Log(), 3)
	assert.Equal(t, "b/rank_0/", d.Log()[0].Key)

	objects := make(chan minio.ObjectInfo, len(want))
	for _, key := range want {
		objects <- minio.ObjectInfo{Key: key}
	}
	close(objects)
	failing := s3double.Rule{Op: s3double.Delete, Key: "/24$", Fault: s3double.Fault{
		Kind: s3double.Status, Status: 500}}
	require.NoError(t, d.SetRules(failing))
	d.ClearLog()
	for e := range c.RemoveObjects(t.Context(), "bench", objects, minio.RemoveObjectsOptions{}) {
		assert.Equal(t, "b/rank_0/00/24", e.ObjectName)
		assert.Equal(t, "InternalError", code(e.Err))
	}
	assert.Equal(t, []string{"b/rank_0/00/24"}, d.Keys("bench", "b/rank_0/"))
	log := d.Log()
	require.Len(t, log, 1)
	assert.ElementsMatch(t, want, log[0].Keys)
}

func TestWhoMayAsk(t *testing.T) {
	for _, c := range []struct {
		want   string
		config s3double.Config
		change func(*minio.Options)
	}{
		{"", s3double.Config{}, func(*minio.Options) {}},
		{"InvalidAccessKeyId", s3double.Config{}, func(o *minio.Options) {
			o.Creds = credentials.NewStaticV4("other", "secret", "")
		}},
		{"SignatureDoesNotMatch", s3double.Config{}, func(o *minio.Options) {
			o.Creds = credentials.NewStaticV4("key", "other", "")
		}},
		{"AuthorizationHeaderMalformed", s3double.Config{}, func(o *minio.Options) {
			o.Region = "eu-west-1"
		}},
		{"AccessDenied", s3double.Config{}, func(o *minio.Options) {
			o.Creds = credentials.NewStaticV4("", "", "")
		}},
		{"", s3double.Config{Anonymous: true}, func(o *minio.Options) {
			o.Creds = credentials.NewStaticV4("", "", "")
		}},
		{"InvalidAccessKeyId", s3double.Config{Token: "token"}, func(*minio.Options) {}},
		{"", s3double.Config{Token: "token"}, func(o *minio.Options) {
			o.Creds = credentials.NewStaticV4("key", "secret", "token")
		}},
		{"InvalidToken", s3double.Config{}, func(o *minio.Options) {
			o.Creds = credentials.NewStaticV4("key", "secret", "token")
		}},
		{"RequestTimeTooSkewed", s3double.Config{Skew: 16 * time.Minute}, func(*minio.Options) {}},
	} {
		d := start(t, c.config)
		core := client(t, d, c.change)
		// With a GET, since an answer to HEAD has no body to name the reason.
		_, err := core.ListObjectsV2("bench", "", "", "", "", 1)
		assert.Equal(t, c.want, code(err))
		if c.want == "AuthorizationHeaderMalformed" {
			assert.Equal(t, "us-east-1", minio.ToErrorResponse(err).Region)
		}
	}
}

func TestBuckets(t *testing.T) {
	d := start(t, s3double.Config{Versioning: "Enabled", Domain: "s3.test"})
	c := client(t, d)
	v, err := c.GetBucketVersioning(t.Context(), "bench")
	require.NoError(t, err)
	assert.True(t, v.Enabled())
	found, err := c.BucketExists(t.Context(), "bench")
	require.NoError(t, err)
	assert.True(t, found)
	found, err = c.BucketExists(t.Context(), "missing")
	require.NoError(t, err)
	assert.False(t, found)
	region, err := c.GetBucketLocation(t.Context(), "bench")
	require.NoError(t, err)
	assert.Equal(t, "us-east-1", region)
	_, err = c.GetBucketTagging(t.Context(), "bench")
	assert.Equal(t, "NotImplemented", code(err))

	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	virtual := minio.Options{Creds: credentials.NewStaticV4("key", "secret", ""),
		Region: "us-east-1", BucketLookup: minio.BucketLookupDNS, MaxRetries: 1}
	network := &testnet.Network{}
	d = start(t, s3double.Config{Network: network, Domain: "s3.test"})
	transport.DialContext = func(ctx context.Context, n, address string) (net.Conn, error) {
		assert.Equal(t, "bench.s3.test:80", address)
		return network.DialContext(ctx, n, "10.0.0.1:9000")
	}
	virtual.Transport = transport
	core, err := minio.NewCore("s3.test", &virtual)
	require.NoError(t, err)
	put(t, core, "k", "virtual style")
	body, err := d.Object("bench", "k")
	require.NoError(t, err)
	assert.Equal(t, "virtual style", string(body))
}

func TestTLS(t *testing.T) {
	certificate, err := testnet.NewCertificate("127.0.0.1", "localhost")
	require.NoError(t, err)
	server, err := certificate.Server()
	require.NoError(t, err)
	d := start(t, s3double.Config{TLS: server})
	trusting := &http.Transport{TLSClientConfig: certificate.Client()}
	t.Cleanup(trusting.CloseIdleConnections)
	c := client(t, d, func(o *minio.Options) { o.Transport = trusting })
	put(t, c, "k", strings.Repeat("x", 1<<20))
	body, _, err := get(c, "k", minio.GetObjectOptions{})
	require.NoError(t, err)
	assert.Len(t, body, 1<<20)
	_, _, err = get(client(t, d), "k", minio.GetObjectOptions{})
	assert.ErrorContains(t, err, "unknown authority")
}

func TestLogOfNothing(t *testing.T) {
	d := start(t, s3double.Config{NoLog: true})
	put(t, client(t, d), "k", "x")
	put(t, client(t, d), "k", "y")
	assert.Empty(t, d.Log())
	body, err := d.Object("bench", "k")
	require.NoError(t, err)
	assert.Equal(t, "y", string(body))
}

func TestLogIsWrittenAsJSON(t *testing.T) {
	d := start(t, s3double.Config{})
	put(t, client(t, d), "k", "x")
	var b bytes.Buffer
	require.NoError(t, d.WriteLog(&b))
	assert.Regexp(t, `^{"seq":1,"conn":1,"endpoint":0,"op":"put","bucket":"bench","key":"k",`+
		`"payload":"UNSIGNED-PAYLOAD","attempt":1,"bytes_in":1,"bytes_out":0,"status":200,`+
		`"begun_ns":\d+,"ended_ns":\d+}\n$`, b.String())
}
