package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
)

// Body begins a stream of the bytes of a PUT, anew for each attempt: one that was cut off may still
// be read by the connection that it was meant for.
type Body func() io.ReadSeeker

// Condition makes a PUT depend on what is there. The zero value is none.
type Condition struct {
	Absent bool   // nothing is there
	ETag   string // just this is
}

// sent is a body on its way out.
type sent struct {
	io.ReadSeeker
	a   *attempt
	err error // of reading it
}

// Read counts, and keeps what the transport would wrap.
func (s *sent) Read(p []byte) (n int, err error) {
	n, err = s.ReadSeeker.Read(p)
	s.a.moved(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// Put makes an object in one request, and returns its ETag. Body may still be read from when it has
// returned because ctx ended. After a failure the object may be there all the same where Request
// says that all of it was sent.
func (c *Client) Put(ctx context.Context, key string, size int64, body Body, only Condition) (
	etag string, _ Request, err error) {
	r := &request{Request: Request{Op: Put, Bytes: size}, key: key}
	r.try = func(a *attempt, n *node) error {
		b := &sent{ReadSeeker: body(), a: a}
		got, err := c.putObject(a, n, key, b, size, only)
		etag = got
		r.AllSent = r.AllSent || a.bytes.Load() >= size
		return c.answered(a, b, err)
	}
	err = c.do(ctx, r)
	return etag, r.Request, err
}

// answered is the error of a PUT: the body's, if that is why it failed, or that it was no store
// that said yes. A proxy's page has status 200, too, and the library looks no further.
func (c *Client) answered(a *attempt, b *sent, err error) error {
	switch {
	case err != nil && b.err != nil && a.status == 0: // with an answer it was the store's, earlier
		return &callers{b.err}
	case err == nil && (a.html || a.header.Get("ETag") == ""):
		return &unexpected{"the answer to a PUT has no ETag"}
	}
	return err
}

// checksum is what follows bodies; nothing unless it was asked for.
func (c *Client) checksum() minio.ChecksumType {
	switch c.cfg.Payload {
	case CRC32C:
		return minio.ChecksumCRC32C
	case CRC64NVME:
		return minio.ChecksumCRC64NVME
	}
	return minio.ChecksumNone
}

// Range is a part of an object, or all of it.
type Range struct {
	Off, N int64
	// Of is the size of the object: an answer that says otherwise is not that of the object.
	Of int64
	// Always asks for a range also where it is all of the object, as some engines do.
	Always bool
}

// Get reads a range of an object in pieces of the length of buf, the last one shorter. Sink is
// given each when it is full, once, in order. A body that breaks off is gone on with at the first
// missing byte, of the same object only. The connection is used again when all has come.
func (c *Client) Get(ctx context.Context, key string, rg Range, buf []byte,
	sink func(p []byte, off int64) error) (Request, error) {
	op := GetRange
	if rg.Off == 0 && rg.N == rg.Of {
		op = Get
	}
	r := &request{Request: Request{Op: op, Bytes: rg.N}, key: key}
	g := &get{Range: rg, key: key, buf: buf, sink: sink, at: rg.Off}
	r.try = g.try
	err := c.do(ctx, r)
	return r.Request, err
}

// get is how far a GET has come, over its attempts.
type get struct {
	Range
	key    string
	buf    []byte
	sink   func(p []byte, off int64) error
	at     int64 // of the object, where buf begins
	filled int   // of buf
	etag   string
}

// try is one GET, from the first byte that is missing to the end of the range.
func (g *get) try(a *attempt, node *node) error {
	from, end := g.at+int64(g.filled), g.Off+g.N
	ranged := g.Always || from > 0 || end < g.Of
	header := make(http.Header, 6)
	if ranged {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, end-1))
	}
	if g.etag != "" {
		header.Set("If-Match", quoted(g.etag))
	}
	body, length, etag, err := a.c.getObject(a, node, g.key, header)
	if err != nil {
		return err
	}
	defer body.Close() // before its end it costs the connection, which is what is wanted then
	if err := g.fits(a, length, a.header, from, ranged); err != nil {
		return err
	}
	// From here on another object under this key is another one, also between two attempts.
	if g.etag == "" {
		g.etag = etag
	}
	for g.at < end {
		want := int(min(int64(len(g.buf)), end-g.at))
		for g.filled < want {
			n, err := body.Read(g.buf[g.filled:want])
			g.filled += n
			a.moved(n)
			if err == nil || g.filled == want && err == io.EOF {
				continue
			}
			// What ended the context tells more than the error of a connection closed by it.
			if cause := context.Cause(a.ctx); cause != nil {
				return cause
			}
			if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				return &shortBody{g.at + int64(g.filled) - from, end - from}
			}
			a.failure = err
			return err
		}
		a.still() // the sink takes what time it needs
		if err := g.sink(g.buf[:want], g.at); err != nil {
			return &callers{fmt.Errorf("object %s, ETag %s, from %s: %w", g.key, etag,
				node.host, err)}
		}
		a.moved(0)
		g.at, g.filled = g.at+int64(want), 0
	}
	// The end is read, too: a connection with something left in it cannot be used again.
	var more [1]byte
	if n, err := body.Read(more[:]); n > 0 || err != io.EOF {
		return &unexpected{"the body goes on behind its length"}
	}
	return nil
}

