package wire

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// What x-amz-content-sha256 can say; else it is the digest of the body.
const (
	unsignedPayload = "UNSIGNED-PAYLOAD"
	signedChunks    = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	unsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
)

const checksumHeader = "X-Amz-Checksum-"

// checksums are the algorithms of x-amz-checksum-*. CRC64NVME has the polynomial of the NVMe
// specification, here as package crc64 wants it, bits reversed.
var checksums = map[string]func() hash.Hash{
	"crc32":     func() hash.Hash { return crc32.NewIEEE() },
	"crc32c":    func() hash.Hash { return crc32.New(castagnoli) },
	"crc64nvme": func() hash.Hash { return crc64.New(nvme) },
	"sha1":      sha1.New,
	"sha256":    sha256.New,
}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	nvme       = crc64.MakeTable(0x9a6c9329ac4bc9b5)
)

// Payload reads the body of a request and checks what its header says of it.
type Payload struct {
	r io.Reader
	n int64 // read so far

	want int64 // how many there should be
	// Nil or empty where the request has no such thing.
	chunks    *chunked
	digest    hash.Hash // of the body as it was signed
	wantHex   string
	md5       hash.Hash
	wantMD5   string // base64
	sum       hash.Hash
	algorithm string // crc32c
	wantSum   string // base64; of a trailer it comes behind the body
}

// NewPayload prepares the reading of a body. Sizes must be known, as S3 wants it.
func NewPayload(r *http.Request, s *Signer) (*Payload, *Error) {
	if r.ContentLength < 0 {
		return nil, Fail(http.StatusLengthRequired, "MissingContentLength",
			"You must provide the Content-Length HTTP header.")
	}
	p := &Payload{r: r.Body, want: r.ContentLength}
	bad := func(text string) *Error {
		return Fail(http.StatusBadRequest, "InvalidRequest", text)
	}
	switch mode := r.Header.Get("X-Amz-Content-Sha256"); {
	case mode == "" && s != nil:
		return nil, bad("Missing required header for this request: x-amz-content-sha256")
	case mode == "" || mode == unsignedPayload: // as it comes
	case mode == unsignedTrailer || mode == signedChunks && s != nil:
		n, err := strconv.ParseInt(r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64)
		if err != nil || n < 0 {
			return nil, Fail(http.StatusLengthRequired, "MissingContentLength",
				"You must provide the x-amz-decoded-content-length header.")
		}
		p.want = n
		p.chunks = &chunked{r: bufio.NewReaderSize(r.Body, 64<<10)}
		p.r = p.chunks
		if mode == signedChunks { // without trailers, whose signatures stores disagree on
			p.chunks.sign, p.chunks.digest = s, sha256.New()
		} else if trailer := r.Header.Get("X-Amz-Trailer"); trailer != "" {
			p.chunks.trailer = strings.ToLower(trailer)
			if !p.expect(p.chunks.trailer, "") {
				return nil, bad("The value specified in the x-amz-trailer header is not supported")
			}
		}
	case len(mode) == 2*sha256.Size: // what is no number will not be found equal
		p.digest, p.wantHex = sha256.New(), mode
	default:
		return nil, Fail(http.StatusNotImplemented, "NotImplemented",
			"A payload "+mode+" is not implemented.")
	}
	// Algorithm and Type say what an upload's parts will have; they are no sums.
	for name, values := range r.Header {
		if strings.HasPrefix(name, checksumHeader) && name != checksumHeader+"Algorithm" &&
			name != checksumHeader+"Type" && !p.expect(name, values[0]) {
			return nil, bad("Value for " + name + " header is invalid.")
		}
	}
	if p.wantMD5 = r.Header.Get("Content-Md5"); p.wantMD5 != "" {
		p.md5 = md5.New()
	}
	return p, nil
}

// expect prepares the sum of a header or trailer x-amz-checksum-*; false if there is none such.
func (p *Payload) expect(header, want string) bool {
	name := strings.TrimPrefix(strings.ToLower(header), strings.ToLower(checksumHeader))
	if checksums[name] == nil {
		return false
	}
	p.sum, p.algorithm, p.wantSum = checksums[name](), name, want
	return true
}

// Read reads the body without its framing.
func (p *Payload) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.n += int64(n)
	for _, h := range []hash.Hash{p.digest, p.md5, p.sum} {
		if h != nil {
			h.Write(b[:n])
		}
	}
	return n, err
}

// Check says, when all has been read, whether it is what was announced.
func (p *Payload) Check() *Error {
	if p.chunks != nil && p.chunks.trailer != "" {
		p.wantSum = p.chunks.value
	}
	switch {
	case p.n != p.want: // first: of fewer bytes no digest is right
		return Fail(http.StatusBadRequest, "IncompleteBody",
			"You did not provide the number of bytes specified by the Content-Length HTTP header.")
	case p.digest != nil && hex.EncodeToString(p.digest.Sum(nil)) != p.wantHex:
		return Fail(http.StatusBadRequest, "XAmzContentSHA256Mismatch",
			"The provided 'x-amz-content-sha256' header does not match what was computed.")
	case p.md5 != nil && base64.StdEncoding.EncodeToString(p.md5.Sum(nil)) != p.wantMD5:
		return Fail(http.StatusBadRequest, "BadDigest",
			"The Content-MD5 you specified did not match what we received.")
	case p.sum != nil && base64.StdEncoding.EncodeToString(p.sum.Sum(nil)) != p.wantSum:
		return Fail(http.StatusBadRequest, "BadDigest", "The "+strings.ToUpper(p.algorithm)+
			" you specified did not match the calculated checksum.")
	}
	return nil
}

