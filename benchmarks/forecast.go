package benchmarks

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tracing/host"
)

// The assumptions of a forecast. Measured on a virtual disk that writes 1 to 2 GiB/s: the estimates of four
// whole runs were 0.79, 0.95, 0.98 and 1.16 times the time that they took.
const (
	assumedRate   = 1 << 30 // bytes/s that a storage of unknown speed moves
	assumedUnlink = 4 << 30 // bytes/s of files that are removed
	// A trial opens its tiers, measures the latency at queue depth 1 and writes its result.
	trialOverhead = 700 * time.Millisecond
)

// shortRun is the expected time up to which a run shows no forecast.
const shortRun = 5 * time.Second

// certainty shows how well a number is known before the run. A sum has the largest certainty of its parts.
type certainty int

const (
	exact certainty = iota
	atMost
	about
	atLeast
)

func (c certainty) String() string { return [...]string{"", "at most ", "about ", "at least "}[c] }

// estimate is what a trial of a line is expected to take. Bytes are of this rank.
type estimate struct {
	time      time.Duration
	timeIs    certainty
	window    time.Duration // 0 = until a number of requests or bytes
	written   int64         // bytes, to the storage tier
	writtenIs certainty
	room      int64 // bytes in the storage tier at a time
	// short is the length of a window that ends too early for a quote, because half of the tier is full.
	// 0 = the window is long enough.
	short time.Duration
}

// lasts returns the time in which bytes move at a rate in bytes/s.
func lasts(bytes int64, rate float64) time.Duration {
	return time.Duration(float64(bytes) / rate * float64(time.Second))
}

// estimate returns what a trial of a line is expected to take. It changes nothing on the storage.
func (p *plan) estimate(s *session, l *line) estimate {
	v := l.v
	e := estimate{timeIs: about, window: v.Window.Length}
	if v.Simulated() { // its window is of virtual time
		return e
	}
	if l.bench != nil {
		e.time = e.window
		return e
	}
	cfg := kvbench.Config{Storage: p.storage[v]}
	load, err := l.load(s, &trial{line: l}, &cfg)
	if err != nil {
		return e // the trial reports it
	}
	held := p.replayed[v]
	if of := p.populations[v]; of != nil && v.Bench.Load == params.LoadTrace && !of.Partial && cfg.Storage.Engine.Tails == nil {
		held = v.Sizer().Bytes(int(of.ContextTokens)) // a request writes at most its own context
	}
	return ofLoad(v, load, cfg.Storage.StorageBytes, held*int64(v.ReplayCycles))
}

// longRecording is a window that is long enough for any recording, such as that of Engines.
const longRecording = 6 * time.Hour

// ofLoad returns what a trial of a load on a storage tier is expected to take. held is what a recording writes at
// most, in bytes, 0 if that is not known.
func ofLoad(v *params.Values, load kvbench.Workload, capacity, held int64) estimate {
	phase, f := load.Phase(), load.Forecast()
	window := phase.Window
	if v.Bench.Load == params.LoadTrace && window >= longRecording {
		window = 0
	}
	counted := window == 0 && f.Moves == 0 // until a number of requests, or a recording, has completed
	if m := lasts(f.Moves, assumedRate); f.Moves > 0 && (window == 0 || m < window) {
		window = m
	}
	e := estimate{timeIs: about, window: phase.Window, writtenIs: about}
	if f.WriteShare > 0 && window < report.QuotedWindow && phase.Window >= report.QuotedWindow {
		e.short = window
	}
	switch {
	case counted:
		e.timeIs = atLeast
	case v.Bench.Load > params.LoadUsers: // a recording may end before the window does
		e.timeIs = atMost
	}
	moved := int64(assumedRate * (f.Search + phase.Warmup + window).Seconds())
	switch {
	case f.Moves > 0 || f.WriteShare == 0:
		moved, e.writtenIs = f.Moves, exact
	case v.Bench.Load == params.LoadUsers:
		offered := v.Offered()
		moved = v.Written(offered, assumedRate)
		bounded := offered.Bytes <= assumedRate || counted
		if bounded && !v.Autoscaling && !v.OfSessions() {
			e.writtenIs = atMost
		}
		if counted {
			window = lasts(moved, offered.Bytes)
		}
	case counted:
		e.writtenIs, f.Room = atLeast, capacity
	}
	e.written = f.Fill + int64(f.WriteShare*float64(moved))
	if most := f.Fill + held; held > 0 && (counted || most < e.written) {
		e.written, e.writtenIs, f.Room = most, atMost, 0
	}
	if v.NoStorage() {
		e.written, e.writtenIs = 0, exact
	}
	e.room = min(cmp.Or(f.Room, e.written), capacity)
	e.time = trialOverhead + 2*v.Settle + f.Search + lasts(f.Fill, assumedRate) + phase.Warmup + window +
		lasts(e.room, assumedUnlink)
	return e
}

