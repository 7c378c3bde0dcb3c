// Package group is the clients of one run, as the engine of each of them knows them: which of how
// many it is, and the barrier at which they begin together. Around it, in reading order:
//
//	launchers   the variables that mpirun, srun and others set, and the address of rank 0
//	wire        the protocol of the clients: messages and frames
//	coordinate  starting ranks, meeting at an address, barriers, clocks, lost ranks
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
// a Barrier; in between clients send nothing but heartbeats, so that a slow network does not become
// part of the numbers. The engine does not know how results come together.
type Group interface {
	// Rank is this client's number, from 0, and Size how many there are.
	Rank() int
	Size() int
	// Barrier waits until every client has come to the barrier of that name and the moment has
	// come at which all of them begin what follows it, which it returns.
	Barrier(ctx context.Context, name string) (begun time.Time, err error)
	// Opened says that this client's window opens now. It does not wait.
	Opened()
}

// Alone is the group of one client. A run has it unless there are several ranks.
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
