package group

import (
	"context"
	"time"
)

// Group is the clients of one run, as one of them sees it. Its methods are called by
// the goroutine that drives the trial, one at a time.
type Group interface {
	// Rank is this client's number, from 0, and Size how many there are.
	Rank() int
	Size() int
	// Barrier waits until every client has come to the barrier of that name, and returns
	// the moment at which all of them begin what follows it: it may lie ahead.
	Barrier(ctx context.Context, name string) (begin time.Time, err error)
	// Gather brings a document of each client to rank 0, in the order of ranks; the others get nil.
	Gather(ctx context.Context, doc []byte) ([][]byte, error)
}

// Alone is the group of one, which waits for nobody.
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
