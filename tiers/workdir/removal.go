package workdir

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Amount is a number of files, and the bytes in them.
type Amount struct {
	Files int
	Bytes int64
}

// Removal is how far the removal of files has come: in Open of those that an earlier run left, in
// Remove and Close of the run's own. The zero value is ready. Anybody may look at it at any time,
// also while the removal hangs in the kernel.
type Removal struct {
	mu       sync.Mutex
	path     string // of the directory; "" while there is none that could hold files
	counted  bool   // of is known
	of, done Amount
}

// Progress returns the bytes that are removed, of those that were there; 0 of 0 before they are
// counted.
func (r *Removal) Progress() (done, of int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done.Bytes, r.of.Bytes
}

// countingTime is how long Left waits for figures: it is asked when a process is to end at once.
const countingTime = 200 * time.Millisecond

// Left returns what of a run lies on the disk, and the directory where it does: "" when nothing
// does. Before the removal has counted the files they are counted here; known is false when that
// takes too long, as on a disk that does not answer.
func (r *Removal) Left() (dir string, left Amount, known bool) {
	r.mu.Lock()
	dir, known = r.path, r.counted
	left = Amount{Files: r.of.Files - r.done.Files, Bytes: r.of.Bytes - r.done.Bytes}
	r.mu.Unlock()
	if known || dir == "" {
		return dir, left, true
	}
	counted := make(chan Amount, 1)
	go func() {
		if fd, err := OpenAt(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0); err == nil {
			defer unix.Close(fd)
			if n, err := count(fd, dir, func() error { return nil }); err == nil {
				counted <- n
			}
		}
	}()
	select {
	case left = <-counted:
		return dir, left, true
	case <-time.After(countingTime):
		return dir, Amount{}, false
	}
}

// works notes that a run works in a directory from now on, whose files nobody has counted.
func (r *Removal) works(path string) { r.set(path, false, Amount{}) }

// over notes that nothing is left to tell of.
func (r *Removal) over() { r.set("", false, Amount{}) }

func (r *Removal) set(path string, counted bool, of Amount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.path, r.counted, r.of, r.done = path, counted, of, Amount{}
}

// removed notes that so much has gone.
func (r *Removal) removed(n Amount) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done.Files += n.Files
	r.done.Bytes += n.Bytes
}
