package tracing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Text is the trace as text for people: what was captured, the diagnosis, each distribution with its percentiles
// and bars, and the mean depth.
func (t *Trace) Text(app Application) string {
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
				s.ReadIOs, Size(s.ReadBytes), s.WriteIOs, Size(s.WriteBytes),
				100*float64(s.IOTicks)/float64(max(1, p.WindowNS)))
		}
		return out.String()
	}
	whose := ""
	if p.Filter == FilterProcess {
		whose = ": " + cmp.Or(p.Watched, "the watched processes")
	}
	out.line("Traced %s for %s%s", p.Traced(), p.Window().Round(time.Millisecond), whose)
	out.directions(t)
	out.line("Diagnosis: %s", t.Diagnosis(app))
	if n := p.Write.WrittenBack; n > 0 {
		out.line("%d of the writes, %s, were written back by the kernel for files in the page cache", n,
			Size(p.Write.WrittenBackBytes))
	}
	if p.Flushes+p.FlushWaits+p.Discards > 0 {
		whose := ""
		if p.Filter == FilterProcess { // the kernel queues flushes at the device for no process
			whose = fmt.Sprintf(", of all processes; %d of the requests were from the watched "+
				"processes", p.OwnFlushWaits)
		}
		out.line("%d flushes (%d requests waited for them), %d discards (%s)%s", p.Flushes,
			p.FlushWaits, p.Discards, Size(p.DiscardBytes), whose)
	}
	out.owners(p.Owners)
	for _, h := range t.All() {
		out.histogram(h)
	}
	out.line("")
	for _, s := range p.Warnings {
		out.line("Note: %s", s)
	}
	how := p.Attach
	if p.FileAttach != "" {
		how += ", calls by " + p.FileAttach
	}
	out.line("Attached to the kernel by %s", how)
	return out.String()
}

// Brief returns the diagnosis, and a line for each histogram.
func (t *Trace) Brief(app Application) []string {
	lines := []string{"what limited the device: " + t.Diagnosis(app)}
	for _, h := range t.All() {
		lines = append(lines, fmt.Sprintf("%-28s %9d samples, p50 %s, p95 %s, p99 %s", h.Title, h.Count, h.text(50),
			h.text(95), h.text(99)))
	}
	return lines
}

// directions writes the table of what a reader asks first: rates, request size, depth and latency.
func (t *textWriter) directions(trace *Trace) {
	p := &trace.Capture
	row := func(cells ...any) { t.line("%-7s%10s%14s%11s%12s%12s%6s%13s%10s%12s", cells...) }
	row("", "IOPS", "throughput", "requests", "mean size", "mean depth", "most", "latency p50", "p99",
		"sequential")
	names := [2]string{"reads", "writes"}
	second := max(1e-9, p.Window().Seconds())
	depths := [2]Histogram{trace.DepthRead, trace.DepthWrite}
	times := [2]Histogram{trace.D2CRead, trace.D2CWrite}
	for i, d := range [2]Direction{p.Read, p.Write} {
		if d.Requests == 0 {
			continue
		}
		each := float64(d.Requests)
		row(names[i], rate(each/second), size(float64(d.Bytes)/second)+"/s", fmt.Sprint(d.Requests),
			size(float64(d.Bytes)/each), fmt.Sprintf("%.2f", d.MeanDepth), depths[i].most(),
			times[i].text(50), times[i].text(99), fmt.Sprintf("%.0f %%", 100*float64(d.Sequential)/each))
	}
}

// text returns a percentile as text.
func (h Histogram) text(percent float64) string { return unitText(h.Unit, h.Percentile(percent)) }

// most returns the upper bound of a histogram of whole numbers, with ≤ if the last bucket has several numbers.
func (h Histogram) most() string {
	if h.Count == 0 {
		return "–"
	}
	last := h.Buckets[len(h.Buckets)-1].Range
	if last[1]-last[0] > 1 {
		return fmt.Sprint("≤ ", last[1]-1)
	}
	return fmt.Sprint(last[1] - 1)
}

// textWriter collects lines.
type textWriter struct{ strings.Builder }

