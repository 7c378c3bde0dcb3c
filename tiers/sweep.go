package tiers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	fanDigits  = 2
	hashDigits = 30
	genDigits  = 16
)

// fileName returns where an entry lies: a directory of two hexadecimal digits and a name of thirty more, both from
// the key's hash, with the generation: versions of a key never share a file, so a reader of an old one is safe.
func fileName(o Object) (fan, name string) {
	sum := sha256.Sum256([]byte(o.Key))
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:fanDigits]), fmt.Sprintf("%s-%0*x", text[fanDigits:fanDigits+hashDigits], genDigits, o.Gen)
}

// isFan says whether a directory's name is one that fileName makes.
func isFan(name string) bool { return len(name) == fanDigits && isHex(name) }

// isFile says whether a file's name is one that fileName makes.
func isFile(name string) bool {
	return len(name) == hashDigits+1+genDigits && name[hashDigits] == '-' && isHex(name[:hashDigits]) && isHex(name[hashDigits+1:])
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// fan returns the descriptor of one of the two-digit directories, which it makes when it is first needed. A
// symbolic link of that name is refused: files belong into our directory and nowhere else.
func (d *OwnedDir) fan(name string) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return -1, ErrClosed
	}
	if fd, ok := d.fans[name]; ok {
		return fd, nil
	}
	err := retry(func() error { return unix.Mkdirat(d.fd, name, ownedMode) })
	made := err == nil
	if !made && !errors.Is(err, unix.EEXIST) {
		return -1, fmt.Errorf("make the directory %s/%s: %w", d.path, name, err)
	}
	fd, err := openat(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, fmt.Errorf("open the directory %s/%s (not ours if it is a link or a file, move it away): %w", d.path, name, err)
	}
	if _, err := stickyDir(fd, made); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("open the directory %s/%s: %w", d.path, name, err)
	}
	d.fans[name] = fd
	return fd, nil
}

// sweep removes every file of ours, and with dirs also our directories that are empty then.
func (d *OwnedDir) sweep(ctx context.Context, dirs bool) (files int, bytes int64, err error) {
	names, err := readNames(d.fd, ".")
	if err != nil {
		return 0, 0, fmt.Errorf("list %s: %w%s", d.path, err, advice(err))
	}
	for _, name := range names {
		if !isFan(name) {
			continue
		}
		fd, err := openat(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOENT) {
			continue // not a directory: not ours
		}
		if err != nil {
			return files, bytes, fmt.Errorf("open %s/%s: %w%s", d.path, name, err, advice(err))
		}
		n, b, err := sweepFan(ctx, fd)
		files, bytes = files+n, bytes+b
		sticky, _ := stickyDir(fd, false)
		unix.Close(fd)
		if err != nil {
			return files, bytes, fmt.Errorf("in %s/%s: %w%s", d.path, name, err, advice(err))
		}
		if dirs && sticky {
			_ = unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR) // fails when something of the user's is in it
		}
	}
	return files, bytes, nil
}

func sweepFan(ctx context.Context, fd int) (files int, bytes int64, err error) {
	names, err := readNames(fd, ".")
	if err != nil {
		return 0, 0, fmt.Errorf("list: %w", err)
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return files, bytes, context.Cause(ctx)
		}
		var s unix.Stat_t
		if !isFile(name) || unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW) != nil || s.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		err := retry(func() error { return unix.Unlinkat(fd, name, 0) })
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return files, bytes, fmt.Errorf("remove %s: %w", name, err)
		}
		files, bytes = files+1, bytes+s.Size
	}
	return files, bytes, nil
}

// readNames lists the directory name in dir, without . and ...
func readNames(dir int, name string) ([]string, error) {
	fd, err := openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return f.Readdirnames(-1)
}

// Clear removes all files of ours, as between trials. Nothing may be writing. The context's end stops it between
// two files.
func (d *OwnedDir) Clear(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("clear %s: %w", d.path, ErrClosed)
	}
	if _, _, err := d.sweep(ctx, false); err != nil {
		return fmt.Errorf("clear the cache directory: %w", err)
	}
	return nil
}

// Close removes our files, our directories and the marker, in this order, and the parents that were made for
// them, if nothing else is in them; with Keep it leaves all of it. Then the next run may have the directory.
// Where something of the user's lies in the rank directory, the marker stays with it, so that the next run knows
// the directory as ours. Closing twice is harmless.
func (d *OwnedDir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	defer d.closeFiles()
	if d.keep {
		return nil
	}
	if _, _, err := d.sweep(context.Background(), true); err != nil {
		return fmt.Errorf("clean the cache directory: %w; the next start tries again", err)
	}
	names, err := readNames(d.fd, ".")
	if err != nil {
		return fmt.Errorf("clean the cache directory: list %s: %w%s", d.path, err, advice(err))
	}
	if len(names) != 1 || names[0] != markerName {
		return nil
	}
	if err := retry(func() error { return unix.Unlinkat(d.fd, markerName, 0) }); err != nil {
		return fmt.Errorf("remove %s/%s: %w%s", d.path, markerName, err, advice(err))
	}
	if d.mark.MadeRank && unix.Rmdir(d.path) == nil {
		removeEmpty(d.mark.Made)
	}
	return nil
}

// closeFiles closes all descriptors, the lock last.
func (d *OwnedDir) closeFiles() {
	for _, fd := range d.fans {
		unix.Close(fd)
	}
	clear(d.fans)
	if d.fd >= 0 {
		unix.Close(d.fd)
	}
	if d.lock >= 0 {
		unix.Close(d.lock)
	}
	d.fd, d.lock = -1, -1
}
