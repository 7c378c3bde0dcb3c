package clients

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/group/agent"
	"kvbench/kvbench/params"
)

// Host is where ranks are started: some that follow each other.
type Host struct {
	Name         string // "" is this one, where nobody has named any
	Here         bool
	First, Ranks int
}

// Hosts are those on which this process starts ranks, in their order. Unless the first is this one
// it has no load of its own: it would lie on a machine that nobody has named.
func Hosts(v *params.Values) (list []Host) {
	first := 0
	for _, h := range v.Started() {
		list = append(list, Host{h.Host, here(h.Host), first, h.Ranks})
		first += h.Ranks
	}
	if list == nil {
		list = []Host{{Here: true, Ranks: v.Ranks}}
	}
	return list
}

// here tells whether a name is this machine's. Who names a user wants to be that one, by ssh. No
// server is asked: a name that is this machine's by another way is reached as any other.
func here(name string) bool {
	own, _ := os.Hostname()
	short, _, _ := strings.Cut(own, ".")
	if name == "localhost" || name == own || name == short {
		return true
	}
	ip := net.ParseIP(name)
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		if n, is := a.(*net.IPNet); is && ip != nil && n.IP.Equal(ip) {
			return true
		}
	}
	return ip.IsLoopback()
}

// ShellOf is how ranks are started on other hosts. The error says what keeps it from being done; it
// is nil where there is no other host.
func ShellOf(v *params.Values, hosts []Host) (s agent.Shell, bad params.Violations) {
	s = agent.Shell{Command: v.Shell(), Binary: v.RemoteBinary}
	for _, h := range hosts {
		if h.Here {
			continue
		}
		if _, err := exec.LookPath(s.Command[0]); err != nil {
			bad = append(bad, fmt.Sprintf("-ssh: must be a command that is there, given %q: %v",
				s.Command[0], err))
		}
		if err := agent.Copyable(); s.Binary == "" && err != nil {
			bad = append(bad, fmt.Sprintf("-remote-binary: must be given, because the program "+
				"that would be copied to %s runs on this host alone: %v; make dist builds others",
				h.Name, err))
		}
		break
	}
	return s, bad
}

// loginsAtOnce are at a time on their way to a host: sshd turns away at random who comes when ten
// are (MaxStartups 10:30:100).
const loginsAtOnce = 8

// reach starts the ranks of another host. What keeps it from that ends the run.
func (c *Clients) reach(h Host) {
	// One is given back when the program there has said its first word, so after login and copy.
	tokens := make(chan struct{}, loginsAtOnce)
	for rank := h.First; rank < h.First+h.Ranks; rank++ {
		tokens <- struct{}{}
		if !c.starts(rank, h, func(o agent.Orders, log *os.File) (*agent.Process, net.Conn,
			error) {
			p, conn, err := c.Shell.Dial(h.Name, o, log)
			return p, &heard{conn, func() { <-tokens }}, err
		}) {
			return
		}
	}
}

// heard does something once when the other side was heard, or has ended: whoever accepts the
// connection reads it first, so nobody else has to wait for that.
type heard struct {
	net.Conn
	then func()
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if h.then != nil {
		h.then()
		h.then = nil
	}
	return n, err
}

// starts starts one, unless the run is to end, which it is where that fails.
func (c *Clients) starts(rank int, h Host, start func(agent.Orders, *os.File) (*agent.Process,
	net.Conn, error)) bool {
	if c.leader.Stopped() != "" {
		return false
	}
	err := c.startRank(rank, h, start)
	if err != nil {
		c.leader.Stop(err.Error())
	}
	return err == nil
}

// startRank starts one, and serves it. The error is of this side; what goes wrong on the other one
// is heard when its connection ends.
func (c *Clients) startRank(rank int, h Host, start func(agent.Orders, *os.File) (*agent.Process,
	net.Conn, error)) error {
	// What a rank prints nobody has asked for; where something goes wrong somebody will. On another
	// host it says so through the shell, whose own words come here, too.
	log, err := os.Create(logPath(c.ResultsDir, rank))
	if err != nil {
		return fmt.Errorf("making the log of rank %d: %w", rank, err)
	}
	defer log.Close()
	orders := c.Others
	orders.Rank, orders.Ranks, orders.LocalRanks = rank, c.Hello.Ranks, h.Ranks
	orders.Job = c.Hello.Job
	process, conn, err := start(orders, log)
	if err != nil {
		return err // the others end with their sockets
	}
	c.mu.Lock()
	c.started = append(c.started, process)
	c.mu.Unlock()
	go c.leader.Accept(conn, process)
	return nil
}

// Watch is Enter for a coordinator without a load: show gets what all ranks do together, and
// observe what each does, once a second until the trial is concluded, as a rank's own snapshots
// come. Either may be nil.
func (c *Clients) Watch(t Trial, show func(kvbench.Snapshot),
	observe func(rank int, now kvbench.Snapshot)) {
	if show == nil && observe == nil {
		c.comeTo(t, nil)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	// Whoever ends it has the terminal, and the metrics, for itself.
	c.comeTo(t, func() { cancel(); <-over })
	go func() {
		defer close(over)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// The stage is that of the lowest rank that has shown something.
			var all *kvbench.Snapshot
			c.others(-1, t.String(), func(rank int, now kvbench.Snapshot) {
				if observe != nil {
					observe(rank, now)
				}
				if all == nil {
					all = &now
				} else {
					add(all, now)
				}
			})
			if all != nil && show != nil {
				show(*all)
			}
		}
	}()
}
