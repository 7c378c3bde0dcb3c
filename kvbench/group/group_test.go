package group

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing/host"
)

// ahead is a clock in virtual time that goes before the bubble's.
type ahead time.Duration

func (a ahead) now() time.Time { return time.Now().Add(time.Duration(a)) }

// network joins two ends with a delay, other for each way.
func network(there, back time.Duration) (a, b net.Conn) {
	a, x := net.Pipe()
	y, b := net.Pipe()
	carry := func(from, to net.Conn, d time.Duration) {
		type piece struct {
			data []byte
			at   time.Time
		}
		way := make(chan piece, 1000)
		go func() {
			defer close(way)
			for {
				p := make([]byte, 1<<16)
				n, err := from.Read(p)
				if err != nil {
					return
				}
				way <- piece{p[:n], time.Now().Add(d)}
			}
		}()
		go func() {
			defer to.Close()
			for p := range way {
				time.Sleep(time.Until(p.at))
				if _, err := to.Write(p.data); err != nil {
					from.Close()
				}
			}
		}()
	}
	carry(x, y, there)
	carry(y, x, back)
	return a, b
}

// party is some ranks in a bubble of virtual time.
type party struct {
	t       *testing.T
	leader  *Leader
	members []*Member
	conns   []net.Conn // the members' ends
	mu      sync.Mutex
	docs    map[int]string
	stops   map[int]error
	ahead   map[int]time.Duration // of the clock of each rank that has a result
}

func hello(rank, ranks int) Hello {
	return Hello{Job: "j", Rank: rank, Ranks: ranks,
		Host: fmt.Sprintf("h%d", rank/2), Boot: fmt.Sprintf("b%d", rank/2),
		Filesystems: []host.Identity{{Device: "1"}}, PID: 100 + rank, Build: "x"}
}

// meet lets as many ranks meet as there are clocks, each over its own connection.
func meet(t *testing.T, cfg LeaderConfig, clocks []ahead,
	connect func(rank int) (net.Conn, net.Conn)) *party {
	g := &party{t: t, docs: map[int]string{}, stops: map[int]error{}, ahead: map[int]time.Duration{}}
	cfg.Hello, cfg.Timeout = hello(0, len(clocks)), time.Minute
	cfg.Result = func(rank int, doc []byte, ahead time.Duration) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.docs[rank] += string(doc)
		g.ahead[rank] = ahead
	}
	g.leader = newLeader(cfg)
	for rank, clock := range clocks {
		ours, theirs := connect(rank)
		go g.leader.accept(ours)
		g.conns = append(g.conns, theirs)
		m, err := join(t.Context(), theirs, hello(rank, len(clocks)), MemberConfig{Now: clock.now,
			Timeout: time.Minute, Stop: func(err error) {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.stops[rank] = err
			}})
		require.NoError(t, err)
		g.members = append(g.members, m)
	}
	g.each(func(m *Member) {
		_, err := m.Gathered(t.Context())
		require.NoError(t, err)
	})
	return g
}

func pipe(int) (net.Conn, net.Conn) { return net.Pipe() }

func same(n int) []ahead { return make([]ahead, n) }

// each runs a part of every rank's trial concurrently.
func (g *party) each(f func(m *Member)) {
	var all sync.WaitGroup
	for _, m := range g.members {
		all.Go(func() { f(m) })
	}
	all.Wait()
}

// trial runs a trial of all ranks, with that outcome.
func (g *party) trial(outcome string, f func(m *Member)) Trial {
	done := make(chan Trial, 1)
	go func() {
		done <- g.leader.Collect(g.t.Context())
		g.leader.Conclude(outcome)
	}()
	g.each(func(m *Member) {
		f(m)
		got, err := m.Outcome(g.t.Context())
		require.NoError(g.t, err)
		assert.Equal(g.t, outcome, got)
	})
	return <-done
}

// begin comes to a trial and waits for its window.
func (g *party) begin(m *Member) time.Time {
	_, err := m.Enter(g.t.Context(), Terms{Name: "X"})
	require.NoError(g.t, err)
	require.NoError(g.t, m.Barrier(g.t.Context()))
	return time.Now()
}

func (g *party) leave() {
	g.each(func(m *Member) { m.Leave("") })
	g.leader.Close(g.t.Context())
	for _, c := range g.conns {
		c.Close()
	}
	synctest.Wait()
}

func TestATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := meet(t, LeaderConfig{}, same(4), pipe)
		for trial := 1; trial <= 2; trial++ {
			var begun [4]time.Time
			got := g.trial("", func(m *Member) {
				least := int64(100 - m.Rank())
				terms, err := m.Enter(t.Context(), Terms{Name: "X", Nonce: []byte{byte(m.Rank())},
					Capacity: least, Directories: []Capacity{{Bytes: least, Floor: 7}}})
				require.NoError(t, err)
				// Ranks 0 and 1 are on one host, 2 and 3 on the other.
				least = []int64{99, 99, 97, 97}[m.Rank()]
				assert.Equal(t, Terms{Name: "X", Nonce: []byte{0}, Capacity: least,
					Directories: []Capacity{{Bytes: least, Floor: 7}}}, terms)
				time.Sleep(time.Duration(m.Rank()) * time.Minute) // of virtual time: it prepares
				require.NoError(t, m.Barrier(t.Context()))
				begun[m.Rank()] = time.Now()
				time.Sleep(time.Duration(m.Rank()) * time.Millisecond)
				m.Opened()
				require.NoError(t, m.Publish([]byte("{}")))
				m.Done("")
			})
			for _, at := range begun {
				assert.Zero(t, at.Sub(begun[0]))
			}
			assert.Equal(t, []int64{3e6, 0}, []int64{*got.Skew, *got.Uncertainty})
			for rank := range 4 {
				assert.Equal(t, strings.Repeat("{}", trial), g.docs[rank])
			}
		}
		assert.Empty(t, g.stops)
		g.leave()
	})
}

// TestATrialThatBeginsMoreThanOnce: of its starts the one counts at which the ranks lay apart the
// most. Where no window opens after the last barrier, the earlier ones count.
func TestATrialThatBeginsMoreThanOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := meet(t, LeaderConfig{}, same(3), pipe)
		got := g.trial("", func(m *Member) {
			_, err := m.Enter(t.Context(), Terms{Name: "X"})
			require.NoError(t, err)
			for _, late := range []time.Duration{1, 4, 2, -1} {
				require.NoError(t, m.Barrier(t.Context()))
				if late > 0 {
					time.Sleep(time.Duration(m.Rank()) * late * time.Millisecond) // virtual
					m.Opened()
				}
			}
			m.Done("")
		})
		assert.Equal(t, 8*time.Millisecond, time.Duration(*got.Skew))
		g.leave()
	})
}

// TestClocksThatLieApart: 10 ms for both ways, clocks an hour apart.
func TestClocksThatLieApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ways := range [][2]time.Duration{{5, 5}, {9, 1}, {1, 9}} {
			there, back := ways[0]*time.Millisecond, ways[1]*time.Millisecond
			g := meet(t, LeaderConfig{}, []ahead{0, 0, ahead(time.Hour)},
				func(rank int) (net.Conn, net.Conn) {
					if rank == 2 {
						return network(there, back)
					}
					return net.Pipe()
				})
			var begun [3]time.Time
			got := g.trial("", func(m *Member) {
				begun[m.Rank()] = g.begin(m)
				m.Opened()
				require.NoError(t, m.Publish([]byte("{}")))
				m.Done("")
			})
			real := begun[2].Sub(begun[0]).Abs()
			assert.LessOrEqual(t, real, 5*time.Millisecond, "half of the round trip")
			assert.Equal(t, 5*time.Millisecond, time.Duration(*got.Uncertainty))
			assert.LessOrEqual(t, (real - time.Duration(*got.Skew)).Abs(),
				time.Duration(*got.Uncertainty))
			assert.InDelta(t, time.Hour, g.ahead[2], float64(5*time.Millisecond))
			assert.Zero(t, g.ahead[1])
			g.leave()
		}
	})
}

// TestARankThatFailsToPrepare: no other rank waits at the barrier.
func TestARankThatFailsToPrepare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := meet(t, LeaderConfig{}, same(3), pipe)
		got := g.trial("rank 1: no space", func(m *Member) {
			mine := Terms{Name: "X", Capacity: 9, Directories: []Capacity{{Bytes: 9, Floor: 2}}}
			if m.Rank() == 1 {
				mine = Terms{Name: "X"} // it has found no capacity, which is its own
			}
			terms, err := m.Enter(t.Context(), mine)
			require.NoError(t, err)
			text := "no space"
			if m.Rank() != 1 {
				assert.Equal(t, mine, terms)
				err = m.Barrier(t.Context())
				assert.EqualError(t, err, "rank 1 on h0 (pid 101) was not ready: no space")
				text = err.Error()
			}
			m.Done(text)
		})
		assert.Nil(t, got.Skew)
		assert.Empty(t, g.stops, "the next trial may go well")
		g.leave()
	})
}

