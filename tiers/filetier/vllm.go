package filetier

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
)

func init() {
	layouts["vllm-fs"] = newVLLMFS
	layouts["vllm-slots"] = func(b base) layout {
		l := &vllmSlots{engineSlots(b, 0, "", 0)}
		l.whole = l.layers
		return l
	}
}

// vllmFS is vLLM's tiering offload to a filesystem: one file per chunk with the bytes of all ranks,
// padded to whole pages, in one of 4096 x 256 directories. Each store looks its directories up. It
// uses direct I/O if a probe at the start succeeds. The engine never deletes a file: it leaves that
// to another program, so the deletions of this tier have no counterpart in it.
type vllmFS struct {
	perFile
	model, dir string
}

// newVLLMFS names the directory. The temporary name has the process id, where each thread of the engine has a
// random number.
func newVLLMFS(b base) layout {
	l := &vllmFS{model: strings.ReplaceAll(b.t.cfg.Model, "/", "_"), dir: tiers.VLLMDir(b.t.cfg.Model)}
	l.perFile = perFile{base: b, look: b.calls.access, prepare: l.parents,
		flags: unix.O_EXCL | unix.O_TRUNC, mode: 0o644,
		name: func(o tiers.Object) string {
			return tiers.VLLMFile(l.dir, workdir.Hash(o), max(0, o.Layer-1))
		},
		temporary: func(path string) string { return fmt.Sprintf("%s_%d.tmp", path, os.Getpid()) }}
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
	if l.t.direct {
		if err := l.probe(ctx); err != nil {
			l.t.direct = false
			l.t.warn("%v; using buffered I/O instead, as vLLM does", &tiers.UnsupportedError{
				Feature: "direct I/O in " + l.calls.path, Reason: err.Error(),
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
		err = l.t.submitLast(ctx, name, &ioengine.Op{Kind: ioengine.Write, FD: fd,
			Buf: tiers.Buffer{B: page}, N: pageSize, AtPosition: true}, func() {})
	}
	return errors.Join(err, l.calls.unlink(name))
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

// vllmSlots is vLLM's disk backend: a sparse file per rank, which does not outlive the rank. A slot
// is a block of the GPU, and a call has one piece of memory per layer.
type vllmSlots struct{ *slots }

// start unlinks the file of an engine that was killed. The file is sparse: as in the engine, a disk
// that is too small fails in the middle of a run.
func (l *vllmSlots) start(context.Context) error {
	rank, _ := l.t.cfg.ranks()
	path := fmt.Sprintf("slots.rank_%d", rank)
	if err := l.calls.unlink(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	fd, err := l.calls.open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|past(l.t.direct), 0o600)
	if err != nil {
		return err
	}
	return l.keep(fd, path, l.calls.size(fd, path, l.size()))
}

// layers cuts an object into one piece per layer of the model. Direct I/O needs whole pages, so
// pieces are rounded up and may be fewer than the layers.
func (l *vllmSlots) layers(op *ioengine.Op) {
	part := max(1, op.N/max(1, l.t.cfg.Layers))
	if l.t.direct {
		part = tiers.AlignUp(part, pageSize)
	}
	op.Vec = pieces(op.Buf.B[:op.N], part)
}

// mostPieces is the kernel's limit of pieces in one call (UIO_MAXIOV).
const mostPieces = 1024

// pieces cuts memory into pieces of that size, or larger ones if they would be more than mostPieces.
func pieces(b []byte, part int) (vec [][]byte) {
	part = max(part, tiers.AlignUp((len(b)+mostPieces-1)/mostPieces, pageSize))
	for at := 0; at < len(b); at += part {
		vec = append(vec, b[at:min(len(b), at+part)])
	}
	return vec
}
