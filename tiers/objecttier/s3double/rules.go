package s3double

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"regexp"
	"slices"
	"sync"
	"time"
)

// Kind is what a rule does to a request.
type Kind string

// What can go wrong. "At" is Fault.At. The body meant by Cut, Reset, Hang and Flip is that of the
// request where it carries an object (Put, PutPart), else that of the answer.
const (
	// Delay is nothing but the delays of the Fault.
	Delay Kind = "delay"
	// Status answers with Fault.Status and an error as S3 writes it; what was asked for is not
	// done.
	Status Kind = "status"
	// HTML answers with Fault.Status and a page, as a proxy or the wrong port does.
	HTML Kind = "html"
	// Lost does what was asked for and closes the connection instead of answering.
	Lost Kind = "lost"
	// Cut closes the connection after At bytes of the body.
	Cut Kind = "cut"
	// Reset resets it (RST) after At bytes of the body.
	Reset Kind = "reset"
	// Hang stops after At bytes of the body, until the client closes the connection, or its
	// endpoint.
	Hang Kind = "hang"
	// Flip inverts byte At of the body: what Put stores is wrong, or what Get sends.
	Flip Kind = "flip"
	// WrongETag answers with an ETag that belongs to nothing.
	WrongETag Kind = "wrong-etag"
	// WrongLength leaves away the last At bytes, at least one, of an object in an answer whose
	// Content-Length agrees with that.
	WrongLength Kind = "wrong-length"
	// Error200 answers 200 with an error as the body; what was asked for is not done. So Complete
	// fails when it has begun its answer to keep the connection alive.
	Error200 Kind = "error-200"
	// ShortPage lets a list have At entries, at least one, and say that there are more.
	ShortPage Kind = "short-page"
	// Empty answers a list with nothing.
	Empty Kind = "empty"
	// NoConditions ignores If-None-Match and If-Match.
	NoConditions Kind = "no-conditions"
)

var kinds = []Kind{Delay, Status, HTML, Lost, Cut, Reset, Hang, Flip, WrongETag, WrongLength,
	Error200, ShortPage, Empty, NoConditions}

// Fault is what happens to a request. All delays pass in the time of the goroutine that serves it:
// in a bubble of testing/synctest they are virtual.
type Fault struct {
	Kind Kind `json:"kind"`
	// At is a place in the body, in bytes; 0 is before the first, which for an answer is behind its
	// header. Where a connection breaks, a negative number is before anything has been done or
	// answered. See Kind.
	At int64 `json:"at,omitempty"`
	// Status of Status (503 if 0) and HTML (200 if 0). Code is S3's name for the error; the usual
	// one of the status if "".
	Status  int    `json:"status,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// RetryAfter is the value of that header: "2", or a date.
	RetryAfter string `json:"retry_after,omitempty"`
	// Early answers before the body of the request has been read, as a server does that has too
	// much to do. What of it has been sent may make the client see a reset instead.
	Early bool `json:"early,omitempty"`
	// HeaderDelay passes before the answer's header is sent, when the operation has been done,
	// BodyDelay before its body is.
	HeaderDelay Duration `json:"header_delay,omitempty"`
	BodyDelay   Duration `json:"body_delay,omitempty"`
}

// Rule is a fault and the requests that meet it: those that fit in all fields that are set. Of
// several rules the first that fits counts.
type Rule struct {
	Op Op `json:"op,omitempty"`
	// Key is a regular expression.
	Key string `json:"key,omitempty"`
	// Endpoint counts from 1; 0 = all of them.
	Endpoint int `json:"endpoint,omitempty"`
	// Attempt is how often the same has been asked for, this time included; 0 = however often.
	Attempt int `json:"attempt,omitempty"`
	// Nth is one request of those that fit in the fields above; 0 = all of them.
	Nth int `json:"nth,omitempty"`
	// Share of them, 0 to 1, drawn from the double's seed and what is asked for, never from the
	// order of arrival: runs of the same requests meet the same faults. 0 = all of them.
	Share float64 `json:"share,omitempty"`
	// Times bounds how often the rule acts; 0 = no bound.
	Times int `json:"times,omitempty"`
	Fault

	key          *regexp.Regexp // compiled Key
	fitted, used int            // requests that fit, and those that met the fault
}

// Duration is written as in "50ms".
type Duration time.Duration

// MarshalText makes it a text in JSON.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads it.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// ReadRules reads a JSON array of rules. A field that no rule has is an error.
func ReadRules(r io.Reader) (rules []Rule, err error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&rules); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return rules, nil
}

// ruleSet is the rules in force, which count the requests that they have met.
type ruleSet struct {
	seed  uint64
	mu    sync.Mutex
	rules []*Rule
}

// set replaces the rules, unless something is wrong with one.
func (s *ruleSet) set(rules []Rule) error {
	fresh := make([]*Rule, len(rules))
	var wrong []error
	for i := range rules {
		r := rules[i]
		r.fitted, r.used = 0, 0
		key, err := regexp.Compile(r.Key)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("rule %d: %w", i+1, err))
		case !slices.Contains(kinds, r.Kind):
			wrong = append(wrong, fmt.Errorf("rule %d: kind %q is none of %q", i+1, r.Kind, kinds))
		case r.Share < 0 || r.Share > 1 || math.IsNaN(r.Share):
			wrong = append(wrong, fmt.Errorf("rule %d: share %v is not between 0 and 1", i+1,
				r.Share))
		case r.Status != 0 && (r.Status < 200 || r.Status > 599): // 1xx is no answer
			wrong = append(wrong, fmt.Errorf("rule %d: status %d", i+1, r.Status))
		}
		r.key = key
		fresh[i] = &r
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = fresh
	return nil
}

// meet finds the fault of a request and the number of its rule; nil if it meets none. A rule that
// has drawn against the request does not end the search: one behind it may still want it.
func (s *ruleSet) meet(e *Entry) (*Fault, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.rules {
		switch {
		case r.Op != "" && r.Op != e.Op, !r.key.MatchString(e.Key),
			r.Endpoint != 0 && r.Endpoint != e.Endpoint+1,
			r.Attempt != 0 && r.Attempt != e.Attempt:
			continue
		}
		r.fitted++
		switch {
		case r.Nth != 0 && r.Nth != r.fitted, r.Times != 0 && r.used >= r.Times,
			r.Share > 0 && draw(s.seed, i, e) >= r.Share:
			continue
		}
		r.used++
		fault := r.Fault
		return &fault, i + 1
	}
	return nil, 0
}

// draw returns a number of [0, 1) that depends on the seed, the rule and what is asked for. An
// upload's id is left out: it is drawn anew in each run.
func draw(seed uint64, rule int, e *Entry) float64 {
	h := fnv.New64a()
	var b [8]byte
	for _, n := range []uint64{seed, uint64(rule), uint64(e.Attempt), uint64(e.Part)} {
		binary.LittleEndian.PutUint64(b[:], n)
		_, _ = h.Write(b[:])
	}
	_, _ = io.WriteString(h, string(e.Op)+"\x00"+e.Key+"\x00"+e.Range)
	// FNV spreads the last bytes into the low half only; multiplications by odd numbers and shifts
	// bring them up, as splitmix64 ends (prng.di.unimi.it/splitmix64.c).
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}
