package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Turns runs two commands in blocks, so that a change of the machine affects both sides. A block is old,
// new, new, old; the next block begins with the new side. Linear drift within a block cancels out, and
// drift between blocks affects no comparison.
type Turns struct {
	Names     [2]string // of the sides and of their files
	Drives    bool      // the sides are two drives, not the old and the new program of a gate
	Commands  [2]string // shell commands; each run prints one trial per benchmark
	Count     int       // runs of each side; if odd, the last block has one run of each
	Dir       string    // directory for the outputs, such as old.txt and old.log
	Options   Options   // of the gate after the runs, to report early what it cannot show
	StopEarly bool      // end if a forecast shows that the gate will hardly decide
	LiveLine  bool      // the runs show the time left on a terminal
	Say       func(string)

	began time.Time
}

// ErrFew reports that Count is too small to show anything. Run returns it before the first run or after
// the first run of a side. With StopEarly it also returns it after a forecast.
var ErrFew = errors.New("not enough samples")

// Sides are the names of the sides of a gate.
var Sides = [2]string{"old", "new"}

// interruptGrace is the time that an interrupted run has to remove its files.
const interruptGrace = time.Minute

// blockOf returns the block of a run, from 0, and its side.
func blockOf(run int) (block, side int) {
	block = run / 4
	side = []int{oldSide, newSide, newSide, oldSide}[run%4]
	if block%2 == 1 {
		side = newSide - side
	}
	return block, side
}

// Run runs all commands, calls Say for each, and returns how many failed. It continues after a failed
// run, but returns an error if the first run of a side prints no result. It also returns an error if a
// file cannot be written or ctx ends; the outputs of earlier runs remain.
func (t *Turns) Run(ctx context.Context) (failed int, err error) {
	// At least the headline, or each named metric, is gated.
	if err := t.enough(max(1, len(t.Options.Limits.named))); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(t.Dir, 0o755); err != nil {
		return 0, err
	}
	for side := range t.Names {
		path := t.file(side, "txt")
		if _, err := os.Stat(path); err == nil {
			return 0, fmt.Errorf("%s is there already: remove it, or name another directory", path)
		}
	}
	t.began = time.Now()
	for run := range 2 * t.Count {
		ok, results, err := t.one(ctx, run)
		if err != nil {
			return failed, err
		}
		if !ok {
			failed++
		}
		if err := t.check(run, results); err != nil {
			return failed, err
		}
	}
	return failed, nil
}

// check returns an error if the last run shows that more runs would be in vain. It checks after the first
// run of each side and after every second block.
func (t *Turns) check(run, results int) error {
	_, side := blockOf(run)
	switch {
	case run < 2 && results == 0:
		return fmt.Errorf("the first run of the %s side printed no result: nothing is to be compared; see %s",
			t.Names[side], t.file(side, "log"))
	case run < 2: // the output shows how many metrics there are
		if r := t.judge(side, side); r != nil {
			return t.enough(max(1, r.Tested))
		}
	case run%8 == 7 && run+1 < 2*t.Count: // two blocks have stats.LeastSamples runs of a side
		return t.forecast(run + 1)
	}
	return nil
}

// file returns the path of a file of a side.
func (t *Turns) file(side int, ext string) string { return filepath.Join(t.Dir, t.Names[side]+"."+ext) }

// enough returns ErrFew if Count is too small to show a loss in any of so many metrics. Drives need
// more runs, because a difference in either direction counts.
func (t *Turns) enough(metrics int) error {
	alpha := t.Options.Alpha
	if t.Drives {
		alpha /= 2
	}
	if t.Options.AllowFew || t.Count >= stats.Needed(metrics, alpha, true) {
		return nil
	}
	return fmt.Errorf("%w: %d runs of each side can show nothing; %s", ErrFew, t.Count,
		Needs(metrics, alpha, true))
}

// judge returns the report of a gate on the outputs so far, nil after an error. The gate itself reports that
// error later.
func (t *Turns) judge(old, new int) *Report {
	o := t.Options
	if t.Drives { // the settings in which two drives differ
		o.Ignore = append(slices.Clone(o.Ignore), merge.SettingFilesystem, merge.SettingDirectories,
			merge.SettingCapacity, merge.SettingDevice)
	}
	table, err := Read([]string{t.file(old, "txt")}, []string{t.file(new, "txt")}, o.Ignore, nil, nil)
	if err != nil {
		return nil
	}
	r, _ := Judge(table, o)
	return r
}

// forecast says what Count runs of each side will show if they are as noisy as the runs so far. With
// StopEarly it returns ErrFew if they will hardly decide a gate.
func (t *Turns) forecast(done int) error {
	r := t.judge(oldSide, newSide)
	if r == nil {
		return nil
	}
	for _, line := range r.Refusals {
		t.Say("no forecast: these runs cannot be compared: " + line)
	}
	f := r.forecast(t.Count)
	row := f.Noisiest
	if row == nil {
		return nil
	}
	from := fmt.Sprintf("forecast from %d runs of each side: ", done/2)
	noisiest := fmt.Sprintf("%s %s, the noisiest metric", row.Bench, row.Label)
	if t.Drives {
		t.Say(fmt.Sprintf("%s%d runs show a difference of %s or more in %s", from, t.Count, share(f.Sees), noisiest))
		return nil
	}
	text := fmt.Sprintf("with %d the gate decides with a probability of %.0f %%, as the runs differ so far; "+
		"a loss of %s would show in %s; the limit is %s", t.Count, 100*f.Decides, share(f.Sees),
		noisiest, share(row.Limit))
	if f.Decides < 0.5 {
		text += "; " + r.remedy(row, 2*time.Since(t.began)/time.Duration(done))
	}
	for _, failed := range r.Rows {
		if failed.Verdict == Failed { // the probability does not include it
			text += fmt.Sprintf("; %s: %s", failed.Bench, r.whole(failed))
		}
	}
	if t.StopEarly && f.Decides < hopeless {
		return fmt.Errorf("%w: %s%s", ErrFew, from, text)
	}
	t.Say(from + text)
	return nil
}

