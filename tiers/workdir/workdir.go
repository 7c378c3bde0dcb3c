package workdir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// Options are the options of Open.
type Options struct {
	CacheDir string // created with its parents if it does not exist
	Rank     int    // the directory is CacheDir/rank_<Rank>, unless Folder is set
	Nonce    string // identifies the run in the marker
	Keep     bool   // Remove leaves files and marker for inspection; the next Open reclaims them
	// Folder, if not nil, is a directory whose files have stable names.
	Folder *Folder
	// Shared takes part in the directory if another process of the same run (the same Nonce) works
	// there. The last process removes the files of all. On a filesystem without locks the first process
	// removes them, so it should end last.
	Shared bool
	// Removal, if not nil, receives the progress of the removal of files.
	Removal *Removal
	// Call, if not nil, makes the system calls that may hang in the filesystem. Pass Call of
	// ioengine.Engine, which shows calls in progress.
	Call func(what, where string, f func() error) error
}

// Folder is a work directory other than rank_<N>, whose files other programs may read.
type Folder struct {
	Name  string // the directory is CacheDir/<Name>
	Files Names
	// Contents is stored in the marker.
	Contents json.RawMessage
	// Check, if not nil, means that this run reads the files of an earlier run. It gets the earlier
	// run's Contents, nil if there is none, and returns an error if these are not the files to read.
	// Then Open fails and changes nothing. Otherwise files and Contents stay.
	Check func(contents json.RawMessage) error
}

// Dir is the work directory: <cache-dir>/rank_<N>, or a Folder. It holds the lock of its marker. The
// next Open removes the files that a killed run has left. Dir owns the descriptors of its directories.
// Callers open files relative to these descriptors, and close the files.
//
// Its methods are safe for concurrent use; Remove or Close must be the last call.
type Dir struct {
	opt       Options
	path      string
	names     Names
	joined    bool
	lock      *os.File // the locked marker
	mark      marker
	place     *Place
	reclaimed Amount
	warnings  []string

	mu     sync.Mutex
	fans   map[string]int // descriptors of the directories directly below
	closed bool
}

// newDir returns a Dir whose directory is not open.
func newDir(opt Options) (*Dir, error) {
	d := &Dir{opt: opt, names: entryNames{}, fans: make(map[string]int)}
	name := fmt.Sprintf("rank_%d", opt.Rank)
	if opt.Folder != nil {
		name, d.names = opt.Folder.Name, opt.Folder.Files
	}
	err := d.call("open", opt.CacheDir, func() error {
		parent, err := resolve(opt.CacheDir)
		d.path = filepath.Join(parent, name)
		return err
	})
	return d, err
}

// Open creates or takes over the directory and reclaims the files of an earlier run. It refuses system
// directories, a rank directory that is a symbolic link, a directory with files but without a marker,
// and a directory in which another run works (ErrLocked). After an error it removes what it has
// created. The end of ctx stops the reclaiming, which the next Open continues.
func Open(ctx context.Context, opt Options) (*Dir, error) {
	if opt.Removal == nil {
		opt.Removal = &Removal{}
	}
	d, err := newDir(opt)
	if err != nil {
		return nil, err
	}
	if err := d.call("open", d.path, d.open); err != nil {
		removeEmpty(d.path)
		return nil, err
	}
	if err := d.begin(ctx); err != nil {
		if !d.joined {
			_ = d.removeMarker()
		}
		d.closeFiles()
		return nil, err
	}
	return d, nil
}

// attempts limits how often open retries after another run, which was starting or ending, has changed
// the directory.
const attempts = 100

