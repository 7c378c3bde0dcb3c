package ioengine

import (
	"fmt"
	"time"
)

// The engines by their names, and the word for whichever is better.
const (
	Auto  = "auto"
	Psync = "psync"
	URing = "uring"
)

// Use is what an engine is for.
type Use struct {
	Direct bool // past the page cache
	// Chained: where a request comes back the next one follows in its buffer, and nothing else is
	// done: plain I/O.
	Chained bool
	Threads int // as many as may run at a time: how many rings there are
	// Inline: the filesystem makes who asks wait, also a ring, as FUSE does (Linux 6.18): its files
	// can be polled, which io_uring takes for a promise. A ring then has one request under way, and
	// hangs with the server.
	Inline bool
}

// Choice is what Open decided, for those who read numbers.
type Choice struct {
	Name   string // Psync or URing
	About  string // how it works here
	Reason string // why it is this one, where the choice was left open and it is not io_uring
}

// Open makes the engine of a name, where Auto leaves the choice open, and takes what works. One
// that was asked for and cannot be had is an error, because the numbers would be those of another:
// it matches errors.ErrUnsupported where the system does not have it. Now is the clock of the times
// in an Op.
func Open(name string, use Use, now func() time.Duration) (Engine, Choice, error) {
	return choose(name, use, now, func() (Engine, string, error) {
		return NewURing(now, use.Threads, use.Inline)
	})
}

func choose(name string, use Use, now func() time.Duration, rings func() (Engine, string, error)) (
	Engine, Choice, error) {
	c := Choice{Name: Psync, About: "a system call in a thread for each request"}
	if name == Auto {
		c.Reason = use.better()
	}
	if name == Psync || c.Reason != "" {
		return NewPsync(now), c, nil
	}
	e, about, err := rings()
	switch {
	case err == nil:
		return e, Choice{Name: URing, About: about}, nil
	case name == Auto:
		c.Reason = err.Error()
		return NewPsync(now), c, nil
	}
	return nil, c, fmt.Errorf("-io-engine %s: %w; -io-engine %s does without", name, err, Psync)
}

// better says why psync serves a use better, nothing where io_uring does.
//
// Measured on two cores in pairs that alternate, medians of five. Chains of requests of 1 MiB
// (StorageCeiling, eight in flight) took of psync's processor time per byte on a disk 0.56 for
// reads and 0.93 for writes, on an ext4 on a loop device over memory 0.37 and 0.84, at rates that
// did not differ by more than either varied; reads of 4 KiB, sixteen in flight, 0.53 at 1.8 times
// the rate. Requests that come one by one, or of which each is followed by other work on the thread
// that all of a ring share, are the other way: Tier 1.10, MaxStorageStress 1.23 and a p99 of its
// reads 1.75 times as long (medians of three). On FUSE, whose server took 20 ms for each of sixteen
// reads of 1 MiB, psync had 528 to 685 MB/s and two rings 87 to 95 (on a busy machine); where a
// thread of the kernel's makes each request, in turns in a later run, psync 739 and 761,
// rings 662 and 758.
func (u Use) better() (reason string) {
	switch {
	case !u.Direct: // what has to wait, a thread of the kernel's does, and is woken for
		return "buffered I/O"
	case u.Inline:
		return "FUSE makes a ring wait for its server"
	case !u.Chained:
		return "between requests there is other work, which would hold up a ring"
	}
	return ""
}
