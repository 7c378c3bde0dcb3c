package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
)

// Refused is the error of a rank that the coordinator does not take.
type Refused struct{ Why string }

func (r Refused) Error() string { return "the coordinator refused this rank: " + r.Why }

// MemberConfig is a member's configuration, apart from its connection.
type MemberConfig struct {
	Clock Clock
	// Stop is called once when the run of a welcomed rank ends before its time: the coordinator
	// ends it, or is gone.
	Stop func(error)
	// Live returns what the coordinator's live line shows of this rank, empty for nothing. It is
	// called once a second, and may be nil.
	Live func() []byte
}

// Member is a rank's side of the session. The nil Member is that of a run with one rank, which waits
// for no other.
type Member struct {
	MemberConfig
	hello Hello
	link  *link
	over  chan struct{} // closed when nothing comes any more

	state
	welcomed bool
	trial    int
	inbox    map[kind]*message // the last of each kind
	stopped  error             // why the run ends
	gone     error             // why nothing comes any more
}

// Join sends a hello and waits for the welcome. The connection belongs to the member from here on,
// also when Join fails: with Refused, or because the other end coordinates no such run.
func Join(ctx context.Context, conn net.Conn, hello Hello, cfg MemberConfig) (*Member, error) {
	m := &Member{MemberConfig: cfg, hello: hello, link: newLink(conn), over: make(chan struct{}),
		state: newState(), inbox: map[kind]*message{}}
	m.link.send(&message{Kind: kindHello, Hello: &hello})
	go m.link.write(func() *message {
		beat := &message{Kind: kindHeartbeat}
		if m.Live != nil {
			beat.Doc = m.Live()
		}
		return beat
	})
	go m.read()
	_, err := m.receive(ctx, kindWelcome, 0)
	m.mu.Lock()
	refusal := m.inbox[kindRefusal]
	m.mu.Unlock()
	if refusal != nil {
		err = Refused{refusal.Text}
	}
	if err != nil {
		m.link.end()
		return nil, err
	}
	return m, nil
}

// Gathered waits until all ranks are connected.
func (m *Member) Gathered(ctx context.Context) (Gathering, error) {
	got, err := m.receive(ctx, kindGathered, 0)
	if err != nil {
		return Gathering{}, err
	}
	return *got.Gathering, nil
}

// Rank is this rank's number, from 0.
func (m *Member) Rank() int {
	if m == nil {
		return 0
	}
	return m.hello.Rank
}

// Size is the number of ranks.
func (m *Member) Size() int {
	if m == nil {
		return 1
	}
	return m.hello.Ranks
}

// ErrCoordinatorGone is wrapped by the error that ends a rank whose coordinator is gone.
var ErrCoordinatorGone = errors.New("the coordinator is gone")

// errLeft is the end of the run of a member that has left.
var errLeft = errors.New("this rank has left")

func (m *Member) read() {
	defer close(m.over)
	err := m.link.read(func(got *message) {
		switch got.Kind {
		case kindPing:
			// At once, and from here: time between the message and the answer is taken for the
			// network's.
			m.link.send(&message{Kind: kindPong, Seq: got.Seq, At: m.Clock.Now(),
				Wall: m.Clock.Wall()})
		case kindHeartbeat:
		case kindStop:
			m.end(errors.New(got.Text), nil)
		default:
			m.mu.Lock()
			defer m.mu.Unlock()
			m.inbox[got.Kind] = got
			m.welcomed = m.welcomed || got.Kind == kindWelcome
			m.notify()
		}
	})
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

// end records why the run ends, and calls Stop once.
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
	welcomed := m.welcomed
	m.notify()
	m.mu.Unlock()
	if first && welcomed && m.Stop != nil {
		m.Stop(stopped)
	}
}

// receive waits for a message of a kind about a trial, and takes it. It waits for an outcome also
// while the run ends.
func (m *Member) receive(ctx context.Context, k kind, trial int) (got *message, err error) {
	var why error
	err = m.await(ctx, func() bool {
		// A message counts, also when the end came right behind it.
		if got = m.inbox[k]; got != nil && got.Trial == trial {
			delete(m.inbox, k)
			return true
		}
		got, why = nil, m.stopped
		if k == kindOutcome || k == kindWelcome {
			why = m.gone
		}
		return why != nil || m.inbox[kindRefusal] != nil
	})
	if got == nil && err == nil {
		err = why
	}
	return got, err
}

// Enter comes to the next trial, with what this rank would have taken, and returns what all ranks
// have agreed about. Every rank enters the same trials in the same order.
func (m *Member) Enter(ctx context.Context, terms Terms) (Terms, error) {
	m.mu.Lock()
	m.trial++
	trial := m.trial
	m.mu.Unlock()
	m.link.send(&message{Kind: kindEnter, Trial: trial, Terms: &terms})
	got, err := m.receive(ctx, kindAgreed, trial)
	if err == nil && got.Terms == nil {
		err = errors.New(got.Text)
	}
	if err != nil {
		return Terms{}, err
	}
	return *got.Terms, nil
}

// Barrier waits until every rank has come to the barrier and the moment has come at which all of
// them begin what follows it.
func (m *Member) Barrier(ctx context.Context) error {
	if m == nil {
		return context.Cause(ctx)
	}
	m.link.send(&message{Kind: kindReady, Trial: m.trial})
	got, err := m.receive(ctx, kindBegin, m.trial)
	if err == nil && got.Text != "" {
		err = errors.New(got.Text)
		// The end of the run, where there is one, is why another rank is not ready.
		m.mu.Lock()
		if m.stopped != nil {
			err = m.stopped
		}
		m.mu.Unlock()
	}
	if err == nil {
		err = m.Clock.Until(ctx, got.At)
	}
	return err
}

// Opened reports that this rank's window opens now. It does not wait.
func (m *Member) Opened() {
	if m != nil {
		m.link.send(&message{Kind: kindOpened, Trial: m.trial, At: m.Clock.Now()})
	}
}

// Publish sends the result of the trial. With an error the coordinator does not get it.
func (m *Member) Publish(doc []byte) error {
	m.mu.Lock()
	gone := m.gone
	m.mu.Unlock()
	if gone == nil {
		m.link.send(&message{Kind: kindResult, Trial: m.trial, Doc: doc})
	}
	return gone
}

// Done reports that the trial is over for this rank, and with which error, "" for none.
func (m *Member) Done(failure string) {
	m.link.send(&message{Kind: kindDone, Trial: m.trial, Text: failure})
}

// Outcome waits for the outcome of the trial that this rank has done. The text is empty where it
// went well for all.
func (m *Member) Outcome(ctx context.Context) (text string, err error) {
	got, err := m.receive(ctx, kindOutcome, m.trial)
	if err != nil {
		return "", err
	}
	return got.Text, nil
}

// Leave reports that this rank has come to its end, with a reason if that is before its time: without
// that message the rank is lost. It returns when the coordinator has read all messages, such as a
// result, or does not take them for Silence.
func (m *Member) Leave(why string) {
	m.mu.Lock()
	if m.stopped == nil { // the end of the connection does not end the run
		m.stopped = errLeft
	}
	m.mu.Unlock()
	m.link.send(&message{Kind: kindLeave, Text: why})
	m.link.end()
	<-m.link.gone
	<-m.over
}
