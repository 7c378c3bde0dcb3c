package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// LeaderConfig is what a leader needs to know.
type LeaderConfig struct {
	// Hello is what every rank has to agree with; its Rank has no meaning.
	Hello Hello
	Clock Clock
	// Continue lets the others go on when a rank is lost; else the run ends.
	Continue bool
	// Shared is whether the directories of all hosts are on one filesystem, nil to find out.
	Shared *bool
	// Result receives what a rank has measured, as soon as it comes. It is called by one goroutine
	// of each rank.
	Result func(rank int, doc []byte)
}

// Leader coordinates the ranks of a run.
type Leader struct {
	LeaderConfig

	state
	clients     []*client        // by rank; nil until it has come
	processes   map[int]*Process // that this process has started, by rank
	stopped     string           // why the run ends, "" while it goes on
	filesystems [][]Directory    // by their lowest ranks
	step        step
}

// client is a rank, as the leader sees it.
type client struct {
	hello   Hello
	link    *link
	lost    *result.LostClient
	left    bool // it has come to its end
	live    []byte
	stage   string // what it does, until its trial ends for it
	pongs   chan *message
	part    part
	sharing []Sharing // of each of its directories
}

// NewLeader returns the leader of a run whose ranks have not come yet.
func NewLeader(cfg LeaderConfig) *Leader {
	return &Leader{LeaderConfig: cfg, state: newState(), processes: map[int]*Process{},
		clients: make([]*client, cfg.Hello.Ranks), step: step{trial: 1}}
}

// helloTimeout is the time for a hello.
const helloTimeout = 10 * time.Second

// Accept serves a connection until it ends. One without a hello of this job gets no answer.
func (l *Leader) Accept(conn net.Conn) {
	c := &client{link: newLink(conn), pongs: make(chan *message, pings),
		stage: "before the first trial"}
	// Before its hello a connection gets little time, and no memory but for what it sends.
	late := time.AfterFunc(helloTimeout, func() { _ = conn.Close() })
	first, err := c.link.get(maxHello)
	late.Stop()
	if err != nil || first.Kind != kindHello || first.Hello == nil || first.Hello.Job != l.Hello.Job {
		_ = conn.Close()
		return
	}
	c.hello = *first.Hello
	c.hello.Host = named(c.hello.Host)
	go c.link.write(func() *message { return &message{Kind: kindHeartbeat} })
	if why, fatal := l.admit(c); why != "" {
		c.link.send(&message{Kind: kindRefusal, Text: why})
		c.link.end()
		// The end of the run may end this process: the rank reads the reason before that, or it
		// would look for another coordinator.
		_ = c.link.read(func(*message) {})
		if fatal {
			l.Stop(fmt.Sprintf("%s was refused: %s", c.hello.place(), why))
		}
		return
	}
	err = c.link.read(func(m *message) { l.receive(c, m) })
	c.link.end()
	l.ended(c, err)
}

// Started makes the leader watch a process: one that ends before its rank has come never will.
func (l *Leader) Started(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.processes[p.rank] = p
	go func() {
		<-p.ended
		l.mu.Lock()
		came := l.clients[p.rank] != nil || l.processes[p.rank] == nil
		l.mu.Unlock()
		if !came {
			l.Stop(fmt.Sprintf("rank %d (pid %d) did not come: %s", p.rank, p.pid, p.how))
		}
	}()
}

// admit takes a rank, or returns why not, and whether that ends the run: while ranks are missing, one
// that cannot belong to it does, because waiting would not help. A rank that comes late, or twice, does
// not.
func (l *Leader) admit(c *client) (why string, fatal bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.notify()
	if why := l.Hello.objection(&c.hello); why != "" {
		delete(l.processes, c.hello.Rank) // whose end is no news
		return why, slices.Contains(l.clients, nil)
	}
	if first := l.clients[c.hello.Rank]; first != nil {
		return first.hello.place() + " has been here", false
	}
	if l.stopped != "" {
		return l.stopped, false
	}
	l.clients[c.hello.Rank] = c
	c.link.send(&message{Kind: kindWelcome})
	return "", false
}

