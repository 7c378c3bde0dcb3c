package enginetier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/ioengine"
)

// perFile is what the layouts with a file for each object have in common: the file is written under
// another name and renamed.
type perFile struct {
	t      *Tier
	calls  *calls
	model  string
	direct bool
	path   func(o tiers.Object) string               // of an object's file
	look   func(path string) (there bool, err error) // the call with which the engine looks for it
}

// open opens a whole file for one read.
func (p *perFile) open(_ context.Context, o tiers.Object) (*file, error) {
	path := p.path(o)
	fd, err := p.calls.open(path, unix.O_RDONLY|past(p.direct), 0)
	if err != nil {
		return nil, err
	}
	return &file{o: o, fd: fd, path: path}, nil
}

// past is the flag of an open call that goes past the page cache, if it does.
func past(direct bool) int {
	if direct {
		return openDirect
	}
	return 0
}

// done closes what was read: nothing of it is kept open from one load to the next.
func (p *perFile) done(f *file) error { return p.calls.close(f.fd, f.path) }

// missing is the path of an object's file, which must not be there.
func (p *perFile) missing(o tiers.Object) (path string, err error) {
	path = p.path(o)
	there, err := p.look(path)
	if err == nil && there {
		err = tiers.ErrExists
	}
	return path, err
}

// begin opens the file that is going to have the object's name.
func (p *perFile) begin(o tiers.Object, temp string, flags int, mode uint32) (*file, error) {
	fd, err := p.calls.open(temp, flags, mode)
	if err != nil {
		return nil, err
	}
	return &file{o: o, fd: fd, path: temp}, nil
}

// commit closes a file and gives it its name, which alone makes it visible. What fails is abandoned,
// without a descriptor. No flush: what a crash leaves is the filesystem's decision.
func (p *perFile) commit(_ context.Context, f *file) error {
	err := p.calls.close(f.fd, f.path)
	f.fd = -1
	if err == nil {
		err = p.calls.rename(f.path, p.path(f.o))
	}
	return err
}

// abandon removes what was to become a file: vLLM and LMCache do so after a short write.
func (p *perFile) abandon(f *file) (err error) {
	if f.fd >= 0 {
		err = p.calls.close(f.fd, f.path)
	}
	return errors.Join(err, p.unlink(f.path))
}

// remove deletes an object's file. vLLM itself never does; LMCache and HiCache do, if they are
// given a capacity.
func (p *perFile) remove(o tiers.Object) error { return p.unlink(p.path(o)) }

// unlink deletes a file, unless the run ends and the directory does that.
func (p *perFile) unlink(path string) error {
	if p.t.leaves.Load() {
		return nil
	}
	return p.calls.unlink(path)
}

// takes: a file has whole pages.
func (p *perFile) takes(o tiers.Object) int64 { return tiers.AlignUp(o.Size, pageSize) }

func (p *perFile) close() error { return nil }

// lookUp makes a call for each object. What is found changes nothing: the tier knows which objects
// it has, and what the calls cost is what they are made for.
func (p *perFile) lookUp(objs []tiers.Object) error {
	for _, o := range objs {
		if _, err := p.look(p.path(o)); err != nil {
			return err
		}
	}
	return nil
}

// vllmFS is vLLM's tiering offload to a filesystem: a file for each chunk, of all ranks, padded to
// whole pages, in one of 4096 x 256 directories, which are asked for each time. Files are written
// past the page cache where a file at the start could be, and never deleted: what leaves the tier
// here, another program removes from the engine's directory.
type vllmFS struct {
	perFile
	dir string
}

// newVLLMFS names the directory. The engine hashes its configuration; of that the model is what
// this suite has.
func newVLLMFS(p perFile) *vllmFS {
	sum := sha256.Sum256([]byte(p.model))
	l := &vllmFS{p, fmt.Sprintf("%s_%s_r0", p.model, hex.EncodeToString(sum[:])[:12])}
	l.path, l.look = l.name, l.calls.access
	return l
}

// start is the engine's: the directory of a model and its configuration, the description of that,
// and the try of direct I/O.
func (l *vllmFS) start(ctx context.Context) error {
	if _, err := l.calls.mkdir(l.dir); err != nil {
		return err
	}
	path := l.dir + "/config.json"
	fd, err := l.calls.open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`{"model_name": %q, "tp_size": 1, "gpu_blocks_per_file": 1}`, l.model)
	err = l.calls.write(fd, path, []byte(text))
	if err = errors.Join(err, l.calls.close(fd, path)); err != nil {
		return err
	}
	l.t.traits.Align = pageSize // what is stored is padded, whichever way
	if l.direct {
		if err := l.probe(ctx); err != nil {
			l.direct, l.t.direct = false, false
			l.t.warn("%v; using buffered I/O instead, as vLLM does", &tiers.UnsupportedError{
				Feature: "direct I/O in " + l.t.path, Reason: err.Error(),
				Need: "a filesystem that accepts O_DIRECT"})
		}
	}
	return nil
}

