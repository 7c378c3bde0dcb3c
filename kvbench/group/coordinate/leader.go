package coordinate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/group/wire"
	"kvbench/kvbench/units"
)

// LeaderConfig is what a leader needs to know.
type LeaderConfig struct {
	// Hello is what every rank has to agree with; its Rank has no meaning.
	Hello wire.Hello
	Clock Clock
	// Continue lets the others go on when a rank is lost; else the run ends.
	Continue bool
	// Shared is whether the directories of all hosts are on one filesystem, nil to find out.
	Shared *bool
	// Result receives what a rank has measured, as soon as it comes. It is called by one goroutine
	// of each rank.
	Result func(rank, trial int, doc []byte)
}

// Lost is a rank that is gone.
type Lost struct {
	Hello wire.Hello
	Why   string        // "died: signal: killed", "has not answered for 4s"
	Stage string        // what it was doing
	After time.Duration // since the ranks agreed about its trial, 0 outside of a trial
}

func (l Lost) String() string { return l.Hello.Place() + " " + l.Why + ", " + l.Stage }

// Leader coordinates the ranks of a run.
type Leader struct {
	LeaderConfig

	state
	clients   []*client        // by rank; nil until it has come
	processes map[int]*Process // that this process has started, by rank
	refused   []string         // ranks that were not taken, and why
	stopped   string           // why the run ends, "" while it goes on
	step      step
}

// client is a rank, as the leader sees it.
type client struct {
	hello   wire.Hello
	link    *link
	lost    *Lost
	left    bool // it has come to its end
	live    []byte
	at      wire.Kind // its last message of the trial; "" before the first
	ended   wire.Kind // its last message before its trial ended
	pongs   chan *wire.Message
	part    part
	sharing []wire.Sharing // of each of its directories
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
	// Before its hello a connection gets little time, and no memory but for what it sends.
	_ = conn.SetReadDeadline(time.Now().Add(helloTimeout))
	first, err := wire.Read(conn, wire.MaxHello)
	if err != nil || first.Kind != wire.Greeting || !l.Hello.Belongs(first.Hello) {
		_ = conn.Close()
		return
	}
	c := &client{hello: *first.Hello, pongs: make(chan *wire.Message, pings)}
	c.link = newLink(conn, func() *wire.Message { return &wire.Message{Kind: wire.Heartbeat} })
	if why, fatal := l.admit(c); why != "" {
		c.link.send(&wire.Message{Kind: wire.Refusal, Text: why})
		c.link.end()
		// The end of the run may end this process: the rank reads the reason before that, or it
		// would look for another coordinator.
		_ = c.link.read(func(*wire.Message) {})
		if fatal {
			l.refuse(c.hello.Rank, fmt.Sprintf("%s was refused: %s", c.hello.Place(), why))
		}
		return
	}
	err = c.link.read(func(m *wire.Message) { l.receive(c, m) })
	c.link.end()
	l.ended(c, err)
}

func (l *Leader) refuse(rank int, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.processes, rank) // whose end says less
	l.refused = append(l.refused, why)
	l.notify()
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
			l.refuse(p.rank, fmt.Sprintf("rank %d (pid %d) did not come: %s", p.rank, p.pid,
				p.how))
		}
	}()
}

// admit takes a rank, or returns why not, and whether that ends the run: what cannot belong to it
// does, because waiting would not help. A rank that comes late, or twice, does not.
func (l *Leader) admit(c *client) (why string, fatal bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.notify()
	if why := l.Hello.Objection(&c.hello); why != "" {
		delete(l.processes, c.hello.Rank)
		return why, true
	}
	if first := l.clients[c.hello.Rank]; first != nil {
		return first.hello.Place() + " has been here", false
	}
	if l.stopped != "" {
		return l.stopped, false
	}
	l.clients[c.hello.Rank] = c
	c.link.send(&wire.Message{Kind: wire.Welcome})
	return "", false
}

// Gather waits until all ranks are there, finds out which share filesystems, and lets all begin.
// The error says which ranks are missing, or were refused.
func (l *Leader) Gather(ctx context.Context) error {
	began := time.Now()
	err := l.await(ctx, func() bool {
		return len(l.refused) > 0 || l.stopped != "" || !slices.Contains(l.clients, nil)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.refused) > 0:
		return errors.New(strings.Join(l.refused, "\n"))
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
	for _, c := range l.clients {
		m := &wire.Message{Kind: wire.Gathered, Text: l.Hello.Stamp, Sharing: c.sharing}
		for _, other := range l.clients {
			if c.hello.OneHost(&other.hello) {
				m.Local++
			}
		}
		if c.there() {
			c.link.send(m)
		}
	}
	return nil
}

// place is a directory of a rank.
type place struct{ rank, dir int }

// share finds out, from what the hellos say of filesystems, which ranks share them, with mu.
func (l *Leader) share() {
	one := func(a, b place) bool {
		first, second := &l.clients[a.rank].hello, &l.clients[b.rank].hello
		if l.Shared != nil && *l.Shared && a.dir == b.dir {
			return true
		}
		f, g := &first.Filesystems[a.dir], &second.Filesystems[b.dir]
		if first.Boot != "" && first.Boot == second.Boot {
			return f.Device == g.Device
		}
		return l.Shared == nil && f.Same(g)
	}
	var groups [][]place
	for rank, c := range l.clients {
		c.sharing = make([]wire.Sharing, len(c.hello.Filesystems))
		for dir, f := range c.hello.Filesystems {
			if f.Device == "" {
				continue // unknown, as of objects
			}
			here := place{rank, dir}
			at := slices.IndexFunc(groups, func(g []place) bool {
				return slices.ContainsFunc(g, func(p place) bool { return one(p, here) })
			})
			if at < 0 {
				at, groups = len(groups), append(groups, nil)
			}
			groups[at] = append(groups[at], here)
		}
	}
	for i, g := range groups {
		for _, p := range g {
			l.clients[p.rank].sharing[p.dir] = wire.Sharing{Filesystem: i + 1,
				Filesystems: len(groups), Directories: len(g)}
		}
	}
}

// Members are the hellos of all ranks, also of lost ones.
func (l *Leader) Members() (list []wire.Hello) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.clients {
		if c != nil {
			list = append(list, c.hello)
		}
	}
	return list
}

// Sharing is the sharing of all directories, by rank.
func (l *Leader) Sharing() (list [][]wire.Sharing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.clients {
		list = append(list, c.sharing)
	}
	return list
}

// Live is the last Live text of each rank, nil for one that is lost or has sent none.
func (l *Leader) Live() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([][]byte, len(l.clients)) // each heartbeat brings a new text
	for rank, c := range l.clients {
		if c.there() {
			list[rank] = c.live
		}
	}
	return list
}

// there reports whether a rank has come, and neither left nor been lost.
func (c *client) there() bool { return c != nil && c.lost == nil && !c.left }

// here are the ranks that are there, with mu.
func (l *Leader) here() (list []*client) {
	for _, c := range l.clients {
		if c.there() {
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
		c.link.send(&wire.Message{Kind: wire.Stop, Text: why})
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
		if how, ended := process.Ended(patience); ended {
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
	c.lost = &Lost{Hello: c.hello, Why: why, Stage: l.stage(c)}
	if !l.step.agreed.IsZero() {
		c.lost.After = time.Since(l.step.agreed)
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
