package load

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/tracing"
)

// Bpftrace is a saved text of bpftrace: the output of the Python benchmark's script
// storage_latency_stack.bt, or of any other script with maps of the same names. bpftrace prints its
// maps at its end
//
//	@bssplit_read_kb:
//	[64, 128)           1495 |@@@@@@@@@@@@@                                       |
//
// Values are known to a power of two only, and some are missing: Trace says which.
type Bpftrace struct {
	samples map[bucket]int64
	below   map[string]int64 // samples below zero, by map name
	process string           // the traced process, from the line that the script's wrapper prints
	keyed   bool

	// Pending at the end of the script: block requests, and the times in ns at which anything
	// began.
	left  int
	times []float64
}

// bucket is one line of a histogram; histograms of one name with several keys are added up.
type bucket struct {
	name      string
	low, high float64 // equal for an open-ended bucket
}

// Limits, found with texts that bpftrace 0.17 printed while fio ran on a loop device.
const (
	// queue depth when the text does not determine it; the Python benchmark's own distiller takes
	// at least that
	guessDepth = 32
	spanTimes  = 20   // that many times of what was left over span the time of tracing well enough
	fullMap    = 4000 // bpftrace keeps 4096 keys in a map; a full one follows no further request
	offShare   = 0.01 // of the requests may be missing without a word

	// longShare is the share of the longest device times that is left out: the script identifies
	// requests by their sector. When it loses a completion, it matches the request with the next
	// one at the same sector, seconds later.
	longShare = 0.001
)

// Patterns of the lines that matter. bpftrace pads lines and draws bars for people, so the patterns
// look at names and numbers only. attached finds a map of the script, or bpftrace's first line, at
// the head of a file.
var (
	mapLine    = regexp.MustCompile(`^@([^\[:]+)(\[.*\])?:\s*(.*)$`)
	bucketLine = regexp.MustCompile(
		`^[\[(](\.\.\.|-?\d+[KMGTPE]?)(?:, (\.\.\.|\d+[KMGTPE]?))?[\])]` +
			`\s+(\d{1,12}) \|.*\|$`)
	leftover = regexp.MustCompile(
		`(?m)^\s*@([qd]|rs|ws|write_enter|write_done|fsync_enter|fadvise_done)\[.*\]:\s*(\d+)\s*$`)
	attached = regexp.MustCompile(`(?m)^\s*(Attaching \d+ probes\.\.\.\s*$|@(` +
		`(d2c|q2d|vfs|fsync|write_to_fsync|fadvise_to_read|bssplit|qd|lba)_\w+` +
		`|[qd]|rs|ws|write_enter|write_done|fsync_enter|fadvise_done)[:\[])`)
)

// wrapperLine is what the script's wrapper prints before it.
const wrapperLine = "Tracing process: "

// used are the histograms that a job is made of, with their units.
var used = map[string]string{"bssplit_read_kb": "kb", "bssplit_write_kb": "kb", "d2c_read_us": "us",
	"d2c_write_us": "us", "lba_read_gb": "gb", "lba_write_gb": "gb"}

