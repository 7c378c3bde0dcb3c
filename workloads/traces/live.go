package traces

import (
	"errors"
	"fmt"
	"io"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/profile"
	"kvbench/workloads/sessions"
)

// Sessions is the Source of recorded sessions of agents in closed loop; Trace replays them at their
// recorded times. It must be closed.
type Sessions struct {
	*sessions.Live
	format formats.Format
	cfg    Config
	reader *sessionReader
}

var (
	_ workloads.Source = (*Sessions)(nil)
	_ io.Closer        = (*Sessions)(nil)
)

// NewSessions reads the start of every file and the first sessions. It uses these fields of the
// configuration: Paths, Speedup, Cycles, Live, MaxRequests, Seed, ObjectTokens and AllowMalformed. A
// closed loop has no Start and no Rate.
func NewSessions(format formats.Format, cfg Config) (*Sessions, error) {
	files, err := check(format, &cfg)
	if err == nil && !sessional(files) {
		err = fmt.Errorf("the %s trace has other requests than sessions of agents: what "+
			"those wait for is not recorded", format.Name)
	}
	if err != nil {
		return nil, err
	}
	s := &Sessions{format: format, cfg: cfg}
	s.reader = &sessionReader{format: format, cfg: &s.cfg}
	s.Live, err = sessions.NewLive(sessions.Config{
		Next: s.reader.next, Ahead: s.reader.ahead, Live: max(1, cfg.Live), Speedup: cfg.Speedup,
		Stream: profile.NewStream(cfg.Seed, -1), MaxRequests: cfg.MaxRequests,
		ObjectTokens: cfg.ObjectTokens,
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Report counts the rows read and replayed so far.
func (s *Sessions) Report() workloads.TraceReport {
	r, live := s.reader.report(), s.Live.Report()
	r.Rows = r.Malformed + r.Failed + live.Rows
	r.Sessions, r.Live = live.Sessions, live.Live
	if s.reader.each > 0 {
		r.Cycles = int(s.Ended() / s.reader.each)
	}
	return r
}

// Rows counts the rows of one cycle, as Trace.Rows does.
func (s *Sessions) Rows(most int64) (rows int64, all bool) {
	return countRows(s.format, &s.cfg, most)
}

// Close closes the files.
func (s *Sessions) Close() error {
	s.reader.close()
	return nil
}
