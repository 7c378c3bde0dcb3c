package workdir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// markerName is the file that marks a directory as the suite's.
const markerName = ".kvbench.json"

// markerMagic is the begin of every marker and identifies it. If a run is killed while it rewrites the
// rest, the directory is still recognised.
const markerMagic = `{"kvbench_owned_directory":`

// marker is the content of the marker file. It describes the run that works in the directory.
type marker struct {
	Note     string          `json:"kvbench_owned_directory"` // first, see markerMagic
	Nonce    string          `json:"nonce"`
	Rank     int             `json:"rank"`
	PID      int             `json:"pid"`
	Host     string          `json:"host"`
	Started  time.Time       `json:"started"`
	Contents json.RawMessage `json:"contents,omitempty"` // see Folder
}

const markerNote = "made by kvbench, which removes its own files from here " +
	"at its end or at its next start"

// ErrLocked reports that another run works in the directory.
var ErrLocked = errors.New("is in use")

// works reports whether the process that wrote the marker still runs on this host.
func (m marker) works() bool {
	host, _ := os.Hostname()
	return m.PID != 0 && m.Host == host && unix.Kill(m.PID, 0) != unix.ESRCH
}

// marker returns the path of the marker.
func (d *Dir) marker() string { return d.path + "/" + markerName }

// openMarker opens a marker. Without O_NONBLOCK a named pipe of that name would block the run.
func openMarker(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return f, nil
	}
	f.Close()
	return nil, errors.New("it is not a regular file, so not our marker; move it away")
}

// lockMarker opens the marker, or creates it in an empty directory, locks it and reads it. The lock is
// exclusive, or shared if a process of the same run holds it. The kernel releases it when the process
// ends. ENOENT means that another run has removed the directory or the marker meanwhile.
func (d *Dir) lockMarker() error {
	if err := d.nothingElse(); err != nil {
		return err
	}
	// A writable descriptor would prevent a read-only remount of the filesystem during the run.
	f, err := openMarker(d.marker(), os.O_RDONLY|os.O_CREATE)
	if err != nil {
		return fail("open", d.marker(), err)
	}
	err = flock(f, unix.LOCK_EX)
	if errors.Is(err, unix.EBADF) { // on NFS an exclusive lock needs a writable descriptor
		f.Close()
		if f, err = openMarker(d.marker(), os.O_RDWR); err != nil {
			return fail("open", d.marker(), err)
		}
		err = flock(f, unix.LOCK_EX)
	}
	if err = d.locked(f, err); err != nil {
		f.Close()
		return err
	}
	d.lock = f
	return nil
}

// locked reads the marker after an attempt to lock it exclusively. err is the error of that attempt, or
// nil.
func (d *Dir) locked(f *os.File, err error) error {
	held, noLocks := errors.Is(err, unix.EWOULDBLOCK), lockless(err)
	if err != nil && !held && !noLocks {
		return fail("lock", d.marker(), err)
	}
	// Lock first: the marker does not change under the shared lock.
	shared := d.opt.Shared && (noLocks || held && flock(f, unix.LOCK_SH) == nil)
	m, known, readErr := readMarker(f)
	d.joined = shared && m.Nonce == d.opt.Nonce
	// Without locks, check the process of the marker, if it ran on this host.
	if !d.joined && (held || noLocks && m.PID != os.Getpid() && m.works()) {
		holder := "another run"
		if m.PID != 0 {
			holder = fmt.Sprintf("process %d on %s", m.PID, m.Host)
		}
		return fmt.Errorf("the cache directory %s %w by %s; wait for it to end, or give another "+
			"-cache-dir or -rank", d.path, ErrLocked, holder)
	}
	// Another run may have removed or replaced the marker before it was locked.
	info, statErr := f.Stat()
	there, lookErr := os.Lstat(d.marker())
	switch err := errors.Join(readErr, statErr, lookErr); {
	case err != nil:
		return fail("read", d.marker(), err)
	case !os.SameFile(info, there):
		return fail("read", d.marker(), unix.ENOENT)
	case !known:
		return fmt.Errorf("%s is damaged, or was not written by kvbench; "+
			"move the directory away or give another -cache-dir", d.marker())
	}
	if noLocks && !d.joined {
		d.warnings = append(d.warnings, fmt.Sprintf("the filesystem of %s knows no file locks "+
			"(%v): nothing keeps a second run out of it", d.path, err))
	}
	d.mark = m
	return nil
}

// nothingElse returns an error for a directory with files and without a marker: it is a user's
// directory.
func (d *Dir) nothingElse() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fail("list", d.path, err)
	}
	var names []string
	for _, e := range entries {
		if names = append(names, e.Name()); e.Name() == markerName {
			return nil
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("%s holds files (%s) but no marker of ours (%s), so it is "+
			"not a directory of kvbench; move it away or give another -cache-dir", d.path,
			strings.Join(names[:min(3, len(names))], ", "), markerName)
	}
	return nil
}

// flock takes the lock of a marker, or converts it. The conversion is not atomic: it fails if another
// process takes the lock in between, and the file is unlocked then.
func flock(f *os.File, how int) error {
	return Retry(func() error { return unix.Flock(int(f.Fd()), how|unix.LOCK_NB) })
}

// lockless reports whether the error of a lock means that the filesystem has no locks.
func lockless(err error) bool {
	return errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.ENOTSUP) ||
		errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL)
}

// readMarker reads a marker. known reports whether the text is a marker, complete or truncated by a
// kill. Fields that cannot be read stay zero.
func readMarker(f *os.File) (m marker, known bool, err error) {
	text := make([]byte, 64<<10)
	n, err := f.ReadAt(text, 0)
	if err != nil && err != io.EOF {
		return m, false, err
	}
	text = bytes.TrimRight(text[:n], "\x00")
	if n := min(len(text), len(markerMagic)); string(text[:n]) != markerMagic[:n] {
		return m, false, nil
	}
	// A run that was killed before it truncated the file leaves the end of a longer text: decode only
	// the first value.
	if json.NewDecoder(bytes.NewReader(text)).Decode(&m) != nil {
		m = marker{}
	}
	return m, true, nil
}

// writeMarker replaces the text of the marker durably and in place. The magic at its begin does not
// change, so the directory is recognised at any moment.
func (d *Dir) writeMarker() error {
	text, err := json.Marshal(d.mark)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	err = d.call("write", d.marker(), func() error {
		f, err := openMarker(d.marker(), os.O_WRONLY)
		if err != nil {
			return err
		}
		if _, err = f.WriteAt(text, 0); err == nil {
			err = errors.Join(f.Truncate(int64(len(text))), f.Sync())
		}
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return fail("write", d.marker(), err)
	}
	return nil
}
