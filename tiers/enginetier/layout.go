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

// layout makes the calls of an engine before and after the bytes of an object. All methods are safe
// for concurrent use. No call waits for another one unless that one waits for the device.
type layout interface {
	// start makes the calls of the engine's start.
	start(ctx context.Context) error
	// create makes the calls before an object is written, commit the calls after that. Abandon
	// removes an object that is not committed. Create returns ErrExists if the object exists.
	create(ctx context.Context, o tiers.Object) (*file, error)
	commit(ctx context.Context, f *file) error
	abandon(f *file) error
	// open makes the calls before an object is read, done the calls after that.
	open(ctx context.Context, o tiers.Object) (*file, error)
	done(f *file) error
	// remove deletes an object; its open readers can still read it.
	remove(o tiers.Object) error
	// lookUp makes the look-ups of the engine before it loads any object.
	lookUp(objs []tiers.Object) error
	// takes returns the bytes that an object takes in its file.
	takes(o tiers.Object) int64
	// close ends the layout. No request is in flight.
	close() error
}

// file is an open object.
type file struct {
	o    tiers.Object
	fd   int
	at   int64  // offset of its bytes in the file
	path string // the path that was opened: of a new file, its temporary name
	mem  []byte // the bytes, if they are in memory of the engine
	// whole prepares the operation for all bytes at once; nil: read and write at the file's
	// position. Parts of an object are moved with pread and pwrite; an engine moves no parts.
	whole func(op *ioengine.Op)
	spot  *spot   // in slots
	in    *bucket // in buckets
	// written is the bytes of all objects that this object's commit to a bucket wrote.
	written int64
}

// newLayout returns the layout of Config.Layout. A model's name is part of file names; each engine
// replaces the slashes in it differently.
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

// LongestName returns the length in bytes of the longest file name that contains the model's name,
// for a whole object; 0 = the layout has no such name. It needs no directory.
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

// hash returns the part of a file name in place of the engine's hash of tokens. Both are spread
// evenly over directories and the trees of filesystems. It includes the generation, so that an
// object that is written again has another file.
func hash(o tiers.Object) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d", o.Key, o.Gen)
	return hex.EncodeToString(h.Sum(nil))
}