// fits compares the header of an answer with what was asked for: before the first byte is taken for
// one of the object.
func (g *get) fits(a *attempt, length int64, h http.Header, from int64, ranged bool) error {
	end := g.Off + g.N
	switch {
	case a.html:
		return &unexpected{"the answer is a page"}
	case !ranged && a.status != http.StatusOK:
		return &unexpected{fmt.Sprintf("a part of the object came (%d), all of it was asked for",
			a.status)}
	case ranged && a.status != http.StatusPartialContent:
		return &unexpected{fmt.Sprintf("the store ignores ranges: %d instead of 206", a.status)}
	case length != end-from:
		return &unexpected{fmt.Sprintf("the answer has %d bytes instead of %d", length, end-from)}
	case ranged:
		want := fmt.Sprintf("bytes %d-%d/%d", from, end-1, g.Of)
		if got := h.Get("Content-Range"); got != want {
			return &unexpected{fmt.Sprintf("the answer is %q instead of %q", got, want)}
		}
	}
	return nil
}

// Info is what a store says of an object.
type Info struct {
	Key      string
	Size     int64
	ETag     string
	Modified time.Time
}

// Head asks for an object without its bytes. Its errors have no body: a store that says no by HEAD
// does not say why.
func (c *Client) Head(ctx context.Context, key string) (info Info, err error) {
	r := &request{Request: Request{Op: Head}, key: key}
	r.try = func(a *attempt, n *node) (err error) {
		info, err = c.headObject(a, n, key)
		return err
	}
	err = c.do(ctx, r)
	return info, err
}

// Delete removes an object. One that is not there is no error: the store does not say.
func (c *Client) Delete(ctx context.Context, key string) error {
	r := &request{Request: Request{Op: Delete}, key: key}
	r.try = func(a *attempt, n *node) error {
		err := c.deleteObject(a, n, key)
		// S3 answers 204 whatever was there; some stores are more exact. A proxy's page with 404
		// knows nothing of objects.
		if a.status == http.StatusNotFound && !a.html &&
			minio.ToErrorResponse(err).Code == minio.NoSuchKey {
			return nil
		}
		return err
	}
	return c.do(ctx, r)
}

// Part is one of an upload, of which the store has all bytes.
type Part struct {
	Number int // from 1
	ETag   string
	checks minio.ObjectPart
}

// Create begins an upload and returns its id. When an answer is lost, the upload that it told of
// stays in the store: Uploads finds it.
func (c *Client) Create(ctx context.Context, key string) (id string, attempts int, err error) {
	r := &request{Request: Request{Op: Create}, key: key}
	r.try = func(a *attempt, n *node) (err error) {
		var opts minio.PutObjectOptions
		if k := c.checksum(); k.IsSet() {
			// A part's checksum counts only where the upload was begun with the same kind.
			opts.UserMetadata = map[string]string{"X-Amz-Checksum-Algorithm": k.String()}
		}
		id, err = n.NewMultipartUpload(a.ctx, c.cfg.Bucket, key, opts)
		if err == nil && id == "" {
			err = &unexpected{"the answer to a new upload has no id"}
		}
		return err
	}
	err = c.do(ctx, r)
	return id, r.Attempts, err
}

