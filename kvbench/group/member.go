package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Refused is the error of a rank that the coordinator refuses.
type Refused struct{ Why string }

func (r Refused) Error() string { return "the coordinator refused this rank: " + r.Why }

// MemberConfig is a member's configuration, apart from its connection.
type MemberConfig struct {
	// Stop is called once if the run of a welcomed rank ends early: the coordinator stops the run,
	// or is gone.
	Stop func(error)
	// Live returns this rank's text for the coordinator's live line, empty for none. It is called
	// once a second. Live may be nil.
	Live func() []byte
	// Now reads the clock that ranks compare. nil is time.Now.
	Now func() time.Time
}

// Member is a rank's connection to the leader. A nil *Member stands for a run with one rank: its
// methods Rank, Size, Barrier and Opened do not wait for another rank. The goroutine that runs the trial
// calls the methods that send or wait.
type Member struct {
	MemberConfig
	hello   Hello
	link    *link
	replies chan *message
	run     context.Context // ends when the coordinator stops the run or is gone; the cause says why
	stop    context.CancelCauseFunc
	forget  func() bool // removes the call of Stop
	trial   int
	begun   time.Time // the start of the last phase
}

// dialTime is the timeout of one attempt to connect to rank 0. The pause between attempts grows
// from retryLeast to retryMost.
const (
	dialTime   = 4 * time.Second
	retryLeast = 50 * time.Millisecond
	retryMost  = time.Second
)

// Dial connects to the coordinator at address (HOST:PORT) and joins its run. It tries again until
// ctx ends. With once it tries once, because the coordinator started before this rank.
func Dial(ctx context.Context, address string, once bool, hello Hello, cfg MemberConfig) (
	*Member, error) {
	began := time.Now()
	var last error // the last error that is not the end of ctx
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		dialer := net.Dialer{Timeout: dialTime}
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			var m *Member
			m, err = Join(ctx, conn, hello, cfg)
			if err == nil || errors.As(err, &Refused{}) {
				return m, err
			}
			// The port may belong to another job, or to another service.
			err = fmt.Errorf("the process at that address is not rank 0 of this job (%s): %w",
				hello.Job, err)
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if !once {
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
			}
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause,
			context.DeadlineExceeded) {
			return nil, cause
		}
		return nil, fmt.Errorf("rank %d found no rank 0 at %s within %v: %w", hello.Rank, address,
			time.Since(began).Round(time.Second/10), last)
	}
}

// errGone is wrapped by the error that ends a rank whose coordinator is gone.
var errGone = errors.New("the coordinator is gone")

// Join sends a hello and waits for the welcome. It takes over conn, also if it fails. It fails with
// Refused, or because the other end does not coordinate this run.
func Join(ctx context.Context, conn net.Conn, hello Hello, cfg MemberConfig) (*Member, error) {
	m := &Member{MemberConfig: cfg, hello: hello, link: newLink(conn), replies: make(chan *message, 16)}
	if m.Now == nil {
		m.Now = time.Now
	}
	m.run, m.stop = context.WithCancelCause(context.Background())
	m.link.send(&message{Kind: kindHello, Hello: &hello})
	go m.link.write(func() *message {
		beat := &message{Kind: kindHeartbeat}
		if m.Live != nil {
			beat.Doc = m.Live()
		}
		return beat
	})
	go func() {
		err := m.link.read(m.handle)
		m.stop(fmt.Errorf("%w: %w", errGone, err))
		close(m.link.over)
	}()
	got, err := m.receive(ctx, kindWelcome)
	if err == nil && got.Kind == kindRefusal {
		err = Refused{got.Text}
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	m.forget = context.AfterFunc(m.run, func() {
		if m.Stop != nil {
			m.Stop(context.Cause(m.run))
		}
	})
	return m, nil
}

// handle handles a message of the leader. It runs in the goroutine that reads.
func (m *Member) handle(got *message) {
	switch got.Kind {
	case kindPing:
		// Answer at once, because the leader takes the time until the answer for network time.
		m.link.send(&message{Kind: kindPong, Trial: got.Trial, At: got.At, Clock: m.Now().UnixNano()})
	case kindHeartbeat:
	case kindStop:
		m.stop(errors.New(got.Text))
	default:
		select {
		case m.replies <- got:
		default: // this rank waits for none of the replies
		}
	}
}

// receive waits for the reply of kind k to this rank's last message. It returns an error when the run is
// stopped. For an outcome or a welcome it returns an error only when the connection ends.
func (m *Member) receive(ctx context.Context, k kind) (*message, error) {
	stopped := m.run.Done()
	if k == kindOutcome || k == kindWelcome {
		stopped = m.link.over
	}
	for {
		var got *message
		select {
		case got = <-m.replies:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-stopped:
			select {
			case got = <-m.replies: // it arrived before the end
			default:
				return nil, context.Cause(m.run)
			}
		}
		// A reply of an earlier trial, or one that this rank has not waited for, is dropped.
		if got.Kind == kindRefusal || got.Kind == k && got.Trial == m.trial {
			return got, nil
		}
	}
}

// Gathered waits until all ranks are connected.
func (m *Member) Gathered(ctx context.Context) (Gathering, error) {
	got, err := m.receive(ctx, kindGathered)
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

// Enter starts the next trial. terms are the values that this rank proposes. It returns the values
// for this rank that all ranks agreed on. Every rank enters the same trials in the same order.
func (m *Member) Enter(ctx context.Context, terms Terms) (Terms, error) {
	m.trial++
	m.link.send(&message{Kind: kindEnter, Trial: m.trial, Terms: &terms})
	got, err := m.receive(ctx, kindAgreed)
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
	got, err := m.receive(ctx, kindBegin)
	if err != nil {
		return err
	}
	if got.Text != "" {
		// If the run has ended, report the reason of that end. It is the reason why another rank did not
		// reach the barrier.
		return cmp.Or(context.Cause(m.run), errors.New(got.Text))
	}
	// From here on the monotonic clock counts. It does not step.
	wait := time.Duration(got.At - m.Now().UnixNano())
	m.begun = time.Now().Add(wait)
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// Opened sends that this rank's window opens now. It does not wait.
func (m *Member) Opened() {
	if m != nil {
		m.link.send(&message{Kind: kindOpened, Trial: m.trial, At: int64(time.Since(m.begun))})
	}
}

// Publish queues the result of the trial for sending. If Publish returns an error, it has not sent
// the result.
func (m *Member) Publish(doc []byte) error {
	select {
	case <-m.link.over:
		return errGone
	default:
		m.link.send(&message{Kind: kindResult, Trial: m.trial, Doc: doc})
		return nil
	}
}

// Done sends that this rank has ended the trial. failure is its error, "" for none.
func (m *Member) Done(failure string) {
	m.link.send(&message{Kind: kindDone, Trial: m.trial, Text: failure})
}

// Outcome waits for the outcome of this rank's trial. text is why the trial failed, "" if it
// succeeded on all ranks.
func (m *Member) Outcome(ctx context.Context) (text string, err error) {
	got, err := m.receive(ctx, kindOutcome)
	if err != nil {
		return "", err
	}
	return got.Text, nil
}

// Leave sends the last message of this rank. why is the reason if the rank ends early. Without this
// message the coordinator counts the rank as lost. Leave returns when the coordinator has read all
// messages, or after the timeout Silence.
func (m *Member) Leave(why string) {
	m.forget() // the coming end of the connection is no error
	m.link.send(&message{Kind: kindLeave, Text: why})
	<-m.link.over
}