// resultLine matches the line of a benchmark with a value.
var resultLine = regexp.MustCompile(`(?m)^Benchmark\S*\s+\d+\s+\S+ \S+`)

// shown returns the cache directory of a run after a colon, and a line for each of its trials that has a result
// file. Warnings are only in the log.
func shown(out string) (dir, lines string) {
	records, _, _ := load.All([]string{load.Stdin}, load.Options{Stdin: strings.NewReader(out), Trials: true})
	records = slices.DeleteFunc(records, func(rec *load.Record) bool { return rec.Result == nil })
	width := 0
	for _, rec := range records {
		if rankDir := rec.Result.IO.CacheDir; rankDir != "" { // else several clients
			dir = ": " + units.Shorten(path.Dir(rankDir), 30)
		}
		width = max(width, len(rec.Result.Name))
		rec.Result.Warnings = nil
	}
	for _, rec := range records {
		lines += fmt.Sprintf("\n  %.*s", columns-2, report.TrialLine(rec.Result, width))
	}
	return dir, lines
}

// columns is the width of a terminal on which no line of a run wraps.
const columns = 100

// one makes a run and appends its output. ok is false if the command fails.
func (t *Turns) one(ctx context.Context, run int) (ok bool, results int, err error) {
	block, side := blockOf(run)
	where := fmt.Sprintf("run %d of %d (%s", run+1, 2*t.Count, t.Names[side])
	began := time.Now()
	out, log, ran := t.execute(ctx, run, side)
	took := time.Since(began).Round(100 * time.Millisecond)
	if err := t.append(side, "log", fmt.Sprintf("=== %s)\n%s\n", where, log)); err != nil {
		return false, 0, err
	}
	if ctx.Err() != nil && run < 2 {
		return false, 0, fmt.Errorf("interrupted in %s): nothing can be compared yet", where)
	}
	if ctx.Err() != nil { // incomplete trials would keep others of the side from being quoted
		return false, 0, fmt.Errorf("interrupted in %s): kvreport quote %s %s compares the runs before it; "+
			"they cannot be continued", where, t.file(oldSide, "txt"), t.file(newSide, "txt"))
	}
	if err := t.append(side, "txt", fmt.Sprintf("turn: %d\n%s\n", block+1, strings.TrimSuffix(out, "\n"))); err != nil {
		return false, 0, err
	}
	left := ""
	if runs := 2*t.Count - run - 1; runs > 0 && !t.LiveLine {
		mean := time.Since(t.began) / time.Duration(run+1)
		left = fmt.Sprintf(", %s left", minutes(time.Duration(runs)*mean))
	}
	results = len(resultLine.FindAllString(out, -1))
	dir, lines := "", ""
	if t.Drives { // of a gate only the verdict counts
		dir, lines = shown(out)
	}
	if ran != nil {
		why := ""
		if !strings.Contains(lines, "FAILED: ") { // else the line of the trial has the reason
			why = reason(log)
		}
		t.Say(fmt.Sprintf("%s%s): FAILED after %v with %s: %v%s; see %s%s%s", where, dir, took,
			units.Plural(results, "result"), ran, why, t.file(side, "log"), left, lines))
		return false, results, nil
	}
	t.Say(fmt.Sprintf("%s%s): %s in %v%s%s", where, dir, units.Plural(results, "result"), took, left, lines))
	return true, results, nil
}

// execute runs the command of a side and returns what it prints. The variable KVREPORT_RUN gives the live line
// of the benchmarks the number of the run, the number of runs, the time of the runs before it in ns, and the side.
func (t *Turns) execute(ctx context.Context, run, side int) (out, log string, err error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, "sh", "-c", t.Commands[side])
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), fmt.Sprintf("KVREPORT_RUN=%d %d %d %s", run+1, 2*t.Count, time.Since(t.began),
		t.Names[side]))
	if t.Drives { // the old program of a gate may not know the parameter -name
		cmd.Env = append(cmd.Env, "KVBENCH_NAME="+t.Names[side])
	}
	// Interrupt all processes of the group, so that each can clean up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = interruptGrace
	err = cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil { // the shell has ended, others of its group may still run
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return stdout.String(), stderr.String(), err
}

// reason returns why a command failed: the last error in the summary of a trial, or the last line of the
// log. It skips lines in parentheses, because they only refer to another place.
func reason(log string) (last string) {
	failed := ""
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		if why, is := strings.CutPrefix(line, "error  "); is {
			failed = ": " + strings.TrimSpace(why)
		} else if line != "" && !strings.HasPrefix(line, "(") {
			last = ": " + line
		}
	}
	return cmp.Or(failed, last)
}

// append appends text to a file of a side.
func (t *Turns) append(side int, ext, text string) error {
	f, err := os.OpenFile(t.file(side, ext), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