// PutPart sends one part of an upload. Sent twice it is there once.
func (c *Client) PutPart(ctx context.Context, key, id string, number int, size int64, body Body) (
	Part, Request, error) {
	p := Part{Number: number}
	r := &request{Request: Request{Op: PutPart, Bytes: size}, key: key}
	r.try = func(a *attempt, n *node) error {
		b := &sent{ReadSeeker: body(), a: a}
		opts := minio.PutObjectPartOptions{DisableContentSha256: c.cfg.Payload != Signed}
		var data io.Reader = b
		if k := c.checksum(); k.IsSet() {
			t := newTrailer(k, b, size)
			opts.Trailer, data = t.header, t
		}
		part, err := n.PutObjectPart(a.ctx, c.cfg.Bucket, key, id, number, data, size, opts)
		p.ETag, p.checks = part.ETag, part
		return c.answered(a, b, err)
	}
	err := c.do(ctx, r)
	return p, r.Request, err
}

// Complete makes an object of its parts, which are in the order of their numbers. A second attempt
// that is told that there is no such upload looks whether the first has made the object.
func (c *Client) Complete(ctx context.Context, key, id string, size int64, parts []Part) (Request,
	error) {
	list := make([]minio.CompletePart, len(parts))
	for i, p := range parts {
		list[i] = minio.CompletePart{PartNumber: p.Number, ETag: p.ETag,
			ChecksumCRC32C: p.checks.ChecksumCRC32C, ChecksumCRC64NVME: p.checks.ChecksumCRC64NVME}
	}
	r := &request{Request: Request{Op: Complete}, key: key}
	tries := 0
	r.try = func(a *attempt, n *node) error {
		tries++
		info, err := n.CompleteMultipartUpload(a.ctx, c.cfg.Bucket, key, id, list,
			minio.PutObjectOptions{})
		if err == nil && info.ETag == "" {
			err = &unexpected{"the answer to a completed upload has no ETag"}
		}
		// Of the right size is as good as it gets: the ETag of an upload is the store's own affair.
		if tries+int(a.sent.Load()) > 2 && err != nil && a.status == http.StatusNotFound &&
			minio.ToErrorResponse(err).Code != minio.NoSuchBucket {
			a.still() // the other request has a time limit of its own
			if info, there := c.Head(ctx, key); there == nil && info.Size == size {
				return nil
			}
		}
		return err
	}
	err := c.do(ctx, r)
	return r.Request, err
}

// Abort ends an upload without its object. One that is not there is fine: an abort whose answer was
// lost is tried again.
func (c *Client) Abort(ctx context.Context, key, id string) error {
	r := &request{Request: Request{Op: Abort}, key: key}
	r.try = func(a *attempt, n *node) error {
		err := n.AbortMultipartUpload(a.ctx, c.cfg.Bucket, key, id)
		if minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
			return nil
		}
		return err
	}
	return c.do(ctx, r)
}

// Versioning is what the bucket says of versions: "", Enabled, Suspended. A store that does not
// know the question has none.
func (c *Client) Versioning(ctx context.Context) (status string, err error) {
	r := &request{Request: Request{Op: Bucket}, key: "?versioning"}
	r.try = func(a *attempt, n *node) error {
		v, err := n.GetBucketVersioning(a.ctx, c.cfg.Bucket)
		status = v.Status
		return err
	}
	err = c.do(ctx, r)
	if errors.Is(err, ErrNotServed) {
		return "", nil
	}
	return status, err
}

// trailer is a body that makes its checksum as it is read, for the header behind it.
type trailer struct {
	*sent
	header http.Header
	name   string
	sum    interface {
		io.Writer
		Sum([]byte) []byte
		Reset()
	}
	left, size int64
	encode     func([]byte) string
}

func newTrailer(k minio.ChecksumType, b *sent, size int64) *trailer {
	t := &trailer{sent: b, name: k.Key(), sum: k.Hasher(), left: size, size: size,
		encode: func(sum []byte) string { return minio.NewChecksum(k, sum).Encoded() }}
	// The value here is of the right length: it is part of the request's.
	t.header = http.Header{}
	t.header.Set(t.name, t.encode(t.sum.Sum(nil)))
	return t
}

// Read sums up what it reads; with the last byte the header is known.
func (t *trailer) Read(p []byte) (n int, err error) {
	n, err = t.sent.Read(p)
	_, _ = t.sum.Write(p[:n]) // it cannot fail
	if t.left -= int64(n); t.left == 0 {
		t.header.Set(t.name, t.encode(t.sum.Sum(nil)))
	}
	return n, err
}

// Seek goes back to the start, which the library does before it begins.
func (t *trailer) Seek(off int64, whence int) (int64, error) {
	if off != 0 || whence != io.SeekStart {
		return 0, errors.New("only its start can be sought")
	}
	t.left = t.size
	t.sum.Reset()
	return t.sent.Seek(0, io.SeekStart)
}
