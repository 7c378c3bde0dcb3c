package filetier

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
)

func init() {
	layouts["mooncake-bucket"] = func(b base) layout { return &buckets{base: b} }
	layouts["mooncake-offset"] = func(b base) layout {
		return &mooncakeOffset{engineSlots(b, pageSize, "kv_cache.data", unix.O_TRUNC)}
	}
}

// mostBuckets limits the buckets that fill in memory, wait or are being written. With two of them the
// storage gets the next one as soon as it has completed one. More would only take memory, 256 MiB each:
// with 16 workers 8.6 GB instead of 6.2 GB, at the same rate (llama3.1-8b on tmpfs).
const mostBuckets = 2

// buckets is Mooncake's bucket backend. Objects wait in memory until a bucket is full. One call then
// writes all keys and values of the bucket, and its index follows. The files are removed with the
// bucket's last object. The request that fills a bucket writes it and waits; one bucket is written at a
// time. In the engine a thread writes buckets in the background.
type buckets struct {
	base
	writing chan struct{} // a semaphore of one: the request that writes a bucket
	// memory has the memory of each bucket that may begin: nil before it is mapped. It is reused, because
	// new memory would have to be cleared.
	memory chan []byte

	// Guarded by Tier.mu.
	filling *bucket // the bucket for the next objects; nil: the next object begins a bucket
	last    int64   // number of the newest bucket
	written int64   // bytes of objects in written files that no commit has reported yet
}

// bucket has the objects of one file. Guarded by Tier.mu.
type bucket struct {
	path    string   // without extension
	mem     []byte   // mapped memory, outside the Go heap; nil after it is released
	end     int64    // bytes of mem in use
	entries []*entry // nil: abandoned or removed. entry.at is an offset in mem, and then in the file
	pending int      // objects that are neither committed nor abandoned
	closed  bool     // takes no more objects
	written bool     // the file exists
	failed  bool     // it could not be written
	live    int      // objects that are neither abandoned nor freed
	users   int      // of mem: readers, and the kernel while it writes
}

// bucketOf returns the bucket of an object.
func bucketOf(e *entry) *bucket { return e.file.(*bucket) }

// start creates no file: a bucket's file is created when the bucket is full.
func (b *buckets) start(context.Context) error {
	if bytes := b.t.cfg.Layout.Bytes; bytes > tiers.BucketBytes {
		return fmt.Errorf("an object of %d bytes is larger than a bucket of %d", bytes,
			tiers.BucketBytes)
	}
	b.t.traits.CountsAtCommit = true // a request only copies memory
	b.writing, b.memory = make(chan struct{}, 1), make(chan []byte, mostBuckets)
	for range mostBuckets {
		b.memory <- nil
	}
	return nil
}

// takes returns the bytes of an object and of its key, which are in the file without padding.
func (b *buckets) takes(o tiers.Object) int64 { return o.Size + workdir.HashDigits }

