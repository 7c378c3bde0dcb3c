package requests

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/workloads"
)

// counting is a clock on which a second passes with each look.
type counting struct {
	clock.Clock
	now atomic.Int64
}

func (c *counting) Now() time.Duration { return time.Duration(c.now.Add(1)) * time.Second }

// hanging is a source whose file hangs: after that many requests, in the next request or in the
// next account.
type hanging struct {
	*script
	after    int
	accounts bool // hang, or the requests do
	entered  chan struct{}
	answer   chan struct{}
	inside   atomic.Bool
	closed   atomic.Bool
}

func (h *hanging) hang() {
	h.inside.Store(true)
	close(h.entered)
	<-h.answer
	h.inside.Store(false)
}

func (h *hanging) Close() error {
	h.closed.Store(!h.inside.Load())
	return nil
}

func (h *hanging) Take(now time.Duration) (*workloads.Request, workloads.State, time.Duration) {
	if h.next == h.after && !h.accounts {
		h.hang()
	}
	return h.script.Take(now)
}

func (h *hanging) Account(until time.Duration) []workloads.ClassLoad {
	if h.next == h.after && h.accounts {
		h.hang()
	}
	return h.script.Account(until)
}

// TestASourceThatHangsBlocksNoOther goroutine that looks at the load or ends it. Taken requests are
// counted, and later ones are not handed out when the source answers. The source is closed when it
// has.
func TestASourceThatHangsBlocksNoOther(t *testing.T) {
	for _, accounts := range []bool{false, true} {
		wall := &counting{Clock: clock.NewVirtual()}
		kv, err := cache.New(cache.Config{Levels: plenty(),
			Clock: wall})
		require.NoError(t, err)
		src := &hanging{script: newScript(singles(8, 1)...), after: 2, accounts: accounts,
			entered: make(chan struct{}), answer: make(chan struct{})}
		rec := record.New(1)
		l := &Load{cfg: Config{Planner: workloads.Planner{Sizer: testSizer}, Input: "/a.csv"}}
		d := newDispatcher(t.Context(), &l.cfg, &kvbench.Env{Clock: wall, Cache: kv, Rec: rec}, src)
		d.patience = 1
		l.dispatch, l.src = d, src
		l.started.Store(d)
		d.staff(2, nil)
		rec.Open(0, workloads.Never)
		d.opened = true
		var first, second job
		require.True(t, d.next(0, &first))
		require.True(t, d.next(1, &second))
		d.done(&second, false)
		if !accounts { // of others the look at it is the first to hang
			ended := make(chan bool)
			go func() { ended <- d.next(1, &second) }()
			<-src.entered
			defer func() { assert.False(t, <-ended, "the run was over when it came") }()
		}
		check := func(a account) {
			t.Helper()
			n := a.classes[first.req.Class]
			assert.EqualValues(t, 2, n.started)
			assert.EqualValues(t, 1, n.inFlight)
			assert.EqualValues(t, n.Offered, n.started+n.Queued)
		}
		check(d.account(wall.Now()))
		<-src.entered
		path, since := l.Waits()
		assert.Equal(t, "/a.csv", path)
		assert.Positive(t, since)
		l.CloseWindow(wall.Now(), true)
		check(l.after)
		assert.True(t, l.unanswered)
		var in record.Info
		l.Report(&in)
		assert.Contains(t, in.Warnings, "/a.csv did not answer when the window ended: requests "+
			"that had arrived meanwhile are not counted")
		begun, over := make(chan struct{}), make(chan error)
		go func() { close(begun); over <- l.Close() }()
		<-begun
		for range 1000 { // what does not wait for the lock has closed it by then
			runtime.Gosched()
		}
		close(src.answer)
		require.NoError(t, <-over)
		assert.True(t, src.closed.Load(), "when it had answered")
	}
}
