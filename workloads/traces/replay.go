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

// replay is the rows of a configuration with their arrivals: from files, or from live sessions or
// conversations.
type replay struct {
	*input
	reader *reader
	source rowSource // the reader, or what orders its rows
	times  schedule
	rows   rowCount
	seq    int64 // rows returned
	err    error // that ended the replay; io.EOF at its end

	sessions *sessionReader // for sessions of agents, else nil
	stage    *openLoop      // where they are live
}

// rowCount counts rows of the source.
type rowCount struct {
	first   int64 // of the first cycle, including skipped ones
	skipped int64 // of the first cycle, before the start
	cycle   int   // of the latest row; the number of cycles at the end
}

// newReplay begins at the start of an input.
func newReplay(in *input) *replay {
	live, stream := max(1, in.cfg.Live), users.NewStream(in.cfg.Seed, -1)
	r := &replay{input: in, reader: &reader{input: in}, times: schedule{cfg: &in.cfg, stream: stream}}
	r.source = r.reader
	if in.sessional {
		r.sessions = &sessionReader{reader: r.reader}
		r.stage = &openLoop{stage{source: r.sessions.next, stream: stream, limit: live}}
		r.source = r.stage
	} else if in.format.Untimed && live > 1 {
		r.source = &interleave{rows: r.reader, live: live, stream: stream}
	}
	return r
}

// next returns the next row from the start of the replay on, valid until the next call. After an error it
// returns the same error again.
func (r *replay) next() (row traceRow, err error) {
	for r.err == nil {
		if limit := r.cfg.MaxRequests; limit > 0 && r.seq >= limit {
			r.close()
			break
		}
		row, err := r.source.next()
		ends := errors.Is(err, io.EOF)
		// Every cycle has the same rows; live sessions do not begin anew with a cycle.
		if r.seq == 0 && r.cfg.Start > 0 && (ends || err == nil && row.part > 0 && row.cycle > 0) {
			err = fmt.Errorf("the trace is over %s after its first request, before the start of the"+
				" replay at %s: start earlier (-trace-start)",
				r.times.pos.Round(time.Millisecond), r.cfg.Start)
		} else if ends {
			r.rows.cycle++
		}
		if err != nil {
			r.close()
			r.err = err
			break
		}
		r.rows.cycle = row.cycle
		before := r.times.pass(&row)
		if row.cycle == 0 {
			r.rows.first++
			if before {
				r.rows.skipped++
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

// failure returns the error that ended the input early.
func (r *replay) failure() error {
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.err
}

// report counts the rows of the first cycle so far: those that next has returned or skipped, and the unusable
// ones before them.
func (r *replay) report() workloads.TraceReport {
	report := r.reader.report()
	report.Rows = report.Malformed + report.Failed + r.rows.first
	report.Skipped, report.Cycles = r.rows.skipped, r.rows.cycle
	if r.sessions != nil {
		r.sessions.report(&report, &r.stage.stage)
	}
	return report
}

// close ends the replay.
func (r *replay) close() {
	if r.reader.close(); r.err == nil {
		r.err = io.EOF
	}
}

// interleave runs recorded conversations without times concurrently. A fixed number is live, and a uniform
// draw chooses the conversation of the next request. When a conversation has ended the next one of the file
// begins. The order depends on the seed alone. At the end of a cycle all conversations end before the next
// cycle begins.
//
// Without it, one conversation would follow the other, and any cache larger than one conversation would
// have all possible hits.
type interleave struct {
	rows   rowSource
	live   int
	stream users.Stream
	taken  int64
	// open are the conversations with their remaining rows. A conversation after the live ones, or of the
	// next cycle, shows that these are complete.
	open [][]traceRow
	err  error // of rows
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
	live := b.alive()
	if live == 0 || b.err != nil && !errors.Is(b.err, io.EOF) {
		return traceRow{}, b.err
	}
	i := int(b.stream.Unit(users.DrawSession, b.taken) * float64(live))
	b.taken++
	row := b.open[i][0]
	if b.open[i] = b.open[i][1:]; len(b.open[i]) == 0 {
		b.open = slices.Delete(b.open, i, i+1)
	}
	return row, nil
}

// alive returns the number of live conversations.
func (b *interleave) alive() (n int) {
	for n < min(len(b.open), b.live) && b.open[n][0].cycle == b.open[0][0].cycle {
		n++
	}
	return n
}

// Rows are the usable rows of recorded requests in the order of their replay, with their arrivals: the
// input of a Trace, for callers that compute with recorded requests and execute none. Memory is constant.
//
// One goroutine uses them.
type Rows struct{ replay *replay }

// OpenRows reads the start of every file, so that an input of another format is an error now. It uses these
// fields of the configuration: Paths, Speedup, Cycles (at least 1), Live, Start, Rate, MaxRequests and
// AllowMalformed.
func OpenRows(format formats.Format, cfg Config) (*Rows, error) {
	in, err := openInput(format, cfg)
	if err != nil {
		return nil, err
	}
	return &Rows{newReplay(in)}, nil
}

// Each calls do with all rows and their arrivals since the begin of the replay, until do fails. It returns the
// error of do, or the error that ended the input: a file that cannot be read, or too many malformed rows. A
// row is valid until do returns. The files are closed at the end.
func (r *Rows) Each(do func(row *formats.Row, at time.Duration) error) error {
	defer r.replay.close()
	for {
		row, err := r.replay.next()
		if err != nil {
			return r.replay.failure()
		}
		if err := do(&row.Row, row.arrival); err != nil {
			return err
		}
	}
}

// Report counts the rows read so far.
func (r *Rows) Report() workloads.TraceReport { return r.replay.report() }