// begin creates a bucket, as soon as one may begin. With wait false it does not wait for that, because
// a full bucket waits for the commit of its objects, which the caller may have created. The memory is
// mapped, so that the kernel gets it back: the garbage collector would keep as much again. Callers hold
// Tier.mu, which begin releases meanwhile.
func (b *buckets) begin(ctx context.Context, wait bool) (err error) {
	b.t.mu.Unlock()
	var mem []byte
	select {
	case mem = <-b.memory:
	default:
		if !wait {
			err = errApart
			break
		}
		select {
		case mem = <-b.memory:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err == nil && mem == nil {
		// Untouched pages take no memory, so a bucket that small objects do not fill costs little.
		size := min(tiers.BucketBytes, tiers.BucketKeys*b.t.cfg.Layout.Bytes)
		mem, err = unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			err = fmt.Errorf("memory for a bucket of %d bytes: %w", size, err)
		}
	}
	b.t.mu.Lock()
	switch {
	case err != nil:
		return err
	case b.filling != nil: // another request has begun one
		return b.recycle(mem)
	}
	// The engine's number: microseconds, and a count within each microsecond.
	b.last = max(b.last+1, time.Now().UnixMicro()<<12)
	b.filling = &bucket{path: fmt.Sprint(b.last), mem: mem}
	return nil
}

// recycle lets another bucket begin, in the memory of one that has ended. Memory beyond mostBuckets is
// unmapped.
func (b *buckets) recycle(mem []byte) error {
	select {
	case b.memory <- mem:
		return nil
	default:
		return unmap(mem)
	}
}

// unmap releases memory, if it is mapped.
func unmap(mem []byte) error {
	if mem == nil {
		return nil
	}
	return os.NewSyscallError("munmap", unix.Munmap(mem))
}

// create reserves a range of the bucket's memory for an object. The bucket is complete when it has
// no capacity for another object of the usual size.
func (b *buckets) create(ctx context.Context, s *span) error {
	e, most := s.run[0], b.t.cfg.Layout.Bytes
	if e.o.Size > most {
		return fmt.Errorf("%d bytes are more than an object's %d", e.o.Size, most)
	}
	b.t.mu.Lock()
	defer b.t.mu.Unlock()
	for b.filling == nil {
		if err := b.begin(ctx, s.start == 0); err != nil {
			return err
		}
	}
	k := b.filling
	e.file, e.at = k, k.end
	k.end += e.o.Size
	s.mem = k.mem[e.at:k.end]
	k.pending++
	k.live++
	k.entries = append(k.entries, e)
	if k.end+most > int64(len(k.mem)) || len(k.entries) == tiers.BucketKeys { // complete
		k.closed, b.filling = true, nil
	}
	return nil
}

// drop takes an object out of a bucket that is not written yet. Callers hold Tier.mu.
func (k *bucket) drop(e *entry) {
	if i := slices.Index(k.entries, e); i >= 0 {
		k.entries[i] = nil
	}
}

// commit makes an object readable. The commit of a full bucket's last object writes the bucket.
func (b *buckets) commit(ctx context.Context, s *span) error {
	s.closed = true
	b.t.mu.Lock()
	err := b.settle(ctx, bucketOf(s.run[0]))
	b.t.mu.Lock()
	defer b.t.mu.Unlock()
	s.written, b.written = b.written, 0
	return err
}

// abandon removes an object that is not committed, or whose commit failed to write the bucket.
func (b *buckets) abandon(s *span) error {
	if s.mem == nil { // it has no place
		return nil
	}
	k := bucketOf(s.run[0])
	b.t.mu.Lock()
	k.drop(s.run[0])
	k.live--
	if s.closed {
		return b.unlock(k)
	}
	return b.settle(context.Background(), k)
}

// settle counts one object of a bucket as committed or abandoned, and writes the bucket if it was the
// last one. Callers hold Tier.mu, which settle unlocks.
func (b *buckets) settle(ctx context.Context, k *bucket) error {
	k.pending--
	if k.pending > 0 || !k.closed || k.live == 0 {
		return b.unlock(k)
	}
	b.t.mu.Unlock()
	select {
	case b.writing <- struct{}{}:
		defer func() { <-b.writing }()
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), b.fail(k))
	}
	entries, places, err := b.write(ctx, k)
	if err != nil { // objects that are committed stay in memory
		return errors.Join(err, b.fail(k))
	}
	b.t.mu.Lock()
	k.written = true
	for i, e := range entries {
		if e != nil {
			b.written += e.o.Size
			e.at = places[i]
		}
	}
	return b.unlock(k)
}

