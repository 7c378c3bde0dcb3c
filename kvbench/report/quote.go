package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// The limits of what may be quoted. They are conventions.
const (
	quotedTrials = 3                // fewer do not show the spread
	quotedSpread = 0.2              // the largest (most - least) ÷ median
	quotedWindow = 10 * time.Second // a drive's own cache can serve a shorter window
	quotedDevice = 0.95             // the least share of the bytes that the device moved
)

// Quotable is in the column quote of a row that may be quoted.
const Quotable = "yes"

// quotedUnits are the metrics that describe storage.
var quotedUnits = []string{"io/s", "read-io-p99-ns", "write-io-p99-ns", "read-B/s", "write-B/s",
	"freed-B/s", "removals/s"}

// Quote is the table of what may be quoted, with a row for each benchmark and metric over all trials. Below
// the table is a sentence for each reason against quoting some of the rows, with what the user can do.
// Without the table a reader might quote one trial, or a rate that the storage did not limit.
func Quote(results []*result.Result) Section {
	s := Section{Title: "What You May Quote", Topic: "quote", Columns: []Column{{Name: "benchmark"},
		{Name: "metric"}, {Name: "median"}, {Name: "least–most"}, {Name: "spread", Unit: units.Share},
		{Name: "quote"}, {Name: "verdicts"}},
		Note: fmt.Sprintf("A row may be quoted if at least %d trials ended in order, each with a window "+
			"of at least %s in which the storage was the limit, and if their spread, (most − least) ÷ "+
			"median, is at most %s.", quotedTrials, ns(int64(quotedWindow)),
			units.Share.Text(quotedSpread))}
	var notes Notes
	trials, names := byName(results)
	for _, name := range names {
		for _, unit := range metrics(trials[name]) {
			quote := Quotable
			if numbers := notes.Add(Doubts(trials[name], unit)...); numbers != "" {
				quote = "no" + numbers
			}
			median, span, spread := values(trials[name], unit)
			s.add(name, unit+requestsOf(trials[name]), median, span, spread, quote,
				Verdicts(trials[name]))
		}
		if answer := Worth(Typical(trials[name])); answer != "" {
			s.Below = append(s.Below, name+": "+answer)
		}
	}
	s.Below = append(s.Below, notes.Lines()...)
	return s
}

// Notes are sentences below a table, each once, to which its cells refer by number.
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
// first trials.
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
	return trials, names
}

// metrics returns the quoted units that a benchmark has. Requests of one size are quoted by their number
// and latency. A benchmark without numbers has one row, without a metric.
func metrics(trials []*result.Result) (list []string) {
	p := trials[0].PlainIO
	blocks := p != nil && p.BlockBytes > 0
	for _, unit := range quotedUnits {
		_, values := known(trials, unit)
		ofBlocks := strings.Contains(unit, "io")
		if len(values) > 0 && (ofBlocks == blocks || blocks && p.Knee != nil) {
			list = append(list, unit)
		}
	}
	if len(list) == 0 {
		return []string{""}
	}
	return list
}

// requestsOf returns the size of requests and their number in flight, without which their rate and latency
// mean nothing. It returns "" for other loads, and if the trials differ.
func requestsOf(trials []*result.Result) (text string) {
	for i, r := range trials {
		if r.PlainIO == nil || r.PlainIO.BlockBytes == 0 {
			return ""
		}
		this := fmt.Sprintf(", %s × %d", bytes(r.PlainIO.BlockBytes), r.Workload.Workers)
		if i > 0 && this != text {
			return ""
		}
		text = this
	}
	return text
}

