package traces

import (
	"slices"
	"time"

	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// traceRow is a usable row with its place and time in the replay.
type traceRow struct {
	formats.Row
	seq     int64 // usable rows before it, over all cycles
	row     int64 // its number within the cycle, over all files, from 1
	cycle   int
	arrival time.Duration

	conversation int64 // of a recorded conversation: its number within the cycle, from 1
}

// interleave runs recorded conversations without times concurrently. A fixed number is live, and a uniform
// draw chooses the conversation of the next request. When a conversation has ended the next one of the file
// begins. The order depends on the seed alone. At the end of a cycle all conversations end before the next
// cycle begins.
//
// Without it, one conversation would follow the other, and any cache larger than one conversation would
// have all possible hits.
type interleave struct {
	live   int
	stream users.Stream
	// open are the conversations with their remaining rows. A conversation after the live ones shows that
	// these are complete.
	open  [][]traceRow
	ahead *traceRow // the first row of the next cycle
	over  bool      // no more rows
}

// wants reports that a row has to be read before one is taken.
func (b *interleave) wants() bool {
	if b.ahead != nil && len(b.open) == 0 {
		b.open, b.ahead = append(b.open, []traceRow{*b.ahead}), nil
	}
	return !b.over && b.ahead == nil && len(b.open) <= b.live
}

// add adds the next row of the files.
func (b *interleave) add(row traceRow) {
	last := len(b.open) - 1
	switch {
	case last >= 0 && b.open[last][0].cycle != row.cycle:
		b.ahead = &row
	case last >= 0 && b.open[last][0].conversation == row.conversation:
		b.open[last] = append(b.open[last], row)
	default:
		b.open = append(b.open, []traceRow{row})
	}
}

// take takes the n-th row of the replay, if there is one.
func (b *interleave) take(n int64) (row traceRow, ok bool) {
	live := min(len(b.open), b.live)
	if live == 0 {
		return row, false
	}
	i := int(b.stream.Unit(users.DrawSession, n) * float64(live))
	talk := b.open[i]
	if b.open[i] = talk[1:]; len(talk) == 1 {
		b.open = slices.Delete(b.open, i, i+1)
	}
	return talk[0], true
}

// waiting returns how many rows of the first cycle were read and not taken, and the cycle of the open
// conversations, -1 if there are none.
func (b *interleave) waiting() (rows int64, cycle int) {
	if len(b.open) == 0 {
		return 0, -1
	}
	if cycle = b.open[0][0].cycle; cycle > 0 {
		return 0, cycle
	}
	for _, talk := range b.open {
		rows += int64(len(talk))
	}
	return rows, cycle
}
