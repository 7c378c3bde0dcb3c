package coordinate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"kvbench/kvbench/group"
	"kvbench/kvbench/group/wire"
)

// Refused is the error of a rank that is not taken.
type Refused struct{ Why string }

func (r Refused) Error() string { return "the coordinator refused this rank: " + r.Why }

// MemberConfig is what a member needs besides its connection.
type MemberConfig struct {
	Clock Clock
	// Stop is called once when the run of a rank that was welcomed ends before its time: the
	// coordinator says so, or is gone.
	Stop func(error)
	// Live is what the coordinator's live line shows of this rank, nil or empty for nothing. It is
	// called once a second.
	Live func() []byte
	// Prober is asked which ranks share a filesystem; nil where this rank works on none.
	Prober Prober
}

// Member is a rank's side of the session.
type Member struct {
	MemberConfig
	hello wire.Hello
	link  *link

	mu      sync.Mutex
	changed chan struct{} // closed and made anew when something below has changed
	joined  *wire.Hello   // the coordinator's, nil before this rank was welcomed
	sharing []wire.Sharing
	local   int
	trial   int
	inbox   map[wire.Kind]*wire.Message // the last of each kind
	stopped error                       // why the run ends
	gone    error                       // nothing comes any more, and nothing is heard
}

var _ group.Group = (*Member)(nil)

// Join says hello and waits to be welcomed. The connection belongs to the member from here on, also
// when it fails: with Refused, or because whoever is at the other end coordinates no such run.
func Join(ctx context.Context, conn net.Conn, hello wire.Hello, cfg MemberConfig) (*Member, error) {
	m := &Member{MemberConfig: cfg, hello: hello, changed: make(chan struct{}),
		inbox: map[wire.Kind]*wire.Message{}}
	m.link = newLink(conn, func() *wire.Message {
		beat := &wire.Message{Kind: wire.Beat}
		if m.Live != nil {
			beat.Doc = m.Live()
		}
		return beat
	})
	m.link.send(&wire.Message{Kind: wire.Greeting, Hello: &hello})
	go m.read()
	_, err := m.await(ctx, wire.Welcome, 0)
	if refusal := m.inboxed(wire.Refusal); refusal != nil {
		err = Refused{refusal.Text}
	}
	if err != nil {
		m.link.end()
		return nil, err
	}
	return m, nil
}

func (m *Member) inboxed(k wire.Kind) *wire.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inbox[k]
}

// Gathered waits until all ranks are there, and returns who coordinates them.
func (m *Member) Gathered(ctx context.Context) (wire.Hello, error) {
	if _, err := m.await(ctx, wire.Gathered, 0); err != nil {
		return wire.Hello{}, err
	}
	return *m.joined, nil
}

// Sharing is who shares the filesystem of each of this rank's directories, once all have gathered.
func (m *Member) Sharing() []wire.Sharing {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sharing
}

// Local is how many ranks are on this rank's host, itself among them, once all have gathered.
func (m *Member) Local() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.local
}

// Rank implements group.Group.
func (m *Member) Rank() int { return m.hello.Rank }

// Size implements group.Group.
func (m *Member) Size() int { return m.hello.Ranks }

// ErrCoordinatorGone is wrapped by what ends a rank whose coordinator is.
var ErrCoordinatorGone = errors.New("the coordinator is gone")

// errLeft is how a member's run ends that has come to its end.
var errLeft = errors.New("this rank has left")

