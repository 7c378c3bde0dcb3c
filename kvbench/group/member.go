package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"time"
)

// refused is the error of join if the coordinator refuses this rank.
type refused struct{ why string }

func (r refused) Error() string { return "the coordinator refused this rank: " + r.why }

// MemberConfig is a member's configuration, apart from its connection.
type MemberConfig struct {
	// Stop is called once if the run ends early after the coordinator has admitted this rank: the
	// coordinator stops the run, or is gone.
	Stop func(error)
	// Timeout is the silence after which the coordinator is gone.
	Timeout time.Duration
	// Live returns this rank's text for the coordinator's live line; an empty text is not shown. It is
	// called once a second. Live may be nil.
	Live func() []byte
	// Now reads the clock that ranks compare. nil means time.Now.
	Now func() time.Time
}

// Member is a rank's connection to the coordinator. A nil *Member stands for a run with one rank: its methods
// Rank, Size, Barrier and Opened do not wait for another rank. Only one goroutine at a time may call the
// methods.
type Member struct {
	MemberConfig
	hello  Hello
	link   *link
	caller *caller
	open   context.Context // ends with the connection
	run    context.Context // ends with open, or when the coordinator stops the run; the cause says why
	stop   context.CancelCauseFunc
	forget func() bool // prevents the call of Stop
	at     Step        // where this rank is in the trial
	begun  time.Time   // the start of the last phase
	done   *call       // the call of Done for the last trial
}

// dialTime is the timeout of one attempt to connect to rank 0. The pause between attempts grows
// from retryLeast to retryMost.
const (
	dialTime   = 4 * time.Second
	retryLeast = 50 * time.Millisecond
	retryMost  = time.Second
)

