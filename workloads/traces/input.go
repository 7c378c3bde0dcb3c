package traces

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// firstDate is the smallest stamp that is a date, the Unix time of the year 2000. Smaller stamps count
// from the start of the trace, because no trace lasts thirty years.
const firstDate = 30 * 365 * 24 * time.Hour

// input holds the files of a configuration in the order of their replay.
type input struct {
	cfg    Config
	format formats.Format
	apart  []string // scope suffix of each path, see formats.Apart
	files  []opening
	// dated: the stamps of all files are dates on the common clock of a cluster. The files are ordered
	// by their first stamps, and concurrent files are merged. Files without dates follow each other in
	// the given order.
	dated     bool
	sessional bool // all files have sessions of agents
}

// opening describes the start of a file.
type opening struct {
	index     int           // in the paths
	sessional bool          // one of the first rows belongs to a session of agents
	stamp     time.Duration // stamp of the first usable row, -1 if none of the first rows is usable
}

// openInput reads the start of every file. It resets settings that the format does not have.
func openInput(format formats.Format, cfg Config) (in *input, problems error) {
	in = &input{cfg: cfg, format: format, apart: formats.Apart(cfg.Paths), dated: !format.Untimed,
		sessional: true}
	if format.Untimed {
		in.cfg.Speedup = 0
	}
	for i := range cfg.Paths {
		o, err := in.start(i)
		problems = errors.Join(problems, err)
		in.files = append(in.files, o)
		in.dated = in.dated && o.stamp >= firstDate
		in.sessional = in.sessional && o.sessional
	}
	if in.dated = in.dated && !in.sessional; in.dated { // the stamps of a session count from its start
		slices.SortStableFunc(in.files, func(a, b opening) int { return cmp.Compare(a.stamp, b.stamp) })
	}
	return in, problems
}

// start reads the first rows of a file. In a long file none of them need be usable.
func (in *input) start(index int) (o opening, err error) {
	o.index, o.stamp = index, -1
	f, err := in.open(index)
	if err != nil {
		return o, err
	}
	defer f.Close()
	for {
		row, err := f.next(formats.CheckedRows)
		switch {
		case err == nil:
			o.sessional = o.sessional || row.Agent.Play > 0
			if o.stamp < 0 {
				o.stamp = row.Stamp
			}
		case !errors.Is(err, io.EOF):
			return o, err
		case f.Report.Rows >= formats.CheckedRows:
			return o, f.End()
		default:
			return o, f.end()
		}
	}
}

// Survey reads one cycle of the input by itself. It calls do for each usable row with the name of its
// conversation, "" for none. A row is valid until do returns. Survey stops after most rows, and returns how
// many it has read. The error is io.EOF if these are all, else the error for which a replay ends.
func (in *input) Survey(most int64, do func(row *formats.Row, conversation string)) (rows int64, err error) {
	once := *in
	once.cfg.Cycles = 1
	r := reader{input: &once}
	defer r.close()
	for r.rows < most {
		row, err := r.next()
		if err != nil {
			return r.rows, err
		}
		name := row.Session
		switch {
		case row.Turn > 0:
			name = strconv.FormatInt(row.conversation, 10)
		case row.Agent.Play > 0:
			name = fmt.Sprint(row.part, row.Agent.Play)
		}
		do(&row.Row, name)
	}
	return r.rows, nil
}

// file is an open file, the counts of its rows, and its next row.
type file struct {
	formats.Reader
	formats.Tally
	silent bool   // a row without an answer is a normal request
	apart  string // suffix of the scope, see formats.Apart
	order  int    // index among the files of the input
	head   formats.Row
}

// open opens a file by its index in the paths.
func (in *input) open(index int) (*file, error) {
	path := in.cfg.Paths[index]
	rows, err := in.format.Open(path)
	if err != nil {
		return nil, err
	}
	tally := formats.Tally{What: "trace", File: path, Format: in.format.Name, Allow: in.cfg.AllowMalformed,
		Flag: "-trace-allow-malformed", Untimed: in.cfg.Speedup == 0 || in.cfg.Rate > 0}
	return &file{Reader: rows, Tally: tally, silent: in.format.Silent, apart: in.apart[index]}, nil
}

// next returns the next usable row. It returns io.EOF at the end, or when most rows or more were read.
func (f *file) next(most int64) (formats.Row, error) {
	for f.Report.Rows < most {
		row, err := formats.Usable(&f.Tally, f.Next, f.Line)
		if err == nil && row.Agent.Play == 0 { // sessions have a clock each, and are sorted
			err = f.Order(row.Stamp, f.Line)
		}
		if err != nil {
			return row, err
		}
		if row.Note != "" {
			f.Report.Add(workloads.TraceReport{Interpreted: 1, Notes: []string{row.Note}})
		}
		if row.Generate > 0 || f.silent {
			if !row.Common {
				row.Scope += f.apart
			}
			return row, nil
		}
		f.Report.Failed++
	}
	return formats.Row{}, io.EOF
}

