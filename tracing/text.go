package tracing

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// WriteText writes the trace as text for people: what was captured, the diagnosis, each distribution with
// its percentiles and bars, and the mean depth.
func (t *Trace) WriteText(w io.Writer, app Application) error {
	p := &t.Capture
	out := &textWriter{}
	if p.Status != StatusTraced {
		out.line("Requests were not traced: %s", p.Reason)
		for _, n := range p.Needs {
			out.line("  needed: %s", n)
		}
		if s := p.Stat; s != nil {
			out.line("  %s in %s by the device's own counters: %d reads (%s), %d writes (%s), "+
				"busy %.0f%%", p.Device, p.Window().Round(time.Millisecond),
				s.ReadIOs, size(float64(s.ReadBytes)), s.WriteIOs, size(float64(s.WriteBytes)),
				100*float64(s.IOTicks)/float64(max(1, p.WindowNS)))
		}
		return out.flush(w)
	}
	how := p.Attach
	if p.FileAttach != "" {
		how += ", calls by " + p.FileAttach
	}
	out.line("Traced %s for %s (%s, filter %s)", p.Traced(), p.Window().Round(time.Millisecond),
		how, p.Filter)
	names := [2]string{"reads", "writes"}
	for i, d := range [2]Direction{p.Read, p.Write} {
		if d.Requests > 0 {
			second := max(1e-9, p.Window().Seconds())
			out.line("  %-6s %s IOPS, %s/s: %d requests, %s, %.1f KiB each, mean depth %.2f, "+
				"%.0f%% sequential", names[i], rate(float64(d.Requests)/second),
				size(float64(d.Bytes)/second),
				d.Requests, size(float64(d.Bytes)), float64(d.Bytes)/float64(d.Requests)/1024,
				d.MeanDepth, 100*float64(d.Sequential)/float64(d.Requests))
		}
		if d.WrittenBack > 0 {
			out.line("         %d of them, %s, were written back by the kernel for files in "+
				"the page cache", d.WrittenBack, size(float64(d.WrittenBackBytes)))
		}
	}
	if p.Flushes+p.FlushWaits+p.Discards > 0 {
		whose := ""
		if p.Filter == FilterProcess { // the kernel queues flushes at the device for no process
			whose = fmt.Sprintf(", of all processes; %d of the requests were from the watched "+
				"processes", p.OwnFlushWaits)
		}
		out.line("  flushes %d (%d requests waited for them), discards %d (%s)%s", p.Flushes,
			p.FlushWaits, p.Discards, size(float64(p.DiscardBytes)), whose)
	}
	out.line("Diagnosis: %s", t.Diagnosis(app))
	out.owners(p.Owners)
	for _, h := range t.All() {
		out.histogram(h)
	}
	out.line("")
	out.line("Mean depth at the device: %.2f", p.Read.MeanDepth+p.Write.MeanDepth)
	for _, s := range p.Warnings {
		out.line("Note: %s", s)
	}
	return out.flush(w)
}

// textWriter collects the lines, so that WriteText makes one write, whose error it returns.
type textWriter struct{ strings.Builder }

func (t *textWriter) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

func (t *textWriter) flush(w io.Writer) error {
	_, err := io.WriteString(w, t.String())
	return err
}

// sector is the unit of request sizes, whatever the device's block size.
const sector = 512

// ownersShown is how many processes a text lists.
const ownersShown = 10

// owners lists the processes with the most bytes, and sums up the others.
func (t *textWriter) owners(all []Owner) {
	if len(all) == 0 {
		return
	}
	t.line("")
	t.line("%-24s %10s %10s %10s %10s %10s", "process", "reads", "GiB", "writes", "GiB", "back")
	row := func(name string, o Owner) {
		t.line("%-24s %10d %10.3f %10d %10.3f %10d", name, o.Reads, GiB(o.ReadBytes), o.Writes,
			GiB(o.WriteBytes), o.WrittenBack)
	}
	var rest Owner
	for i, o := range all {
		switch name := o.Name; {
		case i >= ownersShown:
			rest.Reads, rest.ReadBytes = rest.Reads+o.Reads, rest.ReadBytes+o.ReadBytes
			rest.Writes, rest.WriteBytes = rest.Writes+o.Writes, rest.WriteBytes+o.WriteBytes
			rest.WrittenBack += o.WrittenBack
		case o.PID == 0:
			row("the kernel itself", o)
		default:
			row(fmt.Sprintf("%d %s", o.PID, name), o)
		}
	}
	if n := len(all) - ownersShown; n > 0 {
		row(fmt.Sprintf("%d others", n), rest)
	}
	t.line("back: the part of the writes that the kernel wrote back for the process's files")
}

const barWidth = 40

// histogram prints one distribution. It joins buckets to powers of two, which makes about twenty rows.
func (t *textWriter) histogram(n Named) {
	v := func(p float64) string { return unitText(n.Unit, n.Percentile(p)) }
	t.line("")
	t.line("%s (%s): %d samples, mean %s, p50 %s, p95 %s, p99 %s", n.Key, n.Title+", "+n.What, n.Count,
		unitText(n.Unit, *n.Mean), v(50), v(95), v(99))
	rows := rowsOf(n.Histogram)
	most := slices.MaxFunc(rows, func(a, b Bucket) int { return cmp.Compare(a.Count, b.Count) })
	for _, r := range rows {
		from, dots, to := unitText(n.Unit, r.Range[0]), "…", unitText(n.Unit, r.Range[1])
		switch {
		case r.Value > 0:
			from, dots, to = unitText(n.Unit, r.Value), " ", ""
		case n.Unit == "requests" && r.single():
			dots, to = " ", ""
		case n.Unit == "requests": // whole numbers
			to = unitText(n.Unit, r.Range[1]-1)
		}
		t.line("  %10s %s %-10s %10d %5.1f%% %s", from, dots, to, r.Count,
			100*float64(r.Count)/float64(n.Count), bar(r.Count, most.Count))
	}
}

// bar is proportional to count ÷ most, in eighths of a character, so that small values differ.
func bar(count, most int64) string {
	eighths := int(math.Ceil(8 * barWidth * float64(count) / float64(most)))
	whole, rest := eighths/8, eighths%8
	s := strings.Repeat("█", whole)
	if rest > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return s
}

// rowsOf joins buckets to powers of two, except a few buckets of positions on the device. If all samples of
// a row have the same known value, the row's Value is this value.
func rowsOf(h Histogram) []Bucket {
	if h.Unit == "gb" && len(h.Buckets) <= 24 {
		return h.Buckets
	}
	var rows []Bucket
	for _, b := range h.Buckets {
		value := 0.0
		if h.Unit == "kb" && b.Value > 0 && math.Mod(b.Value*1024, sector) == 0 {
			value = b.Value
		}
		low, high := 0.0, b.Range[1]
		if b.Range[0] > 0 {
			low = math.Exp2(math.Floor(math.Log2(max(b.Range[0], 1e-3))))
			high = low * 2
		}
		if last := len(rows) - 1; last >= 0 && rows[last].Range[0] == low {
			rows[last].Count += b.Count
			rows[last].Value = 0
			continue
		}
		rows = append(rows, Bucket{Range: [2]float64{low, high}, Count: b.Count, Value: value})
	}
	return rows
}

// unitText formats a value of a histogram with this Unit.
func unitText(unit string, v float64) string {
	switch unit {
	case "us":
		return Microseconds(v)
	case "kb":
		if v >= 1<<20 {
			return fmt.Sprintf("%.4g GiB", v/(1<<20))
		} else if v >= 1024 {
			return fmt.Sprintf("%.4g MiB", v/1024)
		}
		return fmt.Sprintf("%.4g KiB", v)
	case "gb":
		return fmt.Sprintf("%.4g GiB", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// rate formats requests/s, with decimals for small numbers.
func rate(v float64) string { return fmt.Sprintf("%.*f", max(0, 2-int(math.Log10(max(1, v)))), v) }

// size formats a number of bytes, or of bytes/s.
func size(bytes float64) string { return unitText("kb", bytes/1024) }

// GiB converts bytes to GiB.
func GiB(bytes int64) float64 { return float64(bytes) / (1 << 30) }
