package enginetier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
)

// layout is the calls of an engine around the bytes of an object. What is called from several
// goroutines at once guards itself. No call waits for another's but for one that is at the device.
type layout interface {
	// start does what the engine does when it starts.
	start(ctx context.Context) error
	// create is what comes before the bytes of an object that is stored, commit what comes after
	// them; abandon takes back what is not committed. ErrExists from create: it is there.
	create(ctx context.Context, o tiers.Object) (*file, error)
	commit(ctx context.Context, f *file) error
	abandon(f *file) error
	// open is what comes before the bytes of an object that is loaded, done what comes after them.
	open(ctx context.Context, o tiers.Object) (*file, error)
	done(f *file) error
	// remove gives up an object; readers that have it keep it.
	remove(o tiers.Object) error
	// lookUp asks the filesystem which objects are there, as the engine does before it loads any.
	lookUp(objs []tiers.Object) error
	// takes is the bytes of an object's place.
	takes(o tiers.Object) int64
	// close ends the engine. No request is in flight.
	close() error
}

// file is an object while its bytes move.
type file struct {
	o    tiers.Object
	fd   int
	at   int64  // where its bytes begin in the file
	path string // what it was opened as; of a new one, until it is whole
	mem  []byte // nil, or memory that the engine holds its bytes in
	// whole shapes the request for all bytes at once; nil: at the position of the file. Others are
	// made with pread and pwrite: an engine has only whole ones.
	whole func(op *ioengine.Op)
	spot  *spot   // in slots
	in    *bucket // in buckets
	// written is the bytes of objects that a commit to a bucket wrote, this one's among them.
	written int64
}

// newLayout is the one of a name. Each engine has its own way with the slashes in a model's name,
// which become part of file names.
func newLayout(t *Tier) layout {
	p := perFile{t: t, calls: &t.calls, model: strings.ReplaceAll(t.cfg.Model, "/", "-SEP-"),
		direct: t.direct}
	s := &slots{t: t, calls: &t.calls, bytes: t.cfg.Bytes, direct: t.direct,
		whole: positional}
	switch t.cfg.Layout {
	case "vllm-fs":
		p.model = strings.ReplaceAll(t.cfg.Model, "/", "_")
		return newVLLMFS(p)
	case "lmcache-fs":
		l := &lmcacheFS{perFile: p}
		l.path, l.look = l.name, l.calls.stat
		return l
	case "hicache-file":
		p.model = strings.ReplaceAll(t.cfg.Model, "/", "-")
		l := &hicacheFile{perFile: p}
		l.path, l.look, l.direct = l.name, l.calls.stat, false // it has no direct I/O
		return l
	case "vllm-slots":
		l := &vllmSlots{slots: s}
		l.whole = l.layers
		return l
	case "kvbm-slots":
		return &kvbmSlots{slots: s}
	case "lmcache-raw":
		return &lmcacheRaw{slots: s}
	case "mooncake-offset":
		return &mooncakeOffset{slots: s}
	}
	return newBuckets(t) // mooncake-bucket
}

// LongestName is how many bytes the longest name has that a layout makes of a model's for a whole
// object, 0 = it makes none. It is known before there is a directory.
func LongestName(cfg Config) int {
	var o tiers.Object
	switch l := newLayout(&Tier{cfg: cfg}).(type) {
	case *vllmFS:
		return len(l.dir)
	case *lmcacheFS:
		return len(l.path(o) + ".tmp")
	case *hicacheFile:
		return len(l.path(o))
	}
	return 0
}

const hashBytes = 2 * sha256.Size // in hexadecimal digits

// hash is what stands in an object's name where the engine has the hash of its tokens. That is as
// evenly spread as this one, which is what fans of directories and the trees of filesystems see of
// it. The generation is in it, so that an object that is written again has another file.
func hash(o tiers.Object) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d", o.Key, o.Gen)
	return hex.EncodeToString(h.Sum(nil))
}
