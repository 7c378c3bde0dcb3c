package benchmarks

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"kvbench/kvbench"
	"kvbench/kvbench/units"
	"kvbench/tiers"
)

// openTerminal opens the controlling terminal for the live line. Standard output and standard error
// belong to the results.
func (s *session) openTerminal() {
	if s.points[0].Progress == "none" {
		return
	}
	// Open the terminal itself, independent of redirections. There is none under cron, in CI and with
	// nohup.
	if f, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
		s.tty = f
	}
}

// onTerminal reports whether Ctrl-C at a terminal reaches this process: its process group is in the
// foreground. A job in the background, or under timeout(1), is not in the foreground.
func onTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// begins logs that the first trial of a line begins, in a run of at least a minute without a terminal. running
// is the line that the testing package calls. Before its second call the package prints the start of the
// result line, which text on standard error would break.
func (s *session) begins(t *trial, running *line) {
	if s.tty != nil || running.called > 1 || t != t.trials[0] || s.points[0].Progress == "none" ||
		s.plan.time < time.Minute || !s.clients.coordinates() || s.ctx.Err() != nil {
		return
	}
	this, after, n := s.remaining(t)
	fmt.Fprintf(os.Stderr, "%s left, %d/%d %s begins\n", roughly(this+after), n, len(s.runs()), t.line.name())
}

// comparedRun is a run of kvreport turns, which describes it in the variable KVREPORT_RUN. of is 0 outside
// of kvreport turns.
type comparedRun struct {
	number, of int
	before     time.Duration // total time of the earlier runs
	side       string        // its name
}

func readComparedRun(text string) (r comparedRun) {
	_, _ = fmt.Sscan(text, &r.number, &r.of, &r.before, &r.side)
	return r
}

// live returns the progress function of one trial, which shows the live line at a terminal, and the function
// that wipes the line. If no I/O completes for long, a line of its own shows it, on standard error without a
// terminal and under kvreport turns.
func (s *session) live(t *trial) (show func(kvbench.Snapshot), wipe func()) {
	const clear = "\r\x1b[K"
	l, head, silent := &liveLine{}, s.headOf(t), false
	return func(now kvbench.Snapshot) {
		if now.Silent > 0 && !silent {
			text := fmt.Sprintf("no I/O completed in %s for %s", strings.Join(cacheDirs(t.v), ", "), short(now.Silent))
			if s.compared.of > 0 {
				text += fmt.Sprintf(" (run %d of %d)", s.compared.number, s.compared.of)
			}
			if s.compared.of > 0 || s.tty == nil && s.points[0].Progress != "none" {
				fmt.Fprintln(os.Stderr, text)
			}
			_, _ = s.tty.WriteString(clear + text + "\n")
		}
		if silent = now.Silent > 0; s.tty == nil {
			return
		}
		columns, _, err := term.GetSize(int(s.tty.Fd()))
		if err != nil || columns < 20 {
			columns = 80
		}
		columns-- // a line that wraps cannot be overwritten
		line, more := l.text(now)
		left := ""
		switch {
		case s.ctx.Err() == nil:
			var start string
			start, left = head(columns - utf8.RuneCountInString(", "+line))
			if line = start + ", " + line; utf8.RuneCountInString(line+left) > columns {
				left = ""
			}
		case !t.v.Simulated() && !t.v.NoStorage() && s.compared.of == 0: // else there are no files, or no second Ctrl-C
			line += ", Ctrl-C again leaves the files"
		}
		for _, part := range more {
			if utf8.RuneCountInString(line+", "+part+left) > columns {
				break
			}
			line += ", " + part
		}
		_, _ = fmt.Fprintf(s.tty, clear+"%.*s", columns, line+left)
	}, func() { _, _ = s.tty.WriteString(clear) } // an error without a terminal
}

