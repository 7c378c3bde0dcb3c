package clients

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"kvbench/kvbench/group/coordinate"
	"kvbench/kvbench/group/launchers"
	"kvbench/kvbench/params"
)

// Meeting is how the ranks of a run come together.
type Meeting struct {
	Address  string // HOST:PORT of rank 0
	Job      string // by which the ranks of one run know each other
	Launcher string // that starts them
	// Once: rank 0 was there before this rank, which it has started, and listens.
	Once        bool
	Rank, Ranks int // of this process
}

// Started is the meeting of a rank that its coordinator has started.
func Started(o *coordinate.Orders) *Meeting {
	return &Meeting{Address: o.Address, Job: o.Job, Launcher: "kvbench", Once: true, Rank: o.Rank,
		Ranks: o.Ranks}
}

// Where is the meeting of ranks that a launcher or the user has started. The error is about
// -rendezvous.
func Where(v *params.Values) (*Meeting, error) {
	m := &Meeting{Launcher: "by hand", Rank: v.Rank, Ranks: v.Ranks}
	hosts, _ := os.ReadFile("/etc/hosts")
	machine := launchers.Machine{Hosts: string(hosts)}
	machine.Hostname, _ = os.Hostname()
	first := ""
	if v.Launcher != nil {
		m.Launcher, m.Job = v.Launcher.Family, v.Launcher.Job(machine)
		first = v.Launcher.First(machine)
	}
	switch {
	case v.Rendezvous != "auto":
		m.Address = v.Rendezvous
	case v.AllHere():
		// A launcher without a name for the job has started all of them itself.
		m.Job = cmp.Or(m.Job, fmt.Sprintf("%s of process %d", m.Launcher, os.Getppid()))
		m.Address = launchers.LocalAddress(m.Job)
	case first != "":
		m.Address = net.JoinHostPort(first, launchers.Port)
	default:
		return nil, fmt.Errorf("-rendezvous: must be given with %s, which does not say on which "+
			"host rank 0 is: HOST[:PORT], or none for ranks that do not meet", m.Launcher)
	}
	m.Job = cmp.Or(m.Job, m.Address)
	return m, nil
}

// newRun is the meeting of a run that starts its other ranks on this host, and the listener for
// them.
func newRun(ranks int) (*Meeting, net.Listener, error) {
	l, err := coordinate.Listen("127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	return &Meeting{Address: l.Addr().String(), Job: rand.Text(), Launcher: "kvbench",
		Ranks: ranks}, l, nil
}

// declineTime is how long a rank that cannot take part looks for rank 0: if that is not there by
// then, it has most likely found the same mistake.
const declineTime = 2 * time.Second

// Decline sends the coordinator why this rank cannot take part, so that it does not wait for it.
func (m *Meeting) Decline(why error) {
	if m.Rank == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), declineTime)
	defer stop()
	h := hello(m, nil, nil)
	h.Refused = why.Error()
	_, _ = coordinate.Dial(ctx, m.Address, m.Once, h,
		coordinate.MemberConfig{Clock: coordinate.System{}})
}

// start starts the other ranks on this host.
func (c *Clients) start() error {
	if err := os.MkdirAll(c.ResultsDir, 0o777); err != nil {
		return fmt.Errorf("making the results directory: %w", err)
	}
	for rank := 1; rank < c.Ranks && c.leader.Stopped() == ""; rank++ {
		// What a rank prints is of use when something goes wrong.
		log, err := os.Create(logPath(c.ResultsDir, rank))
		if err != nil {
			return fmt.Errorf("making the log of rank %d: %w", rank, err)
		}
		p, err := coordinate.StartRank(coordinate.Orders{Rank: rank, Ranks: c.Ranks, Job: c.Job,
			Address: c.Address, Base: c.Base, Stamp: c.Stamp}, log)
		_ = log.Close()
		if err != nil {
			return err
		}
		c.started = append(c.started, p)
		c.leader.Started(p)
	}
	return nil
}

// close ends what a coordinator has with other ranks, when they have left, or soon. A second call
// does nothing.
func (c *Clients) close() {
	late := time.Now().Add(outcomePatience)
	if c.leader != nil {
		ctx, stop := context.WithDeadline(context.Background(), late)
		defer stop()
		c.leader.Close(ctx)
	}
	if c.listener != nil {
		_ = c.listener.Close()
	}
	for _, p := range c.started {
		if _, ended := p.Ended(time.Until(late)); !ended {
			p.Kill()
		}
	}
	// The ranks made these together, and each has left them to the others. Others than empty ones
	// stay.
	for _, dir := range c.missing {
		_ = syscall.Rmdir(dir)
	}
}

// missing are a directory and those above it that do not exist, the innermost first.
func missing(dir string) (list []string) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !os.IsNotExist(err) {
			return list
		}
		list = append(list, at)
	}
}

// stampForm is the form of a run's stamp, which becomes the name of a directory.
var stampForm = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[0-9]+$`)

// Adopt makes the default results directory of this rank that of the run: where both are on one
// filesystem there is one, and elsewhere it has the same name. It opens the file into which this rank
// prints: nil for the coordinator, which alone prints for the user, and for a rank that it has started,
// which has one.
func (c *Clients) Adopt(plans []*params.Values) (log *os.File, err error) {
	if c.Coordinates() {
		return nil, nil
	}
	if stampForm.MatchString(c.gathered.Stamp) {
		for _, v := range plans {
			if !v.Typed("results-dir") { // a given one may differ between hosts
				v.ResultsDir = filepath.Join(filepath.Dir(v.ResultsDir), c.gathered.Stamp)
			}
		}
	}
	if c.Once {
		return nil, nil
	}
	dir := plans[0].ResultsDir
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("making the results directory: %w", err)
	}
	return os.Create(logPath(dir, c.Rank))
}

func logPath(resultsDir string, rank int) string {
	return filepath.Join(resultsDir, "rank_"+strconv.Itoa(rank)+".log")
}
