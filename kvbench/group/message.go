package group

// kind is what a message is about.
type kind string

// What a rank sends, in the order of a run.
const (
	kindHello  kind = "hello"  // Hello
	kindEnter  kind = "enter"  // Trial, Terms: it comes to a trial, with what it would have taken
	kindReady  kind = "ready"  // Trial: it is prepared for the next phase
	kindOpened kind = "opened" // Trial, At: when its window opened
	kindResult kind = "result" // Trial, Doc: what it measured, before it removes its files
	kindDone   kind = "done"   // Trial, Text: it has cleaned up; the text is its error
	kindPong   kind = "pong"   // Seq, At, Wall: the answer to a ping, by its clocks
	kindLeave  kind = "leave"  // it has come to its end; Text: before its time, and why
)

// What the leader sends.
const (
	kindWelcome  kind = "welcome"  // the rank is taken
	kindRefusal  kind = "refusal"  // Text: why the rank is not taken
	kindGathered kind = "gathered" // Gathering: all ranks are connected
	kindAgreed   kind = "agreed"   // Trial, Terms: what holds for this rank in the trial
	kindBegin    kind = "begin"    // Trial, At: when the phase begins, by the rank's clock
	kindPing     kind = "ping"     // Seq
	kindOutcome  kind = "outcome"  // Trial, Text: why the trial failed, "" if it did not
	kindStop     kind = "stop"     // Text: the run ends, why
)

// kindHeartbeat comes from both sides once a second: a silent side is lost. A rank's has in Doc what
// the live line shows of it.
const kindHeartbeat kind = "beat"

// message is one of these. A field that its kind does not name is absent.
type message struct {
	Kind      kind       `json:"kind"`
	Trial     int        `json:"trial,omitempty"` // of the run, from 1
	Text      string     `json:"text,omitempty"`
	Seq       int        `json:"seq,omitempty"`
	At        int64      `json:"at,omitempty"`   // ns of a monotonic clock
	Wall      int64      `json:"wall,omitempty"` // ns since 1970
	Hello     *Hello     `json:"hello,omitempty"`
	Gathering *Gathering `json:"gathering,omitempty"`
	Terms     *Terms     `json:"terms,omitempty"`
	Doc       []byte     `json:"doc,omitempty"`
}

// Gathering is what the leader knows when all ranks are connected.
type Gathering struct {
	Stamp   string    `json:"stamp"`   // of the run
	Sharing []Sharing `json:"sharing"` // of each of this rank's directories
	Local   int       `json:"local"`   // ranks on this rank's host, this one among them
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
	// Capacity of the storage tier in bytes, and of each of its directories. Of ranks on one
	// filesystem the smallest holds: they look at its free space one after the other.
	Capacity    int64      `json:"capacity,omitempty"`
	Directories []Capacity `json:"directories,omitempty"`
}

// Capacity is what a directory may take, and what must stay free on its filesystem, in bytes.
type Capacity struct {
	Bytes int64 `json:"bytes"`
	Floor int64 `json:"floor"`
}
