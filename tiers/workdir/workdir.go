package workdir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	Keep     bool   // Close leaves files and marker for inspection; the next Open reclaims them
	// Folder, if not nil, is a directory whose files have stable names.
	Folder *Folder
	// Shared lets other processes of the same run, with the same Nonce, Join.
	Shared bool
	// Removal, if not nil, receives the progress of the removal of files.
	Removal *Removal
	// Call, if not nil, makes all system calls except removals, like Call of ioengine.Engine: it
	// shows calls that the filesystem does not complete.
	Call func(what, where string, f func() error) error
}

func (o *Options) call(what, where string, f func() error) error {
	if o.Call == nil {
		return f()
	}
	return o.Call(what, where, f)
}

// Folder is a work directory other than rank_<N>, whose files other programs may read.
type Folder struct {
	Name  string // the directory is CacheDir/<Name>
	Files Names  // of this run
	// Contents is stored in the marker. Recall derives from it the files of an earlier run, also if
	// that run was killed.
	Contents json.RawMessage
	// Recall receives the Contents of the earlier run, nil if the marker had none. It returns the
	// names of that run's files. Stay keeps these files and the marker's Contents, because this run
	// reads them. An error refuses the directory and changes nothing.
	Recall func(contents json.RawMessage) (files Names, stay bool, err error)
}

// Dir is the work directory: <cache-dir>/rank_<N>, or a Folder. The suite creates it, marks it with a
// marker file and holds the marker's lock. It only deletes files with exactly its own names in its own
// directories; all other files in the directory, or next to it, stay.
//
// A run may be killed at any point. The directories of the suite carry the sticky bit, which the
// system call that creates them sets, so that even an empty one is recognised later. The marker exists
// before the first file and is removed after the last one. The next Open reclaims what a killed run
// has left.
//
// Its methods are safe for concurrent use; Close must be the last call.
type Dir struct {
	path     string
	keep     bool
	shared   bool
	joined   bool
	fd       int // of the directory
	lock     int // descriptor of the marker
	mark     marker
	names    Names
	reclaim  Reclaimed
	removal  *Removal
	call     func(what, where string, f func() error) error
	warnings []string

	mu     sync.Mutex
	fans   map[string]int // descriptors of the two-digit directories
	closed bool
}

// Reclaimed is the files that Open removed: those of a killed run, or of one that kept its files.
type Reclaimed struct {
	Amount
	PID int // of that run, 0 if unknown
}

// ownedMode has the sticky bit: see Dir.
const ownedMode = unix.S_ISVTX | 0o755

// attempts limits how often Open retries after another run, which was starting or ending, has changed
// the directory.
const attempts = 100

// Open creates or takes over the directory and reclaims the files of a killed run. It refuses system
// directories, a rank directory that is a symbolic link, a directory with files but without a marker,
// and a directory in which another run works (*LockedError). After an error it removes what it has
// created. The end of ctx stops the reclaiming, which the next Open continues.
func Open(ctx context.Context, opt Options) (*Dir, error) {
	var parent string
	err := opt.call("resolve", opt.CacheDir, func() (err error) {
		parent, err = resolve(opt.CacheDir)
		return err
	})
	if err != nil {
		return nil, err
	}
	if opt.Rank < 0 {
		return nil, fmt.Errorf("open the directory of rank %d: ranks count from 0", opt.Rank)
	}
	path, made := filepath.Join(parent, opt.folder()), ""
	if filepath.Clean(opt.CacheDir) == DefaultCacheDir() {
		if err := checkOwner(opt.CacheDir); err != nil {
			return nil, err
		}
		made = parent // also if another run has made it: the name is the suite's
	}
	for n := 0; ; n++ {
		var d *Dir
		err := opt.call("create", parent, func() error {
			top, err := makeParents(parent)
			made = outer(parent, made, top)
			return err
		})
		if err == nil {
			if d, err = open(ctx, path, parent, made, opt); err == nil {
				return d, nil
			}
		}
		changing := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EEXIST)
		if changing && n < attempts {
			continue
		}
		removeUp(parent, made)
		if changing {
			err = fmt.Errorf("%w; is another run starting and ending there?", err)
		}
		return nil, err
	}
}

