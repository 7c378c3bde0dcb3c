package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
)

// Refused is the error of a rank that the coordinator refuses.
type Refused struct{ Why string }

func (r Refused) Error() string { return "the coordinator refused this rank: " + r.Why }

// MemberConfig is a member's configuration, apart from its connection.
type MemberConfig struct {
	Clock Clock
	// Stop is called once if the run of a welcomed rank ends early: the coordinator stops the run,
	// or is gone.
	Stop func(error)
	// Live returns this rank's text for the coordinator's live line, empty for none. It is called
	// once a second. Live may be nil.
	Live func() []byte
}

// Member is a rank's connection to the leader. A nil *Member stands for a run with one rank: its
// methods Rank, Size, Barrier and Opened do not wait for another rank.
type Member struct {
	MemberConfig
	hello Hello
	link  *link
	over  chan struct{} // closed when the reader has ended

	state
	welcomed bool
	trial    int
	inbox    map[kind]*message // the last message of each kind
	stopped  error             // why the run ends
	gone     error             // why the connection ended
}

// Join sends a hello and waits for the welcome. It takes over conn, also if it fails. It fails with
// Refused, or because the other end does not coordinate this run.
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

// errLeft is the error of a member that has left.
var errLeft = errors.New("this rank has left")

func (m *Member) read() {
	defer close(m.over)
	err := m.link.read(func(got *message) {
		switch got.Kind {
		case kindPing:
			// Answer at once, in the reader: the leader takes the time until the answer for network
			// time.
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
	// Keep the first reason. Later errors are its consequences.
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

// receive waits for a message of kind k about a trial, and removes it from the inbox. It returns an
// error when the run is stopped. For an outcome or a welcome it returns an error only when the
// connection ends.
func (m *Member) receive(ctx context.Context, k kind, trial int) (got *message, err error) {
	var why error
	err = m.await(ctx, func() bool {
		// Return a message that arrived before the connection ended.
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

// Enter starts the next trial. terms are the values that this rank proposes. It returns the values
// for this rank that all ranks agreed on. Every rank enters the same trials in the same order.
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

// Barrier waits until every rank has called it, and then until the start time that the leader set
// for all ranks.
func (m *Member) Barrier(ctx context.Context) error {
	if m == nil {
		return context.Cause(ctx)
	}
	m.link.send(&message{Kind: kindReady, Trial: m.trial})
	got, err := m.receive(ctx, kindBegin, m.trial)
	if err == nil && got.Text != "" {
		err = errors.New(got.Text)
		// If the run has ended, report the reason of that end. It is the reason why another rank
		// did not reach the barrier.
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

// Opened sends that this rank's window opens now. It does not wait.
func (m *Member) Opened() {
	if m != nil {
		m.link.send(&message{Kind: kindOpened, Trial: m.trial, At: m.Clock.Now()})
	}
}

// Publish queues the result of the trial for sending. If Publish returns an error, it has not sent
// the result.
func (m *Member) Publish(doc []byte) error {
	m.mu.Lock()
	gone := m.gone
	m.mu.Unlock()
	if gone == nil {
		m.link.send(&message{Kind: kindResult, Trial: m.trial, Doc: doc})
	}
	return gone
}

// Done sends that this rank has ended the trial. failure is its error, "" for none.
func (m *Member) Done(failure string) {
	m.link.send(&message{Kind: kindDone, Trial: m.trial, Text: failure})
}

// Outcome waits for the outcome of this rank's trial. text is why the trial failed, "" if it
// succeeded on all ranks.
func (m *Member) Outcome(ctx context.Context) (text string, err error) {
	got, err := m.receive(ctx, kindOutcome, m.trial)
	if err != nil {
		return "", err
	}
	return got.Text, nil
}

// Leave sends the last message of this rank. why is the reason if the rank ends early. Without this
// message the coordinator counts the rank as lost. Leave returns when the coordinator has read all
// messages, or after the timeout Silence.
func (m *Member) Leave(why string) {
	m.mu.Lock()
	if m.stopped == nil { // the coming end of the connection is no error
		m.stopped = errLeft
	}
	m.mu.Unlock()
	m.link.send(&message{Kind: kindLeave, Text: why})
	m.link.end()
	<-m.link.gone
	<-m.over
}