func (m *Member) read() {
	err := m.link.read(func(got *wire.Message) {
		switch got.Kind {
		case wire.Ping:
			// At once, and from here: what waits between the message and the answer is taken for
			// the network's.
			m.link.send(&wire.Message{Kind: wire.Pong, Seq: got.Seq, At: m.Clock.Now(),
				Wall: m.Clock.Wall()})
			return
		case wire.Beat:
			return
		case wire.Probe:
			go m.probe(got) // a filesystem may take its time, and this rank lives meanwhile
			return
		case wire.Stop:
			m.end(errors.New(got.Text), nil)
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.inbox[got.Kind] = got
		if got.Kind == wire.Gathered {
			m.sharing, m.local = got.Sharing, got.Local
		}
		if got.Kind == wire.Welcome {
			m.joined = cmp.Or(got.Hello, &wire.Hello{})
		}
		m.notify()
	})
	// However the connection ended, nobody can tell this rank anything any more.
	why := fmt.Errorf("%w: %w", ErrCoordinatorGone, err)
	switch {
	case errors.Is(err, errSilent):
		why = fmt.Errorf("%w: it has not answered for %v", ErrCoordinatorGone, Silence)
	case errors.Is(err, io.EOF):
		why = ErrCoordinatorGone
	}
	m.end(why, why)
	m.link.end()
}

// end notes why the run ends, and tells it once.
func (m *Member) end(stopped, gone error) {
	m.mu.Lock()
	// The first reason is what happened; what follows from it would hide it.
	first := m.stopped == nil
	if first {
		m.stopped = stopped
	}
	if gone != nil {
		m.gone = gone
	}
	joined := m.joined != nil
	m.notify()
	m.mu.Unlock()
	if first && joined && m.Stop != nil {
		m.Stop(stopped)
	}
}

// notify is called with mu.
func (m *Member) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// await waits for a message of a kind about a trial, and takes it. An outcome is waited for though
// the run ends.
func (m *Member) await(ctx context.Context, k wire.Kind, trial int) (*wire.Message, error) {
	for {
		m.mu.Lock()
		// What has come counts, also when the end came right behind it.
		got, changed, stopped := m.inbox[k], m.changed, m.stopped
		if k == wire.Outcome || k == wire.Welcome {
			stopped = m.gone
		}
		refused := m.inbox[wire.Refusal] != nil
		if got != nil && got.Trial == trial {
			delete(m.inbox, k)
			m.mu.Unlock()
			return got, nil
		}
		m.mu.Unlock()
		if stopped != nil || refused {
			return nil, stopped
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Enter comes to the next trial, with what this rank would have taken, and returns what all have
// agreed about. Every rank enters the same trials in the same order.
func (m *Member) Enter(ctx context.Context, terms wire.Terms) (wire.Terms, error) {
	m.mu.Lock()
	m.trial++
	trial := m.trial
	m.mu.Unlock()
	m.link.send(&wire.Message{Kind: wire.Enter, Trial: trial, Terms: &terms})
	got, err := m.await(ctx, wire.Agreed, trial)
	if err == nil && got.Terms == nil {
		err = errors.New(got.Text)
	}
	if err != nil {
		return wire.Terms{}, err
	}
	return *got.Terms, nil
}

// Barrier implements group.Group.
func (m *Member) Barrier(ctx context.Context, name string) (time.Time, error) {
	m.link.send(&wire.Message{Kind: wire.Ready, Trial: m.trial, Text: name})
	got, err := m.await(ctx, wire.Begin, m.trial)
	if err == nil && got.Text != "" {
		err = errors.New(got.Text)
		// A run that was ended, which was told before, is why the other one is not ready.
		m.mu.Lock()
		if m.stopped != nil {
			err = m.stopped
		}
		m.mu.Unlock()
	}
	if err == nil {
		err = m.Clock.Until(ctx, got.At)
	}
	return time.Now(), err
}

// Opened implements group.Group.
func (m *Member) Opened() {
	m.link.send(&wire.Message{Kind: wire.Opened, Trial: m.trial, At: m.Clock.Now()})
}

// Publish hands over the result of the trial. The error says that nobody will have it.
func (m *Member) Publish(doc []byte) error {
	m.mu.Lock()
	gone := m.gone
	m.mu.Unlock()
	if gone == nil {
		m.link.send(&wire.Message{Kind: wire.Result, Trial: m.trial, Doc: doc})
	}
	return gone
}

// Done says that the trial is over for this rank, with which error if with one.
func (m *Member) Done(failure string) {
	m.link.send(&wire.Message{Kind: wire.Done, Trial: m.trial, Text: failure})
}

// Outcome waits for what has become of the trial that this rank has done: the text is empty where
// it went well for all.
func (m *Member) Outcome(ctx context.Context) (text string, err error) {
	got, err := m.await(ctx, wire.Outcome, m.trial)
	if err != nil {
		return "", err
	}
	return got.Text, nil
}

// Leave says that this rank has come to its end, before its time if there is a reason why, and
// waits until that is on its way, and all that was said before, such as a result: without that word
// it is lost to the others. That ends soon where nobody takes what is said any more.
func (m *Member) Leave(why string) {
	m.mu.Lock()
	if m.stopped == nil { // the end of the connection is none of the run
		m.stopped = errLeft
	}
	m.mu.Unlock()
	m.link.send(&wire.Message{Kind: wire.Leave, Text: why})
	m.link.end()
	<-m.link.gone
}