// values returns the median of the complete trials, the least and the largest value, and their distance ÷
// median. The texts have one unit, or 980 MiB/s looks larger than 1.02 GiB/s.
func values(trials []*result.Result, unit string) (median, span string, spread *float64) {
	_, values := known(trials, unit)
	middle, ok := units.Median(values)
	if !ok {
		return units.Unknown, units.Unknown, nil
	}
	least, most := slices.Min(values), slices.Max(values)
	show := units.OfLine(unit, most)
	if len(values) == 1 {
		return show(middle), units.Unknown, nil
	}
	low, of, _ := strings.Cut(show(least), " ")
	if !strings.HasSuffix(show(most), " "+of) {
		low = show(least)
	}
	return show(middle), low + "–" + show(most), units.Ratio(most-least, middle)
}

// Verdicts counts what limited the trials of one benchmark: "2 of 3 storage-limited, 1 of 3 failed".
func Verdicts(trials []*result.Result) string {
	counts := map[string]int{}
	var kinds []string
	for _, r := range trials {
		kind := r.Harness.Verdict.Kind
		if r.Status != result.StatusComplete {
			kind = r.Status
		}
		if counts[kind]++; counts[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d of %d %s", counts[kind], len(trials), cmp.Or(kind, "without verdict"))
	}
	return strings.Join(kinds, ", ")
}

// Doubts is the rule of what may be quoted, for all documents: the reasons why a metric of one benchmark
// must not be quoted as the storage's. There are none if at least three trials, all of them complete and
// not simulated, were limited by the storage in windows of at least 10 s, if the device moved the bytes, and
// if the trials differ by at most 20 %.
func Doubts(trials []*result.Result, unit string) (list []string) {
	add := func(texts ...string) {
		for _, text := range texts {
			if text != "" && !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	for _, r := range trials {
		why, _, _ := strings.Cut(cmp.Or(r.Error, "it was ended by "+r.EndedBy), "\n")
		switch {
		case r.Division == result.DivisionQuick:
			return []string{"the quick division shows that everything works, with small models and " +
				"windows: -division open -benchtime 60s, or -division closed for MLPerf's parameters"}
		case r.Simulation != nil:
			return []string{"simulated: the numbers describe the model of a device, no storage; without " +
				"-simulate-device and -io-trace-log a run measures"}
		case r.Status != result.StatusComplete:
			add("a trial is " + r.Status + ": " + why)
		case r.Ranks > max(1, len(r.MergedRanks)):
			add("the numbers are of " + ranks(r) + ", not of all clients")
		default:
			add(Limited(r), unmoved(r, unit), short(r))
			add(checkpointDoubts(r.Checkpoint, unit)...)
		}
	}
	_, values := known(trials, unit)
	middle, _ := units.Median(values)
	switch n := len(values); {
	case n > 0 && n < quotedTrials:
		add(fmt.Sprintf("fewer than %d trials do not show the spread: -count %d", quotedTrials,
			quotedTrials))
	case n > 0 && slices.Max(values)-slices.Min(values) > quotedSpread*middle:
		add(fmt.Sprintf("the trials differ by more than %s: measure longer (%s) or more often "+
			"(-count %d), and end other programs", units.Share.Text(quotedSpread), longer(trials[0]), 2*n))
	}
	return list
}

// Limited returns what limited a trial, and what to change, "" if it was the storage. A removal is limited
// by discards, which it measures. Requests of one size and checkpoints have a number in flight that belongs
// to the benchmark, so that their latency may be the limit.
func Limited(r *result.Result) string {
	v, p, load := r.Harness.Verdict, r.PlainIO, r.Workload
	fixed := r.Checkpoint != nil || p != nil && p.BlockBytes > 0
	_, reason, _ := strings.Cut(v.Reason, ": ")
	text := ""
	switch v.Kind {
	case result.StorageLimited:
		return ""
	case result.LoadLimited:
		text = fmt.Sprintf("workers waited for requests: more users, -num-users %d", 2*load.Users)
		if r.Harness.Busy.ThinkingNS > r.Harness.WorkerIdleNS {
			text = "the GPU's computing took the time: without -gpu and -prefill-rate the storage is the limit"
		} else if load.Users == 0 {
			text = "workers waited for requests: -trace-speedup 0 leaves out the pauses of a recording"
		}
	case result.Shared:
		text = "another process used the device in the window: end it, or use a drive of its own"
	case result.CapacityLimited:
		text = fmt.Sprintf("workers waited for capacity: -storage-capacity-gb %s",
			units.FormatGiB(2*r.StorageCapacity()))
	case result.DiscardLimited:
		if r.Removal != nil {
			return ""
		}
		text = "the drive was discarding deleted files: mount without discard (and fstrim before the " +
			"run), or -settle 30s if they were deleted before the window"
	case result.CPULimited:
		text = "this machine was slower than the storage: end other programs, use more cores, or larger " +
			"I/O requests (-chunk-size 4MiB)"
		if v.InFlight == nil {
			text = "a tier in memory was measured, no storage"
		} else if fs := r.Filesystems(); len(fs) > 0 && fs[0].InMemory {
			text = "the files lie in memory: -cache-dir on a drive"
		}
	case result.LatencyLimited:
		if fixed {
			return ""
		}
		more, ok := map[string]string{"depth": fmt.Sprintf("-io-depth %d", 2*r.IO.Depth),
			"workers":     fmt.Sprintf("-workers %d", 2*load.Workers),
			"write limit": fmt.Sprintf("-max-concurrent-allocs %d", 2*r.IO.MaxConcurrentAllocs)}[v.Bound]
		if text = "more I/O requests in flight would move more: " + more; !ok {
			text = "the engine's own threads were the limit: this is the engine's rate, not the drive's"
		}
	default:
		text = cmp.Or(reason, v.Reason, "the result has no verdict")
	}
	return cmp.Or(v.Kind, result.NoVerdict) + ": " + text
}

// unmoved returns why the device did not move all bytes of a trial.
func unmoved(r *result.Result, unit string) string {
	ratio, reads := r.DeviceCounters.WriteRatio, !strings.HasPrefix(unit, "write")
	if reads {
		ratio = r.DeviceCounters.ReadRatio
	}
	switch {
	case r.Checkpoint != nil: // its pauses are in the window
		return ""
	case ratio != nil && *ratio < quotedDevice, ratio == nil && r.IO.Mode == "buffered",
		reads && r.Network.Short():
		return "a cache took a part of the bytes: -io direct, or much more data than this machine has memory"
	}
	return ""
}

// checkpointDoubts returns why a rate is not that of a checkpoint's files.
func checkpointDoubts(c *result.Checkpoint, unit string) (list []string) {
	if c == nil {
		return nil
	}
	if c.Scale > 1 {
		list = append(list, "scaled files are smaller than the model's: -checkpoint-scale 1")
	}
	runs, _ := c.Reading()
	if unit == "read-B/s" && slices.ContainsFunc(runs,
		func(x result.CheckpointRun) bool { return !units.OrZero(x.Cold) }) {
		list = append(list, "the page cache may have served reads: -checkpoint-flush drop, as root")
	}
	if p := c.Stages; p != nil && unit == "write-B/s" && p.Bottleneck == result.BottleneckGeneration {
		list = append(list, "generating the bytes was the limit: more -stream-producers, or more cores")
	}
	return list
}

// short returns why a window shows too little of a drive. Removals and checkpoints end with their files.
func short(r *result.Result) string {
	least := ns(int64(quotedWindow))
	switch {
	case r.WindowNS >= int64(quotedWindow), r.Removal != nil, r.Checkpoint != nil:
		return ""
	case r.EndedBy == result.EndedByFootprint:
		return "the capacity was full in less than " + least + ", in which a drive's own cache can take " +
			"the writes: a larger -storage-capacity-gb"
	}
	return "a window of less than " + least + " shows a drive's own cache, or noise: " + longer(r)
}

// longer returns the flag for a window that is twice as long, of a minute at least.
func longer(r *result.Result) string {
	return "-benchtime " + units.FormatDuration(max(time.Minute,
		2*time.Duration(units.OrZero(r.NominalWindowNS))))
}