func (t *textWriter) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

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
	t.line("%-24s %10s %11s %10s %11s %10s", "process", "reads", "read", "writes", "written", "back")
	row := func(name string, o Owner) {
		t.line("%-24s %10d %11s %10d %11s %10d", name, o.Reads, Size(o.ReadBytes), o.Writes,
			Size(o.WriteBytes), o.WrittenBack)
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
	summary := fmt.Sprintf("mean %s, p50 %s, p95 %s, p99 %s", unitText(n.Unit, *n.Mean), n.text(50),
		n.text(95), n.text(99))
	if n.Unit == "gb" { // a percentile of places would lie anywhere in a bucket of GiBs
		summary = fmt.Sprintf("from %s to %s", unitText(n.Unit, n.Buckets[0].Range[0]),
			unitText(n.Unit, n.Buckets[len(n.Buckets)-1].Range[1]))
	}
	t.line("")
	t.line("%s (%s): %d samples, %s", n.Key, n.Title+", "+n.What, n.Count, summary)
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
		names := []string{"KiB", "MiB", "GiB", "TiB"}
		for v >= 1024 && len(names) > 1 {
			v, names = v/1024, names[1:]
		}
		return fmt.Sprintf("%.4g %s", v, names[0])
	case "gb":
		return fmt.Sprintf("%.4g GiB", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// rate formats requests/s, with decimals for small numbers.
func rate(v float64) string { return fmt.Sprintf("%.*f", max(0, 2-int(math.Log10(max(1, v)))), v) }

// size formats a number of bytes, or of bytes/s.
func size(bytes float64) string { return unitText("kb", bytes/1024) }

// Size formats a number of bytes.
func Size(bytes int64) string { return size(float64(bytes)) }

// Application has the bytes that a program read and wrote by its own counters, from the device or from a
// cache. The comparison with a trace shows whether a cache served the reads. All fields are optional.
type Application struct {
	ReadBytes, WriteBytes int64
	// Remote: the storage is on a network, and its requests use no block device of this host.
	Remote bool
}

// Diagnosis returns one sentence about what limited the run, as far as the counters of the device show it.
func (t *Trace) Diagnosis(app Application) string {
	p := &t.Capture
	if p.Status != StatusTraced {
		return "unknown: requests were not traced"
	}
	window := float64(max(1, p.WindowNS))
	depth := p.Read.MeanDepth + p.Write.MeanDepth
	busy, least := 1-float64(p.IdleNS)/window, ""
	if !p.IdleKnown {
		// Sequential requests give the largest possible busy time at this depth.
		busy, least = min(1, depth), "at least "
	}
	requests := p.Requests()
	// Means per request. The wait for the dispatch is known only of requests whose queueing was seen.
	queued := float64(p.Read.Q2DNS+p.Write.Q2DNS) / float64(max(1, p.Read.Q2DSamples+p.Write.Q2DSamples)) / 1000
	served := float64(p.Read.D2CNS+p.Write.D2CNS) / float64(max(1, requests)) / 1000
	if app.ReadBytes == 0 && p.Device != "" { // calls on files of this device
		app.ReadBytes = int64(t.VFSReadSize.Sum * 1024)
	}
	switch {
	case app.Remote || p.Device == "" && len(p.Members) == 0 && app.ReadBytes+app.WriteBytes > 0:
		return "unknown: the storage is no block device of this host"
	case requests == 0 && app.ReadBytes+app.WriteBytes+t.VFSRead.Count+t.VFSWrite.Count > 0:
		return "cache-served: no request reached the device, a cache in memory served all of them"
	case requests == 0:
		return "idle: no request reached the device"
	case p.CacheServed(app):
		return fmt.Sprintf("cache-served: %.0f%% of the application's bytes were read from the device, "+
			"the others from the page cache", 100*float64(p.OwnReadBytes())/float64(app.ReadBytes))
	case queued > served:
		return fmt.Sprintf("scheduler-bound: requests waited %s for their dispatch and took %s "+
			"at the device", Microseconds(queued), Microseconds(served))
	case busy < 0.7:
		return fmt.Sprintf("host-bound: no request was in flight for %s%.0f%% of the window; load, "+
			"program, filesystem or processor did not submit more requests", least, 100*(1-busy))
	}
	inFlight := " (lost completions hide for how long there was none)"
	if p.IdleKnown {
		inFlight = fmt.Sprintf(" (at least one for %.0f%% of the window)", 100*busy)
	}
	return fmt.Sprintf("device-bound: %.1f requests were in flight on average%s; a request took %s at "+
		"the device on average", depth, inFlight, Microseconds(served))
}

// cacheShare: if the device moved less than this share of the application's bytes, a cache served the
// others.
const cacheShare = 0.95

// CacheServed reports whether the device read much less than the application did.
func (c *Capture) CacheServed(app Application) bool {
	return app.ReadBytes > 0 && float64(c.OwnReadBytes()) < cacheShare*float64(app.ReadBytes)
}

// OwnReadBytes returns the bytes that the device read for the watched processes. Requests at the members
// of a stacked device are often queued by the kernel, for no process, so all of them count.
func (c *Capture) OwnReadBytes() int64 {
	if c.Filter == FilterDevice && len(c.Members) == 0 {
		return c.Read.Bytes - c.Read.ForeignBytes
	}
	return c.Read.Bytes
}

// Microseconds formats a time of a histogram for people.
func Microseconds(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.3g s", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.3g µs", us)
}
