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

// Bpftrace is the saved output of the Python benchmark's bpftrace script, storage_latency_stack.bt, or
// of another script with maps of the same names. bpftrace prints its maps when it ends:
//
//	@bssplit_read_kb:
//	[64, 128)           1495 |@@@@@@@@@@@@@                                       |
//
// Values are known only to a power of two. Some values are missing; Trace says which.
type Bpftrace struct {
	samples map[bucket]int64
	below   map[string]int64 // samples below zero, by map name
	process string           // the traced process, which the script's wrapper prints
	keyed   bool
}

// bucket is a bucket of a histogram. Histograms of one name with several keys are added up.
type bucket struct {
	name      string
	low, high float64 // equal if the bucket has no upper end
}

// Limits, chosen from output of bpftrace 0.17 while fio ran on a loop device.
const (
	// The queue depth if the text does not determine it. The Python benchmark's own fio job generator
	// uses at least this depth.
	guessDepth = 32
	offShare   = 0.01 // the largest share of missing requests without a warning

	// longShare is the share of the longest device times that trimmedMean leaves out. The script
	// identifies a request by its sector. If it loses a completion, it takes the completion of a later
	// request at that sector, seconds later.
	longShare = 0.001
)

// Patterns of lines. They match names and numbers, because bpftrace pads lines and draws bars. attached
// matches a map of the script, or bpftrace's first line, at the head of a file.
var (
	mapLine    = regexp.MustCompile(`^@([^\[:]+)(\[.*\])?:\s*(.*)$`)
	bucketLine = regexp.MustCompile(
		`^[\[(](\.\.\.|-?\d+[KMGTPE]?)(?:, (\.\.\.|\d+[KMGTPE]?))?[\])]` +
			`\s+(\d{1,12}) \|.*\|$`)
	attached = regexp.MustCompile(`(?m)^\s*(Attaching \d+ probes\.\.\.\s*$|@(` +
		`(d2c|q2d|vfs|fsync|write_to_fsync|fadvise_to_read|bssplit|qd|lba)_\w+` +
		`|[qd]|rs|ws|write_enter|write_done|fsync_enter|fadvise_done)[:\[])`)
)

// wrapperLine is the line that the script's wrapper prints first.
const wrapperLine = "Tracing process: "

// used are the histograms from which a fio job is made, with their units.
var used = map[string]string{"bssplit_read_kb": "kb", "bssplit_write_kb": "kb", "d2c_read_us": "us",
	"d2c_write_us": "us", "lba_read_gb": "gb", "lba_write_gb": "gb"}

// parseBpftrace parses a saved text. It ignores text between the maps. A malformed line of a histogram
// in used is an error with the line number: a lost bucket changes the shares of all other buckets.
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
		// bpftrace itself does not print the traced process.
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
	if b.histogram("bssplit_read_kb").Count+b.histogram("bssplit_write_kb").Count == 0 {
		return nil, fmt.Errorf("%s:%d: the text ends without a bucket of @bssplit_read_kb or "+
			"@bssplit_write_kb: was it saved before bpftrace printed its maps, or made by "+
			"another script?", name, max(1, line))
	}
	return b, nil
}

// bucket parses "[4K, 8K)  12 |@@  |", "[1]", and the open ends "(..., 0)" and "[8000, ...)".
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

// bpftraceNumber parses 512 or 64K. The letters are powers of 1024.
func bpftraceNumber(s string) float64 {
	digits := strings.TrimRight(s, "KMGTPE")
	v, _ := strconv.ParseFloat(digits, 64)
	return math.Ldexp(v, 10*strings.Index(" KMGTPE", s[len(digits):]))
}

// histogram returns the histogram of a name, empty without samples. The sum is an estimate from the
// middles of the buckets.
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

// Trace converts the text to a Trace as a Collector returns it. window is the time that the script ran
// under load, which the text does not have; the mean depth depends on it. Capture.Warnings has the
// doubts. about has lines for the header of the fio job.
func (b *Bpftrace) Trace(window time.Duration) (t *tracing.Trace, about []string) {
	t = &tracing.Trace{Capture: tracing.Capture{Status: tracing.StatusTraced, Attach: "bpftrace",
		Level: tracing.LevelBlock, Filter: tracing.FilterDevice, Watched: b.process,
		WindowNS: int64(window)}}
	c := &t.Capture
	t.SizeRead, t.SizeWrite = b.histogram("bssplit_read_kb"), b.histogram("bssplit_write_kb")
	t.D2CRead, t.D2CWrite = b.histogram("d2c_read_us"), b.histogram("d2c_write_us")
	t.LBARead, t.LBAWrite = b.histogram("lba_read_gb"), b.histogram("lba_write_gb")
	b.requests(t)
	about = []string{
		"not in the text: model, users, bytes per token, exact sizes and bytes, the device, " +
			"flushes, pauses",
		"every process is in it, and every block device unless the script was given one",
		fmt.Sprintf("requests: %d reads, %d writes", c.Read.Requests, c.Write.Requests),
		"sizes are the lower ends of their buckets, which reach to twice that",
	}
	// By Little's law. The script's counters of requests in flight are not atomic, miss completions and
	// drift.
	if busy := c.Read.D2CNS + c.Write.D2CNS; busy == 0 || window == 0 {
		c.WindowNS, c.Read.MeanDepth = 0, guessDepth
		c.Warn("the depth %d is a guess: the text does not say how long it was traced; -window "+
			"sets it", guessDepth)
	} else {
		c.Read.MeanDepth = float64(c.Read.D2CNS) / float64(window)
		c.Write.MeanDepth = float64(c.Write.D2CNS) / float64(window)
		about = append(about, fmt.Sprintf("mean depth about %.1f: the time at the device ÷ the "+
			"given window of %s", float64(busy)/float64(window), window))
	}
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
	return t, about
}

// requests computes the numbers of requests and their time at the device. The script counts all
// dispatches, but only completions that it can match. If a completion is missing, either the script lost
// it, or the device's queue was full and the kernel dispatched the request twice.
func (b *Bpftrace) requests(t *tracing.Trace) {
	c := &t.Capture
	var issued, missing, odd int64
	for _, side := range []struct {
		to        *tracing.Direction
		size, d2c tracing.Histogram
	}{{&c.Read, t.SizeRead, t.D2CRead}, {&c.Write, t.SizeWrite, t.D2CWrite}} {
		n, done := side.size.Count, side.d2c.Count
		side.to.Issued, side.to.Requests = n, n
		side.to.D2CNS = int64(1000 * trimmedMean(side.d2c) * float64(n))
		issued += n
		odd += max(0, done-n)
		if done > 0 {
			missing += max(0, n-done)
		}
	}
	if float64(missing) > offShare*float64(issued) {
		c.Warn("%d of %d dispatches have no completion: the script lost it, or the device's queue "+
			"was full and they were dispatched again, so that their sizes count twice", missing,
			issued)
	}
	if float64(odd) > offShare*float64(issued) {
		c.Warn("the script saw %d completions more than dispatches: it finds requests by their "+
			"place on the device, which two may share", odd)
	}
}

// trimmedMean returns the mean of a histogram without the share longShare of its largest values.
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

// dropEmpty removes requests of less than 1 KiB if there are larger ones: a disk with blocks of 4 KiB
// refuses such a job. It returns their number.
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
