package store

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"

	"github.com/minio/minio-go/v7"
)

// Body begins a stream of the bytes of a PUT. Each attempt gets a new stream, because the connection of a
// cancelled attempt may still read the old one.
type Body func() io.ReadSeeker

// sent is a body that is being sent.
type sent struct {
	io.ReadSeeker
	a   *attempt
	err error // of reading the body; net/http would wrap it
}

// Read counts the sent bytes.
func (s *sent) Read(p []byte) (n int, err error) {
	n, err = s.ReadSeeker.Read(p)
	s.a.moved(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// stored returns the error of a PUT. It requires an ETag, because a proxy's page may have status 200,
// and the library only checks the status.
func (s *sent) stored(err error) error {
	switch {
	case err != nil && s.err != nil && s.a.status == 0: // with a status the store failed first
		return callers{s.err}
	case err == nil && (s.a.html || s.a.header.Get("ETag") == ""):
		return &unexpected{text: "the answer to a PUT has no ETag"}
	}
	return err
}

// Put makes an object in one request. If ctx ends, the transport may still read from body after Put has
// returned. If Request.AllSent is set, the object may exist after a failure.
func (c *Client) Put(ctx context.Context, key string, size int64, body Body) (Request, error) {
	r := &request{Request: Request{Op: Put, Bytes: size}, key: key}
	r.try = func(a *attempt, core *minio.Core) error {
		b := &sent{ReadSeeker: body(), a: a}
		_, err := core.PutObject(a.ctx, c.cfg.Bucket, key, b, size, "", "", minio.PutObjectOptions{
			DisableContentSha256: c.cfg.Payload != Signed, Checksum: c.checksum()})
		r.AllSent = r.AllSent || a.bytes.Load() >= size
		return b.stored(err)
	}
	err := c.do(ctx, r)
	return r.Request, err
}

// checksum returns the kind of checksum after bodies, or ChecksumNone.
func (c *Client) checksum() minio.ChecksumType {
	switch c.cfg.Payload {
	case CRC32C:
		return minio.ChecksumCRC32C
	case CRC64NVME:
		return minio.ChecksumCRC64NVME
	}
	return minio.ChecksumNone
}

// Range is a part of an object, or the whole object.
type Range struct {
	Off, N int64
	Size   int64 // of the object; an answer with another size belongs to another object
	Always bool  // send a Range header also for a whole object, as some engines do
}

// Get reads a range of an object in pieces of len(buf) bytes; the last piece may be shorter. It calls
// sink once with each piece, in order; retried reports whether an attempt failed before. If a body ends early, the next attempt continues at the first
// missing byte, as long as the object is the same.
func (c *Client) Get(ctx context.Context, key string, rg Range, buf []byte,
	sink func(p []byte, off int64, retried bool) error) (Request, error) {
	op := GetRange
	if rg.Off == 0 && rg.N == rg.Size {
		op = Get
	}
	r := &request{Request: Request{Op: op, Bytes: rg.N}, key: key}
	g := &get{Range: rg, bucket: c.cfg.Bucket, key: key, buf: buf, at: rg.Off,
		sink: func(p []byte, off int64) error { return sink(p, off, r.Attempts > 0) }}
	r.try = g.try
	err := c.do(ctx, r)
	return r.Request, err
}

// get is the progress of a GET over its attempts.
type get struct {
	Range
	bucket, key string
	buf         []byte
	sink        func(p []byte, off int64) error
	at          int64 // offset in the object at which buf begins
	filled      int   // bytes in buf
	etag        string
}

// try makes one GET, from the first missing byte to the end of the range.
func (g *get) try(a *attempt, core *minio.Core) error {
	from, end := g.at+int64(g.filled), g.Off+g.N
	ranged := g.Always || from > 0 || end < g.Size
	var opts minio.GetObjectOptions
	if ranged {
		opts.Set("Range", fmt.Sprintf("bytes=%d-%d", from, end-1))
	}
	if g.etag != "" {
		opts.Set("If-Match", `"`+g.etag+`"`)
	}
	body, info, header, err := core.GetObject(a.ctx, g.bucket, g.key, opts)
	if err != nil {
		return err
	}
	defer body.Close() // closes the connection, too, if the body was not read to its end
	if err := g.fits(a, info.Size, header.Get("Content-Range"), from, ranged); err != nil {
		return err
	}
	if g.etag == "" { // from here on an object with another ETag is an error
		g.etag = info.ETag
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
			// The cause of the context explains more than the error of the closed connection.
			if cause := context.Cause(a.ctx); cause != nil {
				return cause
			}
			if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				return &unexpected{fmt.Sprintf("the body ended after %d of %d bytes",
					g.at+int64(g.filled)-from, end-from), true}
			}
			a.failure = err
			return err
		}
		a.pause() // the sink's time does not count for the time limit
		if err := g.sink(g.buf[:want], g.at); err != nil {
			return callers{fmt.Errorf("object %s, ETag %s, from %s: %w", g.key, info.ETag,
				core.EndpointURL().Host, err)}
		}
		a.moved(0)
		g.at, g.filled = g.at+int64(want), 0
	}
	// The connection can be used again only if the end of the body was read.
	var more [1]byte
	if n, err := body.Read(more[:]); n > 0 || err != io.EOF {
		return &unexpected{text: "the body goes on behind its length"}
	}
	return nil
}

