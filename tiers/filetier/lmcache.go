package filetier

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
)

func init() {
	layouts["lmcache-fs"] = newLMCacheFS
	layouts["lmcache-raw"] = func(b base) layout {
		return &lmcacheRaw{engineSlots(b, pageSize, "raw_block", 0)}
	}
}

// lmcacheFS is LMCache's fs adapter: one file per chunk and rank in a flat directory. It uses the
// page cache unless use_odirect is set, which accepts only whole pages.
type lmcacheFS struct{ perFile }

// newLMCacheFS makes names of world size, rank, local world size and local rank, one byte each.
func newLMCacheFS(b base) layout {
	model := strings.ReplaceAll(b.t.cfg.Model, "/", "-SEP-")
	rank, world := b.t.cfg.ranks()
	name := func(o tiers.Object) string {
		name := fmt.Sprintf("%s@0x%02[2]x%02[3]x%02[2]x%02[3]x@0@%[4]s", model, world&0xff, rank&0xff,
			workdir.Hash(o))
		if o.Layer > 0 { // LayerCacheEngineKey counts from 0
			name += fmt.Sprintf("@%d", o.Layer-1)
		}
		return name + ".data"
	}
	temporary := func(path string) string { return path + ".tmp" }
	return &lmcacheFS{perFile{base: b, name: name, look: b.calls.stat, temporary: temporary, mode: 0o666}}
}

func (l *lmcacheFS) start(context.Context) error {
	if bytes := l.t.cfg.Layout.Bytes; l.t.direct && bytes%pageSize != 0 {
		l.t.direct = false
		l.t.warn("objects of %d bytes are no whole pages: LMCache writes them through the page "+
			"cache, use_odirect or not", bytes)
	}
	if !l.t.direct {
		l.flags = unix.O_TRUNC
	}
	return nil
}

// lmcacheRaw is LMCache's raw_block adapter on a file. A slot has a page of header before the chunk;
// the engine writes it first and reads it only after a restart. The engine's user has to provide the
// file. The suite omits the index, which the
// engine saves once a minute.
type lmcacheRaw struct{ *slots }

// create writes the header, with a call of its own, as the engine does.
func (l *lmcacheRaw) create(ctx context.Context, s *span) error {
	if err := l.slots.create(ctx, s); err != nil {
		return err
	}
	// The fields after the magic are the suite's own: the header is never read.
	page := buffer.Aligned(make([]byte, 2*pageSize), pageSize, pageSize)
	copy(page, "LMCBLK01")
	binary.LittleEndian.PutUint64(page[8:], uint64(s.run[0].o.Size))
	copy(page[16:], workdir.Hash(s.run[0].o))
	return l.t.await(ctx, &l.t.limits.stores, &ioengine.Op{Kind: ioengine.Write, FD: s.fd,
		Off: s.at - l.head, Buf: tiers.Buffer{B: page}, N: pageSize}, nil)
}
