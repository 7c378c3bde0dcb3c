package workloads

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Source is a load: its requests and the queue of those that have arrived and were not taken.
//
// A Source is not safe for concurrent use; the engine holds one mutex around it. It has no
// goroutines and no clock. All times count from the load's origin. A time that goes back behind an
// earlier one is taken as the earlier one, because workers read their clocks before they get the
// mutex; a request's Arrival may therefore lie a moment after the caller's now.
type Source interface {
	// Take returns the best request to start now: highest priority, then earliest arrival. With
	// Wait there is nothing to do before wake (Never: before the next Written or Done). Close to
	// the end of a load there may be nothing at wake either, and the answer is Wait again.
	Take(now time.Duration) (r *Request, st State, wake time.Duration)
	// Written says that the request's own entry is in the cache, or failed to get there, or that
	// there was none to write. It is called exactly once per request taken, before Done. The
	// ordered successor may start.
	Written(r *Request)
	// Done says that the request is complete. In closed-loop the user starts to think.
	Done(r *Request, now time.Duration)
	// Account returns the load of each class, indexed by Class, from the origin until the given
	// time. It costs time in proportion to what arrived since the last call, and none of it is
	// stored.
	Account(until time.Duration) []ClassLoad
}

// State is what a Source has to say about its next request.
type State uint8

// The states of a Source.
const (
	Ready     State = iota // here is a request
	Wait                   // none can start now
	Exhausted              // none will ever come again
)

// Never is the wake time of a Source that waits for Written or Done, and the arrival of a request
// that does not exist.
const Never = time.Duration(math.MaxInt64)

// ClassLoad is what one class has asked for since the origin.
type ClassLoad struct {
	Offered       int64         // requests that arrived
	OfferedTokens int64         // tokens of their own entries, where they are to be written
	Queued        int64         // requests that arrived and were not taken
	Oldest        time.Duration // arrival of the oldest queued one, Never if there is none
}

// Scalable is a Source whose number of users can change while it runs.
type Scalable interface {
	Source
	// SetUsers lets the first n users ask and the others fall silent. A user who leaves takes its
	// waiting requests with it; what is in flight is finished. One who comes, or comes back, begins
	// with a pause to think.
	SetUsers(n int, now time.Duration)
}

// MaxRowErrors is how many malformed rows a report names.
const MaxRowErrors = 10

// Add counts what another file held. Cycles and Tokenizer are those of the whole input.
func (r *TraceReport) Add(file TraceReport) {
	r.Rows += file.Rows
	r.Failed += file.Failed
	r.Malformed += file.Malformed
	r.Skipped += file.Skipped
	r.First = slices.Concat(r.First, file.First)
	r.First = r.First[:min(len(r.First), MaxRowErrors)]
}

// Corpus is documents that are in the cache before a load begins. It is safe for concurrent use.
type Corpus interface {
	// Documents are numbered from 0; of the n only those from first on are kept, the others are
	// written and removed before.
	Documents() (n, first int)
	// Chunks appends the entries of a document to dst.
	Chunks(dst []Entry, doc int) []Entry
}

// TraceReport says what the files held. Rows are counted in the first cycle only, so that it
// describes the input and not how often it was replayed.
type TraceReport struct {
	Rows      int64 // data rows read, the two following included
	Failed    int64 // requests without an answer: skipped
	Malformed int64
	Skipped   int64 // usable, and before the start of the replay
	// First holds the first malformed rows.
	First []RowError
	// Cycles is how often the whole input was read to its end.
	Cycles int
	// Sessions of agents that were begun, over all cycles, and the most that were live at a time;
	// 0 of an input that has none.
	Sessions int64
	Live     int
	// Tokenizer counted the tokens of texts, "" where the input has their counts.
	Tokenizer string
}

// RowError is a malformed row.
type RowError struct {
	File   string
	Line   int
	Reason string
}

// Error implements error.
func (e RowError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// Seconds converts to a Duration, capped as Nanoseconds.
func Seconds(v float64) time.Duration { return Nanoseconds(v * 1e9) }

// Nanoseconds converts to a Duration, capped at ten years so that sums stay far from overflow.
func Nanoseconds(v float64) time.Duration {
	const decade = 10 * 365 * 24 * time.Hour
	if !(v < float64(decade)) {
		return decade
	}
	return time.Duration(v)
}
