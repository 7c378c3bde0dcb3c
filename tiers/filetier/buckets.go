package filetier

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
)

func init() {
	layouts["mooncake-bucket"] = func(b base) layout {
		return &buckets{base: b, writing: make(chan struct{}, 1), fewer: make(chan struct{})}
	}
}

// buckets is Mooncake's bucket backend. Objects wait in memory until a bucket is full. One call then
// writes all keys and values of the bucket, and its index follows. The files are removed with the
// bucket's last object. The request that fills a bucket writes it and waits; one bucket is written at a
// time. In the engine a thread writes buckets in the background. While one bucket is written and
// another one is full, no third bucket begins: it would only take memory.
type buckets struct {
	base
	writing chan struct{} // a semaphore of one: the request that writes a bucket

	mu      sync.Mutex
	full    int           // number of full buckets that are not yet written
	fewer   chan struct{} // closed and replaced when full decreases
	filling *bucket       // the bucket for the next objects; nil: the next object begins a bucket
	spare   [][]byte      // free list: new memory would have to be cleared
	last    int64         // number of the newest bucket
	written int64         // bytes of objects in written files that no commit has reported yet
}

// fullBuckets is the largest value of buckets.full. With two buckets the storage gets the next one as
// soon as it has completed one. More buckets would only take memory, 256 MiB each: with 16 workers 8.6
// GB instead of 6.2 GB, at the same rate (llama3.1-8b on tmpfs).
const fullBuckets = 2

// bucket has the objects of one file. Guarded by buckets.mu.
type bucket struct {
	name    string
	mem     []byte // mapped memory, outside the Go heap; nil after it is released
	end     int64  // bytes of mem in use
	places  []*bucketEntry
	pending int  // objects that are neither committed nor abandoned
	closed  bool // takes no more objects
	written bool // the file exists
	live    int  // objects that are neither abandoned nor freed
	copying int  // users of mem: readers, and the kernel while it writes
}

// bucketEntry is an object's place in a bucket.
type bucketEntry struct {
	o    tiers.Object
	in   *bucket
	mem  []byte
	off  int64 // in the file
	kept bool  // committed and not removed
}

// start creates no file: a bucket's file is created when the bucket is full.
func (b *buckets) start(context.Context) error {
	if bytes := b.t.cfg.Layout.Bytes; bytes > tiers.BucketBytes {
		return fmt.Errorf("an object of %d bytes is larger than a bucket of %d", bytes,
			tiers.BucketBytes)
	}
	b.t.traits.CountsAtCommit = true // a request only copies memory
	return nil
}

// takes returns the bytes of an object and of its key, which are in the file without padding.
func (b *buckets) takes(o tiers.Object) int64 { return o.Size + hashBytes }

// begin creates a bucket. Callers hold mu. The memory is mapped, so that the kernel gets it back when
// the bucket is written: the garbage collector would keep as much again.
func (b *buckets) begin() (*bucket, error) {
	// The engine's number: microseconds, and a count within each microsecond.
	b.last = max(b.last+1, time.Now().UnixMicro()<<12)
	k := &bucket{name: fmt.Sprint(b.last)}
	if n := len(b.spare); n > 0 {
		k.mem, b.spare = b.spare[n-1], b.spare[:n-1]
		return k, nil
	}
	size := min(tiers.BucketBytes, tiers.BucketKeys*b.t.cfg.Layout.Bytes)
	// Untouched pages take no memory, so a bucket that small objects do not fill costs little.
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory for a bucket of %d bytes: %w", size, err)
	}
	k.mem = mem
	return k, nil
}

