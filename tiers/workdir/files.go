package workdir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// Names are those of a run's files. They are safe for concurrent use.
type Names interface {
	// Of says where an object lies: in a directory one below the work directory.
	Of(o tiers.Object) (dir, file string)
	// Dir and File say whether a directory of the work directory, and a file in it, are the run's,
	// by their names alone. File is a path below the directory. Nothing else is deleted.
	Dir(name string) bool
	File(dir, file string) bool
}

// entryNames are those that Name gives, and those of the engines' layouts below treeName.
type entryNames struct{}

// Of implements Names.
func (entryNames) Of(o tiers.Object) (dir, file string) { return Name(o) }

// Dir implements Names.
func (entryNames) Dir(name string) bool { return name == treeName || fanName.MatchString(name) }

// File implements Names.
func (entryNames) File(dir, file string) bool {
	if dir == treeName {
		return treeFile.MatchString(file)
	}
	return fileName.MatchString(file)
}

// treeName is the directory below which an engine's layout has its files.
const treeName = "engine"

// Nothing is deleted whose name differs in a single character from those that Name gives, or from
// the patterns that the engines' layouts own.
var (
	fanName  = regexp.MustCompile(`^[0-9a-f]{2}$`)
	fileName = regexp.MustCompile(`^[0-9a-f]{30}-[0-9a-f]{16}$`)
	treeFile = func() *regexp.Regexp {
		var names []string
		for _, l := range tiers.EngineLayouts {
			names = append(names, l.FilePattern)
		}
		return regexp.MustCompile(`^(?:` + strings.Join(names, "|") + `)$`)
	}()
)

// KnowsTree says whether a file of that path below an engine's directory is removed with the run.
func KnowsTree(path string) bool { return treeFile.MatchString(path) }

// TreeMode is the mode of directories in that of an engine: it marks them as the suite's.
const TreeMode = ownedMode

// Name returns where an entry lies: a directory of two hexadecimal digits (256 of them: none grows
// large) and a name of thirty more, both from the key's hash, with the generation: versions of a
// key never share a file, so a reader of an old one is safe.
func Name(o tiers.Object) (fan, name string) {
	sum := sha256.Sum256([]byte(o.Key))
	text := hex.EncodeToString(sum[:16])
	return text[:2], fmt.Sprintf("%s-%016x", text[2:], o.Gen)
}

// Name returns where an object of the run lies.
func (d *Dir) Name(o tiers.Object) (dir, file string) { return d.names.Of(o) }

// Fan returns the descriptor of one of the directories below, which it makes when it is first
// needed.
func (d *Dir) Fan(name string) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return -1, tiers.ErrClosed
	}
	if fd, ok := d.fans[name]; ok {
		return fd, nil
	}
	fd, _, _, err := ownDir(d.fd, name, d.path+"/"+name)
	if err != nil {
		return -1, err
	}
	d.fans[name] = fd
	return fd, nil
}

// Tree returns the descriptor and the path of the directory for files of an engine's layout, which
// it makes when it is first needed. Directories in it are made with TreeMode.
func (d *Dir) Tree() (fd int, path string, err error) {
	fd, err = d.Fan(treeName)
	return fd, d.path + "/" + treeName, err
}

// Sync makes the names of the files durable that lie in one of the directories below.
func (d *Dir) Sync(name string) error {
	fd, err := d.Fan(name)
	if err == nil {
		err = d.call("flush", d.path+"/"+name, func() error {
			return Retry(func() error { return unix.Fsync(fd) })
		})
	}
	if err != nil && !errors.Is(err, unix.EINVAL) { // which filesystems say that cannot do it
		return fail("flush the directory", d.path+"/"+name, err)
	}
	return nil
}

