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

// openTerminal finds the controlling terminal for the live line. It is neither
// standard output nor standard error: these belong to the results.
func (s *session) openTerminal() {
	if s.points[0].Progress == "none" {
		return
	}
	// Opened once: what is written to it later must not depend on where output goes. There is none
	// under cron, CI and nohup.
	if f, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
		s.tty = f
	}
}

// onTerminal reports whether Ctrl-C at a terminal reaches this process: its group is the one in the
// foreground. That of a job in the background, or under timeout(1), is not.
func onTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// draw overwrites the one line of a terminal that is ours.
func draw(tty *os.File, line string) {
	width, _, err := term.GetSize(int(tty.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	// A line that wraps could not be overwritten.
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
		if s.ctx.Err() != nil { // short: what can be done has to fit in
			line = strings.TrimPrefix(line, name+": ")
			if !simulated { // which has none
				line += ", again Ctrl-C leaves the files"
			}
		}
		draw(s.tty, line)
	}, func() { draw(s.tty, "") }
}

// liveLine turns snapshots into text. Rates are those since the last snapshot.
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
	if s.Of > 0 {
		fmt.Fprintf(&b, ", %s of %s", gib(s.Done), gib(s.Of))
	}
	if s.Stuck > 0 {
		fmt.Fprintf(&b, ", %d requests UNANSWERED for %s", s.Stuck, short(s.StuckFor))
	}
	if s.Of > 0 || s.Tiers == nil {
		return b.String()
	}
	// The first line of a stage counts from its beginning.
	dt := (s.Elapsed - l.last.Elapsed).Seconds()
	if l.last.Stage != s.Stage {
		dt = s.Elapsed.Seconds()
		l.last = kvbench.Snapshot{}
	}
	// Rates are of the last tier, which is what is measured; the others show how full they are.
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
	// -1: unknown, as for a device that is simulated.
	if s.Free >= 0 {
		fmt.Fprintf(&b, ", free %s", gib(s.Free))
	}
	if s.Live.Failures > 0 {
		fmt.Fprintf(&b, ", %d FAILED", s.Live.Failures)
	}
	return b.String()
}

// short is a time to the second: more digits would only flicker.
func short(d time.Duration) string { return d.Round(time.Second).String() }

func gib(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }
