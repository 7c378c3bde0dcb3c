package report

import (
	"fmt"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// plain describes plain I/O, the queue-depth sweep that found its number in flight, and the cost of
// removal. Other loads have none.
func plain(r *result.Result) (s Section) {
	p := r.PlainIO
	if p == nil {
		return s
	}
	s.Title = "Plain I/O"
	size := bytes(p.FileBytes)
	if p.FileBytes == 0 {
		size = "another size on each rank"
	}
	line := fmt.Sprintf("%ss of %s, %s at most", kept(r), size, bytes(p.FootprintBytes))
	if p.BlockBytes > 0 {
		// Without flushes a drive may still keep all data in its memory.
		line = fmt.Sprintf("requests of %s at random places in files of %s, %s in all, without "+
			"flushes", bytes(p.BlockBytes), size, bytes(p.FootprintBytes))
	}
	// Otherwise a reader would take a short window for a fault.
	if r.EndedBy == result.EndedByFootprint {
		line += ", which were full before the window's time was up: writing on would need removals"
	}
	s.put("plain I/O", line)
	if len(p.Sweep) > 0 {
		var steps []string
		for _, step := range p.Sweep {
			steps = append(steps, fmt.Sprintf("%s with %d", rate(step.Rate()), step.InFlight))
		}
		s.line("", "%d requests in flight, by a queue-depth sweep before the window: %s",
			r.Workload.Workers, strings.Join(steps, ", "))
	}
	if m, what := r.Removal, kept(r); m != nil {
		s.line("removal", "%s, %s in all, were removed: %s %ss/s, %s freed; the last was gone after %s",
			units.Plural(m.Files, what), bytes(m.Bytes), number(m.FilesPerSecond), what,
			rate(m.BytesPerSecond), ns(m.UnlinkNS))
		if r.Objects == nil { // what a store does after its response is unknown
			s.Lines[len(s.Lines)-1].Text += ", discarded after " + ns(m.QuietNS)
		}
	}
	return s
}

// kept names what plain I/O writes: files or objects.
func kept(r *result.Result) string {
	if r.Objects != nil {
		return "object"
	}
	return "file"
}

// blockIO is requests inside files: their rate, latency and cost. The requested number in flight
// stands next to the actual one: if they differ the process, not the device, was late. A request
// here is a whole operation, so its latency stands in the table of I/O requests alone.
func blockIO(r *result.Result) (s Section) {
	p := r.PlainIO
	if p == nil || p.BlockBytes == 0 {
		return s
	}
	s = Section{Title: "Requests Inside Files", Topic: "block I/O",
		Note: "Requests of one size at random places in files that stay open, without flushes. " +
			"In flight is the mean number at the device, CPU what this process used of its " +
			"processors for a request.",
		Columns: columns("operation", units.Bytes, "size", units.Count, "requested", units.Number,
			"in flight", "requests/s", units.BytesPerSec, "rate", units.Nanoseconds, "mean", "p50",
			"p99", "p99.9", "CPU")}
	lat := r.Latency.Levels["storage"]
	read, write := r.StorageTraffic()
	latencies := []result.Distribution{lat.Read.Request, lat.Write.Request}
	for i, n := range []result.TierTraffic{read, write} {
		if l := latencies[i]; n.Requests > 0 {
			s.add(strings.TrimSpace(directions[i]), p.BlockBytes, int64(r.Workload.Workers),
				n.MeanInFlight, p.RequestsPerSecond, n.BytesPerSecond, l.Mean, l.P50, l.P99,
				l.P999, p.CPUNSPerRequest)
		}
	}
	return s
}
