package workloads

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Source is a load: its requests, and the queue of requests that have arrived and were not taken.
//
// A Source is not safe for concurrent use; the engine holds a mutex around it. It has no goroutines and
// no clock. All times count from the load's origin. Workers read the clock before they get the mutex,
// so now may be earlier than in the previous call. The Source then uses the latest time so far, and a
// request's Arrival may be slightly later than the caller's now.
type Source interface {
	// Take returns the next request to start: highest priority, then earliest arrival. If the state is
	// Wait, no request can start before wake (Never: before the next Written or Done). Near the end of
	// a load there may be no request at wake either, and Take returns Wait again.
	Take(now time.Duration) (r *Request, st State, wake time.Duration)
	// Written reports that the request's own entry is in the cache, that its write has failed, or that
	// the request has no entry to write. The engine calls it exactly once per taken request, before
	// Done. The next turn of the conversation may then start.
	Written(r *Request)
	// Done reports that the request is complete. In closed loop the user starts to think.
	Done(r *Request, now time.Duration)
	// Account returns the load of each class, indexed by Class, from the origin until the given time.
	// Its cost is proportional to the arrivals since the last call, because the Source does not store
	// them.
	Account(until time.Duration) []ClassLoad
}

// State is the state of a Source's next request.
type State uint8

// The states of a Source.
const (
	Ready     State = iota // Take returns a request
	Wait                   // no request can start now
	Exhausted              // no more requests
)

// Never is the wake time of a Source that waits for Written or Done, and the arrival of a request
// that does not exist.
const Never = time.Duration(math.MaxInt64)

// ClassLoad is the load of one class since the origin.
type ClassLoad struct {
	Offered       int64         // requests that arrived
	OfferedTokens int64         // tokens of the arrived requests' own entries, if they write them
	Queued        int64         // requests that arrived and were not taken
	Oldest        time.Duration // arrival of the oldest queued request, Never if there is none
}

// Scalable is a Source whose number of users can change while it runs.
type Scalable interface {
	Source
	// SetUsers makes the first n users active and the other users inactive. It drops the waiting
	// requests of a user that becomes inactive. Requests in flight complete. A user that becomes active
	// begins with a think time.
	SetUsers(n int, now time.Duration)
}

// MaxRowErrors is the number of malformed rows that a report lists.
const MaxRowErrors = 10

// Add adds the counts of another file. Cycles and Tokenizer apply to the whole input.
func (r *TraceReport) Add(file TraceReport) {
	r.Rows += file.Rows
	r.Failed += file.Failed
	r.Malformed += file.Malformed
	r.Skipped += file.Skipped
	r.Unordered += file.Unordered
	r.Interpreted += file.Interpreted
	r.Notes = slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.Notes, file.Notes))))
	r.First = slices.Concat(r.First, file.First)
	r.First = r.First[:min(len(r.First), MaxRowErrors)]
}

// TraceReport has the counts of the rows of a trace. It counts rows in the first cycle only, so that it
// does not depend on the number of cycles.
type TraceReport struct {
	Rows      int64 // data rows read, including failed and malformed ones
	Failed    int64 // requests without an answer, which are skipped
	Malformed int64
	Skipped   int64 // usable rows before the start of the replay
	Unordered int64 // usable rows that are earlier than a row before them, and come with it
	// Interpreted is the number of rows that were read of which a part was guessed or left out. Notes says what, each
	// once.
	Interpreted int64
	Notes       []string
	// First holds the first malformed and unordered rows.
	First []RowError
	// Cycles is the number of times that the whole input was read to its end.
	Cycles int
	// Sessions is the number of sessions of agents that were begun, over all cycles. Live is the
	// largest number that were live at a time. Both are 0 without sessions.
	Sessions int64
	Live     int
	// Tokenizer is the tokenizer that counted the tokens of texts, "" if the input has token counts.
	Tokenizer string
}

// RowError is a malformed or unordered row.
type RowError struct {
	File   string
	Line   int
	Reason string
}

// Error implements error.
func (e RowError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// Seconds converts seconds to a Duration, with the limit of Nanoseconds.
func Seconds(v float64) time.Duration { return Nanoseconds(v * 1e9) }

// Nanoseconds converts nanoseconds to a Duration of at most ten years, so that sums cannot overflow.
func Nanoseconds(v float64) time.Duration {
	const decade = 10 * 365 * 24 * time.Hour
	if !(v < float64(decade)) {
		return decade
	}
	return time.Duration(v)
}
