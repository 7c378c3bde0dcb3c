package traces

import (
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// dated is the least stamp that is a date: seconds since 1970 have passed it in 2000, and no trace
// goes on for thirty years. What is less counts from the trace's own beginning.
const dated = 30 * 365 * 24 * time.Hour

// timeline are the files of an input in the order in which their rows are asked: files whose stamps
// are dates, of workers or of frontends of one cluster, by these, since they were recorded on one
// clock; others, whose stamps have nothing to do with each other, one after another.
type timeline struct {
	format formats.Format
	cfg    *Config
	files  []dating
	dated  bool // otherwise as they were given
}

// dating is a file with the time at which it begins.
type dating struct {
	index int // among the paths
	begin time.Duration
}

// newTimeline orders the files.
func newTimeline(format formats.Format, cfg *Config, openings []opening) timeline {
	l := timeline{format: format, cfg: cfg, files: make([]dating, len(openings))}
	l.dated = !format.Untimed
	for i, o := range openings {
		l.files[i] = dating{i, o.stamp}
		l.dated = l.dated && o.stamp >= dated
	}
	if l.dated {
		slices.SortStableFunc(l.files, func(a, b dating) int {
			return cmp.Compare(a.begin, b.begin)
		})
	}
	return l
}

// merge is the rows of files that were recorded at the same time, in the order of their stamps; of
// a file with no other at its time as they come. Files are open as long as they have rows at the
// time that is read.
type merge struct {
	timeline
	opened  int     // files
	heads   []*head // by their rows' stamps
	taken   *head   // whose row is being used
	rows    int64   // that were read, those of heads included
	skipped int64
	ended   workloads.TraceReport
}

// head is an open file with its next row.
type head struct {
	*file
	order int
	row   formats.Row
}

// open begins with the n-th file of the input.
func (l timeline) open(n int) (*merge, error) {
	l.files = l.files[n:]
	m := &merge{timeline: l}
	return m, m.add()
}

// add opens one more file.
func (m *merge) add() error {
	f, err := openOne(m.format, m.cfg, m.files[m.opened].index)
	if err != nil {
		return err
	}
	m.taken = &head{file: f, order: m.opened}
	m.opened++
	return m.refill()
}

// refill puts the file whose row was used in its place by its next one, or closes it at its end.
func (m *merge) refill() (err error) {
	h := m.taken
	if h == nil {
		return nil
	}
	m.taken = nil
	m.rows -= h.Report.Rows
	h.row, err = h.next(math.MaxInt64)
	m.rows += h.Report.Rows
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = h.end()
		}
		m.ended.Add(h.Report)
		_ = h.Close() // reading is over, so that an error of closing changes nothing
		return err
	}
	at, _ := slices.BinarySearchFunc(m.heads, h, func(a, b *head) int {
		return cmp.Or(cmp.Compare(a.row.Stamp, b.row.Stamp), a.order-b.order)
	})
	m.heads = slices.Insert(m.heads, at, h)
	return nil
}

// next returns the next row, valid until the next call; io.EOF where no file goes on, and what
// comes after has nothing to do with it.
func (m *merge) next() (row formats.Row, err error) {
	if err := m.refill(); err != nil {
		return row, err
	}
	for len(m.heads) > 0 && m.dated && m.opened < len(m.files) &&
		m.files[m.opened].begin <= m.heads[0].row.Stamp {
		if err := m.add(); err != nil {
			return row, err
		}
	}
	if len(m.heads) == 0 {
		return row, io.EOF
	}
	m.taken = m.heads[0]
	m.heads = slices.Delete(m.heads, 0, 1)
	return m.taken.row, nil
}

// row is the number of the row that next returned, from 1: rows that cannot be used have theirs.
func (m *merge) row() int64 { return m.rows - int64(len(m.heads)) }

// report says what was read, but for the rows that were read ahead.
func (m *merge) report() workloads.TraceReport {
	r := m.ended
	for _, h := range m.heads {
		r.Add(h.Report)
	}
	r.Rows -= int64(len(m.heads))
	if m.taken != nil {
		r.Add(m.taken.Report)
	}
	r.Skipped = m.skipped
	return r
}

// close closes what is open.
func (m *merge) close() {
	if m.taken != nil {
		_ = m.taken.Close()
	}
	for _, h := range m.heads {
		_ = h.Close()
	}
}
