package requests

import (
	"sync"
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
	once     sync.Once // closes it
	answer   chan struct{}
	inside   atomic.Bool
	closed   atomic.Bool
}

func (h *hanging) hang() {
	h.inside.Store(true)
	h.once.Do(func() { close(h.entered) })
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

// TestASourceThatHangs: what looks at the load and ends it waits, the watchdog is informed, and a result
// that is made meanwhile says that the offered load is not known. The source is closed when it has answered.
func TestASourceThatHangs(t *testing.T) {
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
		l.dispatch, l.src = d, src
		l.started.Store(d)
		d.staff(2, nil)
		rec.Open(0, workloads.Never)
		d.opened = true
		var first, second job
		require.True(t, d.next(0, &first))
		require.True(t, d.next(1, &second))
		d.done(&second, false)
		var over sync.WaitGroup
		if accounts {
			over.Go(func() { d.account(wall.Now()) })
		} else {
			over.Go(func() { d.next(1, &second) })
		}
		<-src.entered
		path, since := l.Waits()
		assert.Equal(t, "/a.csv", path)
		assert.Positive(t, since)
		over.Go(func() { l.CloseWindow(wall.Now(), true) })
		over.Go(func() { assert.NoError(t, l.Close()) })
		var in record.Info
		l.Report(&in)
		assert.Contains(t, in.Warnings, "/a.csv did not answer when the window ended: the offered "+
			"load is not known")
		assert.Nil(t, in.Load)
		close(src.answer)
		over.Wait()
		assert.True(t, src.closed.Load(), "when it had answered")
		assert.True(t, l.closed.Load())
	}
}
