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

// perFile is the common part of the layouts with one file per object: the file is written under a
// temporary name and renamed.
type perFile struct {
	t      *Tier
	calls  *calls
	model  string
	direct bool
	path   func(o tiers.Object) string               // the path of an object's file
	look   func(path string) (there bool, err error) // the engine's look-up call
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

// past returns the open flag of direct I/O, or 0.
func past(direct bool) int {
	if direct {
		return openDirect
	}
	return 0
}

// done closes the file: the engines keep no file open between loads.
func (p *perFile) done(f *file) error { return p.calls.close(f.fd, f.path) }

// missing returns the path of an object's file, and ErrExists if the file exists.
func (p *perFile) missing(o tiers.Object) (path string, err error) {
	path = p.path(o)
	there, err := p.look(path)
	if err == nil && there {
		err = tiers.ErrExists
	}
	return path, err
}

// begin opens the temporary file, which commit renames.
func (p *perFile) begin(o tiers.Object, temp string, flags int, mode uint32) (*file, error) {
	fd, err := p.calls.open(temp, flags, mode)
	if err != nil {
		return nil, err
	}
	return &file{o: o, fd: fd, path: temp}, nil
}

// commit closes the temporary file and renames it, which makes the object visible. After an error
// the caller abandons the file; its descriptor is closed then. The engines do not flush.
func (p *perFile) commit(_ context.Context, f *file) error {
	err := p.calls.close(f.fd, f.path)
	f.fd = -1
	if err == nil {
		err = p.calls.rename(f.path, p.path(f.o))
	}
	return err
}

// abandon removes the temporary file, as vLLM and LMCache do after a short write.
func (p *perFile) abandon(f *file) (err error) {
	if f.fd >= 0 {
		err = p.calls.close(f.fd, f.path)
	}
	return errors.Join(err, p.unlink(f.path))
}

// remove deletes an object's file. vLLM itself never deletes; LMCache and HiCache do if a capacity is
// configured.
func (p *perFile) remove(o tiers.Object) error { return p.unlink(p.path(o)) }

// unlink deletes a file, unless the run ends and the work directory deletes it.
func (p *perFile) unlink(path string) error {
	if p.t.leaves.Load() {
		return nil
	}
	return p.calls.unlink(path)
}

// takes returns the size in whole pages.
func (p *perFile) takes(o tiers.Object) int64 { return tiers.AlignUp(o.Size, pageSize) }

func (p *perFile) close() error { return nil }

// lookUp makes a call for each object, for its cost alone. The tier knows which objects exist, and
// the results of the calls do not matter.
func (p *perFile) lookUp(objs []tiers.Object) error {
	for _, o := range objs {
		if _, err := p.look(p.path(o)); err != nil {
			return err
		}
	}
	return nil
}

// vllmFS is vLLM's tiering offload to a filesystem: one file per chunk with the bytes of all ranks,
// padded to whole pages, in one of 4096 x 256 directories. Each store looks its directories up. It
// uses direct I/O if a probe at the start succeeds. The engine never deletes a file: it leaves that
// to another program, so the deletions of this tier have no counterpart in it.
type vllmFS struct {
	perFile
	dir string
}

// newVLLMFS names the directory. The engine hashes its configuration, of which this suite only has
// the model.
func newVLLMFS(p perFile) *vllmFS {
	sum := sha256.Sum256([]byte(p.model))
	l := &vllmFS{p, fmt.Sprintf("%s_%s_r0", p.model, hex.EncodeToString(sum[:])[:12])}
	l.path, l.look = l.name, l.calls.access
	return l
}

// start makes the engine's calls: the directory of the model and its configuration, config.json, and
// the probe of direct I/O.
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

// name spreads files over directories by the first digits of their hash. Groups of layers count from
// 0.
func (l *vllmFS) name(o tiers.Object) string {
	h := hash(o)
	return fmt.Sprintf("%s/%s/%s_g%d/%s.bin", l.dir, h[:3], h[3:5], max(0, o.Layer-1), h)
}

// create uses the process id in the temporary name, where each thread of the engine has a random
// number.
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

// parents makes the two directories above a file as os.makedirs does with exist_ok: it looks the
// upper one up first, and the lower one if that exists already.
func (l *vllmFS) parents(path string) error {
	dir := path[:strings.LastIndexByte(path, '/')]
	upper := dir[:strings.LastIndexByte(dir, '/')]
	there, err := l.calls.stat(upper)
	if err == nil && !there {
		if _, err = l.calls.stat(l.dir); err == nil { // start has made l.dir
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

// lmcacheFS is LMCache's fs adapter: one file per chunk and rank in a flat directory. It uses the
// page cache unless use_odirect is set, which accepts only whole pages.
type lmcacheFS struct{ perFile }

func (l *lmcacheFS) start(context.Context) error {
	if l.direct && l.t.cfg.Bytes%pageSize != 0 {
		l.direct, l.t.direct = false, false
		l.t.warn("objects of %d bytes are no whole pages: LMCache writes them through the page "+
			"cache, use_odirect or not", l.t.cfg.Bytes)
	}
	return nil
}

// name contains world size, rank, local world size and local rank, one byte each.
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

// hicacheFile is SGLang's HiCacheFile: one file per page and rank in a flat directory, through the
// page cache. Latents, which are equal on all ranks, have no rank in their name. To look a batch of
// pages up, it reads the whole directory.
type hicacheFile struct{ perFile }

func (l *hicacheFile) start(context.Context) error { return nil }

func (l *hicacheFile) name(o tiers.Object) string {
	if l.t.cfg.Latents {
		return fmt.Sprintf("%s_%s.bin", hash(o), l.model)
	}
	rank, world := l.t.cfg.who()
	return fmt.Sprintf("%s_%s_%d_%d.bin", hash(o), l.model, rank, world)
}

// create uses a hash as the temporary name, where the engine has a random number: the length does
// not depend on the model's name.
func (l *hicacheFile) create(_ context.Context, o tiers.Object) (*file, error) {
	path, err := l.missing(o)
	if err != nil {
		return nil, err
	}
	unique := sha256.Sum256([]byte(path))
	return l.begin(o, fmt.Sprintf(".%x.tmp", unique[:16]),
		unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o666)
}

// batch is how many pages HiCache looks up at once. It stops after a batch with a missing page.
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
