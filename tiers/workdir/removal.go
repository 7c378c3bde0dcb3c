package workdir

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Amount is a number of files, or of objects, and the bytes in them.
type Amount struct {
	Files int
	Bytes int64
}

func (a *Amount) add(b Amount) {
	a.Files += b.Files
	a.Bytes += b.Bytes
}

// Count is the content of a place.
type Count struct {
	Amount       // the run's files
	Freed  int64 // bytes on the filesystem that the removal of these files frees
	Others int   // files that do not belong to the run
}

// Removal is the progress of the removal of a run's files in all places: of an earlier run's files in
// Open, and of the run's own files in Remove. The zero value is ready to use. It is safe for concurrent
// use, also while a removal hangs in the kernel.
type Removal struct {
	mu     sync.Mutex // of the places, too
	places []*Place
}

// Place is a directory, or a prefix in a bucket, that may contain files of the run.
type Place struct {
	removal *Removal
	path    string
	count   func() (Count, error)

	counted     bool // total is valid
	total, done Amount

	removing sync.Mutex // held while a file is removed, for as long as the disk takes
	stopped  bool       // no more removals; guarded by removing
}

// Add adds a place. It replaces an earlier place with the same path. count may be called at any time.
func (r *Removal) Add(path string, count func() (Count, error)) *Place {
	p := &Place{removal: r, path: path, count: count}
	r.drop(path)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.places = append(r.places, p)
	return p
}

func (r *Removal) drop(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.places = slices.DeleteFunc(r.places, func(p *Place) bool { return p.path == path })
}

// Over removes the place from its Removal: no files of the run are left in it.
func (p *Place) Over() { p.removal.drop(p.path) }

// Counted sets the amount that is going to be removed.
func (p *Place) Counted(total Amount) {
	p.removal.mu.Lock()
	defer p.removal.mu.Unlock()
	p.counted, p.total, p.done = true, total, Amount{}
}

// Removed adds an amount that has been removed.
func (p *Place) Removed(n Amount) {
	p.removal.mu.Lock()
	defer p.removal.mu.Unlock()
	p.done.add(n)
}

// Progress returns the bytes removed so far and the bytes to remove in total. Both are 0 before the
// files are counted.
func (r *Removal) Progress() (done, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.places {
		done, total = done+p.done.Bytes, total+p.total.Bytes
	}
	return done, total
}

// remove executes a step that removes n, unless ctx has ended or Remaining has stopped the removal.
func (p *Place) remove(ctx context.Context, n Amount, call func() error) error {
	p.removing.Lock()
	defer p.removing.Unlock()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case p.stopped:
		return errStopped
	}
	err := call()
	if err == nil {
		p.Removed(n)
	}
	return err
}

var errStopped = errors.New("the process ends")

// Remains describes the files of a run that are left.
type Remains struct {
	Dirs []string // places with files
	Amount
	Known  bool // false if counting takes too long, as on a disk that hangs
	Others int  // number of files in these places that do not belong to the run
}

// countingTime limits the time that Remaining counts in a place: the process must end soon.
const countingTime = 200 * time.Millisecond

// Remaining returns the files of a run that are left, for the last message of a process. It stops the
// removal, so that the message stays true.
func (r *Removal) Remaining() Remains {
	r.mu.Lock()
	places := slices.Clone(r.places)
	r.mu.Unlock()
	all := Remains{Known: true}
	for _, p := range places {
		n, known := p.remaining()
		if known && n.Files == 0 {
			continue
		}
		all.Dirs, all.Known = append(all.Dirs, p.path), all.Known && known
		all.add(n.Amount)
		all.Others += n.Others
	}
	return all
}

func (p *Place) remaining() (n Count, known bool) {
	counted := make(chan Count, 1)
	go func() {
		p.removing.Lock() // waits for the file that is being removed
		defer p.removing.Unlock()
		p.stopped = true
		if n, err := p.count(); err == nil {
			counted <- n
		}
	}()
	select {
	case n = <-counted:
		return n, true
	case <-time.After(countingTime):
		p.removal.mu.Lock()
		defer p.removal.mu.Unlock()
		n.Files, n.Bytes = p.total.Files-p.done.Files, p.total.Bytes-p.done.Bytes
		return n, p.counted
	}
}