// fits compares the header of an answer with the request before any byte is used.
func (g *get) fits(a *attempt, length int64, got string, from int64, ranged bool) error {
	if a.html {
		return &unexpected{text: "the answer is a page"}
	}
	describe := func(status int, n int64, part string) string {
		if !ranged { // some stores describe a whole object, too
			return fmt.Sprintf("%d with %d bytes", status, n)
		}
		return fmt.Sprintf("%d with %d bytes (%s)", status, n, part)
	}
	want := describe(http.StatusOK, g.Off+g.N-from, "")
	if ranged {
		want = describe(http.StatusPartialContent, g.Off+g.N-from,
			fmt.Sprintf("bytes %d-%d/%d", from, g.Off+g.N-1, g.Size))
	}
	if found := describe(a.status, length, got); found != want {
		return &unexpected{text: fmt.Sprintf("the answer is %s instead of %s", found, want)}
	}
	return nil
}

// Head returns the size of an object.
func (c *Client) Head(ctx context.Context, key string) (size int64, err error) {
	err = c.simple(ctx, Head, key, func(a *attempt, core *minio.Core) error {
		info, err := core.StatObject(a.ctx, c.cfg.Bucket, key, minio.StatObjectOptions{})
		size = info.Size
		return err
	})
	return size, err
}

// Delete removes an object. A missing object is no error: most stores do not report it.
func (c *Client) Delete(ctx context.Context, key string) error {
	return c.simple(ctx, Delete, key, func(a *attempt, core *minio.Core) error {
		return unless(minio.NoSuchKey, core.RemoveObject(a.ctx, c.cfg.Bucket, key,
			minio.RemoveObjectOptions{}))
	})
}

// unless returns err, unless it is an answer with the code.
func unless(code string, err error) error {
	if minio.ToErrorResponse(err).Code == code {
		return nil
	}
	return err
}

// Part is a part of an upload that the store has acknowledged.
type Part = minio.CompletePart

// Create begins an upload and returns its id. If only the answer is lost, the store keeps an upload, and
// Uploads finds it.
func (c *Client) Create(ctx context.Context, key string) (id string, err error) {
	err = c.simple(ctx, Create, key, func(a *attempt, core *minio.Core) (err error) {
		var opts minio.PutObjectOptions
		if k := c.checksum(); k.IsSet() { // required for checksums of parts
			opts.UserMetadata = map[string]string{"X-Amz-Checksum-Algorithm": k.String()}
		}
		id, err = core.NewMultipartUpload(a.ctx, c.cfg.Bucket, key, opts)
		if err == nil && id == "" {
			err = &unexpected{text: "the answer to a new upload has no id"}
		}
		return err
	})
	return id, err
}

