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

// firstDate is the smallest stamp that is a date: the Unix time of the year 2000. Smaller stamps count from
// the begin of the trace, because no trace lasts thirty years.
const firstDate = 30 * 365 * 24 * time.Hour

// timeline is the order of an input's files. Files whose stamps are dates, from workers or frontends of one
// cluster, are ordered by these, because they have a common clock. Other files follow each other in the
// given order.
type timeline struct {
	*input
	files     []opening
	dated     bool // false: the given order
	sessional bool // all files have sessions of agents
}

// merge is the rows of files that were recorded at the same time, ordered by their stamps. The rows of a
// file without concurrent files keep their order. A file is open while it has rows at the current time.
type merge struct {
	timeline
	opened  int     // number of opened files
	heads   []*head // ordered by their rows' stamps
	taken   *head   // the file of the current row
	rows    int64   // rows read, including the heads' rows
	skipped int64
	ended   workloads.TraceReport
}

// head is an open file with its next row.
type head struct {
	*file
	order int
	row   formats.Row
}

// from begins with the n-th file of the timeline.
func (l timeline) from(n int) (*merge, error) {
	l.files = l.files[n:]
	m := &merge{timeline: l}
	return m, m.add()
}

// add opens one more file.
func (m *merge) add() error {
	f, err := m.open(m.files[m.opened].index)
	if err != nil {
		return err
	}
	m.taken = &head{file: f, order: m.opened}
	m.opened++
	return m.refill()
}

// refill reads the next row of the current file and reorders it, or closes the file at its end.
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
		_ = h.Close() // an error of closing a file that was read does not matter
		return err
	}
	at, _ := slices.BinarySearchFunc(m.heads, h, func(a, b *head) int {
		return cmp.Or(cmp.Compare(a.row.Stamp, b.row.Stamp), a.order-b.order)
	})
	m.heads = slices.Insert(m.heads, at, h)
	return nil
}

// next returns the next row, valid until the next call; io.EOF when all concurrent files have ended.
func (m *merge) next() (row formats.Row, err error) {
	if err := m.refill(); err != nil {
		return row, err
	}
	for len(m.heads) > 0 && m.dated && m.opened < len(m.files) &&
		m.files[m.opened].stamp <= m.heads[0].row.Stamp {
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

// row returns the number of the current row, from 1; unusable rows count, too.
func (m *merge) row() int64 { return m.rows - int64(len(m.heads)) }

// report counts the rows read, without those read ahead.
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

// close closes the open files.
func (m *merge) close() {
	if m.taken != nil {
		_ = m.taken.Close()
	}
	for _, h := range m.heads {
		_ = h.Close()
	}
}
