package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"

	"github.com/minio/minio-go/v7"
)

// Body begins a stream of the bytes of a PUT, anew for each attempt: the connection of an attempt
// that was cut off may still read the old one.
type Body func() io.ReadSeeker

// sent is a body on its way out.
type sent struct {
	io.ReadSeeker
	a   *attempt
	err error // of reading it, which net/http would wrap
}

// Read counts what goes out.
func (s *sent) Read(p []byte) (n int, err error) {
	n, err = s.ReadSeeker.Read(p)
	s.a.moved(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// stored is the error of a PUT. It looks for an ETag, because the page of a proxy has status 200,
// too, and the library looks no further.
func (s *sent) stored(err error) error {
	switch {
	case err != nil && s.err != nil && s.a.status == 0: // else the store failed earlier
		return &callers{s.err}
	case err == nil && (s.a.html || s.a.header.Get("ETag") == ""):
		return &unexpected{text: "the answer to a PUT has no ETag"}
	}
	return err
}

// Put makes an object in one request. The transport may still read from body after Put has returned
// because ctx ended. After a failure the object may exist where Request.AllSent is set.
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

// checksum is the checksum behind bodies; ChecksumNone without one.
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
	Size   int64 // of the object: an answer with another size is not of this object
	Always bool  // send a Range header also for the whole object, as some engines do
}

// Get reads a range of an object in pieces of the length of buf, the last one shorter. It calls
// sink with each full piece once, in order. A body that breaks off is resumed at the first missing
// byte, if the object is still the same.
func (c *Client) Get(ctx context.Context, key string, rg Range, buf []byte,
	sink func(p []byte, off int64) error) (Request, error) {
	op := GetRange
	if rg.Off == 0 && rg.N == rg.Size {
		op = Get
	}
	r := &request{Request: Request{Op: op, Bytes: rg.N}, key: key}
	g := &get{Range: rg, bucket: c.cfg.Bucket, key: key, buf: buf, sink: sink, at: rg.Off}
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
	at          int64 // of the object, where buf begins
	filled      int   // of buf
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
	defer body.Close() // before the end of the body it closes the connection
	if err := g.fits(a, info.Size, header.Get("Content-Range"), from, ranged); err != nil {
		return err
	}
	if g.etag == "" { // from here on another object under this key is an error
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
			// The cause of the context says more than the error of the closed connection.
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
		a.pause() // the time of the sink is not the store's
		if err := g.sink(g.buf[:want], g.at); err != nil {
			return &callers{fmt.Errorf("object %s, ETag %s, from %s: %w", g.key, info.ETag,
				core.EndpointURL().Host, err)}
		}
		a.moved(0)
		g.at, g.filled = g.at+int64(want), 0
	}
	// Reading the end makes the connection usable again.
	var more [1]byte
	if n, err := body.Read(more[:]); n > 0 || err != io.EOF {
		return &unexpected{text: "the body goes on behind its length"}
	}
	return nil
}

// fits compares the header of an answer with the request, before any byte is believed.
func (g *get) fits(a *attempt, length int64, got string, from int64, ranged bool) error {
	end := g.Off + g.N
	want := fmt.Sprintf("bytes %d-%d/%d", from, end-1, g.Size)
	switch {
	case a.html:
		return &unexpected{text: "the answer is a page"}
	case !ranged && a.status != http.StatusOK:
		return &unexpected{text: fmt.Sprintf("a part of the object came (%d) instead of all of "+
			"it", a.status)}
	case ranged && a.status != http.StatusPartialContent:
		return &unexpected{text: fmt.Sprintf("the store ignores ranges: %d instead of 206", a.status)}
	case length != end-from:
		return &unexpected{text: fmt.Sprintf("the answer has %d bytes instead of %d", length, end-from)}
	case ranged && got != want:
		return &unexpected{text: fmt.Sprintf("the answer is %q instead of %q", got, want)}
	}
	return nil
}

// Head returns the size of an object.
func (c *Client) Head(ctx context.Context, key string) (size int64, err error) {
	err = c.simple(ctx, Head, key, func(a *attempt, core *minio.Core) error {
		info, err := core.StatObject(a.ctx, c.cfg.Bucket, key, minio.StatObjectOptions{})
		size = info.Size
		return cmp.Or(err, a.notPage())
	})
	return size, err
}

// Delete removes an object. A missing object is no error: most stores do not report it.
func (c *Client) Delete(ctx context.Context, key string) error {
	return c.simple(ctx, Delete, key, func(a *attempt, core *minio.Core) error {
		err := core.RemoveObject(a.ctx, c.cfg.Bucket, key, minio.RemoveObjectOptions{})
		if !a.html && minio.ToErrorResponse(err).Code == minio.NoSuchKey {
			return nil
		}
		return cmp.Or(err, a.notPage())
	})
}

// Part is a part of an upload that the store has acknowledged.
type Part = minio.CompletePart

// Create begins an upload and returns its id. Where only the answer is lost the store keeps an
// upload, which Uploads finds.
func (c *Client) Create(ctx context.Context, key string) (id string, err error) {
	err = c.simple(ctx, Create, key, func(a *attempt, core *minio.Core) (err error) {
		var opts minio.PutObjectOptions
		if k := c.checksum(); k.IsSet() { // else the checksums of parts do not count
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

// PutPart sends one part of an upload. A part that is sent twice exists once.
func (c *Client) PutPart(ctx context.Context, key, id string, number int, size int64, body Body) (
	p Part, _ Request, err error) {
	r := &request{Request: Request{Op: PutPart, Bytes: size}, key: key}
	r.try = func(a *attempt, core *minio.Core) error {
		b := &sent{ReadSeeker: body(), a: a}
		opts := minio.PutObjectPartOptions{DisableContentSha256: c.cfg.Payload != Signed}
		var data io.Reader = b
		if k := c.checksum(); k.IsSet() {
			t := &trailer{sent: b, kind: k, sum: k.Hasher(), header: http.Header{}, left: size}
			t.set() // a value of the right length: it is part of the length of the request
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

// Complete makes an object of its parts, in the order of their numbers. Where an attempt finds no
// upload, the one before it may have made the object: a HEAD decides.
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

// Abort ends an upload without its object. A missing upload is no error: an abort whose answer was
// lost is repeated.
func (c *Client) Abort(ctx context.Context, key, id string) error {
	return c.simple(ctx, Abort, key, func(a *attempt, core *minio.Core) error {
		err := core.AbortMultipartUpload(a.ctx, c.cfg.Bucket, key, id)
		if minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
			return nil
		}
		return err
	})
}

// Versioned reports whether the bucket keeps versions. A store that does not serve the request
// keeps none.
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

// trailer is the body of a part whose checksum stands in a header behind it: the library adds one
// to whole objects only.
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

// Read adds what it reads to the checksum; with the last byte the header is known.
func (t *trailer) Read(p []byte) (n int, err error) {
	n, err = t.sent.Read(p)
	_, _ = t.sum.Write(p[:n]) // it cannot fail
	if t.left -= int64(n); t.left == 0 {
		t.set()
	}
	return n, err
}
