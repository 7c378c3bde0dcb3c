package s3double

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// store is what the buckets hold: an index in memory over bodies in files, one for each PUT or
// part, which are never changed. An object made of parts keeps their files, so that completing an
// upload copies nothing.
type store struct {
	dir  string
	mine bool // made by us, so it goes at the end
	now  func() time.Time

	mu      sync.Mutex
	files   int // names given
	buckets map[string]*bucket
}

// bucket is never made or removed: a client of a benchmark has to do without.
type bucket struct {
	objects map[string]*object
	sorted  []string // the keys in order; nil when it has to be made again
	uploads map[string]*upload
}

// object is committed bytes with their headers.
type object struct {
	body     []piece
	size     int64
	etag     string // with its quotes
	modified time.Time
	header   http.Header // Content-Type and x-amz-meta-*
}

// piece is the body of one PUT or part.
type piece struct {
	file     string
	size     int64
	checksum [2]string // header and value, if the client gave one
}

// upload is a multipart upload under way.
type upload struct {
	id, key string
	begun   time.Time
	header  http.Header
	parts   map[int]*part
}

// part is one that waits for the completion of its upload.
type part struct {
	piece
	etag     string
	modified time.Time
}

func openStore(dir string, skew time.Duration, buckets []string) (*store, error) {
	s := &store{dir: dir, buckets: map[string]*bucket{},
		// S3's times have whole seconds in headers, milliseconds in lists.
		now: func() time.Time { return time.Now().Add(skew).UTC().Truncate(time.Millisecond) }}
	if dir == "" {
		// Memory, where the machine has such a place: bodies must not wait for its disk.
		parent := "/dev/shm"
		if _, err := os.Stat(parent); err != nil {
			parent = ""
		}
		var err error
		if s.dir, err = os.MkdirTemp(parent, "s3double-"); err != nil {
			return nil, err
		}
		s.mine = true
	}
	for _, name := range buckets {
		s.buckets[name] = &bucket{objects: map[string]*object{}, uploads: map[string]*upload{}}
	}
	return s, nil
}

// close removes the bodies, and the directory if it was made for them.
func (s *store) close() error {
	if s.mine {
		return os.RemoveAll(s.dir)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.buckets {
		for key := range b.objects {
			s.remove(b, key)
		}
		for id := range b.uploads {
			s.drop(b, id)
		}
	}
	return nil
}

// buffers carry bodies from connections to files.
var buffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// write stores a body in a file of its own, which goes if anything fails: the reader may panic.
func (s *store) write(body io.Reader) (p piece, err error) {
	s.mu.Lock()
	s.files++
	p.file = filepath.Join(s.dir, fmt.Sprintf("body-%08d", s.files))
	s.mu.Unlock()
	f, err := os.OpenFile(p.file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return p, err
	}
	written := false
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil || !written {
			s.unlink(p)
		}
	}()
	b := buffers.Get().(*[256 << 10]byte)
	defer buffers.Put(b)
	// The file's own ReadFrom would take 32 KiB at a time.
	p.size, err = io.CopyBuffer(struct{ io.Writer }{f}, body, b[:])
	written = true
	return p, err
}

func (s *store) unlink(pieces ...piece) {
	for _, p := range pieces {
		_ = os.Remove(p.file)
	}
}

// remove takes an object away, if there is one; whoever is reading it keeps its files open.
func (s *store) remove(b *bucket, key string) {
	if o, found := b.objects[key]; found {
		s.unlink(o.body...)
		delete(b.objects, key)
		b.sorted = nil
	}
}

// drop takes an upload away with its parts.
func (s *store) drop(b *bucket, id string) {
	for _, p := range b.uploads[id].parts {
		s.unlink(p.piece)
	}
	delete(b.uploads, id)
}

// set makes an object visible, in the place of another.
func (s *store) set(b *bucket, key string, o *object) {
	if old, found := b.objects[key]; found {
		s.unlink(old.body...)
	} else {
		b.sorted = nil
	}
	o.modified = s.now()
	b.objects[key] = o
}

// keys are those that begin with prefix, in order. They are sorted once after a change of the keys,
// not of the bodies, and lists of many pages cost a search each.
func (b *bucket) keys(prefix string) []string {
	if b.sorted == nil {
		b.sorted = slices.Sorted(maps.Keys(b.objects))
	}
	from, _ := slices.BinarySearch(b.sorted, prefix)
	n := 0
	for n < len(b.sorted)-from && strings.HasPrefix(b.sorted[from+n], prefix) {
		n++
	}
	return b.sorted[from : from+n]
}

// open returns the files of a range of an object's body, positioned, to be read one after the
// other. They are open before the lock is given back, so that a removal does not matter.
func (o *object) open(off, n int64) (sections []section, err error) {
	for _, p := range o.body {
		if off >= p.size {
			off -= p.size
			continue
		}
		if n == 0 {
			break
		}
		f, err := os.Open(p.file)
		if err == nil {
			_, err = f.Seek(off, io.SeekStart)
		}
		if err != nil {
			closeAll(sections)
			return nil, err
		}
		length := min(n, p.size-off)
		sections = append(sections, section{f, length})
		off, n = 0, n-length
	}
	return sections, nil
}

// section is what to send of a file, from where it stands.
type section struct {
	file   *os.File
	length int64
}

func closeAll(sections []section) {
	for _, s := range sections {
		_ = s.file.Close()
	}
}

// newETag is one that no other body has. It is no MD5, which would cost 1.5 s of processor for a
// GiB and which clients may not rely on: multipart uploads and encrypted objects have none either.
func newETag() string { return `"` + newID() + `"` }

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// keysOf, uploadsOf, bodyOf, put: what tests see and do past the protocol. See Double.
func (s *store) keysOf(bucket, prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[bucket]
	if b == nil {
		return nil
	}
	return slices.Clone(b.keys(prefix))
}

func (s *store) uploadsOf(bucket string) (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[bucket]; b != nil {
		for _, u := range b.uploads {
			keys = append(keys, u.key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (s *store) bodyOf(bucket, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[bucket]
	if b == nil || b.objects[key] == nil {
		return nil, fmt.Errorf("%s/%s: %w", bucket, key, os.ErrNotExist)
	}
	var body []byte
	for _, p := range b.objects[key].body {
		read, err := os.ReadFile(p.file)
		if err != nil {
			return nil, err
		}
		body = append(body, read...)
	}
	return body, nil
}

func (s *store) put(bucket, key, body string, modified time.Time) error {
	p, err := s.write(strings.NewReader(body))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &object{body: []piece{p}, size: p.size, etag: newETag()}
	s.set(s.buckets[bucket], key, o)
	if !modified.IsZero() {
		o.modified = modified.UTC()
	}
	return nil
}
