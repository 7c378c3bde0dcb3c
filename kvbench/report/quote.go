package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// The limits of what may be quoted. They are conventions.
const (
	quotedTrials = 3    // fewer do not show the spread
	quotedSpread = 0.2  // the largest (max − min) ÷ median
	quotedDevice = 0.95 // the least share of the bytes that the device moved
	// QuotedWindow is the shortest window: a drive's own cache can serve a shorter one.
	QuotedWindow = 10 * time.Second
)

// Quotable is the text in the column quote of a row that may be quoted.
const Quotable = "yes"

const foundUnit = "found-tok/s"

// Quote is the table of what may be quoted. It has a row for each benchmark and metric over all trials. Each
// sentence below the table is a reason against quoting some rows, with what the user can do. Without the
// table a reader might quote one trial, or a rate that the storage did not limit.
func Quote(results []*result.Result) Section {
	s := Section{Title: "What You May Quote", Topic: "quote", Columns: []Column{{Name: "benchmark"},
		{Name: "metric"}, {Name: "median"}, {Name: "min–max"}, {Name: "spread", Unit: units.Share},
		{Name: "quote"}, {Name: "verdicts"}},
		Note: fmt.Sprintf("A row may be quoted if all of its at least %d trials are complete, each with a window "+
			"of at least %s in which the storage was the limit, and if their spread, (max − min) ÷ "+
			"median, is at most %s. The sentences below name what is missing.", quotedTrials, ns(int64(QuotedWindow)),
			units.Share.Text(quotedSpread))}
	var notes Notes
	trials, names := byName(results)
	for _, name := range names {
		for _, unit := range metrics(trials[name]) {
			quote := Quotable
			if numbers := notes.Add(Doubts(trials[name], unit)...); numbers != "" {
				quote = "no" + numbers
			}
			verdict, _, several := strings.Cut(Verdicts(trials[name]), ", ")
			if verdict = strings.Replace(verdict, " of ", "/", 1); several {
				verdict += " …"
			}
			median, span, spread := values(trials[name], unit)
			s.add(name, metricOf(unit)+queueDepth(trials[name]), median, span, spread, quote, verdict)
		}
		s.Below = append(s.Below, answers(name, trials[name])...)
	}
	s.Below = append(s.Below, notes.Lines()...)
	return s
}

// answers returns whether loading was worth it in the trials of one benchmark. It has a line for each answer:
// how many trials gave it, and the reason that the typical one of them gave.
func answers(name string, trials []*result.Result) (lines []string) {
	with := map[string][]*result.Result{}
	var order []string
	for _, r := range trials {
		answer, _ := worth(r)
		if answer == "" || r.Status != result.StatusComplete {
			continue
		}
		if with[answer] == nil {
			order = append(order, answer)
		}
		with[answer] = append(with[answer], r)
	}
	for _, answer := range order {
		of := name
		if len(trials) > 1 {
			of = fmt.Sprintf("%s, in %d of %d trials", name, len(with[answer]), len(trials))
		}
		lines = append(lines, of+": "+Worth(Typical(with[answer])))
	}
	return lines
}

// Notes are different sentences below a table. Cells of the table refer to them by number.
type Notes []string

// Add adds sentences and returns the reference to them, such as " (1, 3)". It is "" without sentences.
func (n *Notes) Add(sentences ...string) string {
	var numbers []int
	for _, text := range sentences {
		if !slices.Contains(*n, text) {
			*n = append(*n, text)
		}
		numbers = append(numbers, slices.Index(*n, text)+1)
	}
	if len(numbers) == 0 {
		return ""
	}
	slices.Sort(numbers)
	return fmt.Sprintf(" (%s)", units.List(slices.Compact(numbers)))
}

// Lines returns the sentences with their numbers.
func (n Notes) Lines() (lines []string) {
	for i, text := range n {
		lines = append(lines, fmt.Sprintf("(%d) %s", i+1, text))
	}
	return lines
}