// end checks the whole file. It returns nil if the checks pass.
func (f *file) end() error {
	usable := f.Report.Rows - f.Report.Malformed - f.Report.Failed
	if err := f.End(); err != nil || usable > 0 || f.Allow {
		return err
	}
	return f.Unusable()
}

// traceRow is a usable row with its place and time in the replay.
type traceRow struct {
	formats.Row
	cycle   int
	part    int   // number of the group of concurrent files, over all cycles; 0 for sessions of agents
	row     int64 // number of the row in the cycle, over all files, from 1; unusable rows count, too
	seq     int64 // number of rows replayed before it, over all cycles
	arrival time.Duration

	conversation int64 // number of its conversation in the cycle, from 1
}

// rowSource returns rows one after the other. A row is valid until the next call. The error is io.EOF
// after the last row. next must not be called after an error.
type rowSource interface{ next() (traceRow, error) }

// reader reads the usable rows of all files and cycles in order. Its memory does not depend on the
// number of rows. The rows of a file keep their order. A file is open while it has rows at the current
// time.
type reader struct {
	*input
	cycle, part int

	// Of the current cycle:
	opened int     // number of opened files
	heads  []*file // open files, ordered by the stamps of their next rows
	rows   int64   // rows read, including the next rows of open files
	talks  int64   // conversations so far
	ended  workloads.TraceReport

	current bool // the next row of heads[0] is the current row

	first workloads.TraceReport // report of the first cycle
}

// next implements rowSource.
func (r *reader) next() (row traceRow, err error) {
	if r.current {
		f := r.heads[0]
		r.heads, r.current = slices.Delete(r.heads, 0, 1), false
		if err := r.refill(f); err != nil {
			return row, err
		}
	}
	for len(r.heads) == 0 || r.dated && r.opened < len(r.files) &&
		r.files[r.opened].stamp <= r.heads[0].head.Stamp {
		if r.opened == len(r.files) && r.endCycle() {
			return row, io.EOF
		}
		if len(r.heads) == 0 {
			r.part++
		}
		f, err := r.open(r.files[r.opened].index)
		if err != nil {
			return row, err
		}
		f.order = r.opened
		r.opened++
		if err := r.refill(f); err != nil {
			return row, err
		}
	}
	head := r.heads[0].head
	if head.Opens {
		if most := r.cfg.MaxConversations; most > 0 && r.talks == most { // skip the rest of the cycle
			r.close()
			r.opened = len(r.files)
			return r.next()
		}
		r.talks++
	}
	r.current = true
	return traceRow{Row: head, cycle: r.cycle, part: r.part, row: r.rows - int64(len(r.heads)-1),
		conversation: r.talks}, nil
}

// refill reads the next row of a file and inserts the file into heads, or closes the file at its end.
func (r *reader) refill(f *file) (err error) {
	r.rows -= f.Report.Rows
	f.head, err = f.next(math.MaxInt64)
	r.rows += f.Report.Rows
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = f.end()
		}
		r.closeFile(f)
		return err
	}
	at, _ := slices.BinarySearchFunc(r.heads, f, func(a, b *file) int {
		return cmp.Or(cmp.Compare(a.head.Stamp, b.head.Stamp), a.order-b.order)
	})
	r.heads = slices.Insert(r.heads, at, f)
	return nil
}

// endCycle starts the next cycle. It returns true if the input has ended. A cycle without a usable row
// also ends the input, because it would be repeated for ever.
func (r *reader) endCycle() (over bool) {
	if r.cycle == 0 {
		r.first = r.ended
	}
	r.cycle++
	if r.cycle == r.cfg.Cycles || r.ended.Rows == r.ended.Malformed+r.ended.Failed {
		return true
	}
	r.opened, r.rows, r.talks, r.ended = 0, 0, 0, workloads.TraceReport{}
	return false
}

// report returns the counts of the unusable rows read so far in the first cycle.
func (r *reader) report() workloads.TraceReport {
	if r.cycle > 0 {
		return r.first
	}
	report := r.ended
	for _, f := range r.heads {
		report.Add(f.Report)
	}
	return report
}

func (r *reader) closeFile(f *file) {
	r.ended.Add(f.Report)
	_ = f.Close() // a file that was only read: ignore the error
}

// close closes the open files.
func (r *reader) close() {
	for _, f := range r.heads {
		r.closeFile(f)
	}
	r.heads, r.current = nil, false
}
