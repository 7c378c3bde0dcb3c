package filetier

import (
	"errors"
	"slices"
	"sort"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
)

// whole is what an object of so many bytes takes of a file.
func (t *Tier) whole(size int64) int64 {
	return tiers.AlignUp(size, max(int64(t.traits.Align), pageSize))
}

// takeShell gives f a file: one of just its size that nobody has, a new one as long as all of them
// fit the capacity, or another one, for which makeRoom makes system calls.
func (t *Tier) takeShell(f *file) (err error) {
	size := t.whole(f.first.Size)
	t.mu.Lock()
	switch i := t.firstAbove(size); {
	case i > 0 && t.spares[i-1].size == size:
		f.shell = t.pull(i - 1)
	case t.files+size <= t.capacity:
		f.shell = t.newShell(size)
	}
	t.mu.Unlock()
	if f.shell == nil {
		err = t.makeRoom(f, size)
	}
	return err
}

// makeRoom gives f the smallest file that is large enough, and cuts it, else the largest, which
// grows, or a new one. What is beyond the capacity then goes, of what nobody has. One does so at a
// time: nobody takes the room that another one's calls have not freed yet. Objects that exceed the
// capacity by themselves have all the files that they need, and no spare one is left.
func (t *Tier) makeRoom(f *file, size int64) error {
	t.trimming.Lock()
	defer t.trimming.Unlock()
	t.mu.Lock()
	s := t.nearest(size)
	t.mu.Unlock()
	if s != nil && s.size > size {
		f.shell = s
		return t.cut(f, size)
	}
	for {
		t.mu.Lock()
		over := t.files + size - t.capacity
		if s != nil {
			over -= s.size
		}
		var gone *shell
		if over > 0 {
			gone = t.nearest(over)
		}
		if gone == nil {
			break
		}
		t.mu.Unlock()
		if err := t.discard(&file{first: f.first, shell: gone}); err != nil {
			t.mu.Lock()
			if s != nil {
				t.spare(s)
			}
			t.mu.Unlock()
			return err
		}
	}
	defer t.mu.Unlock()
	if s == nil {
		f.shell = t.newShell(size)
		return nil
	}
	t.files += size - s.size
	s.size, f.shell = size, s
	return nil
}

// cut takes what a file has beyond a size.
func (t *Tier) cut(f *file, size int64) error {
	fd, err := t.openPart(f, 0, unix.O_WRONLY, false)
	if err == nil {
		err = t.call("cut", f, 0, func() error {
			return workdir.Retry(func() error { return unix.Ftruncate(fd, size) })
		})
		err = errors.Join(err, t.call("close", f, 0, func() error { return unix.Close(fd) }))
	}
	if err != nil {
		return errors.Join(t.error("cut", *f.first, f, 0, -1, notFound(err)), t.discard(f))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files -= f.shell.size - size
	f.shell.size, f.shell.has = size, size
	return nil
}

// grow gives a file the blocks that it lacks, before direct writes need them.
func (t *Tier) grow(f *file) error {
	s := f.shell
	if t.direct && s.has < s.size {
		err := t.call("preallocate", f, 0, func() error {
			return allocate(f.making.fds[0], s.has, s.size-s.has)
		})
		if err != nil && !unsupported(err) {
			return t.error("preallocate", *f.first, f, 0, -1, err)
		}
	}
	s.has = s.size
	return nil
}

// newShell is a file that is not there yet, whose bytes count from now on. Callers hold mu.
func (t *Tier) newShell(size int64) *shell {
	t.files += size
	t.shells++
	return &shell{number: t.shells, size: size}
}

// spare keeps a file that nobody has. Callers hold mu.
func (t *Tier) spare(s *shell) {
	t.spares = slices.Insert(t.spares, t.firstAbove(s.size), s)
}

// firstAbove is the first of the spare files that is larger. Callers hold mu.
func (t *Tier) firstAbove(size int64) int {
	return sort.Search(len(t.spares), func(i int) bool { return t.spares[i].size > size })
}

// nearest takes the smallest of the spare files that is at least so large, else the largest; nil
// where there is none. Callers hold mu.
func (t *Tier) nearest(size int64) *shell {
	if len(t.spares) == 0 {
		return nil
	}
	return t.pull(min(t.firstAbove(size-1), len(t.spares)-1))
}

// pull takes a spare file. Callers hold mu.
func (t *Tier) pull(i int) *shell {
	s := t.spares[i]
	t.spares = slices.Delete(t.spares, i, i+1)
	return s
}