// create reserves a range of the bucket's memory for an object. The bucket is complete when it has
// no capacity for another object of the usual size.
func (b *buckets) create(ctx context.Context, s *span) (err error) {
	o, most := s.run[0].o, b.t.cfg.Layout.Bytes
	if o.Size > most {
		return fmt.Errorf("%d bytes are more than an object's %d", o.Size, most)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// This waits for the device, which needs nothing that the caller may hold. So a caller that creates
	// several objects before it commits the first cannot deadlock.
	for b.filling == nil && b.full >= fullBuckets {
		fewer := b.fewer
		b.mu.Unlock()
		select {
		case <-fewer:
		case <-ctx.Done():
		}
		b.mu.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if b.filling == nil {
		if b.filling, err = b.begin(); err != nil {
			return err
		}
	}
	k := b.filling
	p := &bucketEntry{o: o, in: k, mem: k.mem[k.end : k.end+o.Size]}
	s.run[0].file, s.mem = p, p.mem
	k.end += o.Size
	k.pending++
	k.live++
	k.places = append(k.places, p)
	if k.end+most > int64(len(k.mem)) || len(k.places) == tiers.BucketKeys { // complete
		k.closed, b.filling = true, nil
	}
	return nil
}

// commit makes an object readable. The commit of a full bucket's last object writes the bucket.
func (b *buckets) commit(ctx context.Context, s *span) error {
	p := s.run[0].file.(*bucketEntry)
	s.closed = true
	b.mu.Lock()
	p.kept = true
	write := b.settle(p.in)
	b.mu.Unlock()
	err := b.finish(ctx, p.in, write)
	b.mu.Lock()
	s.written, b.written = b.written, 0
	b.mu.Unlock()
	return err
}

// abandon removes an object that is not committed, or whose commit failed to write the bucket.
func (b *buckets) abandon(s *span) error {
	if s.mem == nil { // it has no place
		return nil
	}
	p := s.run[0].file.(*bucketEntry)
	b.mu.Lock()
	p.kept = false
	p.in.live--
	write := !s.closed && b.settle(p.in)
	return errors.Join(b.unlock(p.in), b.finish(context.Background(), p.in, write))
}

// settle counts one object of a bucket as committed or abandoned. It reports whether the caller must
// write the bucket now, with finish. Callers hold mu.
func (b *buckets) settle(k *bucket) (write bool) {
	k.pending--
	if write = k.pending == 0 && k.closed && k.live > 0; write {
		b.full++
	}
	return write
}

// finish writes a bucket if write is set.
func (b *buckets) finish(ctx context.Context, k *bucket, write bool) error {
	if !write {
		return nil
	}
	defer func() {
		b.mu.Lock()
		b.full--
		close(b.fewer)
		b.fewer = make(chan struct{})
		b.mu.Unlock()
	}()
	select {
	case b.writing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-b.writing }()
	size, err := b.write(ctx, k)
	b.mu.Lock()
	if k.written = err == nil; k.written {
		b.written += size
	}
	return errors.Join(err, b.unlock(k))
}

// write writes the objects of a bucket to its file, one after the other, and their offsets to its
// index. It returns the sum of the objects' bytes.
func (b *buckets) write(ctx context.Context, k *bucket) (size int64, err error) {
	b.mu.Lock()
	var vec [][]byte
	var index strings.Builder
	end := int64(0)
	for _, p := range k.places {
		if !p.kept {
			continue
		}
		key := hash(p.o)
		p.off = end + hashBytes
		end = p.off + p.o.Size
		size += p.o.Size
		vec = append(vec, []byte(key), p.mem)
		fmt.Fprintf(&index, "%s %d %d\n", key, p.off, p.o.Size)
	}
	k.copying++
	b.mu.Unlock()
	// The kernel reads the memory until the call completes, which may be after this function has
	// returned. Until then the memory must not be reused.
	copied := func() {
		b.mu.Lock()
		k.copying--
		_ = b.unlock(k) // if the call completes after its caller has returned
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC
	path := k.name + ".bucket"
	fd, err := b.calls.open(path, flags, 0o644)
	if err != nil {
		copied()
		return size, err
	}
	if err := b.t.submitLast(ctx, path, &ioengine.Op{Kind: ioengine.Write, FD: fd, N: int(end), Vec: vec},
		copied); err != nil {
		return size, err
	}
	path = k.name + ".meta"
	if fd, err = b.calls.open(path, flags, 0o644); err != nil {
		return size, err
	}
	err = b.calls.write(fd, path, []byte(index.String()))
	return size, errors.Join(err, b.calls.close(fd, path))
}

// open opens an object: in memory, if its bucket is not written yet, or else in the bucket's file,
// which is opened for each object.
func (b *buckets) open(_ context.Context, s *span) (err error) {
	p := s.run[0].file.(*bucketEntry)
	s.path = p.in.name + ".bucket"
	b.mu.Lock()
	if !p.in.written {
		p.in.copying++
		s.mem = p.mem
	}
	s.at = p.off
	b.mu.Unlock()
	if s.mem == nil {
		s.whole = single
		s.fd, err = b.calls.open(s.path, unix.O_RDONLY, 0)
	}
	return err
}

// done releases the memory or the descriptor of an object that was read.
func (b *buckets) done(s *span) error {
	if s.mem == nil {
		return b.calls.close(s.fd, s.path)
	}
	k := s.run[0].file.(*bucketEntry).in
	b.mu.Lock()
	k.copying--
	return b.unlock(k)
}

// remove marks an object, so that its bytes are not written with the bucket. The engine removes only
// whole buckets, and so does the cache (evict.NewBuckets). Here concurrent requests mix their objects
// in one file, so the file may exist longer than the cache's bucket.
func (b *buckets) remove(e *entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.file.(*bucketEntry).kept = false
	return nil
}

// free ends the use of a bucket by an object. The last object removes the files.
func (b *buckets) free(e *entry) error {
	k := e.file.(*bucketEntry).in
	b.mu.Lock()
	k.live--
	return b.unlock(k)
}

// unlock ends a change of a bucket. It releases mu, and then the memory and the files that have no more
// users. The memory is reused for another bucket.
func (b *buckets) unlock(k *bucket) (err error) {
	over := k.written && k.live == 0
	var rest []byte
	if k.copying == 0 && (k.written || k.closed && k.pending == 0 && k.live == 0) {
		rest, k.mem = k.mem, nil
		if rest != nil && len(b.spare) < 2 {
			b.spare, rest = append(b.spare, rest), nil
		}
	}
	b.mu.Unlock()
	if rest != nil {
		err = unmap(rest)
	}
	if over { // the index first
		err = errors.Join(err, b.t.unlink(k.name+".meta"), b.t.unlink(k.name+".bucket"))
	}
	return err
}

// unmap releases memory.
func unmap(mem []byte) error { return os.NewSyscallError("munmap", unix.Munmap(mem)) }

// close discards the objects of unwritten buckets and unmaps all memory.
func (b *buckets) close() (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := map[*bucket]bool{}
	if b.filling != nil {
		rest[b.filling] = true
	}
	for _, e := range b.t.entries {
		rest[e.file.(*bucketEntry).in] = true
	}
	for k := range rest {
		if k.mem != nil {
			b.spare = append(b.spare, k.mem)
		}
	}
	for _, mem := range b.spare {
		err = errors.Join(err, unmap(mem))
	}
	b.spare, b.filling = nil, nil
	return err
}
