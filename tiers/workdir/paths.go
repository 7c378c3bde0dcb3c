package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbench/tiers"
)

// A cache must not be one of the forbidden system directories (hier(7)), or below one. It must not be
// one of parentsOnly, but may be below one.
var (
	forbidden = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32",
		"/lost+found", "/proc", "/root", "/sbin", "/sys", "/usr"}
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
	var top, rest string
	for range attempts { // another run may remove a directory between two calls
		if top, rest, err = nearest(abs); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("the cache directory %s cannot be used: %w%s", dir, err,
			tiers.Advice(err))
	}
	real := filepath.Join(top, rest)
	// Compare names first: /lib may be a link to usr/lib, and the error should name /lib.
	for _, lies := range []func(system string) bool{
		func(f string) bool { return real == f || strings.HasPrefix(real, f+"/") },
		func(f string) bool { return liesIn(top, f) },
	} {
		if i := slices.IndexFunc(forbidden, lies); i >= 0 {
			return "", refused(dir, real, forbidden[i])
		}
	}
	if slices.Contains(parentsOnly, real) {
		return "", refused(dir, real, real)
	}
	return real, nil
}

// nearest returns the nearest existing directory above path, without symbolic links, and the rest of
// the path. It finds a file or a broken link on the way, which mkdir would not name in its error.
func nearest(path string) (top, rest string, err error) {
	at := path
	for ; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		_, err := os.Lstat(at)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return "", "", err
		}
	}
	info, err := os.Stat(at)
	switch {
	case err != nil: // a broken link
		to, _ := os.Readlink(at)
		return "", "", fmt.Errorf("%s is a symbolic link to %s, which cannot be entered: %w", at,
			to, err)
	case info.Mode()&fs.ModeDevice != 0:
		return "", "", fmt.Errorf("%s is a device, not a directory: give a directory on a mounted "+
			"filesystem", at)
	case !info.IsDir():
		return "", "", fmt.Errorf("%s is not a directory", at)
	}
	top, err = filepath.EvalSymlinks(at)
	return top, rest, err
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

// liesIn reports whether the directory top is the system directory or below it. It compares identity,
// because names differ with bind mounts, with links like /bin -> usr/bin, and on case-insensitive
// filesystems.
func liesIn(top, system string) bool {
	info, err := os.Stat(system)
	if err != nil {
		return false
	}
	for at := top; at != filepath.Dir(at); at = filepath.Dir(at) {
		if i, err := os.Stat(at); err == nil && os.SameFile(i, info) {
			return true
		}
	}
	return false
}
