package group

import (
	"bytes"
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// held is the connection of a process that gets no processor for a while.
type held struct {
	net.Conn
	hold *atomic.Bool
}

func (h held) Write(p []byte) (int, error) {
	if h.hold.Load() {
		time.Sleep(2 * time.Second) // virtual
	}
	return h.Conn.Write(p)
}

// TestALastWordThatIsLate: a rank that has come to its end is not lost because it took its time to
// say so.
func TestALastWordThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hold atomic.Bool
		g := meet(t, LeaderConfig{}, same(2), func(rank int) (net.Conn, net.Conn) {
			ours, theirs := pipe(rank)
			if rank == 1 {
				return ours, held{theirs, &hold}
			}
			return ours, theirs
		})
		hold.Store(true)
		g.members[1].Leave("")
		require.NoError(t, g.conns[1].Close()) // its process has ended
		synctest.Wait()
		assert.Empty(t, g.leader.Stopped())
		g.leave()
	})
}

// TestResultsThatComeLate: an interrupted run waits for what a rank has measured as long as it is
// it sends heartbeats, and not for one that never came to the trial.
func TestResultsThatComeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := meet(t, LeaderConfig{}, same(3), pipe)
		ctx, interrupt := context.WithCancel(t.Context())
		began := time.Now()
		g.each(func(m *Member) {
			if m.Rank() == 2 {
				return // it waits for something else, and sends heartbeats
			}
			m.link.send(&message{Kind: kindEnter, Trial: 1, Terms: &Terms{Name: "X"}})
			m.trial = 1
		})
		synctest.Wait() // until the leader has the messages
		done := make(chan Trial, 1)
		go func() { done <- g.leader.Collect(ctx) }()
		interrupt()
		for rank, m := range g.members[:2] {
			time.Sleep(time.Minute) // of virtual time
			require.NoError(t, m.Publish([]byte("{}")))
			if rank == 0 {
				m.Done("")
			}
		}
		<-done
		assert.Equal(t, 2*time.Minute, time.Since(began))
		assert.Len(t, g.docs, 2)
		g.leave()
	})
}

// TestAMessageBeforeTheEnd: what was sent before the connection ended is read, also where a write
// fails first.
func TestAMessageBeforeTheEnd(t *testing.T) {
	ours, theirs := sockets(t)
	l := newLink(ours)
	require.NoError(t, newLink(theirs).put(&message{Kind: kindLeave}))
	require.NoError(t, theirs.Close())
	for l.put(&message{Kind: kindPing}) == nil { // until the write fails
	}
	var got []kind
	err := l.read(func(m *message) { got = append(got, m.Kind) })
	assert.Error(t, err)
	assert.Equal(t, []kind{kindLeave}, got)
	_, err = ours.Write(nil)
	assert.ErrorIs(t, err, net.ErrClosed, "the reader has closed it")
}

// sockets are a connection with buffers.
func sockets(t *testing.T) (a, b net.Conn) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	defer listener.Close()
	a, err = net.Dial("unix", listener.Addr().String())
	require.NoError(t, err)
	b, err = listener.Accept()
	require.NoError(t, err)
	return a, b
}

// TestMessages: they come as they were sent, and what is too long or no message is refused before more
// memory is taken than was sent.
func TestMessages(t *testing.T) {
	ours, theirs := sockets(t)
	in, out := newLink(ours), newLink(theirs)
	sent := []*message{{Kind: kindHello, Hello: &coordinator}, {Kind: kindHeartbeat},
		{Kind: kindEnter, Trial: 2, Terms: &Terms{Name: "X", Nonce: "ff", Capacity: 1 << 40}},
		{Kind: kindResult, Trial: 2, Doc: bytes.Repeat([]byte("{}\n"), 100_000)},
		{Kind: kindPong, At: -5, Clock: 1 << 60}}
	go func() {
		for _, m := range sent {
			_ = out.put(m)
		}
		_ = theirs.Close()
	}()
	for _, m := range sent {
		got, err := in.get(maxMessage)
		require.NoError(t, err)
		assert.Equal(t, m, got)
	}
	_, err := in.get(maxMessage)
	assert.Equal(t, io.EOF, err)
	assert.ErrorContains(t, out.put(&message{Kind: kindResult, Doc: make([]byte, maxMessage)}),
		"a message at most 67108864")
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\n": "invalid character",
		`{"at":"x"}`:         "cannot unmarshal",
		`{"kind":"hello"`:    "unexpected EOF",
		`{"text":"` + strings.Repeat("x", maxHello) + `", "at":1}`: "the message is too long",
	} {
		ours, theirs := sockets(t)
		go func() {
			_, _ = io.WriteString(theirs, text)
			_ = theirs.Close()
		}()
		_, err := newLink(ours).get(maxHello)
		assert.ErrorContains(t, err, want)
		_ = ours.Close()
	}
}