// muted is the connection of a process that was stopped: it stays, and nothing comes from it.
type muted struct {
	net.Conn
	mute *atomic.Bool
}

func (m muted) Write(p []byte) (int, error) {
	if m.mute.Load() {
		return len(p), nil
	}
	return m.Conn.Write(p)
}

// TestADeadRank: its connection ends, or it says nothing any more.
func TestADeadRank(t *testing.T) {
	for _, c := range []struct {
		silent, goOn bool
		within       time.Duration
		why          string
	}{
		{false, false, 0, "has gone: its connection ended (EOF)"},
		{true, false, 61 * time.Second, "has not answered for 1m0s"},
		{false, true, 0, "has gone: its connection ended (EOF)"},
		{true, true, 61 * time.Second, "has not answered for 1m0s"},
		// By a signal: it still says what it has, which is after its window alone.
		{false, false, 0, "was ended: terminated"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mute atomic.Bool
			g := meet(t, LeaderConfig{Continue: c.goOn}, same(3),
				func(rank int) (net.Conn, net.Conn) {
					ours, theirs := net.Pipe()
					if rank == 1 {
						return ours, muted{theirs, &mute}
					}
					return ours, theirs
				})
			g.each(func(m *Member) { g.begin(m); m.Opened() })
			time.Sleep(10 * time.Second) // in the window; heartbeats keep all
			require.Empty(t, g.leader.Stopped())
			began := time.Now()
			switch {
			case c.silent:
				mute.Store(true)
			case c.why == "was ended: terminated":
				require.NoError(t, g.members[1].Publish([]byte("{}")))
				g.members[1].Done("interrupted: terminated")
				g.members[1].Leave("terminated")
			default:
				g.conns[1].Close()
			}
			want := "rank 1 on h0 (pid 101) " + c.why + ", in the window of X"
			require.NoError(t, g.leader.await(t.Context(), func() bool {
				return g.leader.clients[1].lost != nil
			}))
			g.leader.mu.Unlock()
			assert.LessOrEqual(t, time.Since(began), c.within)
			synctest.Wait()
			if c.goOn {
				assert.Empty(t, g.leader.Stopped())
			} else {
				assert.Equal(t, want, g.leader.Stopped())
				assert.EqualError(t, g.stops[0], want)
				assert.EqualError(t, g.stops[2], want)
				err := g.members[0].Barrier(t.Context())
				assert.EqualError(t, err, want)
			}
			all := g.members
			g.members = []*Member{all[0], all[2]}
			got := g.trial(want, func(m *Member) {
				require.NoError(t, m.Publish([]byte("{}")))
				m.Done("")
			})
			require.Len(t, got.Lost, 1)
			assert.Equal(t, want, got.Lost[0].String())
			assert.GreaterOrEqual(t, time.Duration(got.Lost[0].AfterNS), 10*time.Second)
			if c.goOn { // the others come to the next one without it
				g.trial("", func(m *Member) { g.begin(m); m.Done("") })
			}
			g.members = all
			g.leave()
		})
	}
}

// TestTheCoordinatorGoes: Stop is called once in each rank, which waits for nothing any more.
func TestTheCoordinatorGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := meet(t, LeaderConfig{}, same(2), pipe)
		waits := make(chan error)
		go func() {
			_, err := g.members[1].Enter(t.Context(), Terms{Name: "X"})
			waits <- err
		}()
		synctest.Wait()
		for _, c := range g.leader.clients {
			c.link.Close()
		}
		assert.ErrorIs(t, <-waits, errGone)
		synctest.Wait()
		assert.ErrorIs(t, g.stops[0], errGone)
		assert.ErrorIs(t, g.stops[1], errGone)
		assert.ErrorIs(t, g.members[1].Publish(nil), errGone)
		g.members[0].Done("")
		_, err := g.members[0].Outcome(t.Context())
		assert.ErrorIs(t, err, errGone)
		g.leave()
	})
}