// parseBpftrace reads a saved text and skips everything between the maps. A line of a known
// histogram that is cut off or malformed is an error with its line: a lost bucket would change the
// shares of all others.
func parseBpftrace(data, name string) (*Bpftrace, error) {
	b := &Bpftrace{samples: map[bucket]int64{}, below: map[string]int64{}}
	headers := map[string]int{} // name and key → line
	current, line := "", 0
	for text := range strings.Lines(data) {
		line++
		text = strings.TrimSpace(text)
		m := mapLine.FindStringSubmatch(text)
		var err error
		switch {
		// The wrapper prints the traced process; bpftrace itself does not.
		case strings.HasPrefix(text, wrapperLine):
			b.process = text[len(wrapperLine):]
		case m != nil && used[m[1]] != "" && m[3] == "":
			current, b.keyed = m[1], b.keyed || m[2] != ""
			if first, again := headers[m[1]+m[2]]; again {
				err = fmt.Errorf("@%s comes again after line %d: the text holds several runs; "+
					"save each of them as a file of its own", current, first)
			}
			headers[m[1]+m[2]] = line
		case m != nil:
			current = ""
		case current != "" && strings.IndexAny(text, "[(") == 0:
			err = b.bucket(current, text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
	for _, m := range leftover.FindAllStringSubmatch(data, -1) {
		at, _ := strconv.ParseFloat(m[2], 64)
		b.times = append(b.times, at)
		if m[1] == "d" {
			b.left++
		}
	}
	if b.histogram("bssplit_read_kb").Count+b.histogram("bssplit_write_kb").Count == 0 {
		return nil, fmt.Errorf("%s:%d: the text ends without a bucket of @bssplit_read_kb or "+
			"@bssplit_write_kb: was it saved before bpftrace printed its maps, or made by "+
			"another script?", name, max(1, line))
	}
	return b, nil
}

// bucket reads "[4K, 8K)  12 |@@  |", "[1]", and the open ends "(..., 0)" and "[8000, ...)".
func (b *Bpftrace) bucket(name, text string) error {
	m := bucketLine.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("@%s: %q is no bucket, or cut off", name, text[:min(len(text), 60)])
	}
	count, _ := strconv.ParseInt(m[3], 10, 64)
	low, high := bpftraceNumber(m[1]), bpftraceNumber(m[2])
	switch {
	case count == 0:
		return nil
	case m[1] == "..." || low < 0:
		b.below[name] += count
		return nil
	case m[2] == "":
		high = low + 1
	case m[2] == "...":
		high = low
	case high <= low:
		return fmt.Errorf("@%s: %q is no bucket: its bounds are not two rising numbers", name, text)
	}
	if used[name] == "kb" && low >= 1<<20 {
		return fmt.Errorf("@%s: no request has %.0f KiB: is the map in KiB?", name, low)
	}
	b.samples[bucket{name, low, high}] += count
	return nil
}

// bpftraceNumber reads 512 or 64K: the letters are powers of 1024.
func bpftraceNumber(s string) float64 {
	digits := strings.TrimRight(s, "KMGTPE")
	v, _ := strconv.ParseFloat(digits, 64)
	return math.Ldexp(v, 10*strings.Index(" KMGTPE", s[len(digits):]))
}

// histogram returns the histogram of a name, empty without samples. Its sum is an estimate: values
// count as the middle of their buckets.
func (b *Bpftrace) histogram(name string) tracing.Histogram {
	var list []tracing.Bucket
	for k, n := range b.samples {
		if k.name == name {
			list = append(list, tracing.Bucket{Range: [2]float64{k.low, k.high}, Count: n})
		}
	}
	slices.SortFunc(list, func(a, b tracing.Bucket) int {
		return slices.Compare(a.Range[:], b.Range[:])
	})
	sum := 0.0
	for i := range list {
		r := &list[i].Range
		if r[0] == r[1] { // open-ended: as wide as the previous bucket
			width := 1.0
			if i > 0 {
				width = list[i-1].Range[1] - list[i-1].Range[0]
			}
			r[1] += width
		}
		sum += float64(list[i].Count) * list[i].Middle()
	}
	return tracing.NewHistogram(used[name], sum, list)
}

// Trace converts the text to the form of a Collector's Snapshot. window is how long the script ran
// under load: the text does not contain it, and the mean depth depends on it. With window 0 the
// times of pending requests give it, if there are enough. Doubts are in Capture.Warnings. about is
// what the header of the fio job says of the text.
func (b *Bpftrace) Trace(window time.Duration) (t *tracing.Trace, about []string) {
	t = &tracing.Trace{Capture: tracing.Capture{Status: tracing.StatusTraced, Attach: "bpftrace",
		Level: tracing.LevelBlock, Filter: tracing.FilterDevice, Watched: b.process,
		WindowNS: int64(window)}}
	c := &t.Capture
	t.SizeRead, t.SizeWrite = b.histogram("bssplit_read_kb"), b.histogram("bssplit_write_kb")
	t.D2CRead, t.D2CWrite = b.histogram("d2c_read_us"), b.histogram("d2c_write_us")
	t.LBARead, t.LBAWrite = b.histogram("lba_read_gb"), b.histogram("lba_write_gb")
	b.requests(t)
	depth := b.depth(c)
	if n := dropEmpty(t); n > 0 {
		c.Warn("%d requests of less than 1 KiB were left out: most disks take none", n)
	}
	for _, h := range []string{"bssplit_read_kb", "bssplit_write_kb", "d2c_read_us",
		"d2c_write_us"} {
		if n := b.below[h]; n > 0 {
			c.Warn("%d samples of @%s are negative and were left out", n, h)
		}
	}
	if b.keyed {
		c.Warn("the histograms have keys: those of one name were added up")
	}
	about = []string{
		"not in the text: model, users, bytes per token, exact sizes and bytes, the device, " +
			"flushes, pauses",
		"every process is in it, and every block device unless the script was given one",
		fmt.Sprintf("requests: %d reads, %d writes", c.Read.Requests, c.Write.Requests),
		"sizes are the lower ends of their buckets, which reach to twice that",
	}
	return t, append(about, depth...)
}

// requests computes the number of requests. The script counts all dispatches, and those completions
// that it can match. A missing completion was lost, and its request is still in the script's map;
// or the dispatch was a second one: a device whose queue is full returns a request, and the kernel
// dispatches it again.
func (b *Bpftrace) requests(t *tracing.Trace) {
	c := &t.Capture
	sides := []struct {
		to        *tracing.Direction
		size, d2c tracing.Histogram
	}{{&c.Read, t.SizeRead, t.D2CRead}, {&c.Write, t.SizeWrite, t.D2CWrite}}
	issued, missing, odd := int64(0), int64(0), int64(0)
	for _, s := range sides {
		n, done := s.size.Count, s.d2c.Count
		s.to.Issued, s.to.Requests = n, n
		issued += n
		odd += max(0, done-n)
		if done > 0 {
			missing += max(0, n-done)
		}
	}
	again := missing > int64(2*b.left) && b.left < fullMap
	for _, s := range sides {
		if n := s.d2c.Count; again && n > 0 && n < s.to.Issued {
			s.to.Requeued, s.to.Requests = s.to.Issued-n, n
		}
		s.to.D2CNS = int64(1000 * trimmedMean(s.d2c) * float64(s.to.Requests))
	}
	off := offShare * float64(issued)
	switch {
	case float64(missing) > off && again:
		c.Warn("%d of %d dispatches were not the first of their request (the device's queue was "+
			"full): their sizes count twice", missing, issued)
	case float64(missing) > off:
		c.Warn("the script lost the completions of %d of %d requests", missing, issued)
	}
	if float64(odd) > off {
		c.Warn("the script saw %d completions more than dispatches: it finds requests by their "+
			"place on the device, which two may share", odd)
	}
}

// trimmedMean is the mean without the largest values.
func trimmedMean(h tracing.Histogram) float64 {
	if h.Count == 0 {
		return 0
	}
	keep := h.Count - int64(longShare*float64(h.Count))
	n, sum := int64(0), 0.0
	for _, b := range h.Buckets {
		k := min(b.Count, keep-n)
		n, sum = n+k, sum+float64(k)*b.Middle()
	}
	return sum / float64(n)
}

// depth is Little's law over the window, or over the span of the pending requests' times. The
// script's own counters of requests in flight are not used: they are not atomic, miss completions
// and drift.
func (b *Bpftrace) depth(c *tracing.Capture) (about []string) {
	busy := float64(c.Read.D2CNS + c.Write.D2CNS)
	given := c.WindowNS > 0
	if !given && len(b.times) >= spanTimes {
		if span := slices.Max(b.times) - slices.Min(b.times); span > float64(time.Second) {
			c.WindowNS = int64(span)
		}
	}
	if busy == 0 || c.WindowNS == 0 {
		c.WindowNS, c.Read.MeanDepth = 0, guessDepth
		c.Warn("the depth %d is a guess: the text does not say how long it was traced; -window "+
			"sets it", guessDepth)
		return nil
	}
	c.Read.MeanDepth = float64(c.Read.D2CNS) / float64(c.WindowNS)
	c.Write.MeanDepth = float64(c.Write.D2CNS) / float64(c.WindowNS)
	depth := fmt.Sprintf("mean depth about %.1f", c.Read.MeanDepth+c.Write.MeanDepth)
	if given {
		return []string{fmt.Sprintf("%s: the time at the device ÷ the given window of %s", depth,
			c.Window())}
	}
	c.Warn("the depth is the time at the device ÷ %s, which the times of requests left over "+
		"span; if it was traced for longer, the depth was less: set -window",
		c.Window().Round(100*time.Millisecond))
	return []string{depth}
}

// dropEmpty removes requests of less than 1 KiB, unless there are no others: a disk with blocks of
// 4 KiB refuses a job with them.
func dropEmpty(t *tracing.Trace) (dropped int64) {
	for _, h := range []*tracing.Histogram{&t.SizeRead, &t.SizeWrite} {
		if h.Count == 0 || h.Buckets[0].Range[0] > 0 || len(h.Buckets) == 1 {
			continue
		}
		first := h.Buckets[0]
		dropped += first.Count
		*h = tracing.NewHistogram(h.Unit, h.Sum-float64(first.Count)*first.Middle(), h.Buckets[1:])
	}
	return dropped
}
