package workdir

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Amount is a number of files, or of objects, and the bytes in them.
type Amount struct {
	Files int
	Bytes int64
}

// Removal is how far the removal of files has come: in Open of those that an earlier run left, in
// Remove and Close of the run's own. The zero value is ready. It can be read at any time, also while
// the removal hangs in the kernel.
//
// Another store of a run's bytes reports them by Works, Counted, Removed and Over.
type Removal struct {
	mu       sync.Mutex
	path     string        // of the directory; "" while there is none that could hold files
	names    Names         // of the files in it that count
	count    func() Amount // what lies there, where it is no directory
	counted  bool          // of is valid
	of, done Amount
	moved    time.Time  // when it began or last came further; zero while nothing is removed
	others   []*Removal // of more directories of the run

	stepping sync.Mutex  // held while a file is removed, for as long as the disk takes
	ends     atomic.Bool // Left was called: nothing more is removed
}

// Beside returns a Removal for one more directory of the same run, which r includes.
func (r *Removal) Beside() *Removal {
	r.mu.Lock()
	defer r.mu.Unlock()
	more := &Removal{}
	r.others = append(r.others, more)
	return more
}

// Progress returns the bytes that are removed, and the bytes that were there; 0 of 0 before they are
// counted.
func (r *Removal) Progress() (done, of int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done, of = r.done.Bytes, r.of.Bytes
	for _, more := range r.others {
		d, o := more.Progress()
		done, of = done+d, of+o
	}
	return done, of
}

// Waits returns for how long the removal in progress has made no progress, and its directory; ""
// where nothing is being removed.
func (r *Removal) Waits() (dir string, since time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.moved.IsZero() {
		dir, since = r.path, time.Since(r.moved)
	}
	for _, more := range r.others {
		if d, s := more.Waits(); d != "" && (dir == "" || s > since) {
			dir, since = d, s
		}
	}
	return dir, since
}

// countingTime is how long Left waits for figures: it is called when a process is to end at once.
const countingTime = 200 * time.Millisecond

// Remains are what of a run lies on the disk.
type Remains struct {
	Dirs []string // where files lie; none when nothing does
	Amount
	Known  bool // false when counting takes too long, as on a disk that does not answer
	Others int  // files in the directories that are not of the run
}

// Left returns what of a run lies on the disk, for the last line of a process: it counts the files,
// and stops the removal, so that the line is still true when it is read.
func (r *Removal) Left() Remains {
	left := r.here()
	r.mu.Lock()
	others := slices.Clone(r.others)
	r.mu.Unlock()
	for _, more := range others {
		m := more.Left()
		left.Dirs, left.Known = append(left.Dirs, m.Dirs...), left.Known && m.Known
		left.Files, left.Bytes = left.Files+m.Files, left.Bytes+m.Bytes
		left.Others += m.Others
	}
	return left
}

// here is Left of its own directory.
func (r *Removal) here() Remains {
	r.mu.Lock()
	dir, names, here := r.path, r.names, r.count
	known := Remains{Dirs: []string{dir}, Known: r.counted, Amount: Amount{
		Files: r.of.Files - r.done.Files, Bytes: r.of.Bytes - r.done.Bytes}}
	r.mu.Unlock()
	switch {
	case dir == "":
		return Remains{Known: true}
	case here != nil && !known.Known:
		known.Amount, known.Known = here(), true
	}
	if names == nil {
		return known
	}
	counted := make(chan Remains, 1)
	go func() {
		r.ends.Store(true)
		r.stepping.Lock() // waits for the file that is being removed
		defer r.stepping.Unlock()
		fd, err := OpenAt(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		n, err := count(fd, dir, names, func() error { return nil })
		if err == nil {
			counted <- Remains{[]string{dir}, n, true, foreign(dir, names)}
		}
	}()
	select {
	case left := <-counted:
		return left
	case <-time.After(countingTime):
		return known
	}
}

// foreign counts the files in a work directory that are not of the run by their names.
func foreign(path string, names Names) (n int) {
	_ = filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // what cannot be read is not counted
		}
		in, name, _ := strings.Cut(strings.TrimPrefix(at, path+"/"), "/")
		if in != markerName && !(names.Dir(in) && names.File(in, name)) {
			n++
		}
		return nil
	})
	return n
}

// step makes a step of the removal, unless Left has stopped it.
func (r *Removal) step(remove func() error) error {
	r.stepping.Lock()
	defer r.stepping.Unlock()
	if r.ends.Load() {
		return errEnds
	}
	return remove()
}

var errEnds = errors.New("the process ends")

// Works notes that a run works in a place from now on that is no directory, and who counts what
// lies there: quickly, and at any time.
func (r *Removal) Works(place string, count func() Amount) {
	r.set(place, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count = count
}

// Counted notes that so much lies in the place, and is going to be removed.
func (r *Removal) Counted(of Amount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counted, r.of, r.done = true, of, Amount{}
}

// Over notes that nothing is left to report.
func (r *Removal) Over() { r.set("", nil) }

// moves notes that the removal of files of such names in a directory has begun, or come further.
func (r *Removal) moves(path string, names Names) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.path, r.names, r.moved = path, names, time.Now()
}

// rests notes that nothing is being removed any more, for whatever reason.
func (r *Removal) rests() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moved = time.Time{}
}

// set notes that a run works in a directory from now on, whose files are not counted yet.
func (r *Removal) set(path string, names Names) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.path, r.names, r.count, r.counted = path, names, nil, false
	r.of, r.done = Amount{}, Amount{}
}

// Removed notes that so much has gone.
func (r *Removal) Removed(n Amount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done.Files += n.Files
	r.done.Bytes += n.Bytes
	r.moved = time.Now()
}
