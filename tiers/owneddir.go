package tiers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// OwnedOptions say which directory, and what becomes of it.
type OwnedOptions struct {
	CacheDir string // made with its parents where it does not exist
	Rank     int    // the directory is CacheDir/rank_<Rank>
	Nonce    string // of the run, for the marker
	Keep     bool   // Close leaves files and marker for inspection; the next Open reclaims them
}

// OwnedDir is the one directory in which the suite works: <cache-dir>/rank_<N>, made by the suite itself, told by
// a marker file and held under its lock. Only files whose names are exactly ours, in our own directories of two
// hexadecimal digits, are ever deleted; whatever else lies in it, or beside it, stays as it is.
//
// It survives being killed at any point. Directories of ours carry the sticky bit, given in the same system call
// that makes them, so even one that is still empty is known as ours later. The marker exists before the first
// file and goes after the last one. What dies between is reclaimed by the next Open.
//
// Its methods are safe for concurrent use; Close comes last.
type OwnedDir struct {
	path    string
	keep    bool
	fd      int // of the directory
	lock    int // the marker's
	mark    marker
	reclaim Reclaimed
	warning string

	mu     sync.Mutex
	fans   map[string]int // descriptors of the two-digit directories
	closed bool
}

// Reclaimed is what a killed run, or one that kept its files, had left and Open removed.
type Reclaimed struct {
	Files int
	Bytes int64
	PID   int // of that run, 0 if unknown
}

// ownedMode has the sticky bit: see OwnedDir.
const ownedMode = unix.S_ISVTX | 0o755

// errAgain: the directory changed under our hands, as when another run is just ending.
var errAgain = errors.New("the directory kept changing")

// OpenOwnedDir makes or takes over the directory and reclaims what a dead run left in it. It refuses system
// directories, a rank directory that is a symbolic link, one that holds files but no marker of ours, and one in
// which another run works (*LockedError). Whatever it made is removed again when it fails.
func OpenOwnedDir(opt OwnedOptions) (d *OwnedDir, err error) {
	real, err := resolve(opt.CacheDir)
	if err != nil {
		return nil, err
	}
	if opt.Rank < 0 {
		return nil, fmt.Errorf("open the directory of rank %d: ranks count from 0", opt.Rank)
	}
	if err := ownDefault(opt.CacheDir); err != nil {
		return nil, err
	}
	var made []string
	defer func() {
		if err != nil {
			removeEmpty(made)
		}
	}()
	path := filepath.Join(real, fmt.Sprintf("rank_%d", opt.Rank))
	for range 100 {
		if made, err = makeParents(real, made); errors.Is(err, unix.ENOENT) {
			continue // another run's end removed a parent
		} else if err != nil {
			return nil, err
		}
		d, err = open(path, real, opt, made)
		if !errors.Is(err, errAgain) {
			return d, err
		}
	}
	return nil, fmt.Errorf("open the directory %s: %w; is another run starting and ending there?", path, err)
}

// ownDefault refuses the default directory when somebody else was there first: /tmp is everybody's.
func ownDefault(dir string) error {
	if filepath.Clean(dir) != DefaultCacheDir() {
		return nil
	}
	var s unix.Stat_t
	if unix.Lstat(DefaultCacheDir(), &s) != nil {
		return nil
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR || int(s.Uid) != os.Getuid() {
		return fmt.Errorf("the default cache directory %s was not made by this user (owner %d); give one with -cache-dir", dir, s.Uid)
	}
	return nil
}

// makeParents makes dir and what is missing above it, and adds what it made, outermost first. The default
// directory counts as made whoever made it: its name is ours.
func makeParents(dir string, made []string) ([]string, error) {
	var missing []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		missing = append(missing, at)
	}
	for _, at := range slices.Backward(missing) {
		switch err := os.Mkdir(at, 0o755); {
		case err == nil && !slices.Contains(made, at):
			made = append(made, at)
		case err != nil && !errors.Is(err, os.ErrExist):
			return made, fmt.Errorf("make the cache directory %s: %w%s", dir, err, advice(err))
		}
	}
	if def, err := filepath.EvalSymlinks(DefaultCacheDir()); err == nil && def == dir && !slices.Contains(made, dir) {
		made = append(made, dir)
	}
	return made, nil
}

// removeEmpty removes directories, innermost first, as long as they are empty.
func removeEmpty(dirs []string) {
	for _, dir := range slices.Backward(dirs) {
		if unix.Rmdir(dir) != nil {
			return
		}
	}
}

