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

// Names defines the names of a run's files. It is safe for concurrent use.
type Names interface {
	// Of returns the directory of an object, directly below the work directory, and its file.
	Of(o tiers.Object) (dir, file string)
	// Dir and File report whether a directory in the work directory, and a file in it, belong to the
	// run, by their names alone. File is a path below dir. Nothing else is deleted.
	Dir(name string) bool
	File(dir, file string) bool
}

// entryNames are the names that Name returns, and the names of the engines' layouts below treeName.
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

// treeName is the directory of the files of an engine's layout.
const treeName = "engine"

// Only files whose names match these patterns are deleted: the names that Name returns, and the
// patterns of the engines' layouts.
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

// KnowsTree reports whether a file with that path below the engine's directory is removed with the
// run.
func KnowsTree(path string) bool { return treeFile.MatchString(path) }

// TreeMode is the mode of directories below the engine's directory. It marks them as the suite's.
const TreeMode = ownedMode

// Name returns the file of an entry: a directory of two hexadecimal digits (256 directories, so that
// none grows large) and a name of thirty more digits, both from the key's hash, and the generation.
// Generations of a key never share a file, so a reader of an old one is safe.
func Name(o tiers.Object) (fan, name string) {
	sum := sha256.Sum256([]byte(o.Key))
	text := hex.EncodeToString(sum[:16])
	return text[:2], fmt.Sprintf("%s-%016x", text[2:], o.Gen)
}

// Name returns where an object of the run lies.
func (d *Dir) Name(o tiers.Object) (dir, file string) { return d.names.Of(o) }

// Fan returns the descriptor of a directory below the work directory. The first call creates the
// directory.
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

// Tree returns the descriptor and the path of the directory for files of an engine's layout. The first
// call creates it. Directories in it need TreeMode.
func (d *Dir) Tree() (fd int, path string, err error) {
	fd, err = d.Fan(treeName)
	return fd, d.path + "/" + treeName, err
}

// Sync makes the names of the files in a directory below the work directory durable.
func (d *Dir) Sync(name string) error {
	fd, err := d.Fan(name)
	if err == nil {
		err = d.call("flush", d.path+"/"+name, func() error {
			return Retry(func() error { return unix.Fsync(fd) })
		})
	}
	if err != nil && !errors.Is(err, unix.EINVAL) { // the filesystem cannot flush directories
		return fail("flush the directory", d.path+"/"+name, err)
	}
	return nil
}

// sweep removes every file of the run, and the run's directories that are empty then. The end of ctx
// stops it between two files, or two steps of a large one; it returns ctx's cause.
func (d *Dir) sweep(ctx context.Context, names Names) (swept Amount, err error) {
	d.removal.ends.Store(false)
	// Count first, so that the progress of the removal is known.
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

// step is how many bytes of a file one call releases. On a disk mounted discard, removing 1 GiB in one
// call took 1.4 s: the process could not end meanwhile, and showed no progress. In steps of twice this
// size no call took longer than 0.2 s, and all of them together no longer than the single call.
const step = 32 << 20

// shorten truncates a file of the run to a size. It keeps a file with another hard link, because the
// user would lose its content.
func shorten(dir int, name string, size int64) error {
	fd, err := OpenAt(dir, name, unix.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) // cannot fail: nothing was written
	var s unix.Stat_t
	if unix.Fstat(fd, &s) != nil || s.Mode&unix.S_IFMT != unix.S_IFREG || s.Nlink != 1 {
		return unix.EMLINK
	}
	return Retry(func() error { return unix.Ftruncate(fd, size) })
}

// count counts the run's files in a work directory.
func count(dir int, path string, names Names, stopped func() error) (n Amount, err error) {
	err = walk(dir, path, names, false, func(_ int, _ string, size int64) error {
		n.Files++
		n.Bytes += size
		return stopped()
	})
	return n, err
}

// walk calls do with each of the run's files in a work directory, until do fails. With prune it then
// removes the suite's empty directories.
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
	top   string // name of the directory
	prune bool
	do    func(dir int, name string, size int64) error
}

// walk walks through the directory name in the directory in; below is its path relative to top. A file
// belongs to the run if its name does and it is a regular file, and not a symbolic link.
func (w *walker) walk(in int, name, below string) error {
	dir, err := OpenAt(in, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOENT) {
		return nil // no directory: a user's file
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", cmp.Or(below, name), err)
	}
	defer unix.Close(dir)
	sticky, err := stickyDir(dir, false)
	if err != nil || w.top == treeName && below == "" && !sticky { // a user's directory
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
		_ = unix.Unlinkat(in, name, unix.AT_REMOVEDIR) // fails if it contains a user's files
	}
	return nil
}

// readNames lists a directory. It opens its own descriptor, because all users of dir share one
// position.
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

// Retry repeats a call while it fails with EINTR.
func Retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// OpenAt opens name in the directory dir. It does not follow a symbolic link in the last component.
func OpenAt(dir int, name string, flags int, mode uint32) (fd int, err error) {
	err = Retry(func() (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, mode)
		return err
	})
	return fd, err
}
