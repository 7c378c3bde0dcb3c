package filetier

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
)

func init() { layouts["hicache-file"] = newHiCacheFile }

// hicacheFile is SGLang's HiCacheFile: one file per page and rank in a flat directory, through the
// page cache. Latents, which are equal on all ranks, have no rank in their name. To look a batch of
// pages up, it reads the whole directory.
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

// batch is how many pages HiCache looks up at once. It stops after a batch with a missing page.
const batch = 128

// lookUp reads the directory once for each batch of pages.
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