// byName returns the trials of each benchmark, simulated ones apart, and the benchmarks in the order of their
// first trials. Engines are in the order of their medians, the largest first.
func byName(results []*result.Result) (trials map[string][]*result.Result, names []string) {
	trials = map[string][]*result.Result{}
	for _, r := range results {
		name := cmp.Or(r.Name, r.Benchmark)
		if r.Simulation != nil {
			name += " (simulated)"
		}
		if trials[name] == nil {
			names = append(names, name)
		}
		trials[name] = append(trials[name], r)
	}
	place := map[string]int{}
	for i, name := range slices.Backward(names) {
		place[trials[name][0].Benchmark] = i
	}
	slices.SortStableFunc(names, func(a, b string) int {
		x, y := trials[a], trials[b]
		return cmp.Or(place[x[0].Benchmark]-place[y[0].Benchmark], cmp.Compare(found(y), found(x)))
	})
	return trials, names
}

// found returns the median of the tokens per second that an engine found, 0 for other benchmarks.
func found(trials []*result.Result) float64 {
	_, values := known(trials, foundUnit)
	median, _ := units.Median(values)
	return median
}

// metrics returns the units of a benchmark that the table quotes. Requests of one size have their rate and
// latency, engines have the tokens that they found, and other benchmarks have rates of bytes or removals. A
// benchmark without numbers has one row, without a metric.
func metrics(trials []*result.Result) (list []string) {
	quoted := []string{"read-B/s", "write-B/s", "freed-B/s", "removals/s"}
	switch first := trials[0]; {
	case first.Benchmark == result.BenchmarkEngines:
		quoted = []string{foundUnit}
	case ofOneSize(first) && first.PlainIO.Knee == nil:
		quoted = []string{"io/s", "read-io-p99-ns", "write-io-p99-ns"}
	}
	for _, unit := range quoted {
		if _, values := known(trials, unit); len(values) > 0 {
			list = append(list, unit)
		}
	}
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

// ofOneSize reports whether a load has requests of one size, a number of them in flight.
func ofOneSize(r *result.Result) bool { return r.PlainIO != nil && r.PlainIO.BlockBytes > 0 }

// queueDepth returns the queue depth of requests of one size, because rate and latency mean nothing without
// it. The name of the benchmark has the size. It returns "" for other loads, and if the trials differ.
func queueDepth(trials []*result.Result) (text string) {
	for i, r := range trials {
		this := ""
		if ofOneSize(r) {
			this = fmt.Sprintf(" QD%d", r.Workload.Workers)
		}
		if i > 0 && this != text {
			return ""
		}
		text = this
	}
	return text
}

// values returns the median of the complete trials, the least and the largest value, and their distance ÷
// median. Rates have the unit of the largest value, because 980 MiB/s looks larger than 1.02 GiB/s. span
// omits the unit if it is the median's.
func values(trials []*result.Result, unit string) (median, span string, spread *float64) {
	_, values := known(trials, unit)
	middle, ok := units.Median(values)
	if !ok {
		return units.Unknown, units.Unknown, nil
	}
	least, most := slices.Min(values), slices.Max(values)
	show := units.OfLine(unit, most)
	_, of, _ := strings.Cut(show(middle), " ")
	bare := func(v float64) string { return strings.TrimSuffix(show(v), " "+of) }
	median = strings.TrimSuffix(show(middle), " "+unit) // the metric's name has found-tok/s already
	if len(values) == 1 {
		return median, units.Unknown, nil
	}
	return median, bare(least) + "–" + bare(most), units.Ratio(most-least, middle)
}

// Verdicts counts what limited the trials of one benchmark, the most frequent first: "2 of 3 storage-limited,
// 1 of 3 failed".
func Verdicts(trials []*result.Result) string {
	counts := map[string]int{}
	var kinds, list []string
	for _, r := range trials {
		kind := cmp.Or(r.Harness.Verdict.Kind, "without verdict")
		if r.Status != result.StatusComplete {
			kind = r.Status
		}
		if counts[kind]++; counts[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	slices.SortStableFunc(kinds, func(a, b string) int { return counts[b] - counts[a] })
	for _, kind := range kinds {
		list = append(list, fmt.Sprintf("%d of %d %s", counts[kind], len(trials), kind))
	}
	return strings.Join(list, ", ")
}

// Doubts is the rule of what may be quoted, for all documents. It returns the reasons why a metric of one
// benchmark must not be quoted as the storage's. The main conditions: at least three trials, all complete and
// none simulated. The storage limited them (exceptions: Limited), in windows of at least 10 s (not for removals
// and checkpoints). The device moved the bytes. The trials differ by at most 20 %. doubtsOf and
// doubtsOfCheckpoint have the others. A reason may be in the list more than once.
func Doubts(trials []*result.Result, unit string) (list []string) {
	for _, r := range trials {
		switch {
		case r.Status != result.StatusComplete:
			why, _, _ := strings.Cut(cmp.Or(r.Error, "ended by "+r.EndedBy), "\n")
			list = append(list, r.Status+" trial: "+why)
			continue
		case r.IO.Mode == result.IOMemory:
			return append(list, "tiers in memory were measured, no storage")
		case r.Division == result.DivisionQuick:
			return append(list, "the quick division shows that everything works, with small models and "+
				"windows: -division open -benchtime 60s, or -division closed for MLPerf's parameters")
		case r.Simulation != nil:
			return append(list, "simulated: the numbers describe the model of a device, no storage; without "+
				"-simulate-device and -io-trace-log a run measures")
		}
		list = append(list, doubtsOf(r, unit)...)
		if r.Checkpoint != nil {
			list = append(list, doubtsOfCheckpoint(r, unit)...)
		}
	}
	_, values := known(trials, unit)
	median, _ := units.Median(values)
	if bytes, same := sameBytes(trials, unit); same {
		list = append(list, fmt.Sprintf("each trial moved the same %s, and the window ended by time: the load fixed "+
			"this rate, not the storage: more requests at a time (-workers, -num-users)", units.Bytes.Text(bytes)))
	}
	switch n := len(values); {
	case n == 0:
	case n < quotedTrials && len(trials) >= quotedTrials:
		list = append(list, fmt.Sprintf("only %d of %d trials have this number", n, len(trials)))
	case n < quotedTrials:
		list = append(list, fmt.Sprintf("fewer than %d trials do not show the spread: -count %d",
			quotedTrials, quotedTrials))
	case slices.Max(values)-slices.Min(values) > quotedSpread*median:
		list = append(list, fmt.Sprintf("the trials differ by more than %s: measure longer (%s), and end "+
			"other programs", units.Share.Text(quotedSpread), longer(trials[0])))
	}
	if r := trials[0]; r.Division == result.DivisionClosed && r.Checkpoint == nil {
		fixed := fixedFlag
		if r.Notice == result.RehearsalNotice {
			fixed = fixedInRehearsal
		}
		for i, text := range list {
			list[i] = fixed.ReplaceAllString(text, "$0 (fixed in the closed division)")
		}
	}
	return list
}

// Flags of these reasons, with their values, that the closed division fixes in MLPerf's options.
var (
	fixedInRehearsal = regexp.MustCompile(rehearsalFixes + `)(?: (?:\d\w*|direct))?`)
	fixedFlag        = regexp.MustCompile(rehearsalFixes + `|benchtime|settle)(?: (?:\d\w*|direct))?`)
)

const rehearsalFixes = "-(?:io-depth|io|workers|num-users|max-concurrent-allocs|chunk-size|gpu|prefill-rate"

// fixedRequests is the number of requests from which equal bytes in all trials are no chance.
const fixedRequests = 100

// sameBytes reports whether all trials read or wrote the same number of bytes in windows that ended by time. The
// load then fixed them: storage that limits a rate gives other bytes in each window.
func sameBytes(trials []*result.Result, unit string) (bytes int64, same bool) {
	for i, r := range trials {
		t := r.Tier("storage").Read
		if unit == "write-B/s" {
			t = r.Tier("storage").Write
		} else if unit != "read-B/s" {
			return 0, false
		}
		if i > 0 && t.Bytes != bytes || r.EndedBy != result.EndedByDeadline || max(t.Operations, t.Requests) < fixedRequests {
			return 0, false
		}
		bytes = t.Bytes
	}
	return bytes, len(trials) > 1
}

// doubtsOf returns the reasons against quoting a complete trial.
func doubtsOf(r *result.Result, unit string) (list []string) {
	add := func(when bool, text string) {
		if when {
			list = append(list, text)
		}
	}
	add(r.Ranks > max(1, len(r.MergedRanks)), "the numbers are of "+ranks(r)+", not of all clients")
	for _, o := range r.Roots() {
		if d := o.BlockDevice; d != nil {
			add(d.BackingFile != "", d.Name+" is a loop device over "+d.BackingFile+", no drive: give a directory on a drive")
			add(strings.HasPrefix(d.Name, "zram") || strings.HasPrefix(d.Name, "ram"), d.Name+" is memory, no drive: "+
				"give a directory on a drive")
		}
	}
	for _, p := range r.Pauses {
		add(p.InWindow, p.Why())
	}
	limit := Limited(r)
	add(limit != "", limit)
	if p := r.PlainIO; p != nil {
		add(p.SweepDoubt != "", p.SweepDoubt)
	}
	add(r.IO.CachedWrites, "the filesystem accepts direct I/O and writes through the page cache: the warning about "+
		"direct I/O says how it writes directly")
	add(r.Checkpoint == nil && unmoved(r, unit), "a cache took a part of the bytes: -io direct, or "+
		"much more data than this machine has memory")
	add(r.WindowNS < int64(QuotedWindow) && r.Removal == nil && r.Checkpoint == nil, "a window of less than "+
		ns(int64(QuotedWindow))+" shows a drive's own cache, or noise: "+longer(r))
	add(unit == foundUnit && r.PartOfInput() && r.EndedBy == result.EndedByDeadline, "the window ended "+
		"at another request of the trace for each engine: a longer -benchtime, or -benchtime 1000x")
	return list
}

// doubtsOfCheckpoint returns the further reasons against quoting checkpoints.
func doubtsOfCheckpoint(r *result.Result, unit string) (list []string) {
	c := r.Checkpoint
	if c.Scale > 1 {
		list = append(list, "scaled files are smaller than the model's: -checkpoint-scale 1")
	}
	runs, _ := c.Reading()
	cached := func(x result.CheckpointRun) bool { return !units.OrZero(x.Cold) }
	if unit == "read-B/s" && r.Objects == nil && slices.ContainsFunc(runs, cached) {
		list = append(list, "the page cache may have served reads: -checkpoint-flush drop, as root")
	}
	if c.Stages != nil && c.Stages.Bottleneck == result.BottleneckGeneration {
		list = append(list, "generating the bytes was the limit: more -stream-producers, or more cores")
	}
	return list
}

// unmoved reports whether a cache took a part of the bytes in the direction of a unit.
func unmoved(r *result.Result, unit string) bool {
	if r.Removal != nil { // it moves only the filesystem's own bytes
		return false
	}
	read, _ := r.StorageTraffic()
	reads := strings.HasPrefix(unit, "read") || !strings.HasPrefix(unit, "write") && read.Bytes > 0
	ratio := r.DeviceCounters.WriteRatio
	if reads {
		ratio = r.DeviceCounters.ReadRatio
	}
	return ratio != nil && *ratio < quotedDevice || ratio == nil && r.IO.Mode == "buffered" ||
		reads && r.Network.Short()
}

// longer returns what makes the window of a trial longer: twice its length, and at least a minute.
func longer(r *result.Result) string {
	switch {
	case r.Checkpoint != nil:
		return "more -checkpoint-writes or -checkpoint-reads"
	case r.EndedBy == result.EndedByInput || r.EndedBy == result.EndedByMaxRequests || r.EndedBy == result.EndedByCount:
		return "a longer recording, or more requests"
	case r.EndedBy == result.EndedByFootprint && r.PlainIO != nil && r.WindowNS > 0:
		// 1.2 × the bytes that fill a quoted window, which are at most half of the tier.
		bytes := int64(1.2 * float64(r.PlainIO.FootprintBytes) * float64(QuotedWindow) / float64(r.WindowNS))
		return "-ceiling-size-gb " + eachRank(r, bytes) + " in a -storage-capacity-gb of at least " + eachRank(r, 2*bytes)
	}
	return "-benchtime " + units.FormatDuration(max(time.Minute,
		2*time.Duration(units.OrZero(r.NominalWindowNS))))
}

// eachRank returns the share of each rank of a number of bytes, in whole GiB.
func eachRank(r *result.Result, bytes int64) string {
	return fmt.Sprint(1 + (bytes-1)/int64(max(1, len(r.MergedRanks)))/int64(units.GiB))
}

// enoughCapacity returns a capacity of the tier that was too small: it holds the largest contexts of all users, or
// twice the tier's.
func enoughCapacity(r *result.Result) string {
	t, flag := r.ShortTier()
	bytes := 2 * units.OrZero(t.CapacityBytes)
	if p := r.Workload.Population; p != nil && len(p.Classes) > 0 {
		bytes = max(bytes, p.ContextTokens*r.Model.RankBytesPerToken*int64(max(1, r.Model.StoringRanks)))
	}
	return fmt.Sprintf("of the %s tier: %s %s", t.Level, flag, eachRank(r, bytes))
}

// Limited returns what limited a trial, and what to change. It returns "" for the storage, and for two other
// limits: discards may limit a removal, because it measures them. Latency may limit requests of one size,
// checkpoints and engines, because their number in flight belongs to the benchmark.
func Limited(r *result.Result) string {
	v := r.Harness.Verdict
	_, advice, _ := strings.Cut(v.Reason, ": ")
	advice = cmp.Or(advice, v.Reason, "the result has no verdict")
	switch v.Kind {
	case result.StorageLimited:
		return ""
	case result.LoadLimited:
		advice = moreLoad(r)
	case result.Shared:
		advice = "another process used the device in the window: end it, or use a drive of its own"
	case result.CapacityLimited:
		advice = "workers waited for capacity " + enoughCapacity(r)
	case result.DiscardLimited:
		if r.Removal != nil {
			return ""
		}
		advice = "the drive was discarding deleted files: mount without discard (and fstrim before the " +
			"run), or -settle 30s if they were deleted before the window"
	case result.CPULimited:
		advice = moreCPU(r)
	case result.LatencyLimited:
		if ofOneSize(r) || r.Checkpoint != nil || r.Benchmark == result.BenchmarkEngines {
			return ""
		}
		advice = moreInFlight(r)
	}
	return cmp.Or(v.Kind, result.NoVerdict) + ": " + advice
}

// moreCPU returns what a CPU-limited trial measured instead of the storage, and what helps.
func moreCPU(r *result.Result) string {
	if fs := r.Filesystems(); len(fs) > 0 && fs[0].InMemory {
		return "the files lie in memory: -cache-dir on a drive"
	}
	advice := "this machine was slower than the storage: end other programs, use more cores"
	if n := r.IO.ChunkBytes; n > 0 && n < 4<<20 && !ofOneSize(r) && r.Objects == nil && r.Checkpoint == nil {
		advice += ", or larger I/O requests (-chunk-size 4MiB)"
	}
	return advice
}

// moreInFlight returns the flag that gives a latency-limited trial more I/O requests in flight.
func moreInFlight(r *result.Result) string {
	const more = "more I/O requests in flight would move more: "
	switch r.Harness.Verdict.Bound {
	case result.BoundDepth:
		return more + fmt.Sprintf("-io-depth %d", 2*r.IO.Depth)
	case result.BoundWorkers:
		return more + fmt.Sprintf("-workers %d", 2*r.Workload.Workers)
	case result.BoundWriteLimit:
		return more + fmt.Sprintf("-max-concurrent-allocs %d", 2*r.IO.MaxConcurrentAllocs)
	case result.BoundBuffers:
		return "the memory for buffers was the limit: more memory, or smaller chunks (-chunk-size)"
	}
	return "the engine's own threads were the limit: this is the engine's rate, not the drive's"
}

// moreLoad returns what the workers of a load-limited trial waited for, and the flag that changes it.
func moreLoad(r *result.Result) string {
	slow := func(p result.Parameter) bool { return p.Name == "trace-speedup" && p.Value != "0" }
	switch {
	case r.Harness.Busy.ThinkingNS > r.Harness.WorkerIdleNS:
		return "workers waited for the GPU: leave out -gpu and -prefill-rate"
	case r.Workload.Users > 0:
		return fmt.Sprintf("workers waited for requests: more users, -num-users %d", 2*r.Workload.Users)
	case slices.ContainsFunc(r.Parameters, slow):
		return "workers waited for requests: -trace-speedup 0 leaves out the pauses of a recording"
	}
	return "workers waited for requests: a larger input, or fewer -workers"
}