// headOf returns a function that formats both ends of the live line of a trial that begins now, for a width in
// columns. The start names the run, the benchmark and the trial. The end has the time left, of all runs of a
// comparison. A long name is cut in the middle, but not to less than eight letters.
func (s *session) headOf(t *trial) func(columns int) (start, end string) {
	begun := time.Now()
	this, after, n := s.remaining(t)
	lines, trials := len(s.runs()), len(t.trials)
	run, which, several := "", "", lines*trials > 1 || s.compared.of > 0
	if trials > 1 {
		which = fmt.Sprintf(" trial %d/%d", slices.Index(t.trials, t)+1, trials)
	}
	if r := s.compared; r.of > 0 {
		run = fmt.Sprintf("run %d of %d (%s: %s): ", r.number, r.of, r.side, units.Shorten(cacheDir(t.v), 24))
		each := s.plan.time
		if r.number > 1 {
			each = r.before / time.Duration(r.number-1)
		}
		after += time.Duration(r.of-r.number) * each
	} else if lines > 1 {
		run = fmt.Sprintf("%d/%d ", n, lines)
	}
	return func(columns int) (start, end string) {
		if d := after + max(0, this-time.Since(begun)); d > 0 && several {
			end = " · " + roughly(d) + " left"
		}
		columns -= utf8.RuneCountInString(run + which + end)
		return run + units.Shorten(t.name, max(8, columns)) + which, end
	}
}

// liveLine formats snapshots. Rates cover the time since the last snapshot.
type liveLine struct{ last kvbench.Snapshot }

// text returns the stage, what went wrong and the rates, and what follows where it fits.
func (l *liveLine) text(s kvbench.Snapshot) (line string, more []string) {
	defer func() { l.last = s }()
	var b strings.Builder
	if s.Stage != "running" || s.Total == 0 {
		b.WriteString(s.Stage + " ")
	}
	b.WriteString(short(s.Elapsed))
	if s.Total > 0 {
		b.WriteString(" of " + short(s.Total))
	}
	if s.DoneTotal > 0 {
		fmt.Fprintf(&b, ", %s of %s", gib(s.Done), gib(s.DoneTotal))
	}
	if s.Silent > 0 {
		fmt.Fprintf(&b, ", no I/O completed for %s", short(s.Silent))
	} else if s.Stuck > 0 {
		fmt.Fprintf(&b, ", %d requests UNANSWERED for %s", s.Stuck, short(s.StuckFor))
	}
	if s.Live.Failures > 0 {
		fmt.Fprintf(&b, ", %d FAILED", s.Live.Failures)
	}
	if s.DoneTotal > 0 || s.Tiers == nil {
		return b.String(), nil
	}
	// The first line of a stage covers the time since the stage began.
	dt := (s.Elapsed - l.last.Elapsed).Seconds()
	if l.last.Stage != s.Stage {
		dt = s.Elapsed.Seconds()
		l.last = kvbench.Snapshot{}
	}
	// Rates are the rates of the slowest tier: the storage, which is measured, if there is one. The other
	// tiers show their fill level. Plain I/O has no cache.
	var rates []string
	last := tiers.Storage
	if n := len(s.Tiers); n > 0 {
		last = s.Tiers[n-1].Level
		more = []string{fmt.Sprintf("%d requests wait, %d completed", s.Queued, s.Live.Requests)}
	}
	for op, total := range s.Live.Bytes[last] {
		switch moved := total - l.last.Live.Bytes[last][op]; {
		case total == 0: // a load of the other direction
		case dt <= 0:
			rates = append(rates, fmt.Sprintf("%s –", tiers.Op(op)))
		default:
			rates = append(rates, fmt.Sprintf("%s %.2f", tiers.Op(op), float64(moved)/dt/(1<<30)))
		}
	}
	if len(rates) > 0 {
		fmt.Fprintf(&b, ", %s GiB/s", strings.Join(rates, ", "))
	}
	for _, g := range s.Tiers {
		more = append(more, fmt.Sprintf("%s tier %.0f %% full", g.Level, 100*float64(g.Used)/float64(g.Capacity)))
	}
	// -1 means unknown, as for a simulated device.
	if s.Free >= 0 {
		more = append(more, gib(s.Free)+" free")
	}
	return b.String(), more
}

// short rounds a time to seconds: more digits would flicker.
func short(d time.Duration) string {
	if d = d.Round(time.Second); d < 100*time.Second {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return d.String()
}

func gib(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }
