package coordinate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"kvbench/kvbench/group/wire"
)

// LeaderConfig is what a leader needs to know.
type LeaderConfig struct {
	// Hello is what every rank has to agree with; its Rank says nothing.
	Hello wire.Hello
	Clock Clock
	// Continue lets the others go on when a rank is lost; else the run ends.
	Continue bool
	// Result receives what a rank has measured, as soon as it comes. It is called by one goroutine
	// of each rank.
	Result func(rank, trial int, doc []byte)
}

// Process is one that the leader's side has started, nil for others.
type Process interface {
	// Name is what people call it: "rank 3 (pid 4711)".
	Name() string
	// Ended says how it ended, such as "signal: killed", if it does so within that time.
	Ended(within time.Duration) (how string, ended bool)
	// Stopped says that it does not go on by itself, as after SIGSTOP.
	Stopped() bool
	// Kill ends it, however it stands.
	Kill()
}

// Lost is a rank that is no more.
type Lost struct {
	Hello wire.Hello
	Why   string        // "died: signal: killed", "has not answered for 4s"
	Stage string        // what it was at
	After time.Duration // since its trial was agreed about, 0 outside of one
}

func (l Lost) String() string { return l.Hello.Place() + " " + l.Why + ", " + l.Stage }

// Leader coordinates the ranks of a run.
type Leader struct {
	LeaderConfig

	mu      sync.Mutex
	changed chan struct{} // closed and made anew when something below has changed
	clients []*client     // by rank; nil until it has come
	refused []string      // ranks of the job that were not taken, and why
	stopped string        // why the run ends, "" while it goes on
	step    step
}

// client is a rank, as the leader sees it.
type client struct {
	hello   wire.Hello
	link    *link
	process Process
	lost    *Lost
	left    bool // it has come to its end
	live    []byte
	at      wire.Kind // what it said last of its trial; "" before the first
	ended   wire.Kind // what it said last before its trial ended
	pongs   chan *wire.Message
	part    part
	probed  *wire.Message  // its answer to the last probe
	sharing []wire.Sharing // of each of its directories
	local   int            // ranks on its host, this one among them
}

// NewLeader is one that knows nobody yet.
func NewLeader(cfg LeaderConfig) *Leader {
	return &Leader{LeaderConfig: cfg, changed: make(chan struct{}),
		clients: make([]*client, cfg.Hello.Ranks), step: step{trial: 1}}
}

