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

// forbidden are the directories of the system (hier(7)) that a cache may neither be nor be below. A
// cache must not be one of the parentsOnly, but may be below one.
var (
	forbidden = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32",
		"/lost+found", "/proc", "/root", "/sbin", "/sys", "/usr"}
	parentsOnly = []string{"/", "/home", "/run", "/var", "/var/lib"}
)

// CheckPath says whether dir may hold a cache: it does not lie in a directory of the system
// once symbolic links are resolved, and everything on the way to it is a directory or does
// not exist yet. Nothing is touched.
func CheckPath(dir string) error {
	_, err := resolve(dir)
	return err
}

// DefaultCacheDir is where the cache lies when no directory is given: the same for each run of
// this user, so that what a killed run left behind is found and reclaimed by the next one.
func DefaultCacheDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("kvbench-%d", os.Getuid()))
}

// resolve returns dir as an absolute path without symbolic links, in so far as it exists, if it
// passes CheckPath.
func resolve(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("the cache directory's name is empty; give one with -cache-dir")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the cache directory %s: %w", dir, err)
	}
	var top, rest string
	for range attempts { // another run's end may remove it between two looks
		if top, rest, err = nearest(abs); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("the cache directory %s cannot be used: %w%s", dir, err,
			tiers.Advice(err))
	}
	real := filepath.Join(top, rest)
	// By names first: /lib may be a link to usr/lib, and /usr is what the user knows.
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

// nearest returns the nearest directory on the way to path that exists, without symbolic
// links, and the way on from there. Nothing can be made below a file, or a link to nowhere:
// that would show as an error of the first mkdir, which names neither.
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
	case err != nil: // it is there itself
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

// refused is the error for a directory of the system, or one below it. A user who gives /dev/shm
// wants memory. The hint names a tmpfs mount instead.
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

// liesIn says whether the directory top is the system directory or below it, by identity: names
// differ on bind mounts, with links like /bin -> usr/bin, and where case does not matter.
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
