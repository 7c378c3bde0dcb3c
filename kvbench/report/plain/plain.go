package plain

import (
	"fmt"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// How values read in a sentence, as they do in the tables below it.
var (
	number, bytes = units.Number.Text, units.Bytes.Text
	rate, ns      = units.BytesPerSec.Text, units.Nanoseconds.Text
)

// Lines says what plain I/O covers, by which rungs its number in flight was found, so that a reader
// can judge that choice, and what removal cost: lines of a topic, which may be empty, and a text.
// Of another load there are none.
func Lines(r *result.Result) (lines [][2]string) {
	p := r.PlainIO
	if p == nil {
		return nil
	}
	add := func(topic, text string) { lines = append(lines, [2]string{topic, text}) }
	line := kept(r) + fmt.Sprintf("s of %s, %s at most", bytes(p.FileBytes),
		bytes(p.FootprintBytes))
	if p.BlockBytes > 0 {
		// That nothing is flushed is said where the rates stand: a drive may still have it all in
		// its memory.
		line = fmt.Sprintf("requests of %s at random places in files of %s, %s in all, without "+
			"flushes", bytes(p.BlockBytes), bytes(p.FileBytes), bytes(p.FootprintBytes))
	}
	// Else a reader would take a short window for a fault.
	if r.EndedBy == result.EndedByFootprint {
		line += ", which were full before the window's time was up: writing on would need removals"
	}
	add("plain I/O", line)
	if len(p.Ladder) > 0 {
		var rungs []string
		for _, r := range p.Ladder {
			rungs = append(rungs, fmt.Sprintf("%s with %d", rate(r.Rate()), r.InFlight))
		}
		add("", fmt.Sprintf("%d requests in flight, by a ladder before the window: %s",
			r.Workload.Workers, strings.Join(rungs, ", ")))
	}
	if r.Removal != nil {
		add("removal", Removed(r))
	}
	return lines
}

// kept is what plain I/O writes: a file each time, or an object.
func kept(r *result.Result) string {
	if r.Objects != nil {
		return "object"
	}
	return "file"
}

// Removed says in a sentence, of a log and of a summary, how fast files went, and when the device
// had discarded them, too. What a store does behind its answer nobody sees.
func Removed(of *result.Result) string {
	r, what := of.Removal, kept(of)
	text := fmt.Sprintf("%s, %s in all, were removed: %s %ss/s, %s freed; the last was gone after "+
		"%s", units.Plural(r.Files, what), bytes(r.Bytes), number(r.FilesPerSecond), what,
		rate(r.BytesPerSecond), ns(r.UnlinkNS))
	if of.Objects == nil {
		text += ", discarded after " + ns(r.QuietNS)
	}
	return text
}
