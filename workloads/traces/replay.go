package traces

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// Replay returns the usable rows of recorded requests in the order of their replay, with their arrivals.
// The rows come from files in order, or from live sessions or conversations. Its memory is limited.
// Trace makes requests of them. Other callers compute with the rows and execute none. One goroutine at a
// time uses it.
type Replay struct {
	*input
	reader *reader
	source rowSource // the reader, or a source that reorders its rows
	times  schedule
	seq    int64 // rows returned
	err    error // error that ended the replay, io.EOF at its end

	first   int64 // rows of the first cycle, including skipped ones
	skipped int64 // rows of the first cycle before the start
	cycles  int   // cycle of the latest row; at the end the number of cycles

	sessions *sessionReader // only for sessions of agents, otherwise nil
	stage    *openLoop      // the live sessions, otherwise nil
}

// Open opens the input. It reads the start of every file, so that it returns an error if the input has
// another format. It uses these fields of the configuration: Paths, Speedup, Cycles (at least 1), Live,
// Start, Rate, MaxRequests and AllowMalformed.
func Open(format formats.Format, cfg Config) (*Replay, error) {
	in, err := openInput(format, cfg)
	if err != nil {
		return nil, err
	}
	return newReplay(in), nil
}

func newReplay(in *input) *Replay {
	live, stream := max(1, in.cfg.Live), users.NewStream(in.cfg.Seed, -1)
	r := &Replay{input: in, reader: &reader{input: in}, times: schedule{cfg: &in.cfg, stream: stream}}
	r.source = r.reader
	if in.sessional {
		r.sessions = &sessionReader{reader: r.reader}
		r.stage = &openLoop{stage{source: r.sessions.next, stream: stream, limit: live}}
		r.source = r.stage
	} else if in.format.Untimed {
		r.source = &interleave{rows: r.reader, live: live, stream: users.NewStream(in.cfg.Seed, -1-in.cfg.Trial)}
	}
	return r
}

// next returns the next row at or after the start of the replay, valid until the next call. After an
// error it returns the same error again.
func (r *Replay) next() (row traceRow, err error) {
	for r.err == nil {
		if limit := r.cfg.MaxRequests; limit > 0 && r.seq >= limit {
			r.close()
			break
		}
		row, err := r.source.next()
		ends := errors.Is(err, io.EOF)
		// If the first cycle has no row at or after Start, no cycle has one. For live sessions this is
		// known only at the end of the input.
		if r.seq == 0 && r.cfg.Start > 0 && (ends || err == nil && row.part > 0 && row.cycle > 0) {
			err = fmt.Errorf("the trace is over %s after its first request, before the start of the"+
				" replay at %s: start earlier (-trace-start)",
				r.times.pos.Round(time.Millisecond), r.cfg.Start)
		} else if ends {
			r.cycles++
		}
		if err != nil {
			r.close()
			r.err = err
			break
		}
		r.cycles = row.cycle
		before := r.times.pass(&row)
		if row.cycle == 0 {
			r.first++
			if before {
				r.skipped++
			}
		}
		if before {
			continue
		}
		row.seq, row.arrival = r.seq, r.times.arrive(r.seq)
		r.seq++
		return row, nil
	}
	return row, r.err
}

// Err returns the error that ended the input early: a file that cannot be read, or too many malformed
// rows. It is nil at the end of the input.
func (r *Replay) Err() error { return early(r.err) }

// early returns nil for the end of the input, and other errors unchanged.
func early(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Report returns the counts of the rows of the first cycle so far: the rows that next has returned or
// skipped, and the unusable rows before them.
func (r *Replay) Report() workloads.TraceReport {
	report := r.reader.report()
	report.Rows = report.Malformed + report.Failed + r.first
	report.Skipped, report.Cycles = r.skipped, r.cycles
	if r.sessions != nil {
		r.sessions.report(&report, &r.stage.stage)
	}
	return report
}

// close closes the files. After it next returns io.EOF.
func (r *Replay) close() {
	if r.reader.close(); r.err == nil {
		r.err = io.EOF
	}
}

// Each calls do for each row, with its arrival since the start of the replay, until do returns an
// error. Each returns the error of do, or the error that ended the input: a file that cannot be read,
// or too many malformed rows. A row is valid until do returns. Each closes the files.
func (r *Replay) Each(do func(row *formats.Row, at time.Duration) error) error {
	defer r.close()
	for {
		row, err := r.next()
		if err != nil {
			return r.Err()
		}
		if err := do(&row.Row, row.arrival); err != nil {
			return err
		}
	}
}

// drawnAmong is the number of conversations of the file among which the next one is drawn. Their rows are in
// memory, and their texts have been counted before the first request.
const drawnAmong = 1024

// interleave runs recorded conversations without times concurrently. A fixed number of conversations is
// live, and a uniform draw chooses the conversation of the next request. After the end of a
// conversation another one begins, drawn from the next 1,024 of the file: a short window would otherwise
// measure the start of the file. The order depends only on the seed and the trial. At the end of a
// cycle all conversations end before the next cycle begins.
//
// Without interleave, one conversation would follow the other, and any cache larger than one
// conversation would get all possible hits.
type interleave struct {
	rows   rowSource
	live   int
	stream users.Stream
	taken  int64
	// open has the remaining rows of the conversations that were read, first of those that have begun. The
	// reader has read all rows of a conversation when it sees a row of a later one or of the next cycle.
	open  [][]traceRow
	begun int   // conversations of open that have begun
	drawn int64 // conversations that have begun so far
	err   error // error of rows
}

// next implements rowSource.
func (b *interleave) next() (traceRow, error) {
	for b.err == nil && b.alive() == len(b.open) {
		var row traceRow
		if row, b.err = b.rows.next(); b.err != nil {
			break
		}
		last := len(b.open) - 1
		if last >= 0 && b.open[last][0].cycle == row.cycle &&
			b.open[last][0].conversation == row.conversation {
			b.open[last] = append(b.open[last], row)
		} else {
			b.open = append(b.open, []traceRow{row})
		}
	}
	known := b.alive()
	if known == 0 || b.err != nil && !errors.Is(b.err, io.EOF) {
		return traceRow{}, b.err
	}
	for ; b.begun < min(known, b.live); b.begun++ {
		next := b.begun + int(b.stream.Unit(users.DrawTalk, b.drawn)*float64(known-b.begun))
		b.open[b.begun], b.open[next] = b.open[next], b.open[b.begun]
		b.drawn++
	}
	i := int(b.stream.Unit(users.DrawSession, b.taken) * float64(b.begun))
	b.taken++
	row := b.open[i][0]
	if b.open[i] = b.open[i][1:]; len(b.open[i]) == 0 {
		b.open = slices.Delete(b.open, i, i+1)
		b.begun--
	}
	return row, nil
}

// alive returns the number of conversations of the current cycle that were read.
func (b *interleave) alive() (n int) {
	for n < min(len(b.open), b.live+drawnAmong) && b.open[n][0].cycle == b.open[0][0].cycle {
		n++
	}
	return n
}