// Left returns the bytes on the filesystem that Open would reclaim now: the files of a run that was
// killed, or kept its files. It is 0 without such files, if another run works in the directory, and
// after an error, which Open will report.
func Left(opt Options) (left Amount) {
	parent, err := resolve(opt.CacheDir)
	if err != nil {
		return Amount{}
	}
	d := &Dir{path: filepath.Join(parent, opt.folder()), lock: -1, names: opt.names()}
	if d.fd, err = OpenAt(unix.AT_FDCWD, d.path, unix.O_RDONLY|unix.O_DIRECTORY, 0); err != nil {
		return Amount{}
	}
	defer unix.Close(d.fd)
	// Do not lock the marker: a run that is about to open the directory may be locking it.
	d.lock, err = OpenAt(d.fd, markerName, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return Amount{}
	}
	defer unix.Close(d.lock)
	old, known, err := readMarker(d.lock)
	if err != nil || !known || old.PID != os.Getpid() && old.works() {
		return Amount{}
	}
	names, stay, err := opt.recall(old)
	if err != nil || stay {
		return Amount{}
	}
	// Count allocated blocks: a file may have holes, or be preallocated beyond its size.
	err = walk(d.fd, d.path, names, false, func(dir int, name string, _ int64) error {
		var s unix.Stat_t
		if unix.Fstatat(dir, name, &s, unix.AT_SYMLINK_NOFOLLOW) == nil && s.Nlink == 1 {
			left.Files, left.Bytes = left.Files+1, left.Bytes+s.Blocks*512
		}
		return nil
	})
	if err != nil {
		return Amount{}
	}
	return left
}

// folder returns the name of the directory below CacheDir.
func (o *Options) folder() string {
	if o.Folder != nil {
		return o.Folder.Name
	}
	return fmt.Sprintf("rank_%d", o.Rank)
}

// recall returns the names of an earlier run's files, from its marker, and whether they stay.
func (o *Options) recall(old marker) (names Names, stay bool, err error) {
	if o.Folder == nil || o.Folder.Recall == nil {
		return o.names(), false, nil
	}
	return o.Folder.Recall(old.Contents)
}

// names returns the names of the run's files.
func (o *Options) names() Names {
	if o.Folder != nil {
		return o.Folder.Files
	}
	return entryNames{}
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

// makeParents creates dir and missing directories above it. It returns the outermost missing
// directory, or "".
func makeParents(dir string) (top string, err error) {
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err == nil {
			break
		}
		top = at
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return top, fail("make the cache directory", dir, err)
	}
	return top, nil
}

// outer returns the outermost of a and b that is dir or above it, or "".
func outer(dir, a, b string) string {
	top := ""
	for _, at := range []string{a, b} {
		if onTheWay(at, dir) && (top == "" || len(at) < len(top)) {
			top = at
		}
	}
	return top
}

// onTheWay reports whether top is dir or above it. Top may come from the marker: it never matches
// unless it is an absolute, clean path.
func onTheWay(top, dir string) bool {
	return top != "" && (top == dir || strings.HasPrefix(dir, top+"/"))
}

// removeUp removes dir and the directories above it, up to top, while they are empty.
func removeUp(dir, top string) {
	for onTheWay(top, dir) && unix.Rmdir(dir) == nil {
		dir = filepath.Dir(dir)
	}
}