// pauses reports whether a pause precedes the trials of an option, after those of the last option.
func pauses(v *params.Values, last int) bool {
	return last != 0 && v.Bench.Option != last && v.Division == params.Closed && !v.Rehearse
}

// runs returns the lines that have trials: those of the output, and those that others read.
func (p *plan) runs() []*line {
	return slices.DeleteFunc(slices.Concat(p.groups...), func(l *line) bool { return l.skip != "" })
}

// foresee estimates the trials of all lines, and what they do in which directories.
func (p *plan) foresee(s *session) {
	last := 0
	for _, l := range p.runs() {
		l.estimate = p.estimate(s, l)
		n := int64(len(l.trials))
		p.time += time.Duration(n) * l.time
		p.timeIs = max(p.timeIs, l.timeIs)
		if pauses(l.v, last) {
			p.time += params.OptionPause
		}
		if last = l.v.Bench.Option; l.written == 0 && l.writtenIs == exact {
			continue
		}
		at, ranks := p.placeOf(l.v), int64(max(1, l.v.LocalRanks))
		at.room = max(at.room, ranks*l.room)
		at.written += ranks * n * l.written
		at.writtenIs = max(at.writtenIs, l.writtenIs)
	}
}

// place is what a run does in the cache directories of a storage tier.
type place struct {
	names     []string          // of what is made in the directories
	on        []host.Filesystem // that the directories are on, none for an object store
	devices   string            // a line for each of them
	room      int64
	written   int64
	writtenIs certainty
	stay      bool // some files remain
}

// placeOf returns the place of a point, with what the point makes there.
func (p *plan) placeOf(v *params.Values) *place {
	dirs := strings.Join(cacheDirs(v), ", ")
	if p.places[dirs] == nil {
		p.places[dirs] = &place{}
		p.places[dirs].look(v)
	}
	at, name := p.places[dirs], madeBy(v)
	if !slices.Contains(at.names, name) {
		at.names = append(at.names, name)
	}
	_, reads, _ := v.CheckpointRuns()
	at.stay = at.stay || v.KeepFiles || v.Bench.Checkpoints() && reads == 0
	return at
}

// look finds the filesystems that the cache directories of a point are on, each once, and their devices. It asks
// whether a drive is mounted at the parent of a directory if that does not exist, or is on the root filesystem where
// others are mounted.
func (at *place) look(v *params.Values) {
	dirs := cacheDirs(v)
	for i, dir := range dirs {
		again := slices.ContainsFunc(dirs[:i], func(other string) bool { return host.SameFilesystem(dir, other) })
		fs, err := space(v, dir)
		if err != nil || again || v.OnObjects() {
			continue
		}
		near, _ := host.Existing(dir)
		d, _ := host.BackingDevice(near)
		at.devices += "\n  on "
		if device := result.DeviceOf(d); device != nil {
			at.devices += strings.TrimSpace(device.Name+" "+device.Model) + ", "
		}
		at.devices += fs.Type + " mounted at " + cmp.Or(d.Mount.Point, units.Unknown)
		parent := filepath.Dir(dir)
		_, err = os.Stat(parent)
		if err != nil || fs.Root && (strings.HasPrefix(dir, "/mnt/") || strings.HasPrefix(dir, "/media/")) {
			at.devices += " (is a drive mounted at " + parent + "?)"
		}
		at.on = append(at.on, fs)
	}
}

