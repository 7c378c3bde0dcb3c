package filetier

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

func init() {
	layouts["hicache-file"] = func(b base) layout {
		l := &hicacheFile{perFile{base: b, model: strings.ReplaceAll(b.t.cfg.Model, "/", "-")}}
		l.path, l.look = l.name, l.calls.stat
		return l
	}
}

// hicacheFile is SGLang's HiCacheFile: one file per page and rank in a flat directory, through the
// page cache. Latents, which are equal on all ranks, have no rank in their name. To look a batch of
// pages up, it reads the whole directory.
type hicacheFile struct{ perFile }

func (l *hicacheFile) start(context.Context) error {
	l.t.direct = false // it has no direct I/O
	return nil
}

func (l *hicacheFile) name(o tiers.Object) string {
	if l.t.cfg.Latents {
		return fmt.Sprintf("%s_%s.bin", hash(o), l.model)
	}
	rank, world := l.t.cfg.ranks()
	return fmt.Sprintf("%s_%s_%d_%d.bin", hash(o), l.model, rank, world)
}

func (l *hicacheFile) longest() string { return l.name(tiers.Object{}) }

// create uses a hash as the temporary name, where the engine has a random number: the length does
// not depend on the model's name.
func (l *hicacheFile) create(_ context.Context, s *span) error {
	path, err := l.missing(s.run[0].o)
	if err != nil {
		return err
	}
	unique := sha256.Sum256([]byte(path))
	return l.begin(s, fmt.Sprintf(".%x.tmp", unique[:16]),
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
