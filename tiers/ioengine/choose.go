package ioengine

import (
	"fmt"
	"time"
)

// The names of the engines, and the name that chooses the better one.
const (
	Auto  = "auto"
	Psync = "psync"
	URing = "uring"
)

// Use describes what an engine is used for.
type Use struct {
	Direct bool // direct I/O
	// Chained: when a request completes the next one follows in its buffer, without other work
	// between them, as in plain I/O.
	Chained bool
	Threads int // processors that may run at a time: the number of rings
	// Inline: the filesystem blocks the submitting thread, also of a ring. FUSE does so (Linux
	// 6.18): its files can be polled, so io_uring assumes that they do not block. A ring then has
	// one request in flight, and hangs if the FUSE server hangs.
	Inline bool
	// Memory: the files lie in memory (tmpfs). A request is a copy then, and io_uring passes each one to a
	// thread of the kernel, because tmpfs cannot say beforehand whether it blocks (Linux 6.18).
	Memory bool
}

// Choice is Open's decision, for readers of results.
type Choice struct {
	Name   string // Psync or URing
	About  string // how it works here
	Reason string // why Auto did not choose io_uring
	Rings  int    // of io_uring; 0: psync
}

// Open opens the engine of a name; Auto chooses a working one. A requested engine that is not
// available is an error, because results of another engine would mislead. The error matches
// errors.ErrUnsupported if the system does not have the engine. Now is the clock of the times in an
// Op.
// paused returns how long this process was paused in the last time of a length: a request is no stall for that
// time.
func Open(name string, use Use, now func() time.Duration, paused func(length time.Duration) time.Duration) (
	Engine, Choice, error) {
	e, c, err := choose(name, use, now, func() (Engine, string, error) {
		return NewURing(now, use.Threads, use.Inline)
	})
	if l, ok := e.(interface {
		without(func(time.Duration) time.Duration)
	}); ok {
		l.without(paused)
	}
	return e, c, err
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
		return e, Choice{Name: URing, About: about, Rings: use.Threads}, nil
	case name == Auto:
		c.Reason = err.Error()
		return NewPsync(now), c, nil
	}
	return nil, c, fmt.Errorf("-io-engine %s: %w; -io-engine %s does without", name, err, Psync)
}

// better returns why psync is better for a use, or "" if io_uring is.
//
// Measured on two cores in alternating pairs, medians of five, io_uring relative to psync. Chains of
// requests of 1 MiB (StorageCeiling, eight in flight): CPU per byte on a disk 0.56 for reads and 0.93
// for writes, on an ext4 on a loop device in memory 0.37 and 0.84, with equal rates within the noise.
// Reads of 4 KiB, sixteen in flight: CPU 0.53 at 1.8 times the rate. Single requests, and requests
// with other work after each on the thread that a ring's requests share, are worse: CPU 1.10 with
// Tier, 1.23 with MaxStorageStress, whose p99 of reads is 1.75 times as long (medians of three). On
// FUSE, whose server took 20 ms for each of sixteen reads of 1 MiB: psync 528 to 685 MB/s, two rings
// 87 to 95 (busy machine). With a kernel thread for each request, in a later alternating run: psync
// 739 and 761, rings 662 and 758.
func (u Use) better() (reason string) {
	switch {
	case !u.Direct: // requests that block run on kernel threads, with a wake-up each
		return "buffered I/O"
	case u.Memory:
		return "requests to a filesystem in memory only copy"
	case u.Inline:
		return "FUSE makes a ring wait for its server"
	case !u.Chained:
		return "between requests there is other work, which would hold up a ring"
	}
	return ""
}