// Gather waits until all ranks are connected, finds out which share filesystems, and lets all begin.
// The error names the ranks that are missing, or were refused.
func (l *Leader) Gather(ctx context.Context) error {
	began := time.Now()
	err := l.await(ctx, func() bool {
		return l.stopped != "" || !slices.Contains(l.clients, nil)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped != "":
		return errors.New(l.stopped)
	case errors.Is(err, context.DeadlineExceeded):
		var missing []int
		for rank, c := range l.clients {
			if c == nil {
				missing = append(missing, rank)
			}
		}
		return fmt.Errorf("%d of %d ranks came within %v; missing %s",
			len(l.clients)-len(missing), len(l.clients), time.Since(began).Round(time.Second/10),
			units.List(missing))
	case err != nil:
		return err
	}
	l.share()
	for _, c := range l.here() {
		g := &Gathering{Stamp: l.Hello.Stamp, Sharing: c.sharing}
		for _, other := range l.clients {
			if c.hello.OneHost(&other.hello) {
				g.Local++
			}
		}
		c.link.send(&message{Kind: kindGathered, Gathering: g})
	}
	return nil
}

// Directory is a directory of a rank: the Dir-th of those that it works in.
type Directory struct{ Rank, Dir int }

// share finds out, from the filesystems in the hellos, which ranks share them, with mu.
func (l *Leader) share() {
	one := func(a, b Directory) bool {
		first, second := &l.clients[a.Rank].hello, &l.clients[b.Rank].hello
		if l.Shared != nil && *l.Shared && a.Dir == b.Dir {
			return true
		}
		f, g := &first.Filesystems[a.Dir], &second.Filesystems[b.Dir]
		if first.Boot != "" && first.Boot == second.Boot {
			return f.Device == g.Device
		}
		return l.Shared == nil && f.same(g)
	}
	for rank, c := range l.clients {
		c.sharing = make([]Sharing, len(c.hello.Filesystems))
		for dir, f := range c.hello.Filesystems {
			if f.Device == "" {
				continue // unknown, as of objects
			}
			d := Directory{rank, dir}
			at := slices.IndexFunc(l.filesystems, func(f []Directory) bool {
				return slices.ContainsFunc(f, func(o Directory) bool { return one(o, d) })
			})
			if at < 0 {
				at, l.filesystems = len(l.filesystems), append(l.filesystems, nil)
			}
			l.filesystems[at] = append(l.filesystems[at], d)
		}
	}
	for i, f := range l.filesystems {
		for _, d := range f {
			l.clients[d.Rank].sharing[d.Dir] = Sharing{Filesystem: i + 1,
				Filesystems: len(l.filesystems), Directories: len(f)}
		}
	}
}

// Filesystems are those of all ranks, by their lowest ranks, each with the directories on it; none of
// objects. They are known once all ranks are connected.
func (l *Leader) Filesystems() [][]Directory {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.filesystems
}

// Members are the hellos of all ranks, also of lost ones.
func (l *Leader) Members() (list []Hello) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.clients {
		if c != nil {
			list = append(list, c.hello)
		}
	}
	return list
}

// Live is the last Live text of each rank, nil for one that is lost or has sent none.
func (l *Leader) Live() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([][]byte, len(l.clients)) // each heartbeat brings a new text
	for _, c := range l.here() {
		list[c.hello.Rank] = c.live
	}
	return list
}

// here are the ranks that have come, and neither left nor been lost, with mu.
func (l *Leader) here() (list []*client) {
	for _, c := range l.clients {
		if c != nil && c.lost == nil && !c.left {
			list = append(list, c)
		}
	}
	return list
}

// Stop ends the run: every rank gets the reason, ends its window and keeps its result. The first
// reason counts.
func (l *Leader) Stop(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop(why)
}

// stop is Stop with mu.
func (l *Leader) stop(why string) {
	if l.stopped != "" {
		return
	}
	l.stopped = why
	for _, c := range l.here() {
		c.link.send(&message{Kind: kindStop, Text: why})
	}
	l.notify()
}

// Stopped is why the run ends before its time, "" if it does not.
func (l *Leader) Stopped() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

// ended records the end of a rank's connection: the rank has left, or is lost.
func (l *Leader) ended(c *client, err error) {
	l.mu.Lock()
	process := l.processes[c.hello.Rank]
	l.mu.Unlock()
	why := "has gone: its connection ended"
	switch {
	case errors.Is(err, errSilent):
		why = fmt.Sprintf("has not answered for %v", Silence)
		if process != nil {
			process.Kill() // a stopped process would go on some day
		}
	case process != nil:
		// Its end follows that of its connection, later where processors are short.
		if how, ended := process.Ended(Silence); ended {
			why = "died: " + how
		}
	case !errors.Is(err, io.EOF):
		why = fmt.Sprintf("has gone: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.left {
		l.lose(c, why)
	}
	l.notify()
}

// lose is called with mu.
func (l *Leader) lose(c *client, why string) {
	h := &c.hello
	c.lost = &result.LostClient{Rank: h.Rank, Host: h.Host, PID: h.PID, Why: why, Stage: l.stage(c)}
	if !l.step.agreed.IsZero() {
		c.lost.AfterNS = int64(time.Since(l.step.agreed))
	}
	if !l.Continue {
		l.stop(c.lost.String())
	}
	l.progress()
}

// Close waits until every rank has left, as long as ctx lasts, and closes the other connections.
func (l *Leader) Close(ctx context.Context) {
	_ = l.await(ctx, func() bool { return len(l.here()) == 0 })
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.clients {
		if c != nil {
			_ = c.link.conn.Close()
		}
	}
}