// madeBy returns the name of what a point makes in each cache directory.
func madeBy(v *params.Values) string {
	if spec, err := v.CheckpointSpec(); v.Bench.Checkpoints() && err == nil {
		return spec.Folder()
	}
	if v.Ranks > 1 {
		return "rank_*"
	}
	return fmt.Sprint("rank_", v.Rank)
}

// text describes what a run does in dirs.
func (at *place) text(dirs string) string {
	text := fmt.Sprintf("in %s (%s): needs up to %s", dirs, strings.Join(at.names, ", "),
		units.Bytes.Text(at.room))
	total, joint := int64(0), " of the "
	for _, fs := range at.on {
		text += joint + units.Bytes.Text(fs.Free) + " free"
		joint = " and "
		if !fs.Memory {
			total += fs.Total
		}
	}
	text += map[bool]string{true: ", leaves its files", false: ", removes its files at the end"}[at.stay] + at.devices
	if at.written == 0 {
		return text + "\n  writes an unknown number of bytes"
	}
	text += fmt.Sprintf("\n  writes %s%s in all", at.writtenIs, units.Bytes.Text(at.written))
	if share := math.Round(100*float64(at.written)/float64(total)) / 100; total > 0 && share > 0 {
		text += fmt.Sprintf(", %s drive writes: the filesystem has %s", units.Number.Text(share), units.Bytes.Text(total))
	}
	return text
}

// early explains a window that a full footprint ends too early for a quote.
func (p *plan) early(l *line) string {
	tier, seconds := p.storage[l.v].StorageBytes, int64(assumedRate*report.QuotedWindow.Seconds())
	full, need := "half of the tier is", "a tier of "+units.FormatGiB(2*seconds)+" GiB"
	if l.v.CeilingBytes > 0 {
		full, need = "-ceiling-size-gb "+l.v.Text("ceiling-size-gb")+" is", "-ceiling-size-gb "+units.FormatGiB(seconds)
	}
	text := fmt.Sprintf("the window of %s is too short to quote\n  at 1 GiB/s %s full after about %s; %s need %s", l.benchmark(),
		full, roughly(l.short), units.FormatDuration(report.QuotedWindow), need)
	roots, on := p.storage[l.v].Roots, p.placeOf(l.v).on
	if len(on) == 1 && len(roots) == 1 && roots[0].Floor > 0 {
		text += fmt.Sprintf("\n  the tier has %s, because %s of the %s free stay free", units.Bytes.Text(tier),
			units.Bytes.Text(on[0].Free-tier), units.Bytes.Text(on[0].Free))
	}
	return text
}

// directories returns the number of cache directories of a sweep: kvreport turns runs the benchmarks in each.
func (p *plan) directories() int {
	for _, axis := range p.points[0].Sweep {
		if axis.Key == "cache-dir" {
			return len(axis.Values)
		}
	}
	return 1
}

// benchmark returns the name of a line without the point of its sweep.
func (l *line) benchmark() string { return strings.Trim(l.v.Bench.Name+"/"+l.part.name, "/") }

