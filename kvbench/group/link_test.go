package group

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestResultsThatComeLate: an interrupted run waits for what a rank has measured as long as it is
// it sends heartbeats, and not for one that never entered the trial.
func TestResultsThatComeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := meet(t, LeaderConfig{}, same(3), pipe)
		ctx, interrupt := context.WithCancel(t.Context())
		began := time.Now()
		g.each(func(m *Member) {
			if m.Rank() == 2 {
				return // it waits for something else, and sends heartbeats
			}
			go m.Enter(t.Context(), Terms{Name: "X"})
		})
		synctest.Wait() // until the coordinator has the messages
		done := make(chan Trial, 1)
		go func() { done <- g.leader.Collect(ctx) }()
		interrupt()
		for i, m := range []*Member{g.members[1], g.members[0]} {
			time.Sleep(time.Minute) // of virtual time
			require.NoError(t, m.Publish([]byte("{}")))
			if i == 1 {
				m.Done("")
			}
		}
		<-done
		assert.Equal(t, 2*time.Minute, time.Since(began))
		assert.Len(t, g.docs, 2)
		g.leave()
	})
}

// still is the connection of a process that may stand still: then it neither reads nor writes. A write only takes
// the bytes: virtual time does not pass while a goroutine waits for a mutex, which a writer holds.
type still struct {
	net.Conn
	gate  *atomic.Pointer[chan struct{}] // closed while the process runs
	out   chan []byte
	ended chan struct{}
	once  *sync.Once
}

func newStill(conn net.Conn, gate *atomic.Pointer[chan struct{}]) still {
	s := still{conn, gate, make(chan []byte, 1000), make(chan struct{}), new(sync.Once)}
	go func() {
		for {
			select {
			case p := <-s.out:
				<-*gate.Load()
				_, _ = conn.Write(p)
			case <-s.ended:
				return
			}
		}
	}()
	return s
}

func (s still) Read(p []byte) (int, error)  { <-*s.gate.Load(); return s.Conn.Read(p) }
func (s still) Write(p []byte) (int, error) { s.out <- slices.Clone(p); return len(p), nil }
func (s still) Close() error                { s.once.Do(func() { close(s.ended) }); return s.Conn.Close() }

// TestAProcessThatStandsStill for 6 s, in each stage of a trial: no rank is lost, each result is there, and the
// silence of a rank is reported. While the coordinator stands still, no rank is silent.
func TestAProcessThatStandsStill(t *testing.T) {
	for _, at := range []string{"start", "fill", "window", "window's end", "drain", "clean-up", "merge"} {
		for _, rank := range []int{0, 1} { // 0: the coordinator
			synctest.Test(t, func(t *testing.T) {
				var gate, open atomic.Pointer[chan struct{}]
				runs := make(chan struct{})
				close(runs)
				gate.Store(&runs)
				open.Store(&runs)
				g := meet(t, LeaderConfig{}, same(3), func(of int) (net.Conn, net.Conn) {
					gates := map[bool]*atomic.Pointer[chan struct{}]{true: &gate, false: &open}
					ours, theirs := net.Pipe()
					return newStill(ours, gates[rank == 0]), newStill(theirs, gates[rank == 1 && of == 1])
				})
				g.trial("", func(m *Member) { g.begin(m); m.Done("") })
				var began time.Time
				stop := func(m *Member, stage string) {
					if m.Rank() != 1 || stage != at {
						return
					}
					began = time.Now()
					stands := make(chan struct{})
					gate.Store(&stands)
					time.AfterFunc(6*time.Second, func() { close(stands) })
					if rank == 1 {
						<-stands
					}
				}
				ended := g.trial("", func(m *Member) {
					time.Sleep(time.Second / 2) // between two heartbeats
					stop(m, "start")
					_, err := m.Enter(t.Context(), Terms{Name: "X"})
					require.NoError(t, err)
					stop(m, "fill")
					require.NoError(t, m.Barrier(t.Context()))
					m.Opened()
					stop(m, "window")
					time.Sleep(10 * time.Second)
					stop(m, "window's end")
					time.Sleep(time.Second / 2)
					stop(m, "drain")
					require.NoError(t, m.Publish([]byte("{}")))
					time.Sleep(time.Second / 2)
					stop(m, "clean-up")
					m.Done("")
					time.Sleep(time.Second / 2)
					stop(m, "merge")
					time.Sleep(10 * time.Second)
				})
				assert.Empty(t, g.stops)
				assert.Equal(t, map[int]string{0: "{}", 1: "{}", 2: "{}"}, g.docs)
				g.leader.mu.Lock()
				got := append(ended.Silent, g.leader.silent...)
				g.leader.mu.Unlock()
				if rank == 0 {
					assert.Empty(t, got, at)
				} else if assert.Len(t, got, 1, at) {
					assert.Equal(t, []any{1, true}, []any{got[0].Rank, got[0].Silent})
					begin, err := time.Parse(time.RFC3339, got[0].Time)
					require.NoError(t, err)
					assert.InDelta(t, 0, begin.Sub(began).Seconds(), 1.01)
					assert.InDelta(t, 6.5, time.Duration(got[0].LengthNS).Seconds(), 0.51)
				}
				g.leave()
			})
		}
	}
}