// Dial connects to the coordinator at address (HOST:PORT) and joins its run. It repeats failed attempts until
// ctx ends. With once it makes only one attempt, because the coordinator started before this rank.
func Dial(ctx context.Context, address string, once bool, hello Hello, cfg MemberConfig) (
	*Member, error) {
	began := time.Now()
	var last error // the last error that is not the end of ctx
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		dialer := net.Dialer{Timeout: dialTime}
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			var m *Member
			m, err = join(ctx, conn, hello, cfg)
			if err == nil || errors.As(err, &refused{}) {
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

// errGone: the coordinator is gone. The error that then ends a rank wraps errGone.
var errGone = errors.New("the coordinator is gone")

// join sends a hello and waits for the answer. join owns conn, and closes it if it fails. The error is
// refused if the coordinator refuses this rank. Any other error means that the other process is not the
// coordinator of this run.
func join(ctx context.Context, conn net.Conn, hello Hello, cfg MemberConfig) (*Member, error) {
	m := &Member{MemberConfig: cfg, hello: hello}
	if m.Now == nil {
		m.Now = time.Now
	}
	open, end := context.WithCancelCause(context.Background())
	m.open = open
	m.run, m.stop = context.WithCancelCause(open)
	m.link = &link{Conn: conn, ended: func(err error) { end(fmt.Errorf("%w: %w", errGone, err)) }}
	m.link.left.Store(math.MaxInt64)
	m.caller = newCaller(m.link)
	if err := m.call(ctx, "Hello", hello, nil); err != nil {
		m.caller.close()
		if _, answered := errors.AsType[methodError](err); answered {
			err = refused{err.Error()}
		}
		return nil, err
	}
	m.link.timeout.Store(int64(cfg.Timeout))
	m.forget = context.AfterFunc(m.run, func() {
		if m.Stop != nil {
			m.Stop(context.Cause(m.run))
		}
	})
	go m.heartbeat()
	go func() {
		var why string
		if m.call(m.run, "Stopped", 0, &why) == nil {
			m.stop(errors.New(why))
		}
	}()
	return m, nil
}

// heartbeat sends heartbeats until the connection ends.
func (m *Member) heartbeat() {
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	for m.open.Err() == nil {
		var live []byte
		if m.Live != nil {
			live = m.Live()
		}
		m.caller.start("Beat", live, nil) // the connection shows whether the coordinator answers
		select {
		case <-tick.C:
		case <-m.open.Done():
		}
	}
}

// await waits for the answer of a call.
func (m *Member) await(ctx context.Context, k *call) error {
	select {
	case <-k.done:
		if _, answered := errors.AsType[methodError](k.err); !answered && k.err != nil {
			return cmp.Or(context.Cause(m.open), k.err)
		}
		return k.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *Member) call(ctx context.Context, method string, in, out any) error {
	return m.await(ctx, m.caller.start(method, in, out))
}

// Gathered waits until all ranks are connected.
func (m *Member) Gathered(ctx context.Context) (g Gathering, err error) {
	err = m.call(ctx, "Gathered", 0, &g)
	return g, err
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

// Enter starts the next trial. terms are the values that this rank proposes. Enter returns the values on
// which all ranks have agreed. Every rank enters the same trials in the same order.
func (m *Member) Enter(ctx context.Context, terms Terms) (agreed Terms, err error) {
	m.at = Step{Trial: m.at.Trial + 1, Number: 1, Terms: terms}
	err = m.call(ctx, "Enter", m.at, &agreed)
	return agreed, err
}

// pings is how often a rank reads the coordinator's clock before a phase. The answer with the shortest round
// trip counts. A slower answer waited somewhere, perhaps in one direction only.
const pings = 8

// Barrier waits until every rank has called it, and then until the start time that the coordinator set
// for all ranks.
func (m *Member) Barrier(ctx context.Context) error {
	if m == nil {
		return context.Cause(ctx)
	}
	m.at.Number++
	err := m.call(ctx, "Ready", m.at, nil)
	m.at.Clock = Offset{}
	for i := 0; i < pings && err == nil; i++ {
		sent := m.Now()
		var leader int64
		err = m.call(ctx, "Clock", 0, &leader)
		roundTrip := m.Now().Sub(sent)
		if i == 0 || roundTrip < m.at.Clock.RoundTrip {
			m.at.Clock = Offset{sent.Add(roundTrip/2).UnixNano() - leader, roundTrip}
		}
	}
	var start int64
	if err == nil {
		m.at.Number++
		err = m.call(ctx, "Begin", m.at, &start)
	}
	if err != nil {
		return cmp.Or(context.Cause(m.run), err) // the run may have ended because of that error
	}
	// From now on the rank uses the monotonic clock, which cannot be set.
	wait := time.Duration(start - m.Now().UnixNano())
	m.begun, m.at.Late = time.Now().Add(wait), append(m.at.Late, notOpened)
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// Opened records that this rank's window opens now.
func (m *Member) Opened() {
	if m != nil && len(m.at.Late) > 0 {
		m.at.Late[len(m.at.Late)-1] = max(0, time.Since(m.begun))
	}
}

// Publish sends the result of the trial. If it returns an error, it has not sent the result.
func (m *Member) Publish(doc []byte) error {
	if err := context.Cause(m.open); err != nil {
		return err
	}
	m.at.Published = true
	m.caller.start("Result", Step{Trial: m.at.Trial, Doc: doc}, nil)
	return nil
}

// Done reports to the coordinator that this rank has ended the trial. failure is the rank's error, or "".
func (m *Member) Done(failure string) {
	m.at.Text = failure
	m.done = m.caller.start("Done", m.at, nil)
}

// Outcome waits for the outcome of this rank's trial. text is why the trial failed; "" if it succeeded on all
// ranks.
func (m *Member) Outcome(ctx context.Context) (text string, err error) {
	err = m.call(ctx, "Outcome", m.at.Trial, &text)
	return text, err
}

// Leave sends the last message of this rank. If the rank ends early, why is the reason. Without this
// message the coordinator counts the rank as lost. Leave returns when the coordinator has processed all
// messages, or is gone.
func (m *Member) Leave(why string) {
	m.forget() // the end of the connection is expected now
	if why != "" {
		m.link.timeout.Store(int64(shortTimeout))
	}
	if m.done != nil {
		_ = m.await(m.open, m.done)
	}
	_ = m.call(m.open, "Leave", why, nil)
	m.caller.close()
}
