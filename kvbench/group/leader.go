package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// LeaderConfig is the configuration of a Leader.
type LeaderConfig struct {
	// Hello describes the coordinator. The coordinator admits only ranks whose hello has the same job,
	// binary, number of ranks and parameters. Hello.Rank is not used.
	Hello Hello
	// Continue: if a rank is lost, the remaining ranks continue. false: the run ends.
	Continue bool
	// Timeout is the silence after which a rank is lost.
	Timeout time.Duration
	// Shared says whether hosts share the filesystems of their cache directories. nil: the coordinator
	// compares the filesystems in the hellos.
	Shared *bool
	// Result receives a rank's result as soon as it arrives, and the time by which the rank's clock is
	// ahead of the coordinator's clock. The calls for several ranks may overlap.
	Result func(rank int, doc []byte, ahead time.Duration)
}

// Leader coordinates the ranks of a run.
type Leader struct {
	LeaderConfig
	listener net.Listener // nil in tests

	state
	clients     []*client        // by rank; nil until the rank is admitted
	processes   map[int]*process // the ranks that this process has started, by rank
	stopped     string           // why the run was stopped, "" while the run continues
	filesystems [][]Directory    // the directories on each filesystem; see Filesystems
	step        step
	outcome     string         // the outcome of the last trial that has ended
	silent      []result.Pause // since the last Collect
}

// client is a rank, as the coordinator sees it. Its exported methods serve the calls of the rank.
type client struct {
	leader *Leader
	hello  Hello
	link   *link
	ctx    context.Context // ends with the connection

	greeted  atomic.Bool // the first Hello has come; there is no second one
	admitted atomic.Bool

	lost  *result.LostClient
	left  bool                   // the rank has sent that it leaves
	live  atomic.Pointer[[]byte] // the text of its last heartbeat, for the live line
	stage string                 // what the rank does, for the message that it is lost
	part  part

	filesystems []int // indices in Leader.filesystems, by cache directory of the rank
}

// newLeader returns the Leader of a run to which no rank is connected yet.
func newLeader(cfg LeaderConfig) *Leader {
	return &Leader{LeaderConfig: cfg, state: state{changed: make(chan struct{})},
		processes: map[int]*process{}, clients: make([]*client, cfg.Hello.Ranks), step: step{trial: 1, since: time.Now()}}
}

// Lead returns the Leader of a run. It listens at address (HOST:PORT) until Close is called. If HOST is an
// IP address, the Leader listens only at this address. If HOST is a name, it listens on all interfaces: on
// the host itself the name may resolve to the loopback interface (Debian's /etc/hosts has 127.0.1.1), or it
// may be the name of another machine that forwards to this host.
func Lead(address string, cfg LeaderConfig) (*Leader, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(host) == nil {
		host = ""
	}
	l := newLeader(cfg)
	if l.listener, err = net.Listen("tcp", net.JoinHostPort(host, port)); err != nil {
		return nil, fmt.Errorf("waiting for the other ranks at %s: %w (rank 0 has to run on that "+
			"host; -rendezvous HOST:PORT names another address)", address, err)
	}
	go l.serve()
	return l, nil
}

// Address returns the address at which the coordinator listens.
func (l *Leader) Address() string { return l.listener.Addr().String() }

func (l *Leader) serve() {
	for {
		conn, err := l.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many open descriptors, or the other side is gone
			time.Sleep(retryLeast)
		default:
			go l.accept(conn)
		}
	}
}

// accept serves a connection until it ends.
func (l *Leader) accept(conn net.Conn) {
	ctx, end := context.WithCancelCause(context.Background())
	c := &client{leader: l, ctx: ctx, stage: "before the first trial"}
	c.link = &link{Conn: conn, ended: end, silence: c.silent}
	c.link.left.Store(maxHello) // takes memory only for the bytes that the other side sends
	serve(c.link, c.method)
}

// silent records a silence of a rank that has ended now.
func (c *client) silent(length time.Duration) {
	l := c.leader
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.admitted.Load() {
		begin := time.Now().Add(-length)
		l.silent = append(l.silent, result.Pause{Rank: c.hello.Rank, Time: begin.UTC().Format(result.PauseTime),
			BegunNS: int64(begin.Sub(l.step.since)), LengthNS: int64(length), Silent: true})
	}
}

// method returns a method that a rank may call, or nil. Until it is admitted, this is only Hello.
func (c *client) method(name string) method {
	if !c.admitted.Load() {
		return map[string]method{"Hello": handle(c.Hello)}[name]
	}
	return map[string]method{"Gathered": handle(c.Gathered), "Beat": handle(c.Beat), "Stopped": handle(c.Stopped),
		"Enter": handle(c.Enter), "Ready": handle(c.Ready), "Clock": handle(c.Clock), "Begin": handle(c.Begin),
		"Result": handle(c.Result), "Done": handle(c.Done), "Outcome": handle(c.Outcome),
		"Leave": handle(c.Leave)}[name]
}

// Hello admits a rank, or returns why not. It closes the connection of another job, and at a second call.
func (c *client) Hello(hello Hello, _ *struct{}) error {
	l := c.leader
	if hello.Job != l.Hello.Job || c.greeted.Swap(true) {
		return c.link.Close()
	}
	c.hello = hello
	c.hello.Host = cmp.Or(printable(hello.Host), "none")
	why, fatal := l.admit(c)
	if why != "" {
		// Stop may end this process. Before that, the rank reads the refusal and closes the connection. A
		// rank whose connection ends without a refusal would connect again.
		context.AfterFunc(c.ctx, func() {
			if fatal {
				l.Stop(fmt.Sprintf("%s was refused: %s", c.hello.place(), why))
			}
		})
		return errors.New(why)
	}
	c.link.left.Store(math.MaxInt64)
	context.AfterFunc(c.ctx, func() { l.ended(c, context.Cause(c.ctx)) })
	c.admitted.Store(true)
	return nil
}

// admit admits a rank to the run. If it refuses the rank, why is the reason, and fatal says whether the
// refusal stops the run. While ranks are missing, a rank that does not fit the run (Hello.objection) stops
// the run, because this rank would be missing for ever. A rank that connects after all ranks are connected,
// for a second time, or after a stop does not stop the run.
func (l *Leader) admit(c *client) (why string, fatal bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if why := l.Hello.objection(&c.hello); why != "" {
		if p := l.processes[c.hello.Rank]; p != nil {
			p.refused = true
		}
		return printable(why), slices.Contains(l.clients, nil)
	}
	if first := l.clients[c.hello.Rank]; first != nil {
		return first.hello.place() + " is connected already", false
	}
	if l.stopped != "" {
		return l.stopped, false
	}
	c.link.timeout.Store(int64(l.Timeout))
	if l.clients[c.hello.Rank] = c; !slices.Contains(l.clients, nil) {
		l.notify() // not for each rank, because a thousand may wait
	}
	return "", false
}

// Gathered returns when all ranks are connected.
func (c *client) Gathered(_ int, g *Gathering) error {
	l := c.leader
	err := l.await(c.ctx, func() bool { return l.stopped != "" || !slices.Contains(l.clients, nil) })
	defer l.mu.Unlock()
	if err != nil || l.stopped != "" {
		return cmp.Or(err, errors.New(l.stopped))
	}
	if l.filesystems == nil {
		l.share()
	}
	g.Stamp, g.Filesystems = l.Hello.Stamp, len(l.filesystems)
	for _, at := range c.filesystems {
		n := 0
		if at != unknown {
			n = len(l.filesystems[at])
		}
		g.Shares = append(g.Shares, n)
	}
	for _, other := range l.clients {
		if c.hello.OneHost(&other.hello) {
			g.Local++
		}
	}
	return nil
}

