package workdir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// markerName is the file that marks a directory as the suite's.
const markerName = ".kvbench.json"

// markerMagic begins every marker and identifies it. A run that is killed while it rewrites the rest
// leaves a directory that is still recognised.
const markerMagic = `{"kvbench_owned_directory":`

// marker is the content of the marker file: the run that works here, and what was created for it.
type marker struct {
	Note    string    `json:"kvbench_owned_directory"` // first, see markerMagic
	Nonce   string    `json:"nonce"`
	Rank    int       `json:"rank"`
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"`
	// Made is the outermost parent directory that did not exist before. The run has created the
	// directories from it down to the rank directory, and removes them at the end.
	Made     string `json:"made_from"`
	MadeRank bool   `json:"made_rank_directory"`
	// Contents is a Folder's Contents.
	Contents json.RawMessage `json:"contents,omitempty"`
}

const markerNote = "made by kvbench, which removes its own files from here " +
	"at its end or at its next start"

// LockedError says that another run works in the directory.
type LockedError struct {
	Path string
	PID  int // 0 when it cannot be known
	Host string
}

func (e *LockedError) Error() string {
	who := "another run"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d on %s", e.PID, e.Host)
	}
	return fmt.Sprintf("the cache directory %s is in use by %s; "+
		"wait for it to end, or give another -cache-dir or -rank", e.Path, who)
}

// marker returns the path of the marker, for messages.
func (d *Dir) marker() string { return d.path + "/" + markerName }

// works reports whether the process that wrote the marker still runs on this host.
func (m marker) works() bool {
	host, _ := os.Hostname()
	return m.PID != 0 && m.Host == host && unix.Kill(m.PID, 0) != unix.ESRCH
}

// openMarker opens the marker, or creates it in an empty directory, and locks it. Fresh reports that
// this call has created it.
func (d *Dir) openMarker() (fresh bool, err error) {
	// Without O_NONBLOCK a named pipe of that name would block the run.
	d.lock, err = OpenAt(d.fd, markerName, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if fresh = errors.Is(err, unix.ENOENT); fresh {
		if err := d.nothingInside(); err != nil {
			return false, err
		}
		d.lock, err = OpenAt(d.fd, markerName, unix.O_RDONLY|unix.O_CREAT|unix.O_EXCL, 0o644)
	}
	if err != nil {
		return false, fail("open", d.marker(), err)
	}
	if err := d.lockMarker(); err != nil {
		return false, err // not fresh: the holder of the lock has taken it over
	}
	// Another run may have removed or replaced it between open and lock.
	var held, there unix.Stat_t
	err = errors.Join(unix.Fstat(d.lock, &held),
		unix.Fstatat(d.fd, markerName, &there, unix.AT_SYMLINK_NOFOLLOW))
	switch {
	case err == nil && held.Mode&unix.S_IFMT != unix.S_IFREG:
		return false, fmt.Errorf("%s is not a regular file, so not our marker; move it away",
			d.marker())
	case err == nil && (held.Ino != there.Ino || held.Dev != there.Dev):
		err = unix.ENOENT
	}
	if err != nil {
		return false, fail("look at", d.marker(), err)
	}
	return fresh, nil
}

// nothingInside refuses a directory that contains a user's files.
func (d *Dir) nothingInside() error {
	names, err := readNames(d.fd)
	switch {
	case err != nil:
		return fail("list", d.path, err)
	case slices.Contains(names, markerName):
		return fail("make", d.marker(), unix.EEXIST) // another run was quicker
	case len(names) > 0:
		return fmt.Errorf("%s holds files (%s) but no marker of ours (%s), so it is "+
			"not a directory of kvbench; move it away or give another -cache-dir", d.path,
			strings.Join(names[:min(3, len(names))], ", "), markerName)
	}
	return nil
}

// lockMarker takes the marker's lock for the life of its descriptor; the kernel releases it however
// the process ends. The descriptor is open for reading only: a writable one would prevent a read-only
// remount of the filesystem during the run.
func (d *Dir) lockMarker() error {
	err := d.lockAs(unix.LOCK_EX)
	if err == nil {
		return nil
	}
	m, _, _ := readMarker(d.lock)
	locked := &LockedError{Path: d.path, PID: m.PID, Host: m.Host}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return locked
	case lockless(err):
		// The filesystem has no locks: check the process id, which works on this host.
		if m.PID != os.Getpid() && m.works() {
			return locked
		}
		d.warnings = append(d.warnings, fmt.Sprintf("the filesystem of %s knows no file locks "+
			"(%v): nothing keeps a second run out of it", d.path, err))
		return nil
	}
	return fail("lock", d.marker(), err)
}

// share downgrades the exclusive lock to a shared one.
func (d *Dir) share() error {
	if err := d.lockAs(unix.LOCK_SH); err != nil && !lockless(err) {
		return fail("share", d.marker(), err)
	}
	return nil
}

// last reports whether no other process works in the directory. A process that is not the last one has
// lost its shared lock with the attempt, so that the last of several concurrent ones succeeds.
func (d *Dir) last() bool {
	err := d.lockAs(unix.LOCK_EX)
	return err == nil || lockless(err) && !d.joined
}

// lockAs takes the marker's lock, or converts it. The conversion is not atomic: it fails if another
// process takes the lock in between.
func (d *Dir) lockAs(how int) error {
	flock := func() error { return unix.Flock(d.lock, how|unix.LOCK_NB) }
	err := Retry(flock)
	if !errors.Is(err, unix.EBADF) {
		return err
	}
	// On NFS an exclusive lock needs a writable descriptor.
	fd, openErr := OpenAt(d.fd, markerName, unix.O_RDWR, 0)
	if openErr != nil {
		return fail("open", d.marker(), openErr)
	}
	unix.Close(d.lock)
	d.lock = fd
	return Retry(flock)
}

// lockless reports whether the error of a lock means that the filesystem has no locks.
func lockless(err error) bool {
	return errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.ENOTSUP) ||
		errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL)
}

// readMarker reads a marker file. Known reports whether the text is a marker, complete or truncated by
// a kill. Fields that cannot be read stay zero.
func readMarker(fd int) (m marker, known bool, err error) {
	text := make([]byte, 64<<10)
	n := 0
	err = Retry(func() (err error) { n, err = unix.Pread(fd, text, 0); return err })
	text = bytes.TrimRight(text[:max(0, n)], "\x00")
	if n := min(len(text), len(markerMagic)); string(text[:n]) != markerMagic[:n] {
		return m, false, err
	}
	// A run that was killed before it truncated the file has left the end of a longer text.
	if json.NewDecoder(bytes.NewReader(text)).Decode(&m) != nil {
		m = marker{}
	}
	return m, true, err
}

// write replaces the text of the marker in dir, in place. The magic at its start does not change, so
// that the directory is recognised at any moment.
func (m marker) write(dir int) (err error) {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	fd, err := OpenAt(dir, markerName, unix.O_WRONLY, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), markerName)
	if _, err = f.WriteAt(text, 0); err == nil {
		err = f.Truncate(int64(len(text)))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
