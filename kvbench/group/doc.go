// Package group is the clients of one run: who they are, a barrier at which they begin
// together, and a way to bring their results to one of them.
//
// It is small enough for this one file. Only Alone exists: today's ranks start by themselves and
// their results are merged from files. A group of several clients is another implementation of the
// interface.
package group

import (
	"context"
	"time"
)

// Group is the clients of one run, as one of them sees it: processes on one host or on
// many, each of which loads its own storage or a shared one. Its methods are called by the
// goroutine that drives the trial, one at a time.
//
// What is measured by several clients is their sum only if they run together. So a phase
// may begin at a Barrier, and the results come together at rank 0 with Gather; in between
// clients say nothing to each other, lest a slow network becomes part of the numbers.
type Group interface {
	// Rank is this client's number, from 0, and Size how many there are.
	Rank() int
	Size() int
	// Barrier waits until every client has come to the barrier of that name, and returns
	// the moment at which all of them begin what follows it: it may lie ahead.
	Barrier(ctx context.Context, name string) (begin time.Time, err error)
	// Gather brings a document of each client to rank 0, in the order of ranks; the others
	// get nil. A client that is lost is a nil document, not an error: the result of those
	// that are left says how many there were.
	Gather(ctx context.Context, doc []byte) ([][]byte, error)
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

// Gather implements Group.
func (Alone) Gather(ctx context.Context, doc []byte) ([][]byte, error) {
	return [][]byte{doc}, context.Cause(ctx)
}
