package traces

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"kvbench/workloads/formats"
)

// file is an open file: its rows and their counts.
type file struct {
	formats.Reader
	formats.Tally
	silent bool   // a row without an answer is a normal request
	apart  string // suffix that distinguishes files of the same name, see formats.Apart
}

// input is the files of a configuration.
type input struct {
	cfg    Config
	format formats.Format
	apart  []string // by path, see formats.Apart
}

// open opens a file by its index in the paths.
func (in *input) open(index int) (*file, error) {
	path := in.cfg.Paths[index]
	reader, err := in.format.Open(path)
	if err != nil {
		return nil, err
	}
	if in.apart == nil {
		in.apart = formats.Apart(in.cfg.Paths)
	}
	tally := formats.Tally{What: "trace", File: path, Format: in.format.Name, Allow: in.cfg.AllowMalformed}
	return &file{Reader: reader, Tally: tally, silent: in.format.Silent, apart: in.apart[index]}, nil
}

// next returns the next usable row; io.EOF at the end, or after most rows.
func (f *file) next(most int64) (formats.Row, error) {
	for f.Report.Rows < most {
		row, err := f.Next()
		if end := f.Row(err, f.Line); end != nil {
			return row, end
		}
		switch {
		case err != nil: // malformed
		case row.Generate > 0 || f.silent:
			if !row.Common {
				row.Scope += f.apart
			}
			return row, nil
		default:
			f.Report.Failed++
		}
	}
	return formats.Row{}, io.EOF
}

// end makes the checks that need the whole file.
func (f *file) end() error {
	usable := f.Report.Rows - f.Report.Malformed - f.Report.Failed
	if err := f.End(); err != nil || usable > 0 || f.Allow {
		return err
	}
	return f.Unusable()
}

// opening describes the start of a file.
type opening struct {
	index     int           // in the paths
	sessional bool          // it has sessions of agents
	stamp     time.Duration // of its first usable row, -1 if none of the first rows is usable
}

// start reads the first rows of a file. In a long file they need not be usable.
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
		case f.Report.Rows == formats.CheckedRows:
			return o, f.End()
		default:
			return o, f.end()
		}
	}
}

// check reads the start of every file. It resets settings that the format does not have.
func (in *input) check() (l timeline, problems error) {
	if len(in.cfg.Paths) == 0 {
		return l, fmt.Errorf("%s trace: no files given", in.format.Name)
	}
	if in.format.Untimed {
		if in.cfg.Start != 0 {
			return l, fmt.Errorf("%s conversations have no times, so their replay cannot start"+
				" at one", in.format.Name)
		}
		in.cfg.Speedup = 0
	}
	l = timeline{input: in, dated: !in.format.Untimed, sessional: true}
	for i := range in.cfg.Paths {
		o, err := in.start(i)
		problems = errors.Join(problems, err)
		l.files = append(l.files, o)
		l.dated = l.dated && o.stamp >= firstDate
		l.sessional = l.sessional && o.sessional
	}
	if l.dated = l.dated && !l.sessional; l.dated { // each session has its own clock
		slices.SortStableFunc(l.files, func(a, b opening) int { return cmp.Compare(a.stamp, b.stamp) })
	}
	return l, problems
}

// Rows counts the rows of one cycle by reading the whole input again, for the report of the replayed share.
// It stops and returns false after most rows, and if MaxConversations limits the input. It may be called
// while the load runs.
func (in *input) Rows(most int64) (rows int64, all bool) {
	if in.cfg.MaxConversations > 0 {
		return 0, false
	}
	for i := range in.cfg.Paths {
		f, err := in.open(i)
		for err == nil {
			_, err = f.next(most - rows)
		}
		if f == nil {
			return 0, false
		}
		rows += f.Report.Rows
		_ = f.Close()
		if !errors.Is(err, io.EOF) || rows >= most {
			return 0, false
		}
	}
	return rows, true
}