// probe writes a page past the page cache.
func (l *vllmFS) probe(ctx context.Context) error {
	name := fmt.Sprintf(".o_direct_probe_%d.tmp", os.Getpid())
	fd, err := l.calls.open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC|openDirect, 0o644)
	if err == nil {
		page := buffer.Aligned(make([]byte, 2*pageSize), pageSize, pageSize)
		err = l.t.last(ctx, &l.t.limits.stores, name, &ioengine.Op{Kind: ioengine.Write, FD: fd,
			Buf: tiers.Buffer{B: page}, N: pageSize, AtPosition: true}, func() {})
	}
	return errors.Join(err, l.calls.unlink(name))
}

// name spreads files by the first digits of their hash. Groups of layers count from 0.
func (l *vllmFS) name(o tiers.Object) string {
	h := hash(o)
	return fmt.Sprintf("%s/%s/%s_g%d/%s.bin", l.dir, h[:3], h[3:5], max(0, o.Layer-1), h)
}

// create has a random number in the name, which each thread of the engine draws once.
func (l *vllmFS) create(_ context.Context, o tiers.Object) (*file, error) {
	path, err := l.missing(o)
	if err == nil {
		err = l.parents(path)
	}
	if err != nil {
		return nil, err
	}
	return l.begin(o, fmt.Sprintf("%s_%d.tmp", path, os.Getpid()),
		unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_TRUNC|past(l.direct), 0o644)
}

// parents makes the two directories above a file: os.makedirs with exist_ok, which looks for the
// upper one first, and at the lower one where that is there already.
func (l *vllmFS) parents(path string) error {
	dir := path[:strings.LastIndexByte(path, '/')]
	upper := dir[:strings.LastIndexByte(dir, '/')]
	there, err := l.calls.stat(upper)
	if err == nil && !there {
		if _, err = l.calls.stat(l.dir); err == nil { // which start has made
			_, err = l.calls.mkdir(upper)
		}
	}
	if err != nil {
		return err
	}
	made, err := l.calls.mkdir(dir)
	if err == nil && !made {
		_, err = l.calls.stat(dir)
	}
	return err
}

// lmcacheFS is LMCache's fs adapter: a file for each chunk of a rank in one flat directory, through
// the page cache unless use_odirect is set, which then takes whole pages alone.
type lmcacheFS struct{ perFile }

func (l *lmcacheFS) start(context.Context) error {
	if l.direct && l.t.cfg.Bytes%pageSize != 0 {
		l.direct, l.t.direct = false, false
		l.t.warn("objects of %d bytes are no whole pages: LMCache writes them through the page "+
			"cache, use_odirect or not", l.t.cfg.Bytes)
	}
	return nil
}

// name has world size, rank, local world size and local rank, a byte each.
func (l *lmcacheFS) name(o tiers.Object) string {
	rank, world := l.t.cfg.who()
	name := fmt.Sprintf("%s@0x%02[2]x%02[3]x%02[2]x%02[3]x@0@%[4]s", l.model, world&0xff,
		rank&0xff, hash(o))
	if o.Layer > 0 { // LayerCacheEngineKey counts from 0
		name += fmt.Sprintf("@%d", o.Layer-1)
	}
	return name + ".data"
}

func (l *lmcacheFS) create(_ context.Context, o tiers.Object) (*file, error) {
	path, err := l.missing(o)
	if err != nil {
		return nil, err
	}
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC
	if l.direct {
		flags = unix.O_WRONLY | unix.O_CREAT | openDirect
	}
	return l.begin(o, path+".tmp", flags, 0o666)
}

// hicacheFile is SGLang's HiCacheFile: a file for each page of a rank in one flat directory,
// through the page cache. What all ranks have alike has no rank in its name. It asks for a batch of
// pages by reading the whole directory.
type hicacheFile struct{ perFile }

func (l *hicacheFile) start(context.Context) error { return nil }

func (l *hicacheFile) name(o tiers.Object) string {
	if l.t.cfg.Latents {
		return fmt.Sprintf("%s_%s.bin", hash(o), l.model)
	}
	rank, world := l.t.cfg.who()
	return fmt.Sprintf("%s_%s_%d_%d.bin", hash(o), l.model, rank, world)
}

// create writes a file whose name is a random number in the engine, and no longer for a model with
// a long name.
func (l *hicacheFile) create(_ context.Context, o tiers.Object) (*file, error) {
	path, err := l.missing(o)
	if err != nil {
		return nil, err
	}
	unique := sha256.Sum256([]byte(path))
	return l.begin(o, fmt.Sprintf(".%x.tmp", unique[:16]),
		unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o666)
}

// batch is how many pages HiCache asks for at once. It asks for no more behind a missing one.
const batch = 128

func (l *hicacheFile) lookUp(objs []tiers.Object) error {
	for part := range slices.Chunk(objs, batch) {
		if err := l.calls.scan(); err != nil {
			return err
		}
		if slices.ContainsFunc(part, func(o tiers.Object) bool { return !l.t.has(o) }) {
			break
		}
	}
	return nil
}
