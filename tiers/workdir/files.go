package workdir

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// Names are the names of a run's files. They are safe for concurrent use.
type Names interface {
	// Of returns the directory of an object, directly below the work directory, and its file.
	Of(o tiers.Object) (dir, file string)
	// Match reports whether a path below the work directory has the form of the run's files. Nothing
	// else is deleted.
	Match(path string) bool
}

// entryNames are the names of Name, and the names of the engines' layouts below treeName.
type entryNames struct{}

// Of implements Names.
func (entryNames) Of(o tiers.Object) (dir, file string) { return Name(o) }

// Match implements Names.
func (entryNames) Match(path string) bool {
	tree, found := strings.CutPrefix(path, treeName+"/")
	return found && KnowsTree(tree) || entryPath.MatchString(path)
}

// treeName is the directory of the files of an engine's layout.
const treeName = "engine"

var (
	entryPath = regexp.MustCompile(`^[0-9a-f]{2}/[0-9a-f]{30}-[0-9a-f]{16}$`)
	treePath  = func() *regexp.Regexp {
		var paths []string
		for _, l := range tiers.EngineLayouts {
			paths = append(paths, l.FilePattern)
		}
		return regexp.MustCompile(`^(?:` + strings.Join(paths, "|") + `)$`)
	}()
)

// KnowsTree reports whether a file at that path below the engine's directory belongs to a layout, so
// that it is removed with the run.
func KnowsTree(path string) bool { return treePath.MatchString(path) }

// Name returns the file of an object: a directory of two hexadecimal digits, so that no directory grows
// large, and a file name of thirty more digits and the generation. The digits are a hash of the key.
// Generations of a key never share a file, so a reader of an old generation is safe.
func Name(o tiers.Object) (fan, name string) {
	sum := sha256.Sum256([]byte(o.Key))
	text := hex.EncodeToString(binary.BigEndian.AppendUint64(sum[:16], o.Gen))
	return text[:2], text[2:32] + "-" + text[32:]
}

// HashDigits is the length of Hash.
const HashDigits = 2 * sha256.Size

// Hash returns the part of the name of an engine's object that replaces the engine's hash of tokens. Both
// are uniformly distributed. It includes the generation, so that an object that is written again has another
// name.
func Hash(o tiers.Object) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", o.Key, o.Gen)))
}

// The mode of the suite's directories, for system calls and for package os. The sticky bit marks them.
const (
	TreeMode = unix.S_ISVTX | 0o755
	dirMode  = fs.ModeSticky | 0o755
)

// created reports whether the suite has created a directory: other directories with the sticky bit,
// like /tmp, are writable by other users.
func created(info fs.FileInfo) bool {
	return info.IsDir() && info.Mode()&fs.ModeSticky != 0 && info.Mode()&0o022 == 0
}

// makeDir creates a directory unless it exists.
func makeDir(path string) error {
	err := os.Mkdir(path, dirMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	// Some FUSE servers create it without the sticky bit. If this fails, an empty directory may stay.
	if info, statErr := os.Lstat(path); err == nil && statErr == nil && !created(info) {
		_ = os.Chmod(path, info.Mode()|fs.ModeSticky)
	}
	return err
}

// makeDirs creates a directory, and missing ones above it.
func makeDirs(path string) error {
	err := makeDir(path)
	if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
		return err
	}
	if err := makeDirs(filepath.Dir(path)); err != nil {
		return err
	}
	return makeDir(path)
}

// removeEmpty removes a directory that the suite has created, and those above it, while they are empty.
func removeEmpty(path string) {
	for {
		info, err := os.Lstat(path)
		if err != nil || !created(info) || unix.Rmdir(path) != nil {
			return
		}
		path = filepath.Dir(path)
	}
}

// walk calls visit for each file below the directory, and for each directory that the suite created,
// after its files, until visit returns an error. below is the path of the part to walk, "" or with a
// slash at its end. walk follows no symbolic links, and skips a user's directories that it cannot read.
func (d *Dir) walk(below string, visit func(path string, info fs.FileInfo) error) error {
	var entries []fs.DirEntry
	dir := d.path + "/" + below
	err := d.call("list", dir, func() (err error) { entries, err = os.ReadDir(dir); return err })
	if err != nil {
		if info, statErr := os.Lstat(dir); below != "" && statErr == nil && !created(info) {
			return nil
		}
		return fail("list", dir, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // removed meanwhile
		}
		path := below + e.Name()
		if e.IsDir() {
			if err := d.walk(path+"/", visit); err != nil {
				return err
			}
		}
		if !e.IsDir() || created(info) {
			if err := visit(path, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// ours reports whether a file belongs to the run.
func (d *Dir) ours(path string, info fs.FileInfo) bool {
	return info.Mode().IsRegular() && d.names.Match(path)
}

// count counts the files in the directory, which may not exist, until ctx ends.
func (d *Dir) count(ctx context.Context) (n Count, err error) {
	err = d.walk("", func(path string, info fs.FileInfo) error {
		switch {
		case d.ours(path, info):
			n.add(Amount{1, info.Size()})
			// Count allocated blocks: the file may have holes, preallocated blocks, or another hard
			// link.
			if s := info.Sys().(*syscall.Stat_t); s.Nlink == 1 {
				n.Freed += s.Blocks * 512
			}
			return context.Cause(ctx)
		case !info.IsDir() && path != markerName:
			n.Others++
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return n, err
}

// sweep removes the run's files and the suite's directories that are then empty. The end of ctx stops
// it between two files, or two steps of a large file; then it returns ctx's cause.
func (d *Dir) sweep(ctx context.Context) error {
	n, err := d.count(ctx) // first, so that the progress is known
	if err != nil {
		return err
	}
	d.place.Counted(n.Amount)
	return d.walk("", func(path string, info fs.FileInfo) error {
		switch {
		case info.IsDir():
			_ = unix.Rmdir(d.path + "/" + path) // fails unless it is empty
		case d.ours(path, info):
			return d.remove(ctx, d.path+"/"+path, info)
		}
		return nil
	})
}

// stepBytes is the number of bytes of a file that one call releases. On a disk mounted with discard,
// removing 1 GiB in one call took 1.4 s, during which the process could not end and showed no progress.
// In steps of 64 MiB no call took longer than 0.2 s, and all calls together no longer than the single
// call. The constant is half of that.
const stepBytes = 32 << 20

// remove removes a file in steps. It does not shorten a file with another hard link, because the user
// would lose the content.
func (d *Dir) remove(ctx context.Context, path string, info fs.FileInfo) error {
	remove := func(n Amount, call func() error) error {
		return d.place.remove(ctx, n, func() error { return d.call("remove", path, call) })
	}
	size := info.Size()
	for size > stepBytes && info.Sys().(*syscall.Stat_t).Nlink == 1 {
		shorten := func() error { return os.Truncate(path, size-stepBytes) }
		if remove(Amount{Bytes: stepBytes}, shorten) != nil {
			break // removing the file fails as well, with its reason
		}
		size -= stepBytes
	}
	return remove(Amount{1, size}, func() error {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail("remove", path, err)
		}
		return nil
	})
}

// Package filetier uses file descriptors: os.File would add its poller and locks to every request.

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
