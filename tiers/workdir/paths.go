package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// A cache must not be one of the forbidden system directories (hier(7)), or below one. It must not be
// one of parentsOnly, but may be below one.
var (
	forbidden = []string{"/usr", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32",
		"/lost+found", "/proc", "/root", "/sbin", "/sys"}
	parentsOnly = []string{"/", "/home", "/run", "/var", "/var/lib"}
)

// CheckPath returns an error if dir may not contain a cache: after symbolic links are resolved it must
// not be in a system directory, and its existing parents must be directories. It changes nothing.
func CheckPath(dir string) error {
	_, err := resolve(dir)
	return err
}

// DefaultCacheDir returns the default cache directory. It is the same for each run of this user, so
// that the next run reclaims the files of a killed one.
func DefaultCacheDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("kvbench-%d", os.Getuid()))
}

// resolve returns dir as an absolute path, without symbolic links in its existing part, if it passes
// CheckPath.
func resolve(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("the cache directory's name is empty; give one with -cache-dir")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the cache directory %s: %w", dir, err)
	}
	real, err := followLinks(abs)
	if err != nil {
		return "", fmt.Errorf("the cache directory %s cannot be used: %w%s", dir, err,
			tiers.Advice(err))
	}
	for _, system := range forbidden {
		target, err := filepath.EvalSymlinks(system) // /etc is a link on macOS
		if err == nil && below(target, real) || below(system, real) {
			return "", refused(dir, real, system)
		}
	}
	if slices.Contains(parentsOnly, real) {
		return "", refused(dir, real, real)
	}
	return real, nil
}

// below reports whether path is dir or below it.
func below(dir, path string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// followLinks resolves the symbolic links in the existing part of an absolute path. It finds a file or
// a broken link on the way, which mkdir would not name in its error.
func followLinks(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode()&fs.ModeDevice != 0:
		return "", fmt.Errorf("%s is a device, not a directory: give a directory on a mounted "+
			"filesystem", path)
	case err == nil && !info.IsDir():
		return "", fmt.Errorf("%s is not a directory", path)
	case err == nil:
		real, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) { // another run has just removed it
			return followLinks(path)
		}
		return real, err
	}
	if to, linkErr := os.Readlink(path); linkErr == nil {
		return "", fmt.Errorf("%s is a symbolic link to %s, which cannot be entered: %w", path, to,
			err)
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) &&
		!errors.Is(err, unix.ELOOP) {
		return "", err
	}
	parent, err := followLinks(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// refused returns the error for a system directory, or a directory below one. A user who gives
// /dev/shm wants memory, so the hint names a tmpfs mount.
func refused(dir, real, system string) error {
	where := dir
	if real != dir {
		where = fmt.Sprintf("%s (which is %s)", dir, real)
	}
	hint := "choose a directory on the storage to be measured"
	if system == "/dev" {
		hint += "; for memory, mount a tmpfs elsewhere: mount -t tmpfs tmpfs /mnt/memory"
	}
	return fmt.Errorf("cannot use %s as the cache directory: %s is a system directory; %s", where,
		system, hint)
}

// checkOwner refuses a default directory that another user made first: all users share /tmp.
func checkOwner(dir string) error {
	var s unix.Stat_t
	if unix.Lstat(dir, &s) == nil &&
		(s.Mode&unix.S_IFMT != unix.S_IFDIR || int(s.Uid) != os.Getuid()) {
		return fmt.Errorf("the default cache directory %s was not made by this user "+
			"(owner %d); give one with -cache-dir", dir, s.Uid)
	}
	return nil
}
