package benchmarks

import (
	"context"
	"errors"
	"os"
	"time"
)

// errParentGone is the cause of the context of watchParent after the go command has died.
var errParentGone = errors.New("the go command that started this run has ended")

// parentPoll is how often the parent is looked at: its death must end a run within two seconds, cleaning included.
const parentPoll = 100 * time.Millisecond

// watchParent returns a context that ends, with errParentGone as its cause, when the go command that started this
// process dies: a run whose terminal is gone would load the storage for nobody until its window ends. Started by
// anything else (a shell, mpirun) the process may well outlive its parent, and the context ends only with ctx. Call
// cancel to release the goroutine that watches.
//
// It polls getppid: the kernel's own signal (PR_SET_PDEATHSIG) comes when the *thread* that forked dies, which a go
// command's may at any time.
func watchParent(ctx context.Context) (watched context.Context, cancel context.CancelFunc) {
	return watchParentOf(ctx, os.Getppid, isGoCommand)
}

func watchParentOf(ctx context.Context, parent func() int, isGo func(pid int) bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() { cancel(context.Canceled) }
	pid := parent()
	if !isGo(pid) {
		return ctx, stop
	}
	go func() {
		tick := time.NewTicker(parentPoll)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if parent() != pid { // orphans get another parent at once
					cancel(errParentGone)
					return
				}
			}
		}
	}()
	return ctx, stop
}
