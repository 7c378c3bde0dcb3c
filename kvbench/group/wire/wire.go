package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Bounds of a frame's JSON in bytes. A result of a day with its histograms takes some MiB.
const (
	MaxFrame = 64 << 20
	MaxHello = 1 << 20
)

// Kind is what a message is about.
type Kind string

// What a rank sends, in the order of a run.
const (
	Greeting Kind = "hello"  // Hello
	Enter    Kind = "enter"  // Trial, Terms: it comes to a trial, with what it would have taken
	Ready    Kind = "ready"  // Trial, Text: it is prepared for the phase of that name
	Opened   Kind = "opened" // Trial, At: when its window opened
	Result   Kind = "result" // Trial, Doc: what it measured, before it removes its files
	Done     Kind = "done"   // Trial, Text: it has cleaned up; the text is its error
	Pong     Kind = "pong"   // Seq, At, Wall: the answer to a ping, by its clocks
	Leave    Kind = "leave"  // it has come to its end; Text: before its time, and why
)

// What the coordinator sends.
const (
	Welcome  Kind = "welcome"  // the rank is taken
	Refusal  Kind = "refusal"  // Text: why the rank is not taken
	Gathered Kind = "gathered" // all ranks are there; Text: the run's stamp; Sharing, Local
	Agreed   Kind = "agreed"   // Trial, Terms: what holds for this rank in the trial
	Begin    Kind = "begin"    // Trial, At: when the phase begins, by the rank's clock
	Ping     Kind = "ping"     // Seq
	Outcome  Kind = "outcome"  // Trial, Text: why the trial failed, "" if it did not
	Stop     Kind = "stop"     // Text: the run ends, why
)

// Heartbeat comes from both sides once a second: a silent side is lost. A rank's has the text for
// the live line.
const Heartbeat Kind = "beat"

// Message is one of these. A field that its kind does not name is absent.
type Message struct {
	Kind  Kind   `json:"kind"`
	Trial int    `json:"trial,omitempty"` // of the run, from 1
	Text  string `json:"text,omitempty"`
	Seq   int    `json:"seq,omitempty"`
	At    int64  `json:"at,omitempty"`   // ns of a monotonic clock
	Wall  int64  `json:"wall,omitempty"` // ns since 1970
	Hello *Hello `json:"hello,omitempty"`
	Terms *Terms `json:"terms,omitempty"`
	// Sharing is of each of the rank's directories, Local how many ranks are on its host.
	Sharing []Sharing `json:"sharing,omitempty"`
	Local   int       `json:"local,omitempty"`

	Doc []byte `json:"doc,omitempty"`
}

// Sharing is with how many others a directory of a rank shares its filesystem. The zero Sharing is
// of a directory on an unknown filesystem.
type Sharing struct {
	Filesystem  int `json:"filesystem"`  // which one, from 1, in the order of their lowest ranks
	Filesystems int `json:"filesystems"` // how many there are
	Directories int `json:"directories"` // of all ranks on this one, this one among them
}

// Terms are what the ranks of a trial agree about before it.
type Terms struct {
	Name string `json:"name"` // of the trial, which has to be the same for all
	// Nonce is that of the content: the first rank's for all.
	Nonce string `json:"nonce,omitempty"`
	// Capacity of the storage tier in bytes, and what each of its directories may take. Of ranks on
	// one filesystem the smallest holds: they look at its free space one after the other.
	Capacity int64  `json:"capacity,omitempty"`
	Rooms    []Room `json:"rooms,omitempty"`
}

// Room is what a directory may take, and what must stay free on its filesystem, in bytes.
type Room struct {
	Bytes int64 `json:"bytes"`
	Floor int64 `json:"floor"`
}

// Write writes a frame by one call.
func Write(w io.Writer, m *Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a %s: %w", m.Kind, err)
	}
	if len(body) > MaxFrame {
		return fmt.Errorf("a %s takes %d bytes, a frame at most %d", m.Kind, len(body), MaxFrame)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	_, err = w.Write(append(frame, body...))
	return err
}

// Read reads a frame of at most most bytes. io.EOF is the end between two frames.
func Read(r io.Reader, most int) (*Message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := int64(binary.BigEndian.Uint32(head[:]))
	if length > int64(most) {
		return nil, fmt.Errorf("a frame of %d bytes, where %d are the most", length, most)
	}
	// The buffer grows with what comes, not with what is announced.
	var body bytes.Buffer
	if n, err := io.CopyN(&body, r, length); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("%d of the %d bytes of a frame: %w", n, length, err)
	}
	m := &Message{}
	if err := json.Unmarshal(body.Bytes(), m); err != nil {
		return nil, fmt.Errorf("a frame that is no message: %w", err)
	}
	return m, nil
}
