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

// Options say which directory, and what becomes of it.
type Options struct {
	CacheDir string // made with its parents where it does not exist
	Rank     int    // the directory is CacheDir/rank_<Rank>, unless Folder says another
	Nonce    string // of the run, for the marker
	Keep     bool   // Close leaves files and marker for inspection; the next Open reclaims them
	// Folder, if not nil, is a directory whose files have names that mean something.
	Folder *Folder
	// Shared lets others Join: processes of the same run, which has one Nonce for all of them.
	Shared bool
	// Removal, if not nil, shows the progress of removing files.
	Removal *Removal
	// Call, if not nil, makes the calls other than those that remove files, as ioengine.Engine's
	// does: it shows which of them the filesystem does not complete.
	Call func(what, where string, f func() error) error
}

func (o *Options) call(what, where string, f func() error) error {
	if o.Call == nil {
		return f()
	}
	return o.Call(what, where, f)
}

// Folder is a work directory other than rank_<N>, the files of which other programs may look for.
type Folder struct {
	Name  string // the directory is CacheDir/<Name>
	Files Names  // of this run
	// Contents is kept in the marker: what Recall needs to know which files a run left, however it
	// ended.
	Contents json.RawMessage
	// Recall is given the Contents of the run before, nil when the marker had none. It returns the
	// names of that run's files, and whether they are to stay, because this run reads them: then
	// the marker's Contents stay, too. An error refuses the directory as it is.
	Recall func(contents json.RawMessage) (files Names, stay bool, err error)
}

// Dir is the one directory in which the suite works: <cache-dir>/rank_<N>, or that of a Folder,
// made by the suite itself, known by a marker file and held under its lock. Only files whose names
// are exactly those of the suite, in its own directories, are ever deleted; whatever else lies in
// it, or next to it, stays as it is.
//
// It survives being killed at any point. Directories of the suite carry the sticky bit,
// given in the same system call that makes them, so even one that is still empty is
// recognised later. The marker exists before the first file and goes after the last one.
// What dies between is reclaimed by the next Open.
//
// Its methods are safe for concurrent use; Close comes last.
type Dir struct {
	path     string
	keep     bool
	shared   bool
	joined   bool
	fd       int // of the directory
	lock     int // the marker's
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

// Reclaimed is what a killed run, or one that kept its files, had left and Open removed.
type Reclaimed struct {
	Amount
	PID int // of that run, 0 if unknown
}

// ownedMode has the sticky bit: see Dir.
const ownedMode = unix.S_ISVTX | 0o755

// attempts is how often Open begins anew because another run, just starting or ending,
// changed the directory meanwhile.
const attempts = 100

// Open makes or takes over the directory and reclaims what a dead run left in it. It
// refuses system directories, a rank directory that is a symbolic link, one that holds files
// but no marker of the suite, and one in which another run works (*LockedError). Whatever it
// made is removed again when it fails. When ctx ends the reclaiming stops, and the next Open goes
// on.
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
		made = parent // also if another run made it: the name is the suite's
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

// Left is how many bytes of its filesystem a directory holds that Open would reclaim now: what a
// run has left that was killed, or kept its files. It is 0 where there is nothing of the suite's,
// where another run works, and where it cannot be known: then Open says why.
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
	// Without the marker's lock, which the run that is about to open the directory may be taking.
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
	// A file may have holes, and one that is allocated ahead more than its size.
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

// folder is the name of the directory below CacheDir.
func (o *Options) folder() string {
	if o.Folder != nil {
		return o.Folder.Name
	}
	return fmt.Sprintf("rank_%d", o.Rank)
}

// recall returns the names of the files that an earlier run left, by its marker, and whether they
// are to stay.
func (o *Options) recall(old marker) (names Names, stay bool, err error) {
	if o.Folder == nil || o.Folder.Recall == nil {
		return o.names(), false, nil
	}
	return o.Folder.Recall(old.Contents)
}

// names are those of the run's files.
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

// makeParents makes dir and what is missing above it. It returns the outermost directory
// that was missing, "" if none was.
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

// outer returns the outermost of a and b that is dir itself or on the way to it, else "".
func outer(dir, a, b string) string {
	top := ""
	for _, at := range []string{a, b} {
		if onTheWay(at, dir) && (top == "" || len(at) < len(top)) {
			top = at
		}
	}
	return top
}

// onTheWay says whether top is dir or above it. Tops come from a file, too: what is no
// absolute and clean path is never on the way.
func onTheWay(top, dir string) bool {
	return top != "" && (top == dir || strings.HasPrefix(dir, top+"/"))
}

// removeUp removes dir and the directories above it up to top, as long as they are empty.
func removeUp(dir, top string) {
	for onTheWay(top, dir) && unix.Rmdir(dir) == nil {
		dir = filepath.Dir(dir)
	}
}

// open is one attempt. An errno of ENOENT or EEXIST says that the directory changed meanwhile.
// Made is what Open made above the directory: removed at the end, see marker.
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
			unix.Rmdir(path) // only if nothing is in it
		}
	}()
	if err = d.call("open", path, func() (err error) {
		d.fd, madeRank, sticky, err = ownDir(unix.AT_FDCWD, path, path)
		return err
	}); err != nil {
		return nil, fmt.Errorf("%w%s", err, tiers.Advice(err))
	}
	// Once the marker is locked no other run works here.
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