// summary returns the lines that a user reads before a run: trials and time, room and bytes in each place,
// and where the results are. No line has a colon after its first word, see epilogue.
func (p *plan) summary(now time.Time) (lines []string) {
	trials, window := 0, time.Duration(0)
	for _, l := range p.runs() {
		trials += len(l.trials)
		window = max(window, l.window)
	}
	text := units.Plural(trials, "trial") + " of " + units.Plural(len(p.runs()), "benchmark")
	var names []string
	if n := len(p.runs()) / p.directories(); n > 0 && n < len(p.runs()) {
		text = units.Plural(trials/n, "run") + " of " + units.Plural(n, "benchmark")
		for _, l := range p.runs() {
			if name := "  " + l.benchmark(); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if window > 0 {
		text += " with windows of up to " + units.FormatDuration(window)
		if len(names) > 0 && window < report.QuotedWindow {
			text += " (too short to quote)"
		}
	}
	if n := p.points[0].Ranks; n > 1 {
		text += fmt.Sprintf(", each on %d ranks", n)
	}
	if p.time > 0 {
		text += fmt.Sprintf(", %s%s", p.timeIs, roughly(p.time))
	}
	if p.time > 0 && p.timeIs != atLeast {
		clock := "15:04"
		if p.time > 12*time.Hour {
			clock = "Mon 15:04"
		}
		text += ", until " + now.Add(p.time).Round(time.Minute).Format(clock)
	}
	lines = append(lines, text)
	places := slices.Sorted(maps.Keys(p.places))
	for _, dirs := range places {
		lines = append(lines, p.places[dirs].text(dirs))
	}
	if p.directories() == 2 && len(places) == 2 && host.SameFilesystem(places[0], places[1]) {
		lines[len(lines)-1] += "\n  both directories are on this filesystem: one drive is compared with itself"
	}
	const most = 3
	if n := len(lines) - most; n > 0 {
		lines = append(lines[:most], fmt.Sprintf("and in %s", units.Plural(n, "other place")))
	}
	lines = slices.Insert(lines, 1, names...)
	memory, inTiers := 0, []string{}
	for _, l := range p.runs() {
		if l.v.NoStorage() {
			memory++
			inTiers = append(inTiers, p.tiersOf(l.v))
		}
	}
	if memory > 0 {
		lines = append(lines, fmt.Sprintf("%s without a storage tier (%s), evicted entries are dropped, no "+
			"cache directory is used", units.Plural(memory, "benchmark"),
			strings.Join(slices.Compact(inTiers), "; ")))
	}
	for _, l := range p.runs() {
		if l.short > 0 && !slices.Contains(lines, p.early(l)) {
			lines = append(lines, p.early(l))
		}
		_, size := l.v.LargestEntry()
		if tier := p.storage[l.v].StorageBytes; l.v.Bench.Load == params.LoadUsers && 0 < tier && tier < 2*size {
			lines = append(lines, fmt.Sprintf("the tier of %s holds only one of the largest contexts, %s, at a time\n"+
				"  a trial may end without an entry; two need a tier of %s", l.name(), units.Bytes.Text(size),
				units.Bytes.Text(2*size)))
		}
	}
	lines = append(lines, p.opening()...)
	if len(p.storage) > 0 {
		lines = append(lines, "results in "+p.points[0].ResultsDir)
	}
	return lines
}

// roughly formats a time of which only seconds are known, from 100 s on minutes: 40 s, 8m, 2h17m.
func roughly(d time.Duration) string {
	if d <= 0 {
		return units.Unknown
	}
	if d = max(d.Round(time.Second), time.Second); d >= 100*time.Second {
		d = d.Round(time.Minute)
	}
	return strings.TrimSuffix(units.Nanoseconds.Text(d), "0s")
}

// remaining returns the expected time of a trial that begins, and of all trials after it, and the number of
// its line among those that have begun.
func (p *plan) remaining(begins *trial) (this, after time.Duration, number int) {
	for _, l := range p.runs() {
		waiting := len(l.trials) - l.ran
		if l == begins.line {
			waiting--
		}
		if l.ran > 0 || l == begins.line {
			number++
		}
		after += time.Duration(max(0, waiting)) * p.expected(l)
	}
	return p.expected(begins.line), after, number
}

// expected returns the time of a trial of a line: the mean of those that have run, else the estimate × the
// error of the estimates of the same benchmark so far.
func (p *plan) expected(l *line) time.Duration {
	if l.ran > 0 {
		return l.took / time.Duration(l.ran)
	}
	var took, estimated time.Duration
	for _, other := range p.runs() {
		if other.v.Bench.Name == l.v.Bench.Name {
			took += other.took
			estimated += time.Duration(other.ran) * other.time
		}
	}
	if estimated == 0 {
		return l.time
	}
	return time.Duration(float64(l.time) * took.Seconds() / estimated.Seconds())
}

// notBegun counts the trials that have not run, and their lines.
func (p *plan) notBegun() []string {
	trials, lines := 0, 0
	for _, l := range p.runs() {
		if waiting := len(l.trials) - l.ran; waiting > 0 {
			trials, lines = trials+waiting, lines+1
		}
	}
	if trials == 0 {
		return nil
	}
	return []string{units.Plural(trials, "trial") + " of " + units.Plural(lines, "benchmark")}
}

// ended counts a trial that began at that time.
func (l *line) ended(begun time.Time) {
	l.ran++
	l.took += time.Since(begun)
}