// fail removes the files of a bucket that was not written, and lets another bucket begin. The memory stays until
// the bucket's last object is removed, and is then unmapped: its place is given back here.
func (b *buckets) fail(k *bucket) (err error) {
	b.t.mu.Lock()
	again := k.mem != nil // else unlock has given its place back
	k.failed = true
	b.t.mu.Unlock()
	if again {
		err = b.recycle(nil)
	}
	for _, path := range []string{k.path + ".meta", k.path + ".bucket"} {
		if gone := b.t.unlink(path); !errors.Is(gone, unix.ENOENT) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// write writes the objects of a bucket to its file, one after the other, and their offsets to its
// index. It returns the objects and their offsets.
func (b *buckets) write(ctx context.Context, k *bucket) (entries []*entry, places []int64, err error) {
	b.t.mu.Lock()
	entries = slices.Clone(k.entries)
	k.users++
	b.t.mu.Unlock()
	var vec [][]byte
	var index strings.Builder
	places = make([]int64, len(entries))
	end := int64(0)
	for i, e := range entries {
		if e == nil {
			continue
		}
		key := workdir.Hash(e.o)
		places[i] = end + workdir.HashDigits
		end = places[i] + e.o.Size
		vec = append(vec, []byte(key), k.mem[e.at:e.at+e.o.Size])
		fmt.Fprintf(&index, "%s %d %d\n", key, places[i], e.o.Size)
	}
	// The kernel reads the memory until the call completes, which may be after this function has
	// returned. Until then the memory must not be reused.
	copied := func() {
		b.t.mu.Lock()
		k.users--
		_ = b.unlock(k) // if the call completes after its caller has returned
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC
	path := k.path + ".bucket"
	fd, err := b.calls.open(path, flags, 0o644)
	if err != nil {
		copied()
		return nil, nil, err
	}
	if err := b.t.submitLast(ctx, path, &ioengine.Op{Kind: ioengine.Write, FD: fd, N: int(end), Vec: vec},
		copied); err != nil {
		return nil, nil, err
	}
	path = k.path + ".meta"
	if fd, err = b.calls.open(path, flags, 0o644); err != nil {
		return nil, nil, err
	}
	err = b.calls.write(fd, path, []byte(index.String()))
	return entries, places, errors.Join(err, b.calls.close(fd, path))
}

// open opens an object: in memory, if its bucket is not written yet, or else in the bucket's file,
// which is opened for each object.
func (b *buckets) open(_ context.Context, s *span) (err error) {
	e := s.run[0]
	k := bucketOf(e)
	s.path = k.path + ".bucket"
	b.t.mu.Lock()
	s.at = e.at
	if !k.written {
		k.users++
		s.mem = k.mem[e.at : e.at+e.o.Size]
	}
	b.t.mu.Unlock()
	if s.mem == nil {
		s.whole = single
		s.fd, err = b.calls.open(s.path, unix.O_RDONLY, 0)
	}
	return err
}

// done releases the memory or the descriptor of an object that was read.
func (b *buckets) done(s *span) error {
	if s.mem == nil {
		return b.base.done(s)
	}
	k := bucketOf(s.run[0])
	b.t.mu.Lock()
	k.users--
	return b.unlock(k)
}

// remove marks an object, so that its bytes are not written with the bucket. The engine removes only
// whole buckets, and so does the cache (evict.NewBuckets). Here concurrent requests mix their objects
// in one file, so the file may exist longer than the cache's bucket.
func (b *buckets) remove(e *entry) error {
	b.t.mu.Lock()
	defer b.t.mu.Unlock()
	bucketOf(e).drop(e)
	return nil
}

// free ends the use of a bucket by an object. The last object removes the files.
func (b *buckets) free(e *entry) error {
	k := bucketOf(e)
	b.t.mu.Lock()
	k.live--
	return b.unlock(k)
}

// unlock ends a change of a bucket. It unlocks Tier.mu, and then releases the memory and the files that
// have no more users.
func (b *buckets) unlock(k *bucket) (err error) {
	unused := k.closed && k.pending == 0 && k.live == 0
	failed := k.failed
	var mem []byte
	if k.users == 0 && (k.written || unused) {
		mem, k.mem = k.mem, nil
	}
	b.t.mu.Unlock()
	switch {
	case mem != nil && failed:
		err = unmap(mem)
	case mem != nil:
		err = b.recycle(mem)
	}
	if k.written && unused { // the index first
		err = errors.Join(err, b.t.unlink(k.path+".meta"), b.t.unlink(k.path+".bucket"))
	}
	return err
}

// close discards the objects of unwritten buckets and unmaps all memory.
func (b *buckets) close() (err error) {
	b.t.mu.Lock()
	defer b.t.mu.Unlock()
	buckets := []*bucket{}
	if b.filling != nil {
		buckets = append(buckets, b.filling)
	}
	for _, e := range b.t.entries {
		buckets = append(buckets, bucketOf(e))
	}
	for _, k := range buckets {
		err = errors.Join(err, unmap(k.mem))
		k.mem = nil
	}
	for len(b.memory) > 0 {
		err = errors.Join(err, unmap(<-b.memory))
	}
	return err
}

// mooncakeOffset is Mooncake's offset_allocator: records of header, key and value in one
// preallocated file; the value begins at a page. One call writes a record and three calls read it. The
// engine truncates an existing file, unless it is set to persist.
type mooncakeOffset struct{ *slots }

// recordHeader is the bytes before a record's key.
const recordHeader = 24

// create prepares the bytes before the value: header, key and padding.
func (l *mooncakeOffset) create(ctx context.Context, s *span) error {
	key := workdir.Hash(s.run[0].o)
	head := make([]byte, pageSize)
	binary.LittleEndian.PutUint64(head, uint64(len(key)))
	binary.LittleEndian.PutUint64(head[8:], uint64(s.run[0].o.Size))
	copy(head[recordHeader:], key)
	err := l.slots.create(ctx, s)
	s.whole = func(op *ioengine.Op) {
		op.Vec = [][]byte{head[:recordHeader], head[recordHeader : recordHeader+len(key)],
			head[recordHeader+len(key):], op.Buf.B[:op.N]}
		op.Off, op.N = op.Off-pageSize, op.N+pageSize
	}
	return err
}

// open reads header and key, which the engine compares with the key that it looks for.
func (l *mooncakeOffset) open(ctx context.Context, s *span) error {
	if err := l.slots.open(ctx, s); err != nil {
		return err
	}
	s.whole = single
	head := make([]byte, recordHeader+workdir.HashDigits)
	off := s.at - pageSize
	for _, part := range [][]byte{head[:recordHeader], head[recordHeader:]} {
		op := &ioengine.Op{Kind: ioengine.Read, FD: s.fd, Off: off, N: len(part), Vec: [][]byte{part}}
		if err := l.t.await(ctx, &l.t.limits.loads, op, nil); err != nil {
			return err
		}
		off += recordHeader
	}
	return nil
}
