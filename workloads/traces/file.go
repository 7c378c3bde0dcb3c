package traces

import (
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

// openFile opens a file of a format.
func openFile(format formats.Format, path string, allow bool) (*file, error) {
	reader, err := format.Open(path)
	if err != nil {
		return nil, err
	}
	tally := formats.Tally{What: "trace", File: path, Format: format.Name, Allow: allow}
	return &file{Reader: reader, Tally: tally, silent: format.Silent}, nil
}

// openOne opens one of the files of an input.
func openOne(format formats.Format, cfg *Config, index int) (*file, error) {
	f, err := openFile(format, cfg.Paths[index], cfg.AllowMalformed)
	if err == nil {
		if cfg.apart == nil {
			cfg.apart = formats.Apart(cfg.Paths)
		}
		f.apart = cfg.apart[index]
	}
	return f, err
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
	sessional bool          // it has sessions of agents
	stamp     time.Duration // of its first usable row, -1 if none of the first rows is usable
}

// checkStart reads the first rows of a file. In a long file they need not be usable.
func checkStart(format formats.Format, path string, allow bool) (o opening, err error) {
	o.stamp = -1
	f, err := openFile(format, path, allow)
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
func check(format formats.Format, cfg *Config) (files []opening, problems error) {
	if len(cfg.Paths) == 0 {
		return nil, fmt.Errorf("%s trace: no files given", format.Name)
	}
	if format.Untimed {
		if cfg.Start != 0 {
			return nil, fmt.Errorf("%s conversations have no times, so their replay cannot start"+
				" at one", format.Name)
		}
		cfg.Speedup = 0
	}
	for _, path := range cfg.Paths {
		o, err := checkStart(format, path, cfg.AllowMalformed)
		files = append(files, o)
		problems = errors.Join(problems, err)
	}
	return files, problems
}

// sessional reports whether all files have sessions of agents.
func sessional(files []opening) bool {
	return !slices.ContainsFunc(files, func(o opening) bool { return !o.sessional })
}

// countRows reads files to their ends.
func countRows(format formats.Format, cfg *Config, most int64) (rows int64, all bool) {
	for _, path := range cfg.Paths {
		if cfg.MaxConversations > 0 {
			return 0, false
		}
		f, err := openFile(format, path, cfg.AllowMalformed)
		if err != nil {
			return 0, false
		}
		for err == nil {
			_, err = f.next(most - rows)
		}
		rows += f.Report.Rows
		_ = f.Close()
		if !errors.Is(err, io.EOF) || rows >= most {
			return 0, false
		}
	}
	return rows, true
}
