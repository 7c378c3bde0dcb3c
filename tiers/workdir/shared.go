package workdir

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrNotShared is the error of Join if no process of the run has opened the directory.
var ErrNotShared = errors.New("no other process of this run works there")

// Join opens a directory that another process of the same run has opened as Shared and still holds:
// its marker has the same Nonce. It creates, reclaims and removes nothing. From then on all these
// processes are equal: the one that closes last removes the run's files, so that no process loses
// files that it still uses.
//
// The processes hold shared locks, which keep other runs out like an exclusive one. On a filesystem
// without locks the process that called Open removes the files, and should close last.
func Join(opt Options) (_ *Dir, err error) {
	parent, err := resolve(opt.CacheDir)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: filepath.Join(parent, opt.Folder.Name), keep: opt.Keep, shared: true,
		call: opt.call, joined: true, lock: -1, fans: make(map[string]int), names: opt.Folder.Files,
		removal: cmp.Or(opt.Removal, &Removal{})}
	none := func(err error) error {
		return fmt.Errorf("%w: %s: %w", ErrNotShared, d.path, err)
	}
	d.fd, err = OpenAt(unix.AT_FDCWD, d.path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, none(err)
	}
	defer func() {
		if err != nil {
			d.closeFiles()
		}
	}()
	if d.lock, err = OpenAt(d.fd, markerName, unix.O_RDONLY|unix.O_NONBLOCK, 0); err != nil {
		return nil, none(err)
	}
	// Lock first: the marker cannot change under the lock.
	if err := d.lockAs(unix.LOCK_SH); err != nil && !lockless(err) {
		return nil, none(err)
	}
	mark, known, err := readMarker(d.lock)
	switch {
	case err != nil:
		return nil, fail("read", d.marker(), err)
	case !known || mark.Nonce != opt.Nonce || opt.Nonce == "":
		return nil, none(errors.New("the marker is that of another run"))
	}
	d.mark = mark
	// The process that opened the directory has recalled the same names.
	names, stay, err := opt.recall(mark)
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", d.path, err)
	}
	if stay {
		d.names = names
	}
	return d, nil
}

// Joined reports that another process has opened the directory.
func (d *Dir) Joined() bool { return d.joined }