// open is one attempt. ENOENT or EEXIST means that another run has changed the directory meanwhile.
// Made is the outermost directory that Open created, see marker.
func open(ctx context.Context, path, parent, made string, opt Options) (_ *Dir, err error) {
	d := &Dir{path: path, keep: opt.Keep, shared: opt.Shared, lock: -1, call: opt.call,
		fans: make(map[string]int), removal: cmp.Or(opt.Removal, &Removal{})}
	d.names = opt.names()
	var madeRank, sticky, fresh bool
	defer func() {
		if err == nil {
			return
		}
		if fresh {
			unix.Unlinkat(d.fd, markerName, 0)
		}
		d.closeFiles()
		if madeRank {
			unix.Rmdir(path) // fails unless it is empty
		}
	}()
	if err = d.call("open", path, func() (err error) {
		d.fd, madeRank, sticky, err = ownDir(unix.AT_FDCWD, path, path)
		return err
	}); err != nil {
		return nil, fmt.Errorf("%w%s", err, tiers.Advice(err))
	}
	// With the marker's lock no other run works here.
	if err = d.call("open", d.marker(), func() (err error) {
		fresh, err = d.openMarker()
		return err
	}); err != nil {
		return nil, err
	}
	old, err := d.takeOver(ctx, &opt)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	d.mark = marker{
		Note: markerNote, Nonce: opt.Nonce, Rank: opt.Rank, PID: os.Getpid(), Host: host,
		Started: time.Now().UTC(), Made: outer(parent, old.Made, made),
		MadeRank: madeRank || sticky || old.MadeRank, Contents: old.Contents,
	}
	// The marker is on the medium before the first file: no file is ever found without it.
	if err := d.writeMarker(); err != nil {
		return nil, err
	}
	if err := d.call("flush", path, func() error {
		return Retry(func() error { return unix.Fsync(d.fd) })
	}); err != nil && !errors.Is(err, unix.EINVAL) {
		return nil, fail("flush the directory", path, err)
	}
	if d.shared {
		return d, d.share()
	}
	return d, nil
}

// ownDir creates or opens a directory of the suite in the directory in. It refuses a symbolic link,
// so that no file is written outside the suite's directories. Sticky reports the suite's mark.
func ownDir(in int, name, path string) (fd int, made, sticky bool, err error) {
	err = Retry(func() error { return unix.Mkdirat(in, name, ownedMode) })
	if made = err == nil; !made && !errors.Is(err, unix.EEXIST) {
		return -1, false, false, fmt.Errorf("make the directory %s: %w", path, err)
	}
	fd, err = OpenAt(in, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err == nil {
		if sticky, err = stickyDir(fd, made); err == nil {
			return fd, made, sticky, nil
		}
		unix.Close(fd)
	}
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		err = fmt.Errorf("%s is not a directory of our own but a symbolic link or a file; "+
			"move it away", path)
	} else {
		err = fmt.Errorf("open the directory %s: %w", path, err)
	}
	return -1, made, false, err
}

// stickyDir reports whether a directory has the suite's mark, the sticky bit. It sets the bit on a new
// directory if the system call that created it has not (macOS).
func stickyDir(fd int, made bool) (sticky bool, err error) {
	var s unix.Stat_t
	err = unix.Fstat(fd, &s)
	if sticky = s.Mode&unix.S_ISVTX != 0; made && !sticky {
		// If this fails, a kill may leave an empty directory, and nothing else.
		_ = unix.Fchmod(fd, ownedMode)
	}
	return sticky || made, err
}