// Check returns an error of Open that can be found before: files of another program, and a place where this user
// cannot write. It changes nothing, and locks nothing: a run that works there may have ended when Open is called.
func Check(opt Options) error {
	d, err := newDir(opt)
	if err != nil {
		return err
	}
	if err = d.nothingElse(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	at := d.path
	for err = unix.Access(at, unix.W_OK|unix.X_OK); errors.Is(err, fs.ErrNotExist); {
		at = filepath.Dir(at)
		err = unix.Access(at, unix.W_OK|unix.X_OK)
	}
	if err != nil {
		err = fail("make files in", at, err)
	}
	return err
}

// open creates or opens the directory, and locks its marker.
func (d *Dir) open() (err error) {
	if filepath.Clean(d.opt.CacheDir) == DefaultCacheDir() {
		if err := checkOwner(d.opt.CacheDir); err != nil {
			return err
		}
	}
	for range attempts {
		if info, err := os.Lstat(d.path); err == nil && !info.IsDir() {
			return notOurs(d.path)
		}
		if err = makeDirs(d.path); err != nil {
			err = fail("make the directory", d.path, err)
		} else if err = d.lockMarker(); err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("%w; is another run starting and ending there?", err)
}

// begin removes the files of an earlier run, or checks those that this run reads, and writes the
// marker.
func (d *Dir) begin(ctx context.Context) error {
	var contents json.RawMessage
	reads := false
	if f := d.opt.Folder; f != nil {
		contents, reads = f.Contents, f.Check != nil
	}
	if reads {
		contents = d.mark.Contents
		if err := d.opt.Folder.Check(contents); err != nil {
			return fmt.Errorf("in %s: %w", d.path, err)
		}
	}
	count := func() (Count, error) { return d.count(context.Background()) } // also after Remove
	d.place = d.opt.Removal.Add(d.path, count)
	if d.joined {
		return nil
	}
	if !reads {
		if err := d.sweep(ctx); err != nil {
			return fmt.Errorf("reclaim what an earlier run left: %w", err)
		}
		d.reclaimed = d.place.done
		d.place = d.opt.Removal.Add(d.path, count)
	}
	host, _ := os.Hostname()
	d.mark = marker{Note: markerNote, Nonce: d.opt.Nonce, Rank: d.opt.Rank, PID: os.Getpid(),
		Host: host, Started: time.Now().UTC(), Contents: contents}
	// The marker is on the medium before the first file: no file is ever found without it.
	if err := errors.Join(d.writeMarker(), d.flush(d.path)); err != nil {
		return err
	}
	if d.opt.Shared {
		if err := flock(d.lock, unix.LOCK_SH); err != nil && !lockless(err) {
			return fail("share", d.marker(), err)
		}
	}
	return nil
}

// Reclaimable returns the files that Open would remove now: those of a run that was killed or kept its
// files. It returns none if another run works in the directory, or after an error, which Open will
// report.
func Reclaimable(opt Options) Count {
	d, err := newDir(opt)
	if err != nil || opt.Folder != nil && opt.Folder.Check != nil {
		return Count{}
	}
	// Do not lock the marker: a run that is about to open the directory may be locking it.
	f, err := openMarker(d.marker(), os.O_RDONLY)
	if err != nil {
		return Count{}
	}
	defer f.Close()
	old, known, err := readMarker(f)
	if err != nil || !known || old.PID != os.Getpid() && old.works() {
		return Count{}
	}
	n, err := d.count(context.Background())
	if err != nil {
		return Count{}
	}
	return n
}

// call makes a system call that may hang in the filesystem.
func (d *Dir) call(what, where string, f func() error) error {
	if d.opt.Call == nil {
		return f()
	}
	return d.opt.Call(what, where, f)
}

// Path returns the directory's absolute path without symbolic links.
func (d *Dir) Path() string { return d.path }

// Joined reports whether another process has opened the directory.
func (d *Dir) Joined() bool { return d.joined }

// Reclaimed returns the files of an earlier run that Open removed.
func (d *Dir) Reclaimed() Amount { return d.reclaimed }

// Warnings returns facts that a reader of the results must know.
func (d *Dir) Warnings() []string { return d.warnings }

// Contents returns the marker's Contents for a Folder.
func (d *Dir) Contents() json.RawMessage { return d.mark.Contents }

// SetContents replaces the marker's Contents durably.
func (d *Dir) SetContents(contents json.RawMessage) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mark.Contents = contents
	return d.writeMarker()
}

// Stay makes Remove leave the files, as Options.Keep does.
func (d *Dir) Stay() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opt.Keep = true
}

// Name returns the directory and the file of an object.
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
	path := d.path + "/" + name
	if err := makeDir(path); err != nil {
		return -1, err
	}
	fd, err := OpenAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	switch {
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR):
		return -1, notOurs(path)
	case err != nil:
		return -1, fmt.Errorf("open the directory %s: %w", path, err)
	}
	d.fans[name] = fd
	return fd, nil
}

// notOurs returns the error for a path that is a symbolic link or a file instead of a directory.
func notOurs(path string) error {
	return fmt.Errorf("%s is not a directory of our own but a symbolic link or a file; move it away",
		path)
}

// Tree returns the descriptor and the path of the directory of an engine's layout. The first call
// creates it. Directories in it need TreeMode.
func (d *Dir) Tree() (fd int, path string, err error) {
	fd, err = d.Fan(treeName)
	return fd, d.path + "/" + treeName, err
}

// Sync makes the names of the files in a directory below the work directory durable.
func (d *Dir) Sync(name string) error { return d.flush(d.path + "/" + name) }

// flush makes the names in a directory durable, if the filesystem can flush directories.
func (d *Dir) flush(path string) error {
	err := d.call("flush", path, func() error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fail("flush the directory", path, err)
	}
	return nil
}

// Remove removes the suite's files, its directories and the marker, in this order, and the parents
// that were created for them, if they are empty. With Keep it removes nothing. It releases the
// directory for the next run. If several processes share the directory, the last one removes the
// files. If the directory also contains a user's files, the marker stays, so that the next run
// recognises the directory. The end of ctx stops the removal between two files: marker and files stay,
// as after a kill. Remove and Close are final; a second call does nothing.
func (d *Dir) Remove(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	defer d.closeFiles()
	if d.opt.Keep {
		return nil
	}
	if d.opt.Shared {
		// A process that is not the last one loses its shared lock with the attempt, so that the last
		// of several concurrent ones succeeds.
		if err := flock(d.lock, unix.LOCK_EX); err != nil && (d.joined || !lockless(err)) {
			d.place.Over() // the other processes remove the files
			return nil
		}
	}
	if err := d.sweep(ctx); err != nil {
		return fmt.Errorf("clean the cache directory: %w; the next start tries again", err)
	}
	d.place.Over()
	return d.removeMarker()
}

// Close removes the files, however long it takes: see Remove.
func (d *Dir) Close() error { return d.Remove(context.Background()) }

// removeMarker removes the marker and the directories that were created for it, unless the directory
// contains other files: then the marker identifies it for the next run.
func (d *Dir) removeMarker() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fail("list", d.path, err)
	}
	if len(entries) > 1 {
		return nil
	}
	if err := os.Remove(d.marker()); err != nil {
		return fail("remove", d.marker(), err)
	}
	d.lock.Close() // NFS renames a removed file that is open, so the directory would not be empty
	removeEmpty(d.path)
	return nil
}

// closeFiles closes all descriptors, the lock last.
func (d *Dir) closeFiles() {
	for _, fd := range d.fans {
		unix.Close(fd)
	}
	d.lock.Close()
}

// fail returns an error that names the operation, the path and the usual remedy.
func fail(what, path string, err error) error {
	if p := new(os.PathError); errors.As(err, &p) {
		err = p.Err // do not name the path twice
	}
	return fmt.Errorf("%s %s: %w%s", what, path, err, tiers.Advice(err))
}