// Checksum is the header that repeats what was checked, and its value; both empty without one.
func (p *Payload) Checksum() (header, value string) {
	if p.sum != nil {
		header, value = checksumHeader+p.algorithm, p.wantSum
	}
	return header, value
}

// Digested tells whether the client gave a digest or checksum of the body beside its signature.
func (p *Payload) Digested() bool { return p.md5 != nil || p.sum != nil }

// chunked takes off the framing of aws-chunked, in which a body is
//
//	SIZE[;chunk-signature=HEX] CRLF data CRLF …
//	0[;chunk-signature=HEX] CRLF [NAME:VALUE CRLF] CRLF
//
// with sizes in hexadecimal digits and at most one trailer. Some libraries, minio-go among them,
// end the trailer with LF CRLF CRLF, which all stores take.
type chunked struct {
	r       *bufio.Reader
	sign    *Signer // checks each chunk; nil = they are not signed
	digest  hash.Hash
	trailer string // whose name, in lower case; "" = there must be none
	value   string

	left      int64  // of this chunk
	signature string // that it announced
	begun     bool   // so a line end stands before the next header
	err       error  // what all further reads return
}

// errChunk is what is wrong with the framing; its signatures are errChunkSignature.
type errChunk string

func (e errChunk) Error() string { return "aws-chunked: " + string(e) }

const errChunkSignature errChunk = "the signature of a chunk is wrong"

func (c *chunked) Read(b []byte) (int, error) {
	for c.err == nil && c.left == 0 {
		c.err = c.next()
	}
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	if c.sign != nil {
		c.digest.Write(b[:n])
	}
	if err == io.EOF { // within a chunk
		err = io.ErrUnexpectedEOF
	}
	c.err = err
	return n, err
}

// next ends the chunk that has been read and reads the header of the one after; io.EOF behind the
// last, trailer included.
func (c *chunked) next() error {
	if c.begun {
		if err := c.end(); err != nil {
			return err
		}
	}
	c.begun = true
	line, err := c.line()
	if err != nil {
		return err
	}
	size, extension, signed := strings.Cut(line, ";")
	n, err := strconv.ParseInt(size, 16, 64)
	if err != nil || n < 0 || signed != (c.sign != nil) {
		return errChunk(fmt.Sprintf("chunk header %.80q", line))
	}
	c.left = n
	if signed {
		var ok bool
		if c.signature, ok = strings.CutPrefix(extension, "chunk-signature="); !ok {
			return errChunk(fmt.Sprintf("chunk header %.80q", line))
		}
	}
	if n > 0 {
		return nil
	}
	if c.trailer == "" {
		if err := c.end(); err != nil {
			return err
		}
		return c.empty(0)
	}
	text, err := c.r.ReadSlice('\n')
	if err != nil {
		return errChunk("a trailer without an end")
	}
	name, value, _ := strings.Cut(strings.TrimRight(string(text), "\r\n"), ":")
	if !strings.EqualFold(name, c.trailer) || value == "" {
		return errChunk(fmt.Sprintf("trailer %.80q instead of %s", text, c.trailer))
	}
	c.value = strings.TrimSpace(value)
	return c.empty(2)
}

// empty reads at most so many empty lines, and io.EOF behind them.
func (c *chunked) empty(most int) error {
	for range most + 1 {
		line, err := c.line()
		switch {
		case err == io.ErrUnexpectedEOF && line == "":
			return io.EOF
		case err != nil:
			return err
		case line != "":
			return errChunk("more behind the last chunk")
		}
	}
	return errChunk("more behind the last chunk")
}

// end reads the line end behind the data of a chunk, and checks its signature.
func (c *chunked) end() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	if line != "" {
		return errChunk("no line end behind a chunk")
	}
	if c.sign != nil {
		ok := c.sign.chunk(c.digest.Sum(nil), c.signature)
		c.digest.Reset()
		if !ok {
			return errChunkSignature
		}
	}
	return nil
}

// line reads one that ends in CRLF and is shorter than the buffer.
func (c *chunked) line() (string, error) {
	line, err := c.r.ReadSlice('\n')
	switch {
	case err == io.EOF:
		return string(line), io.ErrUnexpectedEOF
	case err == bufio.ErrBufferFull:
		return "", errChunk("a line without an end")
	case err != nil:
		return "", err
	}
	text, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return "", errChunk("a line that does not end in CRLF")
	}
	return string(text), nil
}