// takeOver reads the marker of the earlier run and removes that run's files, unless the Folder keeps
// them. The Contents of the returned marker are valid from now on.
func (d *Dir) takeOver(ctx context.Context, opt *Options) (marker, error) {
	var old marker
	var known bool
	err := d.call("read", d.marker(), func() (err error) {
		old, known, err = readMarker(d.lock)
		return err
	})
	if err != nil {
		return old, fail("read", d.marker(), err)
	}
	if !known {
		return old, fmt.Errorf("%s is damaged, or was not written by kvbench; "+
			"move the directory away or give another -cache-dir", d.marker())
	}
	// Not before: this run does not report files of another run, or of a user.
	d.removal.set(d.path, d.names)
	names, stay, err := opt.recall(old)
	if err != nil {
		d.removal.Over() // the files belong to another run, and stay
		return old, fmt.Errorf("in %s: %w", d.path, err)
	}
	if stay {
		d.names = names
	} else {
		d.removal.moves(d.path, d.names)
		d.reclaim.Amount, err = d.sweep(ctx, names)
		if d.removal.rests(); err != nil {
			return old, fmt.Errorf("reclaim what an earlier run left: %w", err)
		}
		if old.Contents = nil; opt.Folder != nil {
			old.Contents = opt.Folder.Contents
		}
	}
	if d.reclaim.Files > 0 {
		d.reclaim.PID = old.PID
	}
	d.removal.set(d.path, d.names)
	return old, nil
}

// Contents returns the marker's Contents for a Folder.
func (d *Dir) Contents() json.RawMessage { return d.mark.Contents }

// SetContents replaces the marker's Contents durably.
func (d *Dir) SetContents(contents json.RawMessage) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mark.Contents = contents
	return d.writeMarker()
}

func (d *Dir) writeMarker() error {
	err := d.call("write", d.marker(), func() error { return d.mark.write(d.fd) })
	if err != nil {
		return fail("write", d.marker(), err)
	}
	return nil
}

// Path returns the directory's absolute path without symbolic links.
func (d *Dir) Path() string { return d.path }

// Stay makes Close leave the files, as Options.Keep does.
func (d *Dir) Stay() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keep = true
}

// Keep reports whether Close leaves the files.
func (d *Dir) Keep() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keep
}

// Reclaimed returns what Open has removed of an earlier run.
func (d *Dir) Reclaimed() Reclaimed { return d.reclaim }

// Warnings are facts about the directory that a user should know.
func (d *Dir) Warnings() []string { return d.warnings }

// Close is Remove without a time limit.
func (d *Dir) Close() error { return d.Remove(context.Background()) }

// Remove removes the suite's files, its directories and the marker, in this order, and the parents
// that were created for them, if they are empty. With Keep it removes nothing. It releases the
// directory for the next run. If several processes share the directory, the last one that closes it
// removes the files. If the rank directory also contains a user's files, the marker stays, so that the
// next run recognises the directory. The end of ctx stops the removal between two files: marker and
// files stay, as after a kill. Remove and Close are final; a second call does nothing.
func (d *Dir) Remove(ctx context.Context) error {
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
	if d.shared && !d.last() {
		d.removal.Over() // the other processes remove them
		return nil
	}
	d.removal.moves(d.path, d.names)
	defer d.removal.rests()
	if _, err := d.sweep(ctx, d.names); err != nil {
		return fmt.Errorf("clean the cache directory: %w; the next start tries again", err)
	}
	d.removal.Over()
	names, err := readNames(d.fd)
	if err != nil {
		return fail("clean the cache directory: list", d.path, err)
	}
	if !slices.Equal(names, []string{markerName}) {
		return nil // a user's files: the marker stays to identify the directory
	}
	if err := Retry(func() error { return unix.Unlinkat(d.fd, markerName, 0) }); err != nil {
		return fail("remove", d.marker(), err)
	}
	if d.mark.MadeRank && unix.Rmdir(d.path) == nil {
		removeUp(filepath.Dir(d.path), d.mark.Made)
	}
	return nil
}

// closeFiles closes all descriptors, the lock last.
func (d *Dir) closeFiles() {
	for _, fd := range d.fans {
		unix.Close(fd)
	}
	unix.Close(d.fd)
	unix.Close(d.lock)
}

// fail returns an error that names the operation, the path and the usual remedy.
func fail(what, path string, err error) error {
	if p := new(os.PathError); errors.As(err, &p) {
		err = p.Err // do not name the path twice
	}
	return fmt.Errorf("%s %s: %w%s", what, path, err, tiers.Advice(err))
}
