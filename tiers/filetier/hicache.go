package filetier

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
)

func init() { layouts["hicache-file"] = newHiCacheFile }

// hicacheFile is SGLang's HiCacheFile: one file per page and rank in a flat directory, through the
// page cache. Latents, which are equal on all ranks, have no rank in their name. It looks each page up by a stat.
// For models with side pools it reads the whole directory instead, once for each request.
type hicacheFile struct{ perFile }

// newHiCacheFile replaces the slashes of the name of the model by hyphens.
func newHiCacheFile(b base) layout {
	suffix := strings.ReplaceAll(b.t.cfg.Model, "/", "-")
	if !b.t.cfg.Latents {
		rank, world := b.t.cfg.ranks()
		suffix += fmt.Sprintf("_%d_%d", rank, world)
	}
	name := func(o tiers.Object) string { return fmt.Sprintf("%s_%s.bin", workdir.Hash(o), suffix) }
	return &hicacheFile{perFile{base: b, name: name, look: b.calls.stat, temporary: temporaryHash,
		flags: unix.O_TRUNC, mode: 0o666}}
}

// temporaryHash returns a hash, where the engine has a random number: the length does not depend on
// the model's name.
func temporaryHash(path string) string {
	unique := sha256.Sum256([]byte(path))
	return fmt.Sprintf(".%x.tmp", unique[:16])
}

func (l *hicacheFile) start(context.Context) error {
	l.t.direct = false // it has no direct I/O
	return nil
}

// lookUp makes the calls of batch_exists: a stat for each page, up to the first missing one. With side pools the
// engine calls batch_exists_v2 instead. It reads the directory once, of whatever number of pages, so its cost
// grows with the number of files. The engine may keep the names for 5 s; that is an option, which is off by
// default and is not imitated here.
func (l *hicacheFile) lookUp(objs []tiers.Object) error {
	if l.t.cfg.SidePools {
		return l.calls.scan()
	}
	for _, o := range objs {
		if there, err := l.look(l.name(o)); err != nil || !there {
			return err
		}
	}
	return nil
}
