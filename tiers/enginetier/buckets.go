package enginetier

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

// buckets is Mooncake's bucket backend: objects wait in memory until a bucket is full, which is
// then written with one call, all keys and all values, and its index after it. A file is gone with
// its last object. Whoever fills a bucket writes it, one at a time, and waits for it; in the engine
// one thread does that behind the requests. While one is written and the next one is full, a third
// is not begun: it would wait in memory, too, and so would one of each worker.
type buckets struct {
	t     *Tier
	calls *calls

	writing chan struct{} // whoever writes a bucket

	mu      sync.Mutex
	full    int           // buckets that are written, or are about to be
	fewer   chan struct{} // closed, and made anew, when there is one less of them
	filling *bucket       // takes the next objects; nil: a new one does
	spare   [][]byte      // a few that are used again: making one means clearing it
	last    int64         // number of the newest bucket
	written int64         // bytes of objects in files, which no commit has reported yet
	at      map[tiers.ID]*place
}

// fullBuckets are how many are written, or wait for that, before no new one is begun. With two the
// storage has the next one as soon as it is done with one; more would only lie in memory, 256 MiB
// each: with 16 workers it was 8.6 GB instead of 6.2, at the same rate (llama3.1-8b on tmpfs).
const fullBuckets = 2

// bucket is objects that lie in a file together. Guarded by buckets.mu.
type bucket struct {
	name    string
	mem     []byte // of no garbage collector; nil once nobody has a use for it
	end     int64  // of what mem holds
	places  []*place
	pending int // objects that are neither committed nor given up
	closed  bool
	written bool // the file is there
	live    int  // objects that are not removed
	readers int
	copying int // who has a use for mem: readers, and the kernel that writes it
	gone    bool
}

// place is an object's place in a bucket.
type place struct {
	o         tiers.Object
	in        *bucket
	mem       []byte
	key       string
	off       int64 // in the file
	committed bool
	dead      bool
}

func newBuckets(t *Tier) *buckets {
	return &buckets{t: t, calls: &t.calls, writing: make(chan struct{}, 1),
		fewer: make(chan struct{}), at: make(map[tiers.ID]*place)}
}

// start makes nothing: a bucket's file is made when the bucket is full.
func (b *buckets) start(context.Context) error {
	if b.t.cfg.Bytes > tiers.BucketBytes {
		return fmt.Errorf("an object of %d bytes is larger than a bucket of %d", b.t.cfg.Bytes,
			tiers.BucketBytes)
	}
	b.t.traits.CountsAtCommit = true // what a request does is a copy
	return nil
}

// fits says whether an object may be in a bucket, too. It is never asked for more than a bucket.
func (k *bucket) fits(n int64) bool {
	return k.end+n <= int64(len(k.mem)) && len(k.places) < tiers.BucketKeys
}

// begin makes a bucket. Callers hold mu. Its memory is the kernel's again when it is written: a
// collector would leave as much lying about as there is in use.
func (b *buckets) begin() (*bucket, error) {
	// The engine's number: microseconds and a count within one.
	b.last = max(b.last+1, time.Now().UnixMicro()<<12)
	k := &bucket{name: fmt.Sprint(b.last)}
	if n := len(b.spare); n > 0 {
		k.mem, b.spare = b.spare[n-1], b.spare[:n-1]
		return k, nil
	}
	size := min(tiers.BucketBytes, tiers.BucketKeys*b.t.cfg.Bytes)
	// Pages that nobody has touched take no room: small objects that end a run fill no bucket.
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory for a bucket of %d bytes: %w", size, err)
	}
	k.mem = mem
	return k, nil
}

// create gives an object a stretch of the bucket's memory. The bucket is complete when no further
// object of the usual size would fit.
func (b *buckets) create(ctx context.Context, o tiers.Object) (*file, error) {
	if o.Size > b.t.cfg.Bytes {
		return nil, fmt.Errorf("%d bytes are more than an object's %d", o.Size, b.t.cfg.Bytes)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// What is waited for is at the device, and needs nothing that whoever waits here may hold: so
	// somebody who makes several objects before the first is committed can wait, too.
	for b.filling == nil && b.full >= fullBuckets {
		fewer := b.fewer
		b.mu.Unlock()
		select {
		case <-fewer:
		case <-ctx.Done():
		}
		b.mu.Lock()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	k := b.filling
	if k == nil {
		var err error
		if k, err = b.begin(); err != nil {
			return nil, err
		}
		b.filling = k
	}
	p := &place{o: o, in: k, mem: k.mem[k.end : k.end+o.Size], key: hash(o)}
	k.end += o.Size
	k.pending++
	k.live++
	k.places = append(k.places, p)
	b.at[o.ID()] = p
	if !k.fits(b.t.cfg.Bytes) { // complete: nothing more comes
		k.closed, b.filling = true, nil
	}
	return &file{o: o, fd: -1, mem: p.mem, in: k}, nil
}

// commit lets an object be read, and writes the bucket with the last of it.
func (b *buckets) commit(ctx context.Context, f *file) error {
	b.mu.Lock()
	b.at[f.o.ID()].committed = true
	write := b.settle(f.in)
	b.mu.Unlock()
	err := b.finish(ctx, f.in, write)
	b.mu.Lock()
	f.written, b.written = b.written, 0
	b.mu.Unlock()
	return err
}

// settle says that one more object of a bucket is decided, and whether the bucket is to be written
// now: finish does. Callers hold mu.
func (b *buckets) settle(k *bucket) (write bool) {
	k.pending--
	if write = k.pending == 0 && k.closed && k.live > 0; write {
		b.full++
	}
	return write
}

// abandon leaves a stretch of memory unused: it is not written with the bucket.
func (b *buckets) abandon(f *file) error {
	b.mu.Lock()
	p := b.at[f.o.ID()]
	delete(b.at, f.o.ID())
	p.dead = true
	f.in.live--
	write := !p.committed && b.settle(f.in) // else it was the bucket that could not be written
	over := b.over(f.in)
	rest := b.recycle(f.in)
	b.mu.Unlock()
	return errors.Join(b.finish(context.Background(), f.in, write), unmap(rest),
		b.unlink(f.in, over))
}

// finish writes a bucket, if it is to be written.
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
	rest := b.recycle(k)
	over := b.over(k)
	b.mu.Unlock()
	return errors.Join(err, unmap(rest), b.unlink(k, over))
}

// write puts the objects of a bucket into its file, one behind the other, and says where in its
// index. It returns their bytes.
func (b *buckets) write(ctx context.Context, k *bucket) (size int64, err error) {
	b.mu.Lock()
	var vec [][]byte
	var index strings.Builder
	n, end := 0, int64(0)
	for _, p := range k.places {
		if p.dead || !p.committed {
			continue
		}
		p.off = end + int64(len(p.key))
		end = p.off + p.o.Size
		size += p.o.Size
		vec = append(vec, []byte(p.key), p.mem)
		n += len(p.key) + len(p.mem)
		fmt.Fprintf(&index, "%s %d %d\n", p.key, p.off, p.o.Size)
	}
	k.copying++
	b.mu.Unlock()
	// The kernel reads the memory until its call is back, which may be long after this has given up
	// waiting: a device that hangs must not get what the next bucket puts there.
	written := func() {
		b.mu.Lock()
		k.copying--
		rest := b.recycle(k) // where nobody waited for the kernel
		b.mu.Unlock()
		_ = unmap(rest)
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC
	path := k.name + ".bucket"
	fd, err := b.calls.open(path, flags, 0o644)
	if err != nil {
		written()
		return size, err
	}
	if err := b.t.last(ctx, &b.t.limits.stores, path, &ioengine.Op{Kind: ioengine.Write, FD: fd,
		N: n, Vec: vec}, written); err != nil {
		return size, err
	}
	path = k.name + ".meta"
	if fd, err = b.calls.open(path, flags, 0o644); err != nil {
		return size, err
	}
	err = b.calls.write(fd, path, []byte(index.String()))
	return size, errors.Join(err, b.calls.close(fd, path))
}

// open reads from memory what is not written yet, and else from the bucket's file, which is opened
// each time.
func (b *buckets) open(_ context.Context, o tiers.Object) (*file, error) {
	b.mu.Lock()
	p := b.at[o.ID()]
	if p == nil {
		b.mu.Unlock()
		return nil, tiers.ErrNotFound
	}
	k := p.in
	k.readers++
	f := &file{o: o, fd: -1, path: k.name + ".bucket", in: k, at: p.off}
	written := k.written
	if !written {
		k.copying++
		f.mem = p.mem
	}
	b.mu.Unlock()
	if !written {
		return f, nil
	}
	var err error
	if f.fd, err = b.calls.open(f.path, unix.O_RDONLY, 0); err != nil {
		return nil, errors.Join(err, b.done(f))
	}
	f.whole = single
	return f, nil
}

// done lets go of memory or of a descriptor; the last reader of a bucket that nobody needs removes
// its files.
func (b *buckets) done(f *file) (err error) {
	if f.fd >= 0 {
		err = b.calls.close(f.fd, f.path)
	}
	b.mu.Lock()
	k := f.in
	k.readers--
	if f.mem != nil {
		k.copying--
	}
	over := b.over(k)
	rest := b.recycle(k)
	b.mu.Unlock()
	return errors.Join(err, unmap(rest), b.unlink(k, over))
}

// remove takes an object out. In the engine it never goes alone, and here the cache gives up whole
// buckets, too (evict.NewBuckets): but which requests wrote side by side is known here alone, so a
// file may outlive its bucket there by the objects of another one.
func (b *buckets) remove(o tiers.Object) error {
	b.mu.Lock()
	p := b.at[o.ID()]
	if p == nil {
		b.mu.Unlock()
		return tiers.ErrNotFound
	}
	delete(b.at, o.ID())
	p.dead = true
	p.in.live--
	over := b.over(p.in)
	rest := b.recycle(p.in)
	b.mu.Unlock()
	return errors.Join(unmap(rest), b.unlink(p.in, over))
}

// over says, once, that nobody needs the files of a bucket any more. Callers hold mu.
func (b *buckets) over(k *bucket) bool {
	if !k.written || k.gone || k.live > 0 || k.readers > 0 {
		return false
	}
	k.gone = true
	return true
}

// recycle lets the memory of a bucket be used again, once it is on the disk or nothing of it is
// needed. What is not needed at all it returns: for unmap, without the lock. Callers hold mu.
func (b *buckets) recycle(k *bucket) (rest []byte) {
	settled := k.written || k.closed && k.pending == 0 && k.live == 0
	if !settled || k.copying > 0 || k.mem == nil {
		return nil
	}
	if rest = k.mem; len(b.spare) < 2 {
		b.spare, rest = append(b.spare, k.mem), nil
	}
	k.mem = nil
	for _, p := range k.places {
		p.mem = nil
	}
	return rest
}

// unmap gives memory back.
func unmap(mem []byte) error {
	if mem == nil {
		return nil
	}
	return os.NewSyscallError("munmap", unix.Munmap(mem))
}

// unlink removes the files of a bucket, its index first.
func (b *buckets) unlink(k *bucket, over bool) error {
	if !over || b.t.leaves.Load() {
		return nil
	}
	return errors.Join(b.calls.unlink(k.name+".meta"), b.calls.unlink(k.name+".bucket"))
}

// lookUp: the engine knows by heart what is where.
func (b *buckets) lookUp([]tiers.Object) error { return nil }

// takes: values lie one behind the other, each after its key.
func (b *buckets) takes(o tiers.Object) int64 { return o.Size + hashBytes }

// close gives up what is in no complete bucket, whose memory goes, as that of all that nobody has a
// use for.
func (b *buckets) close() (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, mem := range b.spare {
		err = errors.Join(err, unmap(mem))
	}
	b.spare = nil
	for _, p := range b.at { // of complete ones those that could not be written
		if k := p.in; k.pending == 0 && k.copying == 0 {
			err = errors.Join(err, unmap(k.mem))
			k.mem = nil
		}
	}
	if k := b.filling; k != nil && k.pending == 0 && k.copying == 0 {
		err = errors.Join(err, unmap(k.mem)) // of which nothing may be left
		k.mem, b.filling = nil, nil
	}
	return err
}