// TestAStopOfTheRunWaitsBriefly for a rank that is silent.
func TestAStopOfTheRunWaitsBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mute atomic.Bool
		g := meet(t, LeaderConfig{}, same(2), func(rank int) (net.Conn, net.Conn) {
			ours, theirs := net.Pipe()
			return ours, muted{theirs, &mute}
		})
		g.members[0].Leave("")
		mute.Store(true)
		time.Sleep(30500 * time.Millisecond)
		assert.Empty(t, g.leader.Stopped())
		g.leader.Stop("interrupted")
		require.NoError(t, g.leader.await(t.Context(), func() bool { return len(g.leader.here()) == 0 }))
		assert.Equal(t, "has not answered for 31s", g.leader.clients[1].lost.Why)
		g.leader.mu.Unlock()
		for _, c := range g.conns {
			c.Close()
		}
		synctest.Wait()
	})
}

// TestHeartbeatsWaitForNothing: neither for the coordinator's mutex nor for a result that it does not save.
func TestHeartbeatsWaitForNothing(t *testing.T) {
	saved := make(chan struct{})
	defer close(saved)
	l := newLeader(LeaderConfig{Hello: hello(0, 1), Timeout: time.Minute,
		Result: func(int, []byte, time.Duration) { <-saved }})
	ours, theirs := net.Pipe()
	go l.accept(ours)
	m, err := join(t.Context(), theirs, hello(0, 1), MemberConfig{Timeout: time.Minute})
	require.NoError(t, err)
	_, err = m.Enter(t.Context(), Terms{Name: "X"})
	require.NoError(t, err)
	require.NoError(t, m.Publish([]byte("{}")))
	l.mu.Lock()
	require.NoError(t, m.call(t.Context(), "Beat", []byte("live"), nil))
	l.mu.Unlock()
	assert.Equal(t, [][]byte{[]byte("live")}, l.Live())
	saved <- struct{}{}
	m.Leave("")
	l.Close(t.Context())
}

// TestManyRanks that only speak the protocol: KVTEST_RANKS of them, with results of 100 kB, in two trials.
func TestManyRanks(t *testing.T) {
	n := 32
	if text := os.Getenv("KVTEST_RANKS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	doc := []byte(`{"text":"` + strings.Repeat("x", 100_000) + `"}`)
	var got atomic.Int64
	l, err := Lead("127.0.0.1:0", LeaderConfig{Hello: hello(0, n), Timeout: time.Minute,
		Result: func(_ int, text []byte, _ time.Duration) { got.Add(int64(len(text))) }})
	require.NoError(t, err)
	began := time.Now()
	var ranks sync.WaitGroup
	for rank := range n {
		ranks.Go(func() {
			m, err := Dial(t.Context(), l.Address(), true, hello(rank, n), MemberConfig{Timeout: time.Minute})
			if !assert.NoError(t, err) {
				l.Stop(err.Error())
				return
			}
			_, err = m.Gathered(t.Context())
			assert.NoError(t, err)
			for trial := range 2 {
				name := fmt.Sprint("trial ", trial)
				_, err = m.Enter(t.Context(), Terms{Name: name})
				assert.NoError(t, err)
				assert.NoError(t, m.Barrier(t.Context()))
				m.Opened()
				assert.NoError(t, m.Publish(doc))
				m.Done("")
				outcome, err := m.Outcome(t.Context())
				assert.NoError(t, err)
				assert.Equal(t, name, outcome)
			}
			m.Leave("")
		})
	}
	require.NoError(t, l.await(t.Context(), func() bool { return l.stopped != "" || !slices.Contains(l.clients, nil) }))
	l.mu.Unlock()
	for trial := range 2 {
		all := l.Collect(t.Context())
		assert.Empty(t, all.Lost)
		assert.NotNil(t, all.Skew)
		l.Conclude(fmt.Sprint("trial ", trial))
	}
	ranks.Wait()
	l.Close(t.Context())
	assert.EqualValues(t, 2*n*len(doc), got.Load())
	assert.Empty(t, l.Stopped())
	var use syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	t.Logf("%d ranks: %v, CPU %v, peak RSS %d MiB on %d cores", n, time.Since(began).Round(time.Millisecond),
		time.Duration(use.Utime.Nano()+use.Stime.Nano()).Round(time.Millisecond), use.Maxrss>>10, runtime.NumCPU())
}
