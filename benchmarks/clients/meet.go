package clients

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"kvbench/kvbench/group/coordinate"
	"kvbench/kvbench/group/launchers"
	"kvbench/kvbench/group/rendezvous"
	"kvbench/kvbench/params"
)

// Meeting is how ranks come together that somebody else has started.
type Meeting struct {
	Place    rendezvous.Place
	Job      string // by which name they know each other; no secret
	Launcher string // who started them
}

// Where says where the ranks of this process's launcher meet: what a person says, else what needs
// least. CacheDir is the directory that they may share, "" if there is none that a person has
// named. The error is about -rendezvous.
func Where(v *params.Values, cacheDir string) (Meeting, error) {
	m := Meeting{Launcher: "by hand"}
	hosts, _ := os.ReadFile("/etc/hosts")
	machine := launchers.Machine{Hosts: string(hosts)}
	machine.Hostname, _ = os.Hostname()
	first := ""
	if v.Launcher != nil {
		m.Launcher, m.Job = v.Launcher.Family, v.Launcher.Job(machine)
		first = v.Launcher.First(machine)
	}
	// What needs nothing of the network comes before what does, and an address before a directory,
	// which not all hosts may share.
	dir, inDir := strings.CutPrefix(v.Rendezvous, "dir:")
	switch {
	case inDir:
		m.Place = rendezvous.In(dir, m.Job)
	case v.Rendezvous != "auto":
		m.Place = rendezvous.Place{Kind: rendezvous.TCP, Address: v.Rendezvous}
	case v.AllHere():
		// A launcher that names no job has started all of them itself.
		m.Job = cmp.Or(m.Job, fmt.Sprintf("%s of process %d", m.Launcher, os.Getppid()))
		m.Place = rendezvous.OnHost(m.Job)
	case first != "":
		m.Place = rendezvous.Place{Kind: rendezvous.TCP,
			Address: net.JoinHostPort(first, rendezvous.Port)}
	case m.Job != "" && cacheDir != "":
		m.Place = rendezvous.In(cacheDir, m.Job)
	default:
		return m, fmt.Errorf("-rendezvous: must be given with %s, which does not say where rank 0 "+
			"is: HOST:PORT, dir:PATH that all ranks see, or none for ranks that do not meet",
			m.Launcher)
	}
	m.Job = cmp.Or(m.Job, m.Place.Address)
	return m, nil
}

// mostStrangers may say hello at a time: whoever it is has some seconds, and a descriptor.
const mostStrangers = 256

// listen takes in whoever comes, until the listener is closed.
func (c *Clients) listen(l net.Listener) {
	var here atomic.Int64
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Too many descriptors are open, or the other side is gone: another one may come.
			time.Sleep(retryLeast)
			continue
		case here.Load() >= mostStrangers+int64(c.Hello.Ranks):
			_ = conn.Close() // one that belongs here tries again
			continue
		}
		here.Add(1)
		go func() {
			defer here.Add(-1)
			c.leader.Accept(conn, nil)
		}()
	}
}

// How long a rank waits between two attempts to reach rank 0.
const (
	retryLeast = 50 * time.Millisecond
	retryMost  = time.Second
)

// dial reaches the coordinator as often as it takes, until ctx ends.
func (c *Clients) dial(ctx context.Context, cfg coordinate.MemberConfig) (err error) {
	// The last reason is kept that is not the end of the wait: refused is news, too late is none.
	began := time.Now()
	for attempt, wait := 0, retryLeast; ; attempt++ {
		conn, why := c.Meeting.Place.Dial(ctx, attempt)
		if why == nil {
			// Somebody else may answer there: a job that has just ended, or another service.
			c.member, why = coordinate.Join(ctx, conn, c.Hello, cfg)
			if refused := (coordinate.Refused{}); why == nil || errors.As(why, &refused) {
				return why
			}
			why = fmt.Errorf("who answers is not rank 0 of this job (%s): %w", c.Hello.Job, why)
		}
		if ctx.Err() == nil || err == nil {
			err = why
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, retryMost)
		case <-ctx.Done():
			if c.Context.Err() != nil {
				return context.Cause(c.Context)
			}
			return fmt.Errorf("rank %d found no rank 0 at %v within %v: %w", c.Hello.Rank,
				c.Meeting.Place, time.Since(began).Round(time.Second/10), err)
		}
	}
}

// declineTime is for the way of a rank that cannot take part: if rank 0 is not there by then, it
// has most likely found the same mistake.
const declineTime = 2 * time.Second

// DeclineAt is Decline for a rank that was started by somebody else. The coordinator hears nothing
// where it is this rank.
func DeclineAt(m Meeting, v *params.Values, why error) {
	if v.Rank == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), declineTime)
	defer stop()
	h := Hello([]*params.Values{v}, nil, nil)
	// Its parameters are not looked at: what is wrong with them is what it says.
	h.Job, h.Refused = m.Job, why.Error()
	c := &Clients{Config: Config{Context: ctx, Hello: h, Meeting: &m}}
	_ = c.dial(ctx, coordinate.MemberConfig{Clock: coordinate.System{}})
}

// stampForm is what a coordinator may call its run: it becomes the name of a directory.
var stampForm = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[0-9]+$`)

// Adopt makes the default results directory of this rank that of the run: where both lie on one
// filesystem there is one, and elsewhere it has the same name.
func (c *Clients) Adopt(plans []*params.Values) {
	if c == nil || c.leader != nil || !stampForm.MatchString(c.stamp) {
		return
	}
	// What a person has said stays: it may lie in other places on other hosts.
	for _, v := range plans {
		if !v.Typed("results-dir") {
			v.ResultsDir = filepath.Join(filepath.Dir(v.ResultsDir), c.stamp)
		}
	}
}

// Log opens the file into which this rank prints, nil for the coordinator, which alone prints for
// people, and for a rank whose coordinator has given it one.
func (c *Clients) Log(resultsDir string) (*os.File, error) {
	if c == nil || c.leader != nil || c.Orders != nil {
		return nil, nil
	}
	if err := os.MkdirAll(resultsDir, 0o777); err != nil {
		return nil, fmt.Errorf("making the results directory: %w", err)
	}
	return os.Create(logPath(resultsDir, c.Hello.Rank))
}

func logPath(resultsDir string, rank int) string {
	return filepath.Join(resultsDir, "rank_"+strconv.Itoa(rank)+".log")
}