// notify is called with mu.
func (l *Leader) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits, without polling, until is says so, which is asked with mu.
func (l *Leader) await(ctx context.Context, is func() bool) error {
	for {
		l.mu.Lock()
		ok, changed := is(), l.changed
		l.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// strangerTime is how long somebody has to say hello.
const strangerTime = 10 * time.Second

// Accept takes in whoever is at the other end, and serves it until the connection ends: it is for a
// goroutine of its own. Who says no hello of this job is left without a word.
func (l *Leader) Accept(conn net.Conn, process Process) {
	// Until somebody has said who it is, it gets little time, and no memory but for what it sends.
	_ = conn.SetReadDeadline(time.Now().Add(strangerTime))
	heard := func() {}
	if process != nil {
		heard = giveUpStopped(conn, process)
	}
	first, err := wire.Read(conn, wire.MaxHello)
	heard()
	if process != nil && err != nil {
		_ = conn.Close()
		l.neverCame(process, err)
		return
	}
	if err != nil || first.Kind != wire.Greeting || !l.Hello.Belongs(first.Hello) {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	c := &client{hello: *first.Hello, process: process, pongs: make(chan *wire.Message, pings)}
	c.link = newLink(conn, func() *wire.Message { return &wire.Message{Kind: wire.Beat} })
	if why, fatal := l.admit(c); why != "" {
		c.link.send(&wire.Message{Kind: wire.Refusal, Text: why})
		c.link.end()
		// What ends the run may end this process: it must hear why first, or it would look for
		// another coordinator.
		<-c.link.gone
		if fatal {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.refused = append(l.refused,
				fmt.Sprintf("%s was refused: %s", c.hello.Place(), why))
			l.notify()
		}
		return
	}
	err = c.link.read(func(m *wire.Message) { l.heard(c, m) })
	c.link.end()
	l.ended(c, err)
}

// giveUpStopped ends the wait for the hello of a process that does not go on, after as long as for
// a rank that does not answer; one that is only slow has all of its time: sixty-four ranks that
// start beside each other on two cores need seconds until each has said hello, and a limit of time
// alone could not tell these from a stopped one. Heard ends that.
func giveUpStopped(conn net.Conn, process Process) (heard func()) {
	over := make(chan struct{})
	go func() {
		for wait := Silence; ; wait = beat {
			select {
			case <-over:
				return
			case <-time.After(wait):
			}
			if process.Stopped() {
				_ = conn.SetReadDeadline(time.Now())
				return
			}
		}
	}()
	return func() { close(over) }
}

// neverCame takes note that a process that this side has started will not come any more.
func (l *Leader) neverCame(process Process, err error) {
	stopped := process.Stopped()
	how, ended := process.Ended(patience)
	switch {
	case ended:
	case stopped:
		process.Kill()
		how = "it is stopped: who has sent it SIGSTOP?"
	default:
		process.Kill()
		how = fmt.Sprintf("said nothing that is a hello: %v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = append(l.refused, fmt.Sprintf("%s did not come: %s", process.Name(), how))
	l.notify()
}

// admit takes a rank, or says why not, and whether that ends the run: what cannot belong to it
// does, because waiting would not make it better. Somebody who comes late, or twice, does not.
func (l *Leader) admit(c *client) (why string, fatal bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.notify()
	if why := l.Hello.Objection(&c.hello); why != "" {
		return why, true
	}
	if there := l.clients[c.hello.Rank]; there != nil {
		// It changes nothing for the one that is there.
		return there.hello.Place() + " has been here", false
	}
	if l.stopped != "" {
		return l.stopped, false
	}
	l.clients[c.hello.Rank] = c
	c.link.send(&wire.Message{Kind: wire.Welcome, Hello: &l.Hello})
	return "", false
}

// Gather waits until all ranks are there. The error says who is missing, or was refused; Stop tells
// that.
func (l *Leader) Gather(ctx context.Context) error {
	// Whoever cannot come ends the wait: the others need not wait for the rest of it.
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
			numbers(missing))
	case err != nil:
		return err
	}
	return nil
}

func numbers(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]")
}

// Members are the hellos of all ranks, those that are lost among them.
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

// Sharing is who shares the filesystems of the ranks' directories, by rank.
func (l *Leader) Sharing() (list [][]wire.Sharing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.clients {
		list = append(list, c.sharing)
	}
	return list
}

// Local is how many ranks are on this rank's host, itself among them, once all have gathered.
func (l *Leader) Local() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clients[0].local
}

// Live is what each rank has last shown of itself, nil where it has shown nothing or is lost.
func (l *Leader) Live() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Texts that nobody changes any more: each beat brings a new one.
	list := make([][]byte, len(l.clients))
	for rank, c := range l.clients {
		if c.there() {
			list[rank] = c.live
		}
	}
	return list
}

// there tells whether a rank is.
func (c *client) there() bool { return c != nil && c.lost == nil && !c.left }

// Stop ends the run: every rank is told why, ends its window and leaves what it has. The first
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
	for _, c := range l.clients {
		if c.there() {
			c.link.send(&wire.Message{Kind: wire.Stop, Text: why})
		}
	}
	l.notify()
}

// Stopped is why the run ends before its time, "" if it does not.
func (l *Leader) Stopped() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

// ended takes note that a rank's connection has: it has left, or is lost.
func (l *Leader) ended(c *client, err error) {
	// A process that this side has started tells most; of one elsewhere the connection is all that
	// is known.
	lost := Lost{Hello: c.hello, Why: "has gone: its connection ended"}
	switch {
	case errors.Is(err, errSilent):
		lost.Why = fmt.Sprintf("has not answered for %v", Silence)
		if c.process != nil {
			c.process.Kill() // it would wake up some day and go on
		}
	case c.process != nil:
		if how, ended := c.process.Ended(patience); ended {
			lost.Why = "died: " + how
		}
	case !errors.Is(err, io.EOF):
		lost.Why = fmt.Sprintf("has gone: %v", err)
	}
	// Who has said that it leaves has come to its end, and may go as it likes.
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.left {
		l.lose(c, lost)
	}
	l.notify()
}

// lose is called with mu.
func (l *Leader) lose(c *client, lost Lost) {
	lost.Stage = l.stage(c)
	if !l.step.agreed.IsZero() {
		lost.After = time.Since(l.step.agreed)
	}
	c.lost = &lost
	if !l.Continue {
		l.stop(lost.String())
	}
	l.progress()
}

// Close waits until every rank has left, as long as ctx lasts, and ends what is left.
func (l *Leader) Close(ctx context.Context) {
	_ = l.await(ctx, func() bool {
		return !slices.ContainsFunc(l.clients, (*client).there)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.clients {
		if c != nil {
			_ = c.link.conn.Close()
		}
	}
}