// TestStopEndsTheRun: the first reason counts, and the outcome still comes.
func TestStopEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := meet(t, LeaderConfig{}, same(2), pipe)
		g.each(func(m *Member) {
			_, err := m.Enter(t.Context(), Terms{Name: "X"})
			require.NoError(t, err)
		})
		g.leader.Stop("interrupted: interrupt")
		g.leader.Stop("another")
		go func() { g.leader.Collect(t.Context()); g.leader.Conclude("interrupted") }()
		g.each(func(m *Member) {
			err := m.Barrier(t.Context())
			assert.EqualError(t, err, "interrupted: interrupt")
			m.Done("")
			outcome, err := m.Outcome(t.Context())
			assert.NoError(t, err)
			assert.Equal(t, "interrupted", outcome)
		})
		g.leave()
	})
}

func TestWhoIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		meets := func(l *Leader, h Hello) error {
			ours, theirs := net.Pipe()
			go l.accept(ours)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			_, err := join(ctx, theirs, h, MemberConfig{Timeout: time.Minute})
			if err == nil {
				t.Cleanup(func() { theirs.Close() })
			}
			return err
		}
		first := hello(1, 3)
		l := newLeader(LeaderConfig{Hello: hello(0, 3), Timeout: time.Minute})
		require.NoError(t, meets(l, first))
		// A rank that was restarted changes nothing for the one that is there.
		again := first
		again.PID = 999
		assert.EqualError(t, meets(l, again),
			"the coordinator refused this rank: rank 1 on h0 (pid 101) is connected already")
		// A hundred ranks of another job: each is left without a word.
		for range 100 {
			other := hello(2, 3)
			other.Job = "another"
			assert.ErrorIs(t, meets(l, other), errGone)
		}
		// Two hellos at once: the rank of one of them at most is there.
		ours, theirs := net.Pipe()
		go l.accept(ours)
		caller := newCaller(theirs)
		twice := []*call{caller.start("Hello", hello(0, 3), nil), caller.start("Hello", hello(2, 3), nil)}
		for _, k := range twice {
			<-k.done
		}
		assert.True(t, twice[0].err != nil || twice[1].err != nil)
		caller.close()
		synctest.Wait()
		for rank, c := range l.clients {
			assert.True(t, c == nil || c.hello.Rank == rank)
		}
		l.clients[0], l.clients[2], l.stopped = nil, nil, ""
		ours, theirs = net.Pipe()
		go l.accept(ours)
		_, _ = theirs.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		theirs.Close()
		assert.EqualError(t, l.Missing(time.Minute), "1 of 3 ranks connected within 1m0s; missing 0, 2")
		// Of another binary, with other parameters.
		other := hello(2, 3)
		other.Parameters = map[string]string{"num-users": "17"}
		require.ErrorAs(t, meets(l, other), &refused{})
		synctest.Wait()
		assert.Equal(t, l.Stopped(), "rank 2 on h1 (pid 102) was refused: its "+
			`parameters are others: -num-users: "" here, "17" there`)
		for _, c := range l.clients {
			if c != nil {
				c.link.Close()
			}
		}
		synctest.Wait()
	})
}

// TestAProcessThatEndsAtOnce: a refusal says more than the end that follows it.
func TestAProcessThatEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(LeaderConfig{Hello: hello(0, 3), Timeout: time.Minute})
		p := &process{cmd: &exec.Cmd{Process: &os.Process{Pid: 7}}, ended: make(chan struct{})}
		l.started(2, p)
		ours, theirs := net.Pipe()
		go l.accept(ours)
		bad := hello(2, 3)
		bad.Refused = "no such file"
		_, err := join(t.Context(), theirs, bad, MemberConfig{})
		require.ErrorAs(t, err, &refused{})
		close(p.ended)
		synctest.Wait()
		assert.Equal(t, l.Stopped(),
			"rank 2 on h1 (pid 102) was refused: no such file")
	})
}

// TestARankThatIsEndedIsNamed: by a signal of its own, while the others go on.
func TestARankThatIsEndedIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := meet(t, LeaderConfig{}, same(3), pipe)
		g.members[1].Leave("terminated")
		synctest.Wait()
		assert.Equal(t, "rank 1 on h0 (pid 101) was ended: terminated, before the first trial",
			g.leader.Stopped())
		// All are stopped now: a rank that leaves because of that is not lost as well.
		g.members[2].Leave("terminated")
		synctest.Wait()
		g.leader.mu.Lock()
		assert.Nil(t, g.leader.clients[2].lost)
		g.leader.mu.Unlock()
		g.leave()
	})
}
