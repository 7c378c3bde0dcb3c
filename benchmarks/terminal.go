package benchmarks

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"kvbench/kvbench"
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

// draw overwrites the live line on the terminal.
func draw(tty *os.File, line string) {
	width, _, err := term.GetSize(int(tty.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	// Cut the line: a line that wraps cannot be overwritten.
	if text := []rune(line); len(text) > width-1 {
		line = string(text[:width-1])
	}
	_, _ = fmt.Fprintf(tty, "\r\x1b[K%s", line)
}

// live returns the progress function of one trial, which does nothing without a terminal, and the
// function that wipes the line.
func (s *session) live(name string, simulated bool) (show func(kvbench.Snapshot), wipe func()) {
	if s.tty == nil {
		return func(kvbench.Snapshot) {}, func() {}
	}
	l := &liveLine{name: name}
	return func(now kvbench.Snapshot) {
		line := l.text(now)
		if s.ctx.Err() != nil { // make room for the hint
			line = strings.TrimPrefix(line, name+": ")
			if !simulated { // a simulation has no files
				line += ", again Ctrl-C leaves the files"
			}
		}
		draw(s.tty, line)
	}, func() { draw(s.tty, "") }
}

// liveLine formats snapshots. Rates cover the time since the last snapshot.
type liveLine struct {
	name string
	last kvbench.Snapshot
}

func (l *liveLine) text(s kvbench.Snapshot) string {
	defer func() { l.last = s }()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %s", l.name, s.Stage, short(s.Elapsed))
	if s.Total > 0 {
		fmt.Fprintf(&b, "/%s", short(s.Total))
	}
	if s.DoneTotal > 0 {
		fmt.Fprintf(&b, ", %s of %s", gib(s.Done), gib(s.DoneTotal))
	}
	if s.Stuck > 0 {
		fmt.Fprintf(&b, ", %d requests UNANSWERED for %s", s.Stuck, short(s.StuckFor))
	}
	if s.DoneTotal > 0 || s.Tiers == nil {
		return b.String()
	}
	// The first line of a stage covers the time since the stage began.
	dt := (s.Elapsed - l.last.Elapsed).Seconds()
	if l.last.Stage != s.Stage {
		dt = s.Elapsed.Seconds()
		l.last = kvbench.Snapshot{}
	}
	// Rates are the rates of the storage tier, which is measured. The other tiers show their fill
	// level.
	rate := func(op tiers.Op) string {
		if dt <= 0 {
			return "–"
		}
		n := s.Live.Bytes[tiers.Storage][op] - l.last.Live.Bytes[tiers.Storage][op]
		return fmt.Sprintf("%.2f GiB/s", float64(n)/dt/(1<<30))
	}
	fmt.Fprintf(&b, ", %d req, read %s, write %s, queue %d", s.Live.Requests, rate(tiers.Read),
		rate(tiers.Write), s.Queued)
	for _, g := range s.Tiers {
		fmt.Fprintf(&b, ", %s %.0f%%", g.Level, 100*float64(g.Used)/float64(g.Capacity))
	}
	// -1 means unknown, as for a simulated device.
	if s.Free >= 0 {
		fmt.Fprintf(&b, ", free %s", gib(s.Free))
	}
	if s.Live.Failures > 0 {
		fmt.Fprintf(&b, ", %d FAILED", s.Live.Failures)
	}
	return b.String()
}

// short rounds a time to seconds: more digits would flicker.
func short(d time.Duration) string { return d.Round(time.Second).String() }

func gib(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }
