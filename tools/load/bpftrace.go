package load

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbench/tracing"
)

// Bpftrace is what a saved text of bpftrace says of block requests: the output of the Python benchmark's script
// storage_latency_stack.bt, or of any other script with maps of the same names, on which bpftrace prints at its end
//
//	@bssplit_read_kb:
//	[64, 128)           1495 |@@@@@@@@@@@@@                                       |
//
// Everything is known to a power of two, and much not at all: Trace says what.
type Bpftrace struct {
	hists   tracing.Histograms
	process string           // whose calls were traced, where the script's wrapper printed it
	gauges  map[string]int64 // of requests in flight, when the script ended
	// Requests and calls that the script still waited for at its end.
	left                int64   // block requests
	leftTimes           int     // how many of them say when they began
	leftFirst, leftLast float64 // ns
	below               map[string]int64
	keyed               bool
}

// BpftraceError says which line of the text cannot be read.
type BpftraceError struct {
	Line int // from 1
	Err  error
}

func (e *BpftraceError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with the line.
func (e *BpftraceError) Unwrap() error { return e.Err }

// leftovers are the script's maps of times at which something began that had not ended.
var leftovers = []string{"q", "d", "rs", "ws", "write_enter", "write_done", "fsync_enter", "fadvise_done"}

// byName returns where a histogram is kept, nil for a name that is none.
func byName(h *tracing.Histograms, name string) **tracing.Histogram {
	return map[string]**tracing.Histogram{
		"d2c_read_us": &h.D2CRead, "d2c_write_us": &h.D2CWrite, "q2d_read_us": &h.Q2DRead, "q2d_write_us": &h.Q2DWrite,
		"vfs_read_us": &h.VFSRead, "vfs_write_us": &h.VFSWrite, "vfs_read_sz_kb": &h.VFSReadSize, "vfs_write_sz_kb": &h.VFSWriteSize,
		"fsync_us": &h.Fsync, "write_to_fsync_us": &h.WriteToFsync, "fadvise_to_read_us": &h.FadviseToRead,
		"bssplit_read_kb": &h.SizeRead, "bssplit_write_kb": &h.SizeWrite, "qd_read": &h.DepthRead, "qd_write": &h.DepthWrite,
		"lba_read_gb": &h.LBARead, "lba_write_gb": &h.LBAWrite,
	}[name]
}

// bpftraceUnit is the unit that a histogram's name ends in.
func bpftraceUnit(name string) string {
	switch unit := name[strings.LastIndexByte(name, '_')+1:]; unit {
	case "us", "kb", "gb":
		return unit
	}
	return "requests"
}

// ParseBpftrace reads a saved text, whatever else is printed between the maps. A line of a known histogram that is cut off
// or makes no sense is an error, a *BpftraceError: a bucket that is quietly lost would change the shares of all others.
func ParseBpftrace(r io.Reader) (*Bpftrace, error) {
	p := bpftraceParser{text: &Bpftrace{gauges: map[string]int64{}, below: map[string]int64{}}, seen: map[string]int{}, buckets: map[string][]tracing.Bucket{}}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	line := 0
	for in.Scan() {
		line++
		if err := p.line(strings.TrimSpace(in.Text()), line); err != nil {
			return nil, &BpftraceError{line, err}
		}
	}
	if err := in.Err(); err != nil {
		return nil, &BpftraceError{line + 1, err}
	}
	for name, buckets := range p.buckets {
		*byName(&p.text.hists, name) = textHistogram(bpftraceUnit(name), buckets)
	}
	if p.text.hists.SizeRead.Samples()+p.text.hists.SizeWrite.Samples() == 0 {
		return nil, &BpftraceError{max(1, line), errors.New("the text ends without a bucket of @bssplit_read_kb or @bssplit_write_kb: was it saved before bpftrace printed its maps, or made by another script?")}
	}
	return p.text, nil
}

// IsBpftrace tells by the beginning of a text whether bpftrace may have printed it.
func IsBpftrace(head []byte) bool {
	for l := range strings.Lines(string(head)) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "Attaching ") && strings.HasSuffix(l, " probes...") {
			return true
		}
		if name, _, _, ok := cutMap(l); ok && (byName(&tracing.Histograms{}, name) != nil || slices.Contains(leftovers, name)) {
			return true
		}
	}
	return false
}

type bpftraceParser struct {
	text    *Bpftrace
	current string                      // the histogram whose buckets the lines are
	seen    map[string]int              // name and key → the line of its header
	buckets map[string][]tracing.Bucket // by name, of all keys
}

func (p *bpftraceParser) line(s string, n int) error {
	if who, ok := strings.CutPrefix(s, "Tracing process: "); ok { // the script's wrapper
		p.text.process = who
		return nil
	}
	if name, key, value, ok := cutMap(s); ok {
		p.current = ""
		return p.header(name, key, value, n)
	}
	if p.current == "" || !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "(") {
		return nil // a warning, ^C, an empty line
	}
	b, below, err := parseBpftraceBucket(s)
	if err != nil {
		return fmt.Errorf("@%s: %w", p.current, err)
	}
	switch {
	case b.Count == 0:
	case below:
		p.text.below[p.current] += b.Count
	case bpftraceUnit(p.current) == "kb" && b.Range[0] >= 1<<20:
		return fmt.Errorf("@%s: no request has %.0f KiB: is the map in KiB?", p.current, b.Range[0])
	default:
		p.buckets[p.current] = append(p.buckets[p.current], b)
	}
	return nil
}

// header is a line that begins with a map's name.
func (p *bpftraceParser) header(name, key, value string, n int) error {
	t := p.text
	if byName(&t.hists, name) != nil && value == "" {
		if first, again := p.seen[name+"["+key]; again {
			return fmt.Errorf("@%s comes again after line %d: the text holds several runs; save each of them as a file of its own", name, first)
		}
		p.seen[name+"["+key] = n
		p.current, t.keyed = name, t.keyed || key != ""
		return nil
	}
	v, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil: // what min, max, avg and stats print, strings
	case name == "inflight_read" || name == "inflight_write":
		t.gauges[strings.TrimPrefix(name, "inflight_")] += v
	case slices.Contains(leftovers, name) && key != "":
		if name == "d" {
			t.left++
		}
		if t.leftTimes == 0 || float64(v) < t.leftFirst {
			t.leftFirst = float64(v)
		}
		t.leftTimes, t.leftLast = t.leftTimes+1, max(t.leftLast, float64(v))
	}
	return nil
}

// cutMap takes "@name:", "@name[key]:" or "@name: value" apart.
func cutMap(s string) (name, key, value string, ok bool) {
	rest, ok := strings.CutPrefix(s, "@")
	if !ok {
		return "", "", "", false
	}
	end := strings.IndexAny(rest, "[:")
	if end < 0 {
		return "", "", "", false
	}
	name, rest = rest[:end], rest[end:]
	if rest[0] == '[' {
		at := strings.LastIndex(rest, "]:")
		if at < 0 {
			return "", "", "", false
		}
		key, rest = rest[1:at], rest[at+1:]
	}
	return name, key, strings.TrimSpace(rest[1:]), true
}

// parseBpftraceBucket reads "[4K, 8K)  12 |@@  |", "[1]", and the open ends "(..., 0)" (below is true) and "[8000, ...)", whose
// range is empty.
func parseBpftraceBucket(s string) (b tracing.Bucket, below bool, err error) {
	bad := func(why string) (tracing.Bucket, bool, error) {
		return tracing.Bucket{}, false, fmt.Errorf("%q is no bucket: %s", shortened(s), why)
	}
	end := strings.IndexAny(s, ")]")
	if end < 0 {
		return bad("it is cut off")
	}
	count, bar, ok := strings.Cut(s[end+1:], "|")
	if !ok || !strings.HasSuffix(bar, "|") {
		return bad("it is cut off before the end of its bar")
	}
	if b.Count, err = strconv.ParseInt(strings.TrimSpace(count), 10, 64); err != nil || b.Count < 0 || b.Count > 1<<40 {
		return bad("its count is not a number of samples")
	}
	low, high, isRange := strings.Cut(s[1:end], ",")
	if !isRange {
		if b.Range[0], ok = bpftraceNumber(low); !ok {
			return bad("its value is no number")
		}
		b.Range[1] = b.Range[0] + 1
		return b, b.Range[0] < 0, nil
	}
	low, high = strings.TrimSpace(low), strings.TrimSpace(high)
	if low == "..." {
		return b, true, nil
	}
	var okHigh bool
	b.Range[0], ok = bpftraceNumber(low)
	if b.Range[1], okHigh = bpftraceNumber(high); high == "..." {
		b.Range[1], okHigh = b.Range[0], true
	} else if b.Range[1] <= b.Range[0] {
		okHigh = false
	}
	if !ok || !okHigh {
		return bad("its bounds are not two rising numbers")
	}
	return b, b.Range[0] < 0, nil
}

// bpftraceNumber reads 512 or 64K: the letters are powers of 1024.
func bpftraceNumber(s string) (float64, bool) {
	shift := 0
	if n := len(s); n > 0 {
		if i := strings.IndexByte("KMGTPE", s[n-1]); i >= 0 {
			s, shift = s[:n-1], 10*(i+1)
		}
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return math.Ldexp(float64(v), shift), err == nil
}

// shortened keeps an error message to one line of sensible length, whatever the file held.
func shortened(s string) string {
	const longest = 80
	if len(s) > longest {
		return s[:longest] + "…"
	}
	return s
}

// textHistogram joins the buckets of all keys. Its sum is an estimate: values lie in the middle of their buckets.
func textHistogram(unit string, buckets []tracing.Bucket) *tracing.Histogram {
	slices.SortFunc(buckets, func(a, b tracing.Bucket) int {
		return cmp.Or(cmp.Compare(a.Range[0], b.Range[0]), cmp.Compare(a.Range[1], b.Range[1]))
	})
	var joined []tracing.Bucket
	sum := 0.0
	for _, b := range buckets {
		if b.Range[1] == b.Range[0] { // without an end: as wide as the one before
			width := 1.0
			if n := len(joined); n > 0 {
				width = joined[n-1].Range[1] - joined[n-1].Range[0]
			}
			b.Range[1] += width
		}
		sum += float64(b.Count) * b.Middle()
		if n := len(joined) - 1; n >= 0 && joined[n].Range == b.Range {
			joined[n].Count += b.Count
			continue
		}
		joined = append(joined, b)
	}
	return tracing.NewHistogram(unit, sum, joined)
}