// ownDir makes a directory of the suite's in that of a descriptor, or opens the one that is there.
// A symbolic link is refused: files belong into the suite's own directories and nowhere else.
// Sticky says that it carries the suite's mark.
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

// stickyDir says whether the directory carries the mark of the suite's, and gives it to one
// just made where the system call that made it does not (macOS).
func stickyDir(fd int, made bool) (sticky bool, err error) {
	var s unix.Stat_t
	err = unix.Fstat(fd, &s)
	if sticky = s.Mode&unix.S_ISVTX != 0; made && !sticky {
		// Should that fail, an empty directory may be left after a kill, no more.
		_ = unix.Fchmod(fd, ownedMode)
	}
	return sticky || made, err
}

// takeOver reads the marker of the run before and removes what it left, unless the folder wants it.
// The Contents of what it returns are those of the directory from now on.
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
	// Not before: the files of another run, or of a user, are not this run's to report.
	d.removal.set(d.path, d.names)
	names, stay, err := opt.recall(old)
	if err != nil {
		d.removal.Over() // the files here are another run's, and stay
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

// Contents is what the marker keeps for a Folder.
func (d *Dir) Contents() json.RawMessage { return d.mark.Contents }

// SetContents replaces it, durably.
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

// Path is the directory's absolute path without symbolic links.
func (d *Dir) Path() string { return d.path }

// Stay lets Close leave the files from now on, as Options.Keep does.
func (d *Dir) Stay() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keep = true
}

// Keep says whether Close leaves the files.
func (d *Dir) Keep() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keep
}

// Reclaimed is what Open found of an earlier run and removed.
func (d *Dir) Reclaimed() Reclaimed { return d.reclaim }

// Warnings are things that a person should know about the directory.
func (d *Dir) Warnings() []string { return d.warnings }

// Close is Remove that takes its time.
func (d *Dir) Close() error { return d.Remove(context.Background()) }

// Remove removes the suite's files, its directories and the marker, in this order, and the
// parents that were made for them, if nothing else is in them; with Keep it leaves all of it.
// Then the next run may have the directory. Of several that share it the last one to come here does
// that. Where something of the user's lies in the rank
// directory, the marker stays with it, so that the next run recognises the directory. When ctx
// ends it stops between two files: marker and files stay, as after a kill. Closing, by whichever of
// the two, is final, and doing it twice is harmless.
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
		d.removal.Over() // it is for those that are still there
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
		return nil // a user's files: the marker stays to say whose directory it is
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

// fail says what failed and what may help.
func fail(what, path string, err error) error {
	if p := new(os.PathError); errors.As(err, &p) {
		err = p.Err // it names the path a second time
	}
	return fmt.Errorf("%s %s: %w%s", what, path, err, tiers.Advice(err))
}
