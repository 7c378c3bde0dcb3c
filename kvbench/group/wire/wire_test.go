package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var coordinator = Hello{Protocol: Protocol, Job: "4711", Ranks: 4, Host: "a", Boot: "b1",
	TimeNS: "time:[1]", PID: 7, Build: "abc", Parameters: map[string]string{"num-users": "16",
		"io": "direct", "seed": "42", "chunk-size": "1MiB"}}

func TestFramesComeBack(t *testing.T) {
	var pipe bytes.Buffer
	sent := []*Message{{Kind: Greeting, Hello: &coordinator}, {Kind: Heartbeat},
		{Kind: Enter, Trial: 2, Terms: &Terms{Name: "X", Nonce: "ff", Capacity: 1 << 40}},
		{Kind: Result, Trial: 2, Doc: bytes.Repeat([]byte("{}\n"), 100_000)},
		{Kind: Pong, Seq: 8, At: -5, Wall: 1 << 60}}
	for _, m := range sent {
		require.NoError(t, Write(&pipe, m))
	}
	for _, m := range sent {
		got, err := Read(&pipe, MaxFrame)
		require.NoError(t, err)
		assert.Equal(t, m, got)
	}
	_, err := Read(&pipe, MaxFrame)
	assert.Equal(t, io.EOF, err)
}

func TestBrokenFrames(t *testing.T) {
	frame := func(length uint32, body string) io.Reader {
		return bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, length), body...))
	}
	for _, c := range []struct {
		in   io.Reader
		want string
	}{
		{strings.NewReader("\x00\x00"), "unexpected EOF"},
		{frame(5, "{}"), "2 of the 5 bytes of a frame: unexpected EOF"},
		{frame(MaxHello+1, ""), "a frame of 1048577 bytes, where 1048576 are the most"},
		{frame(1<<32-1, "GET / HTTP/1.1"), "where 1048576 are the most"},
		{frame(3, "abc"), "a frame that is no message"},
		{frame(9, `{"at":"x"}`), "a frame that is no message"},
	} {
		_, err := Read(c.in, MaxHello)
		assert.ErrorContains(t, err, c.want)
	}
	require.Error(t, Write(io.Discard, &Message{Kind: Result, Doc: make([]byte, MaxFrame)}))
	broken := errors.New("gone")
	assert.ErrorIs(t, Write(failing{broken}, &Message{Kind: Heartbeat}), broken)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestObjections(t *testing.T) {
	for _, c := range []struct {
		change func(*Hello)
		want   string
	}{
		{func(*Hello) {}, ""},
		{func(h *Hello) { h.Protocol = 2 },
			"it speaks protocol 2, the coordinator 1: all ranks need one binary"},
		{func(h *Hello) { h.Build = "" },
			"its binary is none, the coordinator's abc: all ranks need one binary"},
		{func(h *Hello) { h.Ranks = 5 }, "it is one of 5 ranks, the coordinator of 4"},
		{func(h *Hello) { h.Rank = 4 }, "there is no rank 4 of 4"},
		{func(h *Hello) { h.Rank = -1 }, "there is no rank -1 of 4"},
		{func(h *Hello) { h.Refused = "-cache-dir: must be …" }, "-cache-dir: must be …"},
		{func(h *Hello) {
			h.Parameters = map[string]string{"num-users": "17", "io": "direct",
				"seed": "42", "chunk-size": "1MiB"}
		},
			"its parameters are others: -num-users: 16 here, 17 there"},
		{func(h *Hello) { h.Parameters = map[string]string{"x\x1b[2J": strings.Repeat("y", 99)} },
			"its parameters are others: -chunk-size: 1MiB here, none there; -io: direct here, " +
				"none there; -num-users: 16 here, none there and 2 more"},
	} {
		o := coordinator
		o.Rank = 1
		c.change(&o)
		assert.Equal(t, c.want, coordinator.Objection(&o))
	}
	assert.True(t, coordinator.Belongs(&Hello{Job: "4711"}))
	assert.False(t, coordinator.Belongs(&Hello{Job: "4712"}))
	assert.False(t, coordinator.Belongs(nil))
}

func TestWhoseClock(t *testing.T) {
	o := coordinator
	assert.True(t, o.OneHost(&coordinator) && o.OneClock(&coordinator))
	o.TimeNS = "time:[2]"
	assert.True(t, o.OneHost(&coordinator))
	assert.False(t, o.OneClock(&coordinator), "its monotonic clock has an offset")
	o = coordinator
	o.Host = "pod"
	assert.False(t, o.OneHost(&coordinator))
	assert.True(t, o.OneClock(&coordinator))
	assert.False(t, (&Hello{}).OneClock(&Hello{}), "unknown")
}

// FuzzRead: whatever comes, no more is kept than has come, and what is a message goes on as one.
func FuzzRead(f *testing.F) {
	var pipe bytes.Buffer
	_ = Write(&pipe, &Message{Kind: Greeting, Hello: &coordinator})
	f.Add(pipe.Bytes())
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte("\x00\x00\x00\x02{}\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		for {
			m, err := Read(r, MaxHello)
			if err != nil {
				return
			}
			var again bytes.Buffer
			if err := Write(&again, m); err != nil {
				t.Fatal(err)
			}
			if got, err := Read(&again, MaxFrame); err != nil || got.Kind != m.Kind {
				t.Fatalf("%+v became %+v, %v", m, got, err)
			}
		}
	})
}
