package group

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain makes this binary a rank where it was started as one: it says what it got.
func TestMain(m *testing.M) {
	o, err := TakeMeeting()
	if o == nil && err == nil {
		os.Exit(m.Run())
	}
	text, _ := json.Marshal(o)
	fmt.Printf("%s %v %q", text, err, os.Getenv(MeetingVariable))
	os.Exit(3)
}

func TestStartRank(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer log.Close()
	o := Meeting{Rank: 3, Ranks: 4, Job: "j", Address: "127.0.0.1:1", Base: "/b", Stamp: "s"}
	l := newLeader(LeaderConfig{Hello: hello(0, 4)})
	require.NoError(t, l.Start(o, log))
	require.NoError(t, l.await(t.Context(), func() bool { return l.stopped != "" }))
	l.mu.Unlock()
	assert.Regexp(t, `^rank 3 \(pid \d+\) ended before it connected: exit status 3$`, l.Stopped())
	l.Close(t.Context())
	want, _ := json.Marshal(o)
	got, err := os.ReadFile(log.Name())
	require.NoError(t, err)
	assert.Equal(t, string(want)+` <nil> ""`, string(got))
	t.Setenv(MeetingVariable, "x")
	_, err = TakeMeeting()
	assert.ErrorContains(t, err, `KVBENCH_AGENT: must be what a coordinator sets, given "x"`)
}

// TestMeeting: a rank finds the coordinator by its address, also where something else listened there before.
func TestMeeting(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := other.Addr().String()
	_, err = Lead(address, LeaderConfig{})
	assert.ErrorContains(t, err, "-rendezvous HOST:PORT names another address")
	leader := make(chan *Leader, 1)
	go func() {
		conn, _ := other.Accept()
		_ = other.Close()
		l, err := Lead(address, LeaderConfig{Hello: hello(0, 1), Timeout: time.Minute})
		assert.NoError(t, err)
		conn.Close()
		leader <- l
	}()
	m, err := Dial(t.Context(), address, false, hello(0, 1), MemberConfig{Timeout: time.Minute})
	require.NoError(t, err)
	got, err := m.Gathered(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, got.Local)
	m.Leave("")
	(<-leader).Close(t.Context())
	_, err = Dial(t.Context(), address, true, hello(1, 2), MemberConfig{})
	assert.ErrorContains(t, err, "rank 1 found no rank 0 at "+address+" within ")
}
