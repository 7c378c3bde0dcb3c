package group

// kind is what a message is about.
type kind string

// What a rank sends, in the order of a run.
const (
	kindHello  kind = "hello"  // Hello
	kindEnter  kind = "enter"  // Trial, Terms: it enters a trial and proposes terms
	kindReady  kind = "ready"  // Trial: it is ready for the next phase
	kindOpened kind = "opened" // Trial, At: when its window opened
	kindResult kind = "result" // Trial, Doc: its result, sent before it removes its files
	kindDone   kind = "done"   // Trial, Text: it has cleaned up; the text is its error
	kindPong   kind = "pong"   // Seq, At, Wall: the answer to a ping, by its clocks
	kindLeave  kind = "leave"  // it ends; Text: why, if early
)

// What the leader sends.
const (
	kindWelcome  kind = "welcome"  // the rank is taken
	kindRefusal  kind = "refusal"  // Text: why the rank is not taken
	kindGathered kind = "gathered" // Gathering: all ranks are connected
	kindAgreed   kind = "agreed"   // Trial, Terms: this rank's terms of the trial
	kindBegin    kind = "begin"    // Trial, At: when the phase begins, by the rank's clock
	kindPing     kind = "ping"     // Seq
	kindOutcome  kind = "outcome"  // Trial, Text: why the trial failed, "" if it did not
	kindStop     kind = "stop"     // Text: the run ends, why
)

// kindHeartbeat is sent by both sides once a second. A side that sends nothing for Silence is lost.
// In a rank's heartbeat, Doc is the rank's text for the live line.
const kindHeartbeat kind = "beat"

// message is a message of any kind. A field that is not listed at its kind is absent.
type message struct {
	Kind      kind       `json:"kind"`
	Trial     int        `json:"trial,omitempty"` // number in the run, from 1
	Text      string     `json:"text,omitempty"`
	Seq       int        `json:"seq,omitempty"`
	At        int64      `json:"at,omitempty"`   // ns of a monotonic clock
	Wall      int64      `json:"wall,omitempty"` // ns since 1970
	Hello     *Hello     `json:"hello,omitempty"`
	Gathering *Gathering `json:"gathering,omitempty"`
	Terms     *Terms     `json:"terms,omitempty"`
	Doc       []byte     `json:"doc,omitempty"`
}

// Gathering is what the leader sends to a rank when all ranks are connected.
type Gathering struct {
	Stamp   string    `json:"stamp"`   // name of the run; see Hello.Stamp
	Sharing []Sharing `json:"sharing"` // by cache directory of this rank
	Local   int       `json:"local"`   // ranks on this rank's host, including this rank
}

// Sharing describes how many directories share the filesystem of a rank's directory. It is zero if
// the filesystem is unknown.
type Sharing struct {
	Filesystem  int `json:"filesystem"`  // its number from 1, ordered by lowest rank
	Filesystems int `json:"filesystems"` // number of filesystems in the run
	Directories int `json:"directories"` // of all ranks on this filesystem
}

// Terms are the values that all ranks of a trial agree on before it starts.
type Terms struct {
	Name string `json:"name"` // of the trial; all ranks must have the same
	// Nonce is the nonce of the written content. All ranks use the lowest rank's.
	Nonce string `json:"nonce,omitempty"`
	// Capacity is the capacity of the storage tier in bytes. Directories has the capacity of each
	// directory. Ranks read the free space of a shared filesystem at different times, so the
	// smallest of their values holds.
	Capacity    int64      `json:"capacity,omitempty"`
	Directories []Capacity `json:"directories,omitempty"`
}

// Capacity is how many bytes a directory may take, and how many must stay free on its filesystem.
type Capacity struct {
	Bytes int64 `json:"bytes"`
	Floor int64 `json:"floor"`
}