// sweep removes every file of the run, and its directories that are empty then. When ctx ends it
// stops between two files, or two steps of a large one, and returns why.
func (d *Dir) sweep(ctx context.Context, names Names) (swept Amount, err error) {
	d.removal.ends.Store(false)
	// Counted first, so that the progress of the removal is known.
	all, err := count(d.fd, d.path, names, func() error {
		d.removal.moves(d.path, names)
		return context.Cause(ctx)
	})
	if err != nil {
		return swept, err
	}
	d.removal.Counted(all)
	remove := func(fd int, name string, size int64) error {
		cut := func() error { return shorten(fd, name, size-step) }
		for size > step && ctx.Err() == nil && d.removal.step(cut) == nil {
			size -= step
			swept.Bytes += step
			d.removal.Removed(Amount{Bytes: step})
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err := d.removal.step(func() error {
			return Retry(func() error { return unix.Unlinkat(fd, name, 0) })
		})
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove %s: %w", name, err)
		}
		swept.Files++
		swept.Bytes += size
		d.removal.Removed(Amount{1, size})
		return nil
	}
	return swept, walk(d.fd, d.path, names, true, remove)
}

// step is how many bytes of a file are given up at once. On a disk mounted discard the removal of
// 1 GiB was seen to take 1.4 s in one call, which nothing can interrupt: the process could not end
// meanwhile, and would show no progress. In steps of twice this size no call took longer
// than 0.2 s, and all of them no longer than the one.
const step = 32 << 20

// shorten cuts a file of ours to a size. One to which a user has made a link, it
// leaves: that would lose its content.
func shorten(dir int, name string, size int64) error {
	fd, err := OpenAt(dir, name, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) // nothing was written that could fail here
	var s unix.Stat_t
	if unix.Fstat(fd, &s) != nil || s.Mode&unix.S_IFMT != unix.S_IFREG || s.Nlink != 1 {
		return unix.EMLINK
	}
	return Retry(func() error { return unix.Ftruncate(fd, size) })
}

// count adds up the run's files in a work directory.
func count(dir int, path string, names Names, stopped func() error) (n Amount, err error) {
	err = walk(dir, path, names, false, func(_ int, _ string, size int64) error {
		n.Files++
		n.Bytes += size
		return stopped()
	})
	return n, err
}

// walk calls do with each of the run's files in a work directory, until that fails. With prune it
// removes the suite's directories that are empty then.
func walk(dir int, path string, run Names, prune bool,
	do func(dir int, name string, size int64) error) error {
	names, err := readNames(dir)
	if err != nil {
		return fail("list", path, err)
	}
	for _, top := range names {
		if run.Dir(top) {
			w := walker{run, top, prune, do}
			if err := w.walk(dir, top, ""); err != nil {
				return fail("in", path+"/"+top, err)
			}
		}
	}
	return nil
}

// walker walks through one directory of a work directory.
type walker struct {
	run   Names
	top   string // its name
	prune bool
	do    func(dir int, name string, size int64) error
}

// walk does so for the directory itself, or one in it, whose path there is below. A file is the
// run's if its name is and it is a regular file, no link above all.
func (w *walker) walk(in int, name, below string) error {
	dir, err := OpenAt(in, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOENT) {
		return nil // no directory: a user's
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", cmp.Or(below, name), err)
	}
	defer unix.Close(dir)
	sticky, err := stickyDir(dir, false)
	if err != nil || w.top == treeName && below == "" && !sticky { // a user's
		return err
	}
	names, err := readNames(dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", cmp.Or(below, name), err)
	}
	for _, file := range names {
		var s unix.Stat_t
		if unix.Fstatat(dir, file, &s, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		path := filepath.Join(below, file)
		switch kind := s.Mode & unix.S_IFMT; {
		case kind == unix.S_IFREG && w.run.File(w.top, path):
			err = w.do(dir, file, s.Size)
		case kind == unix.S_IFDIR && w.top == treeName:
			err = w.walk(dir, file, path)
		}
		if err != nil {
			return err
		}
	}
	if w.prune && sticky {
		_ = unix.Unlinkat(in, name, unix.AT_REMOVEDIR) // fails where a user's files are in it
	}
	return nil
}

// readNames lists a directory. It reads through a descriptor of its own: dir's has one position
// for all who use it.
func readNames(dir int) ([]string, error) {
	fd, err := OpenAt(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	return f.Readdirnames(-1)
}

// Files are used by descriptor: os.File would add its poller and locks to every request.

// Retry repeats a call that a signal interrupted.
func Retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// OpenAt opens name in the directory dir. It follows no symbolic link in the last place.
func OpenAt(dir int, name string, flags int, mode uint32) (fd int, err error) {
	err = Retry(func() (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, mode)
		return err
	})
	return fd, err
}
