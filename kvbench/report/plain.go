package report

import (
	"fmt"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// plainLines describe plain I/O, the queue-depth sweep that found its number in flight, and the
// cost of removal: lines of a topic, which may be empty, and a text. Other loads have none.
func plainLines(r *result.Result) (lines [][2]string) {
	p := r.PlainIO
	if p == nil {
		return nil
	}
	add := func(topic, text string) { lines = append(lines, [2]string{topic, text}) }
	line := fmt.Sprintf("%ss of %s, %s at most", kept(r), bytes(p.FileBytes),
		bytes(p.FootprintBytes))
	if p.BlockBytes > 0 {
		// Without flushes a drive may still keep all data in its memory.
		line = fmt.Sprintf("requests of %s at random places in files of %s, %s in all, without "+
			"flushes", bytes(p.BlockBytes), bytes(p.FileBytes), bytes(p.FootprintBytes))
	}
	// Otherwise a reader would take a short window for a fault.
	if r.EndedBy == result.EndedByFootprint {
		line += ", which were full before the window's time was up: writing on would need removals"
	}
	add("plain I/O", line)
	if len(p.Ladder) > 0 {
		var steps []string
		for _, r := range p.Ladder {
			steps = append(steps, fmt.Sprintf("%s with %d", rate(r.Rate()), r.InFlight))
		}
		add("", fmt.Sprintf("%d requests in flight, by a ladder before the window: %s",
			r.Workload.Workers, strings.Join(steps, ", ")))
	}
	if r.Removal != nil {
		add("removal", removed(r))
	}
	return lines
}

// kept names what plain I/O writes: files or objects.
func kept(r *result.Result) string {
	if r.Objects != nil {
		return "object"
	}
	return "file"
}

// removed reports, for a log and a summary, the rate at which files were removed, and when the device
// had discarded them. What a store does after its response is unknown.
func removed(of *result.Result) string {
	r, what := of.Removal, kept(of)
	text := fmt.Sprintf("%s, %s in all, were removed: %s %ss/s, %s freed; the last was gone after "+
		"%s", units.Plural(r.Files, what), bytes(r.Bytes), number(r.FilesPerSecond), what,
		rate(r.BytesPerSecond), ns(r.UnlinkNS))
	if of.Objects == nil {
		text += ", discarded after " + ns(r.QuietNS)
	}
	return text
}