// Missing returns an error that names the ranks that are not connected now, or nil if all are. The text of
// the error has the time within, in which they had to connect.
func (l *Leader) Missing(within time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var missing []int
	for rank, c := range l.clients {
		if c == nil {
			missing = append(missing, rank)
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("%d of %d ranks connected within %v; missing %s", len(l.clients)-len(missing),
		len(l.clients), within, units.List(missing))
}

// Beat is the heartbeat of a rank. It waits for no lock.
func (c *client) Beat(live []byte, _ *struct{}) error {
	c.live.Store(&live)
	return nil
}

// Stopped returns when the run is stopped.
func (c *client) Stopped(_ int, why *string) error {
	l := c.leader
	err := l.await(c.ctx, func() bool { return l.stopped != "" })
	defer l.mu.Unlock()
	*why = l.stopped
	return err
}

// Leave is the last call of a rank. A rank that leaves early, without a stop of the run, counts as lost.
func (c *client) Leave(why string, _ *struct{}) error {
	c.leader.mu.Lock()
	defer c.leader.mu.Unlock()
	if why != "" && c.leader.stopped == "" {
		c.leader.lose(c, "was ended: "+printable(why))
	}
	c.left = true
	c.leader.notify()
	return nil
}

// Members returns the hellos of all ranks that have connected, lost ranks included.
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

// Live returns for each rank the text for the live line (MemberConfig.Live) from its last heartbeat. The text
// is nil if the rank is lost, has left, or has sent no text.
func (l *Leader) Live() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([][]byte, len(l.clients)) // texts are not copied: each heartbeat replaces its slice
	for _, c := range l.here() {
		list[c.hello.Rank] = units.OrZero(c.live.Load())
	}
	return list
}

// here returns the ranks that are connected: neither left nor lost. It is called with mu.
func (l *Leader) here() (list []*client) {
	for _, c := range l.clients {
		if c != nil && c.lost == nil && !c.left {
			list = append(list, c)
		}
	}
	return list
}

// Stop ends the run. Every rank gets the reason, ends its window and keeps its result. A second call
// changes nothing.
func (l *Leader) Stop(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop(why)
}

// stop is Stop, called with mu.
func (l *Leader) stop(why string) {
	if l.stopped != "" {
		return
	}
	l.stopped = why
	for _, c := range l.here() {
		c.link.timeout.Store(min(c.link.timeout.Load(), int64(shortTimeout)))
	}
	l.notify()
}

// Stopped returns why the run was stopped, "" if it was not.
func (l *Leader) Stopped() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

// deathLate is how long the coordinator waits for the death of a process whose connection has ended.
const deathLate = 4 * time.Second

// ended records the end of a rank's connection: the rank has left, or is lost.
func (l *Leader) ended(c *client, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.left {
		return
	}
	why := fmt.Sprintf("has gone: its connection ended (%v)", err)
	p := l.processes[c.hello.Rank]
	switch {
	case errors.Is(err, errSilent):
		why = err.Error()
		if p != nil {
			_ = p.cmd.Process.Kill() // a process that SIGSTOP has stopped could continue later
		}
	case p != nil:
		// The connection ends before the process does. On a busy host the process may end much later.
		l.mu.Unlock()
		select {
		case <-p.ended:
			why = "died: " + p.how()
		case <-time.After(deathLate):
		}
		l.mu.Lock()
		if c.left {
			return
		}
	}
	l.lose(c, why)
}

// lose records that a rank is lost, and stops the run unless Continue is set. It is called with mu.
func (l *Leader) lose(c *client, why string) {
	h := &c.hello
	c.lost = &result.LostClient{Rank: h.Rank, Host: h.Host, PID: h.PID, Why: why, Stage: c.stage}
	if c.part.arrived && !c.part.done {
		c.lost.Stage = "while cleaning up after " + l.step.name
	}
	if !l.step.agreed.IsZero() {
		c.lost.AfterNS = int64(time.Since(l.step.agreed))
	}
	if !l.Continue {
		l.stop(c.lost.String())
	}
	l.notify()
}

// Start starts this binary with the arguments of this process as rank m.Rank. The stdout and stderr of the
// new process go to log, which the caller closes. If the process ends before its rank is connected, the run
// is stopped, because this rank cannot connect any more.
func (l *Leader) Start(m Meeting, log *os.File) error {
	p, err := startRank(m, log)
	if err != nil {
		return fmt.Errorf("starting rank %d: %w", m.Rank, err)
	}
	l.started(m.Rank, p)
	return nil
}

func (l *Leader) started(rank int, p *process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.processes[rank] = p
	go func() {
		<-p.ended
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.clients[rank] == nil && !p.refused {
			l.stop(fmt.Sprintf("rank %d (pid %d) ended before it connected: %s", rank,
				p.cmd.Process.Pid, p.how()))
		}
	}()
}

// Close waits until every rank has left or is lost, and until the processes that this process started have
// ended. If ctx ends first, it closes all connections and kills the processes. It returns the silences since the
// last Collect.
func (l *Leader) Close(ctx context.Context) (silent []result.Pause) {
	if l.listener != nil {
		_ = l.listener.Close()
	}
	_ = l.await(ctx, func() bool { return len(l.here()) == 0 })
	for _, c := range l.clients {
		if c != nil {
			_ = c.link.Close()
		}
	}
	processes, silent := maps.Clone(l.processes), l.silent
	l.mu.Unlock()
	for _, p := range processes {
		select {
		case <-p.ended:
		case <-ctx.Done():
			_ = p.cmd.Process.Kill()
		}
	}
	return silent
}