// PutPart sends one part of an upload. It can be repeated: a part that is sent twice exists once.
func (c *Client) PutPart(ctx context.Context, key, id string, number int, size int64, body Body) (
	p Part, _ Request, err error) {
	r := &request{Request: Request{Op: PutPart, Bytes: size}, key: key}
	r.try = func(a *attempt, core *minio.Core) error {
		b := &sent{ReadSeeker: body(), a: a}
		opts := minio.PutObjectPartOptions{DisableContentSha256: c.cfg.Payload != Signed}
		var data io.Reader = b
		if k := c.checksum(); k.IsSet() {
			t := &trailer{sent: b, kind: k, sum: k.Hasher(), header: http.Header{}, left: size}
			t.set() // a placeholder, because the value's length counts in the request's length
			opts.Trailer, data = t.header, t
		}
		done, err := core.PutObjectPart(a.ctx, c.cfg.Bucket, key, id, number, data, size, opts)
		p = Part{PartNumber: number, ETag: done.ETag, ChecksumCRC32C: done.ChecksumCRC32C,
			ChecksumCRC64NVME: done.ChecksumCRC64NVME}
		return b.stored(err)
	}
	err = c.do(ctx, r)
	return p, r.Request, err
}

// Complete makes an object of its parts, in the order of their numbers. If an attempt finds no upload,
// the attempt before may have made the object. Then a HEAD decides.
func (c *Client) Complete(ctx context.Context, key, id string, size int64, parts []Part) (Request,
	error) {
	r := &request{Request: Request{Op: Complete}, key: key}
	r.try = func(a *attempt, core *minio.Core) error {
		info, err := core.CompleteMultipartUpload(a.ctx, c.cfg.Bucket, key, id, parts,
			minio.PutObjectOptions{})
		if err == nil && info.ETag == "" {
			err = &unexpected{text: "the answer to a completed upload has no ETag"}
		}
		if r.Attempts+int(a.sent.Load()) > 1 &&
			minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
			a.pause() // the HEAD has its own time limit
			if got, there := c.Head(ctx, key); there == nil && got == size {
				return nil
			}
		}
		return err
	}
	err := c.do(ctx, r)
	return r.Request, err
}

// Abort ends an upload without an object. A missing upload is no error, because an earlier attempt may
// have aborted it although its answer was lost.
func (c *Client) Abort(ctx context.Context, key, id string) error {
	return c.simple(ctx, Abort, key, func(a *attempt, core *minio.Core) error {
		return unless(minio.NoSuchUpload, core.AbortMultipartUpload(a.ctx, c.cfg.Bucket, key, id))
	})
}

// Versioned reports whether the bucket keeps versions. A store that does not support the request keeps
// none.
func (c *Client) Versioned(ctx context.Context) (versioned bool, err error) {
	err = c.simple(ctx, Bucket, "?versioning", func(a *attempt, core *minio.Core) error {
		v, err := core.GetBucketVersioning(a.ctx, c.cfg.Bucket)
		versioned = v.Enabled()
		return err
	})
	if errors.Is(err, ErrNotServed) {
		return false, nil
	}
	return versioned, err
}

// trailer is the body of a part with its checksum in a trailing header. The library adds a checksum to
// whole objects only.
type trailer struct {
	*sent
	header http.Header
	kind   minio.ChecksumType
	sum    hash.Hash
	left   int64
}

func (t *trailer) set() {
	t.header.Set(t.kind.Key(), minio.NewChecksum(t.kind, t.sum.Sum(nil)).Encoded())
}

// Read adds the bytes to the checksum, and sets the header after the last byte.
func (t *trailer) Read(p []byte) (n int, err error) {
	n, err = t.sent.Read(p)
	_, _ = t.sum.Write(p[:n]) // cannot fail
	if t.left -= int64(n); t.left == 0 {
		t.set()
	}
	return n, err
}