// open is one attempt.
func open(path, parent string, opt OwnedOptions, made []string) (_ *OwnedDir, err error) {
	madeRank := false
	switch err := unix.Mkdir(path, ownedMode); {
	case err == nil:
		madeRank = true
	case errors.Is(err, unix.ENOENT):
		return nil, errAgain // the parent went with another run's end
	case !errors.Is(err, unix.EEXIST):
		return nil, fmt.Errorf("make the directory %s: %w%s", path, err, advice(err))
	}
	d := &OwnedDir{path: path, keep: opt.Keep, fd: -1, lock: -1, fans: make(map[string]int)}
	defer func() {
		if err == nil {
			return
		}
		d.closeFiles()
		if madeRank {
			unix.Rmdir(path) // only if nothing is in it
		}
	}()
	d.fd, err = openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, errAgain
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR):
		return nil, fmt.Errorf("%s is not a directory of our own but a symbolic link or a file; move it away", path)
	case err != nil:
		return nil, fmt.Errorf("open the directory %s: %w%s", path, err, advice(err))
	}
	sticky, err := stickyDir(d.fd, madeRank)
	if err != nil {
		return nil, fmt.Errorf("open the directory %s: %w%s", path, err, advice(err))
	}
	fresh, err := d.openMarker()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && fresh {
			unix.Unlinkat(d.fd, markerName, 0)
		}
	}()
	old, err := d.takeOver()
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	d.mark = marker{
		Note: markerNote, Nonce: opt.Nonce, Rank: opt.Rank, PID: os.Getpid(), Host: host, Started: time.Now().UTC(),
		Made: mergeMade(old.Made, made, parent), MadeRank: madeRank || sticky || old.MadeRank,
	}
	// The marker is on the medium before the first file: nothing of ours is ever found without it.
	if err := writeMarker(d.fd, d.mark.encode()); err != nil {
		return nil, fmt.Errorf("write %s/%s: %w%s", path, markerName, err, advice(err))
	}
	if err := retry(func() error { return unix.Fsync(d.fd) }); err != nil && !errors.Is(err, unix.EINVAL) {
		return nil, fmt.Errorf("flush the directory %s: %w%s", path, err, advice(err))
	}
	return d, nil
}

// stickyDir says whether the directory carries the mark of ours, and gives it to one just made where the
// system call that made it does not (macOS).
func stickyDir(fd int, made bool) (bool, error) {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return false, err
	}
	if s.Mode&unix.S_ISVTX != 0 || !made {
		return s.Mode&unix.S_ISVTX != 0, nil
	}
	_ = unix.Fchmod(fd, ownedMode) // without it an empty directory may be left after a kill, no more
	return true, nil
}

// openMarker opens the marker or makes it in an empty directory, and locks it.
func (d *OwnedDir) openMarker() (fresh bool, err error) {
	d.lock, err = openat(d.fd, markerName, unix.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe of that name must not hold us up
	if errors.Is(err, unix.ENOENT) {
		names, err := readNames(d.fd, ".")
		if errors.Is(err, unix.ENOENT) {
			return false, errAgain // it was removed after it was opened
		}
		if err != nil {
			return false, fmt.Errorf("list %s: %w%s", d.path, err, advice(err))
		}
		if slices.Contains(names, markerName) {
			return false, errAgain
		}
		if len(names) > 0 {
			return false, fmt.Errorf("%s holds files (%s) but no marker of ours (%s), so it is somebody else's; move it away or give another -cache-dir",
				d.path, strings.Join(names[:min(3, len(names))], ", "), markerName)
		}
		d.lock, err = openat(d.fd, markerName, unix.O_RDONLY|unix.O_CREAT|unix.O_EXCL, 0o644)
		if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOENT) {
			return false, errAgain
		}
		if err != nil {
			return false, fmt.Errorf("make %s/%s: %w%s", d.path, markerName, err, advice(err))
		}
		fresh = true
	} else if err != nil {
		return false, fmt.Errorf("open %s/%s: %w%s", d.path, markerName, err, advice(err))
	}
	err = d.lockMarker()
	if err != nil {
		return false, err // not fresh: whoever holds the lock has made it his
	}
	// The file may have been removed, or made again, between opening and locking it.
	var ours, there unix.Stat_t
	if err := unix.Fstat(d.lock, &ours); err != nil {
		return false, fmt.Errorf("look at %s/%s: %w", d.path, markerName, err)
	}
	if ours.Mode&unix.S_IFMT != unix.S_IFREG {
		return false, fmt.Errorf("%s/%s is not a regular file, so not our marker; move it away", d.path, markerName)
	}
	err = unix.Fstatat(d.fd, markerName, &there, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || err == nil && (ours.Ino != there.Ino || ours.Dev != there.Dev) {
		return false, errAgain
	}
	if err != nil {
		return false, fmt.Errorf("look at %s/%s: %w", d.path, markerName, err)
	}
	return fresh, nil
}

// takeOver reads the marker of the run before and removes what it left.
func (d *OwnedDir) takeOver() (marker, error) {
	text, err := readMarker(d.lock)
	if err != nil {
		return marker{}, fmt.Errorf("read %s/%s: %w%s", d.path, markerName, err, advice(err))
	}
	old, ours := parseMarker(text)
	if !ours {
		return old, fmt.Errorf("%s/%s was not written by kvbench, so the directory is somebody else's; move it away or give another -cache-dir", d.path, markerName)
	}
	files, bytes, err := d.sweep(context.Background(), true)
	if err != nil {
		return old, fmt.Errorf("reclaim what an earlier run left: %w", err)
	}
	d.reclaim = Reclaimed{Files: files, Bytes: bytes}
	if files > 0 {
		d.reclaim.PID = old.PID
	}
	return old, nil
}

// mergeMade joins what an earlier run and this one made above the rank directory. The list comes from a file, so
// only directories on the way to dir are taken from it.
func mergeMade(old, made []string, dir string) []string {
	var all []string
	for _, m := range append(slices.Clone(old), made...) {
		if filepath.IsAbs(m) && filepath.Clean(m) == m && (m == dir || strings.HasPrefix(dir, m+"/")) && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(a) - len(b) })
	return all
}

// Path is the directory's absolute path without symbolic links.
func (d *OwnedDir) Path() string { return d.path }

// Reclaimed is what Open found of an earlier run and removed.
func (d *OwnedDir) Reclaimed() Reclaimed { return d.reclaim }

// Warnings are things that a person should know about the directory.
func (d *OwnedDir) Warnings() []string {
	if d.warning == "" {
		return nil
	}
	return []string{d.warning}
}
