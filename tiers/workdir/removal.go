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

// Removal is the progress of the removal of files: of an earlier run's files in Open, and of the run's
// own in Remove and Close. The zero value is ready. It can be read at any time, also while the removal
// hangs in the kernel.
//
// A tier that is no directory reports its removal with Works, Counted, Removed and Over.
type Removal struct {
	mu       sync.Mutex
	path     string        // of the directory; "" while no directory can contain files
	names    Names         // of the files that count
	count    func() Amount // counts the objects of a tier that is no directory
	counted  bool          // of is valid
	of, done Amount
	moved    time.Time  // when it began or last made progress; zero while nothing is removed
	others   []*Removal // of other directories of the run

	stepping sync.Mutex  // held while a file is removed, for as long as the disk takes
	ends     atomic.Bool // Left was called: no more removals
}

// Beside returns a Removal for another directory of the same run. Its figures are part of r's.
func (r *Removal) Beside() *Removal {
	r.mu.Lock()
	defer r.mu.Unlock()
	more := &Removal{}
	r.others = append(r.others, more)
	return more
}

// Progress returns the bytes that have been removed, and the bytes that there were; both are 0 before
// the files are counted.
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

// Waits returns how long the removal has made no progress, and its directory; "" if nothing is being
// removed.
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

// countingTime limits how long Left counts: the process must end soon.
const countingTime = 200 * time.Millisecond

// Remains describes the files of a run that are left.
type Remains struct {
	Dirs []string // directories with files
	Amount
	Known  bool // false if counting takes too long, as on a disk that hangs
	Others int  // files in the directories that do not belong to the run
}

// Left returns the files of a run that are left, for the last line of a process. It counts the files
// and stops the removal, so that the line stays true.
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

// here is Left for the Removal's own directory.
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

// foreign counts the files in a work directory whose names are not the run's.
func foreign(path string, names Names) (n int) {
	_ = filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // directories that cannot be read are not counted
		}
		in, name, _ := strings.Cut(strings.TrimPrefix(at, path+"/"), "/")
		if in != markerName && !(names.Dir(in) && names.File(in, name)) {
			n++
		}
		return nil
	})
	return n
}

// step executes a step of the removal, unless Left has stopped it.
func (r *Removal) step(remove func() error) error {
	r.stepping.Lock()
	defer r.stepping.Unlock()
	if r.ends.Load() {
		return errEnds
	}
	return remove()
}

var errEnds = errors.New("the process ends")

// Works sets the place of a tier that is no directory, and the function that counts its objects. The
// function must be quick, and may be called at any time.
func (r *Removal) Works(place string, count func() Amount) {
	r.set(place, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count = count
}

// Counted sets the amount that is going to be removed.
func (r *Removal) Counted(of Amount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counted, r.of, r.done = true, of, Amount{}
}

// Over ends the report.
func (r *Removal) Over() { r.set("", nil) }

// moves records that the removal of the named files in a directory has begun, or made progress.
func (r *Removal) moves(path string, names Names) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.path, r.names, r.moved = path, names, time.Now()
}

// rests records that the removal has ended or stopped.
func (r *Removal) rests() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moved = time.Time{}
}

// set sets the directory of the run. Its files are not counted yet.
func (r *Removal) set(path string, names Names) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.path, r.names, r.count, r.counted = path, names, nil, false
	r.of, r.done = Amount{}, Amount{}
}

// Removed adds an amount that has been removed.
func (r *Removal) Removed(n Amount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done.Files += n.Files
	r.done.Bytes += n.Bytes
	r.moved = time.Now()
}
