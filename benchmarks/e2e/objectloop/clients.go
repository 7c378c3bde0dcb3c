package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/signer"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/objecttier"
	keyring "kvbench/tiers/objecttier/credentials"
	"kvbench/tiers/objecttier/endpoint"
	"kvbench/tiers/objecttier/store"
)

// client puts, gets and removes whole objects, which are named by their loop and a number.
type client interface {
	put(ctx context.Context, loop, n int, body []byte) error
	// get reads an object through a buffer, drops it, and returns its length.
	get(ctx context.Context, loop, n int, buf []byte) (int64, error)
	remove(ctx context.Context, loop, n int) error
	close(ctx context.Context) error
}

func key(loop, n int) string { return fmt.Sprintf("loop/%d-%d", loop, n) }

// clients are the ways to ask, by name.
var clients = map[string]func(s settings, t *http.Transport) (client, error){
	"bare": func(s settings, t *http.Transport) (client, error) {
		return bare{t, strings.TrimSuffix(s.endpoint, "/") + "/" + s.bucket + "/", false}, nil
	},
	// What signatures cost: the same with minio-go's signer, and nothing else of it.
	"signed": func(s settings, t *http.Transport) (client, error) {
		return bare{t, strings.TrimSuffix(s.endpoint, "/") + "/" + s.bucket + "/", true}, nil
	},
	// What a program does that has read the library's first example.
	"minio": func(s settings, t *http.Transport) (client, error) {
		return newMinio(s, t, minio.PutObjectOptions{}, false)
	},
	// The same with the one option that matters: no SHA-256 of bodies.
	"minio-unsigned": func(s settings, t *http.Transport) (client, error) {
		return newMinio(s, t, minio.PutObjectOptions{DisableContentSha256: true}, false)
	},
	// And without its Object, which asks and buffers in ways of its own.
	"minio-core": func(s settings, t *http.Transport) (client, error) {
		return newMinio(s, t, minio.PutObjectOptions{DisableContentSha256: true}, true)
	},
	// The suite's tier, past cache and transfer: bytes are neither made nor verified.
	"suite": func(s settings, _ *http.Transport) (client, error) { return newSuite(s) },
}

// transport keeps all connections and changes nothing of bodies, as the suite's does: with the two
// that net/http keeps by default most requests would begin with a connection.
func transport(inFlight int) *http.Transport {
	return &http.Transport{DisableCompression: true, MaxIdleConns: inFlight + 8,
		MaxIdleConnsPerHost: inFlight + 8, MaxConnsPerHost: inFlight + 8,
		ResponseHeaderTimeout: 30 * time.Second}
}

// bare is net/http and nothing more: neither XML nor a look at anything but the status. Signed adds
// the signature of the header, and nothing else.
type bare struct {
	transport *http.Transport
	base      string
	signed    bool
}

// do sends a request. A body of bytes tells its length, which S3 wants to know first.
func (c bare) do(ctx context.Context, method, key string, body []byte) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+key, r)
	if err != nil {
		return nil, err
	}
	if c.signed {
		id, secret := keys()
		// A digest of the body would cost more than all the rest together.
		request.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
		request = signer.SignV4(*request, id, secret, "", region)
	}
	resp, err := c.transport.RoundTrip(request)
	if err == nil && resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		err = errors.Join(fmt.Errorf("%s %s: %s: %s", method, key, resp.Status, text),
			resp.Body.Close())
	}
	return resp, err
}

func (c bare) put(ctx context.Context, loop, n int, body []byte) error {
	resp, err := c.do(ctx, http.MethodPut, key(loop, n), body)
	if err != nil {
		return err
	}
	return drain(resp.Body)
}

func (c bare) get(ctx context.Context, loop, n int, buf []byte) (int64, error) {
	resp, err := c.do(ctx, http.MethodGet, key(loop, n), nil)
	if err != nil {
		return 0, err
	}
	return readAll(resp.Body, buf)
}

func (c bare) remove(ctx context.Context, loop, n int) error {
	resp, err := c.do(ctx, http.MethodDelete, key(loop, n), nil)
	if err != nil {
		return err
	}
	return drain(resp.Body)
}

func (bare) close(context.Context) error { return nil }

// drain reads what is left, so that the connection is used again.
func drain(body io.ReadCloser) error {
	_, err := io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}

// readAll reads to the end through a buffer of the caller's, as a program would that uses the
// bytes.
func readAll(body io.ReadCloser, buf []byte) (int64, error) {
	// Neither side may offer a way around it.
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{body}, buf)
	return n, errors.Join(err, body.Close())
}

const region = "us-east-1"

