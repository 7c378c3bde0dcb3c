// Package group is the clients of one run, as the engine of each of them knows them: which of how
// many it is, and the barrier at which they begin together. Around it, in reading order:
//
//	launchers   what mpirun, srun and others say of a process
//	wire        what clients say to each other: messages and frames
//	agent       ranks as processes of the one that coordinates: here, and by ssh elsewhere
//	rendezvous  where ranks meet that somebody else has started
//	coordinate  who coordinates them and how: hellos, barriers, clocks, who is lost
package group

import (
	"context"
	"time"
)

// Group is the clients of one run, as one of them sees it: processes on one host or on
// many, each of which loads its own storage or a shared one. Its methods are called by the
// goroutine that drives the trial, one at a time.
//
// What is measured by several clients is their sum only if they run together. So a phase begins at
// a Barrier; in between clients say nothing to each other but that they live, lest a slow network
// becomes part of the numbers. How results come together is no business of the engine.
type Group interface {
	// Rank is this client's number, from 0, and Size how many there are.
	Rank() int
	Size() int
	// Barrier waits until every client has come to the barrier of that name and the moment has
	// come at which all of them begin what follows it, which it returns.
	Barrier(ctx context.Context, name string) (begun time.Time, err error)
	// Opened says that this client's window has opened right now. It does not wait.
	Opened()
}

// Alone is the group of one, which waits for nobody. It is what a run has unless a launcher
// gives it another.
type Alone struct{}

var _ Group = Alone{}

// Rank implements Group.
func (Alone) Rank() int { return 0 }

// Size implements Group.
func (Alone) Size() int { return 1 }

// Barrier implements Group.
func (Alone) Barrier(ctx context.Context, _ string) (time.Time, error) {
	return time.Now(), context.Cause(ctx)
}

// Opened implements Group.
func (Alone) Opened() {}