// keys are those of the environment, or of the stores that tests start.
func keys() (id, secret string) {
	return cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "key"),
		cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "secret")
}

// library is minio-go, told the region and the style, so that it asks the store for neither, and
// to try nothing again.
type library struct {
	core   *minio.Core
	bucket string
	opts   minio.PutObjectOptions
	whole  bool // Core.GetObject instead of Client.GetObject
}

func newMinio(s settings, t *http.Transport, opts minio.PutObjectOptions, whole bool) (client,
	error) {
	u, err := url.Parse(s.endpoint)
	if err != nil {
		return nil, err
	}
	id, secret := keys()
	core, err := minio.NewCore(u.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(id, secret, ""),
		Region: region, Secure: u.Scheme == "https", BucketLookup: minio.BucketLookupPath,
		MaxRetries: 1, Transport: t})
	if err != nil {
		return nil, err
	}
	opts.DisableMultipart = true // as the suite below -s3-multipart-above
	return &library{core, s.bucket, opts, whole}, nil
}

func (c *library) put(ctx context.Context, loop, n int, body []byte) error {
	_, err := c.core.Client.PutObject(ctx, c.bucket, key(loop, n), bytes.NewReader(body),
		int64(len(body)), c.opts)
	return err
}

func (c *library) get(ctx context.Context, loop, n int, buf []byte) (int64, error) {
	if c.whole {
		body, _, _, err := c.core.GetObject(ctx, c.bucket, key(loop, n), minio.GetObjectOptions{})
		if err != nil {
			return 0, err
		}
		return readAll(body, buf)
	}
	object, err := c.core.Client.GetObject(ctx, c.bucket, key(loop, n), minio.GetObjectOptions{})
	if err != nil {
		return 0, err
	}
	return readAll(object, buf)
}

func (c *library) remove(ctx context.Context, loop, n int) error {
	return c.core.RemoveObject(ctx, c.bucket, key(loop, n), minio.RemoveObjectOptions{})
}

// close has nothing to close: connections are the transport's.
func (c *library) close(context.Context) error { return nil }

// suite is the tier of the suite. What it writes has a generation, so that no name comes twice.
type suite struct {
	tier *objecttier.Tier
	size int64
}

func newSuite(s settings) (client, error) {
	clk := clock.NewWall()
	set, err := endpoint.NewSet(strings.Split(s.endpoint, ","), endpoint.RoundRobin, 0, clk.Now)
	if err != nil {
		return nil, err
	}
	id, secret := keys()
	tier, err := objecttier.Open(context.Background(), objecttier.Config{
		Store: store.Config{Bucket: s.bucket, Endpoints: set, Region: region,
			Credentials: keyring.Credentials{ID: id, Secret: keyring.NewSecret(secret)},
			Addressing:  store.Auto, Payload: store.Unsigned, Retries: 3,
			Timeout: 30 * time.Second, ConnectTimeout: 5 * time.Second,
			Connections: s.inFlight + 8, Clock: clk, Observer: store.Nobody{},
			Random: rand.Float64},
		Prefix: "suite", Names: objecttier.Names{Format: objecttier.Own},
		// The defaults of the flags; a depth of 1, since each loop has one object under way.
		MultipartAbove: 64 << 20, PartSize: 32 << 20, RangeSize: 32 << 20, Depth: 1,
		Nonce: "loop"})
	return suite{tier, s.size}, err
}

// object is one of a loop: the generation tells them apart, as it does of entries of one key.
func object(loop, n int, size int64) tiers.Object {
	return tiers.Object{Key: key(loop, 0), Gen: uint64(n), Size: size}
}

// put tells nobody of chunks: who counts them is the engine, which is not here.
func (c suite) put(ctx context.Context, loop, n int, body []byte) error {
	_, err := c.tier.Put(ctx, object(loop, n, int64(len(body))),
		func(off, n int64) io.ReadSeeker { return bytes.NewReader(body[off : off+n]) },
		func(tiers.Chunk) {})
	return err
}

func (c suite) get(ctx context.Context, loop, n int, buf []byte) (read int64, err error) {
	_, err = c.tier.Get(ctx, object(loop, n, c.size), []tiers.Buffer{{B: buf}},
		func(p []byte, _ int64) error { read += int64(len(p)); return nil },
		func(tiers.Chunk) {})
	return read, err
}

func (c suite) remove(ctx context.Context, loop, n int) error {
	return c.tier.Remove(ctx, object(loop, n, c.size))
}

// close removes what the tier made, its marker last: the store is empty again.
func (c suite) close(ctx context.Context) error {
	return errors.Join(c.tier.Clear(ctx, func(int64) {}), c.tier.Close())
}
